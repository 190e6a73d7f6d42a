"""Who holds the lock on a file. Standard library only: lists of sessions are made before anything else is loaded.

The lock is ``flock`` on the session file itself: it goes when its holder dies, however it dies, so there is nothing
stale to clean up. Linux tells in ``/proc/locks`` who has it; asking there takes no lock, so it cannot make a real
opener fail.
"""

import fcntl
import os
from pathlib import Path

_PROC_LOCKS = Path("/proc/locks")


def take(fd: int) -> bool:
    """Lock an open file for this process alone; False when somebody has it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def release(fd: int) -> None:
    """Unlock, also for a child that is just being started and still shares the open file."""
    fcntl.flock(fd, fcntl.LOCK_UN)


Holders = dict[tuple[int, int, int], int]
"""Device (major, minor) and inode of a locked file -> its holder's pid."""


def holders() -> Holders | None:
    """All locks of this kind on this machine; None where the system does not tell."""
    try:
        lines = _PROC_LOCKS.read_text("ascii", "replace").splitlines()
    except OSError:
        return None
    found: Holders = {}
    for line in lines:
        words = line.split()
        if len(words) >= 6 and words[1] == "FLOCK":
            major, minor, inode = words[5].split(":")
            found[int(major, 16), int(minor, 16), int(inode)] = max(int(words[4]), 0)
    return found


def holder(status: os.stat_result, among: Holders) -> int | None:
    """The pid of a file's holder, 0 if it is unknown; None when nobody is seen to hold it."""
    exact = among.get((os.major(status.st_dev), os.minor(status.st_dev), status.st_ino))
    if exact is not None:
        return exact
    # Some file systems give ``stat`` another device number than the kernel's list: there the inode alone must do.
    return next((pid for (_, _, inode), pid in among.items() if inode == status.st_ino), None)


def in_use(path: str, among: Holders | None) -> bool:
    """Whether somebody holds the lock on a file. Asks the file itself only where the list leaves a doubt."""
    try:
        status = os.lstat(path)
        if among is not None and (os.major(status.st_dev), os.minor(status.st_dev), status.st_ino) in among:
            return True
        if among is not None and holder(status, among) is None:
            return False
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(fd)
