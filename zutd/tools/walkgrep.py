"""A small ``grep -rnHI`` for systems that have neither rg nor grep. Standard library only; run as a program.

A program of its own, because a pattern can keep Python's ``re`` busy for ever, and a program can be killed.
Usage: ``walkgrep.py PATTERN ROOT``. Exit status: 0 matches, 1 none, 2 trouble (said on stderr).
"""

import os
import re
import stat
import sys
from collections.abc import Iterator

_SNIFFED = 32 * 1024


def files(root: str) -> Iterator[str]:
    """The regular files at and below ``root``, in order; links are not followed, ``.git`` is left out."""
    if not os.path.isdir(root):
        yield root
        return
    for directory, names, leaves in os.walk(root):
        names[:] = sorted(name for name in names if name != ".git")
        for leaf in sorted(leaves):
            yield os.path.join(directory, leaf)


def search(pattern: re.Pattern[bytes], path: str) -> bool:
    """Print the matching lines of one file; whether there were any."""
    found = False
    with open(path, "rb") as file:
        if b"\0" in file.read(_SNIFFED):
            return False
        file.seek(0)
        for number, line in enumerate(file, 1):
            if pattern.search(line.rstrip(b"\r\n")):
                found = True
                sys.stdout.buffer.write(b"%s:%d:%s\n" % (os.fsencode(path), number, line.rstrip(b"\n")))
    return found


def main(raw: str, root: str) -> int:
    """Search; the exit status."""
    try:
        pattern = re.compile(os.fsencode(raw))
    except re.error as error:
        sys.stderr.write(f"invalid pattern: {error}\n")
        return 2
    found = trouble = False
    for path in files(root):
        try:
            if stat.S_ISREG(os.lstat(path).st_mode) or path == root:
                found |= search(pattern, path)
        except OSError:
            trouble = True
    sys.stdout.flush()
    return 2 if trouble else 0 if found else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
