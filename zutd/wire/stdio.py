"""Our own stdin and stdout as a pair of streams, and nobody else's.

Descriptor 0 and 1 are moved away at the start; 0 then reads nothing and 1 goes where 2 goes. So no print, no
warning, no library and no child process can write into the protocol or steal a byte of it.
"""

import os
import sys

import attrs
import trio


@attrs.frozen
class Stdio:
    """The frontend's pipe. Closing a stream gives its open file description the blocking mode that it had."""

    stdin: trio.lowlevel.FdStream
    stdout: trio.lowlevel.FdStream


def claim() -> Stdio:
    """Take over stdin and stdout; call it once, inside trio, before anything else is started."""
    sys.stdout.flush()
    inp, out = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return Stdio(trio.lowlevel.FdStream(inp), trio.lowlevel.FdStream(out))


def release(stdio: Stdio) -> None:
    """Close both streams."""
    stdio.stdin.close()
    stdio.stdout.close()
