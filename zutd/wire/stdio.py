"""Our own stdin and stdout as a pair of streams, and nobody else's.

Descriptor 0 and 1 are moved away at the start; 0 then reads nothing and 1 goes where 2 goes. So no print, no
warning, no library and no child process can write into the protocol or steal a byte of it.

Our streams do not block, and whoever shares an open file with us would not either: our own stderr after ``2>&1``, the
shell behind a terminal, another writer of the same pipe, and their writes would fail for want of room. So pipes and
terminals are opened anew where the system allows it (Linux).
"""

import os
import stat
import sys

import attrs
import trio


@attrs.frozen
class Stdio:
    """The frontend's pipe. Closing a stream gives its open file description the blocking mode that it had.

    ``joined`` says that stderr leads to the same place as stdout (``2>&1``, a terminal), ``terminal`` that stdout is
    one.
    """

    stdin: trio.lowlevel.FdStream
    stdout: trio.lowlevel.FdStream
    joined: bool
    terminal: bool


def claim() -> Stdio:
    """Take over stdin and stdout; call it once, inside trio, before anything else is started."""
    sys.stdout.flush()
    joined, terminal = os.path.sameopenfile(1, 2), os.isatty(1)
    inp, out = _anew(0, os.O_RDONLY), _anew(1, os.O_WRONLY)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return Stdio(trio.lowlevel.FdStream(inp), trio.lowlevel.FdStream(out), joined, terminal)


def open_stderr() -> trio.lowlevel.FdStream:
    """A stream to where stderr goes; to be closed by the caller."""
    return trio.lowlevel.FdStream(_anew(2, os.O_WRONLY))


def _anew(fd: int, flags: int) -> int:
    """Another descriptor of the same pipe or terminal, its blocking mode our own; a plain duplicate of all else."""
    if stat.S_ISFIFO(os.fstat(fd).st_mode) or os.isatty(fd):
        try:
            return os.open(f"/proc/self/fd/{fd}", flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:  # another system, another user's pipe, or nobody reads it any more
            pass
    return os.dup(fd)


def release(stdio: Stdio) -> None:
    """Close both streams."""
    stdio.stdin.close()
    stdio.stdout.close()
