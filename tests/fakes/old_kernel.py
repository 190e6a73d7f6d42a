"""Become a program for which the kernel lacks things: ``old_kernel.py landlock,seccomp -- PROGRAM ARG...``.

The kernel's own answer to who asks for something that it does not know: a filter gives it.
"""

import os
import sys

from zutd.processes import confine

PRCTL = {"x86_64": 157}.get(os.uname().machine, 167)
SET_SECCOMP, GET_SECCOMP = 22, 21
ERROR, ALLOW, LOAD, EQUAL, RETURN = 0x00050000, 0x7FFF0000, 0x20, 0x15, 0x06
FIRST_ARGUMENT = 16
LACKS = {
    "landlock": [(EQUAL, 0, 1, 444), (RETURN, 0, 0, ERROR | 38)],
    "seccomp": [
        *((EQUAL, 0, 4, PRCTL), (LOAD, 0, 0, FIRST_ARGUMENT), (EQUAL, 0, 1, GET_SECCOMP)),
        *((RETURN, 0, 0, ERROR | 22), (RETURN, 0, 0, ALLOW)),
    ],
}


def main() -> None:
    """Lack it, and go on as the program."""
    words, program = sys.argv[1], sys.argv[3:]
    confine._libc.prctl(confine._NO_NEW_PRIVS, 1, 0, 0, 0)
    for name in words.split(","):
        confine.install_filter([(LOAD, 0, 0, 0), *LACKS[name], (RETURN, 0, 0, ALLOW)])
    os.execv(program[0], program)


if __name__ == "__main__":
    main()
