"""Give up rights, then become another program: what runs before an extension that declared its permissions.

``main`` takes ``WORD... -- PROGRAM ARG...``, where a WORD is ``read=PATH``, ``write=PATH``, ``execute=PATH``,
``device=PATH``, ``net``, ``run``, ``landlock=N`` (at most this version; 0 for none) or ``no-seccomp``.
What is not named is taken away, from this process and from whatever it starts, for good:

* Landlock: files that may be read, written, executed; TCP; signals to others and abstract sockets. Whatever is newer
  than the kernel is left out; whoever wrote the words knows what that means.
* seccomp: sockets, new processes, and doors that Landlock does not watch. Errors, never a kill: a library that only
  tries something goes on.
* Capabilities: root keeps none but the one that lets it use other users' files where it may use files at all.

Rules name a place once, when the process starts: they hold for what lies there then, wherever links in it point.
It is loaded by an interpreter without site-packages and imports next to nothing, not even :mod:`typing` (which costs
as much as all the rest): it is paid for at each start of such an extension.
"""

from __future__ import annotations

import ctypes
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Final, NoReturn

FAILED: Final = 125
"""The exit status when the rights could not be given up, or the program not be started. stderr says why."""

LANDLOCK_NEWEST: Final = 7
"""The newest version of Landlock whose rights are known here."""


class ConfineError(Exception):
    """A right could not be given up: the program must not be started."""


class Rights:
    """What is left. ``landlock`` is the version to use, ``seccomp`` whether that may be used."""

    def __init__(self) -> None:
        self.read: list[str] = []
        self.write: list[str] = []
        self.execute: list[str] = []
        self.device: list[str] = []
        self.net = False
        self.run = False
        self.landlock = LANDLOCK_NEWEST
        self.seccomp = True


_libc = ctypes.CDLL(None, use_errno=True)
_libc.prctl.argtypes = (ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong)
_NO_NEW_PRIVS, _GET_SECCOMP, _SET_SECCOMP, _BOUNDING_DROP = 38, 21, 22, 24


def _call(number: int, *values: int | bytes | None) -> int:
    words = [ctypes.c_long(value) if isinstance(value, int) else value for value in values]
    return int(_libc.syscall(ctypes.c_long(number), *words))


def _must(result: int, what: str) -> int:
    if result < 0:
        raise ConfineError(f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def _number(value: int, size: int) -> bytes:
    return value.to_bytes(size, sys.byteorder)


# --- Landlock --------------------------------------------------------------------------------------------------------

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_IN_DIRECTORIES = sum(1 << bit for bit in (4, 5, 7, 8, 10, 12))  # remove and make: directories, files, FIFOs, links
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_READ = _READ_FILE | _READ_DIR
_WRITE = _READ | _WRITE_FILE | _IN_DIRECTORIES | _REFER | _TRUNCATE
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_KNOWN_BITS = {1: 13, 2: 14, 3: 15, 4: 15}
"""How many rights of files each version knows; the later ones know 16."""


def landlock_version() -> int:
    """The kernel's version of Landlock, 0 where there is none."""
    return max(_call(444, None, 0, 1), 0)


def _limit_files(rights: Rights) -> None:
    version = rights.landlock
    handled = (1 << _KNOWN_BITS.get(version, 16)) - 1
    tcp = 3 if version >= 4 and not rights.net else 0
    scoped = 3 if version >= 6 else 0
    attributes = _number(handled, 8) + _number(tcp, 8) + _number(scoped, 8)
    ruleset = _must(_call(444, attributes, len(attributes), 0), "Landlock")
    executable = _EXECUTE if rights.run else 0
    for places, wanted in (
        (rights.read, _READ | executable),
        (rights.write, _WRITE | executable),
        (rights.execute, _READ_FILE | _EXECUTE),
        (rights.device, _READ_FILE | _WRITE_FILE),
    ):
        for place in places:
            _add_rule(ruleset, place, wanted & handled)
    _must(_call(446, ruleset, 0), "Landlock")
    os.close(ruleset)


def _add_rule(ruleset: int, place: str, wanted: int) -> None:
    fd = _open_place(place)
    if fd < 0:
        return
    if not _is_directory(fd):
        wanted &= _OF_FILES
    _must(_call(445, ruleset, 1, _number(wanted, 8) + _number(fd, 4), 0), f"Landlock, {place}")
    os.close(fd)


def _is_directory(fd: int) -> bool:
    return os.fstat(fd).st_mode & 0o170000 == 0o040000  # stat itself costs a millisecond


def _open_place(place: str) -> int:
    """Open a path that holds no link any more; -1 when there is nothing (left) that could be used."""
    how = _number(os.O_PATH | os.O_CLOEXEC, 8) + _number(0, 8) + _number(_NO_LINKS, 8)
    fd = _call(437, -100, os.fsencode(place) + b"\0", how, len(how))
    if fd >= 0 or ctypes.get_errno() in _NOTHING_THERE:
        return fd
    raise ConfineError(f"{place}: {os.strerror(ctypes.get_errno())}")


_NO_LINKS = 4
_NOTHING_THERE = (2, 13, 20)  # ENOENT, EACCES, ENOTDIR


# --- seccomp ---------------------------------------------------------------------------------------------------------

_LOAD, _EQUAL, _AT_LEAST, _HAS_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_EACCES, _ENOSYS = 13, 38
_NUMBER, _ARCHITECTURE = 0, 4
_X32 = 0x40000000
_CLONE_THREAD = 0x10000
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_STREAM, _SEQPACKET = 1, 5


def _table(text: str) -> dict[str, int]:
    return {name: int(number) for name, number in (pair.split() for pair in text.split(","))}


_GENERIC: Final = _table(
    "socket 198, socketpair 199, unshare 97, setns 268, clone 220, clone3 435, memfd_create 279, io_uring_setup "
    "425, prlimit64 261, add_key 217, request_key 218, keyctl 219, shmget 194, shmat 196, semget 190, msgget 186, "
    "mq_open 180, truncate 45, fchmod 52, fchmodat 53, fchmodat2 452, fchownat 54, fchown 55, utimensat 88, "
    "setxattr 5, lsetxattr 6, fsetxattr 7, removexattr 14, lremovexattr 15, fremovexattr 16, setxattrat 463, "
    "removexattrat 466, file_setattr 469"
)
_X86_64: Final = _table(
    "socket 41, socketpair 53, unshare 272, setns 308, clone 56, fork 57, vfork 58, memfd_create 319, prlimit64 "
    "302, add_key 248, request_key 249, keyctl 250, shmget 29, shmat 30, semget 64, msgget 68, mq_open 240, "
    "truncate 76, chmod 90, fchmod 91, chown 92, fchown 93, lchown 94, utime 132, utimes 235, futimesat 261, "
    "fchownat 260, fchmodat 268, utimensat 280, setxattr 188, lsetxattr 189, fsetxattr 190, removexattr 197, "
    "lremovexattr 198, fremovexattr 199"
)
_MACHINES: Final = {
    "x86_64": (0xC000003E, _GENERIC | _X86_64),  # the numbers of what is newer than 424 are the same everywhere
    "aarch64": (0xC00000B7, _GENERIC),
    "riscv64": (0xC00000F3, _GENERIC),
}
"""What seccomp calls a machine, and the numbers of its system calls."""

_ELSEWHERE: Final = ("add_key", "request_key", "keyctl", "shmget", "shmat", "semget", "msgget", "mq_open")
"""The user's keys in the kernel, and memory and queues of other processes: no permission is about them."""

_ATTRIBUTES: Final = (
    *("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchown", "fchownat"),
    *("utime", "utimes", "futimesat", "utimensat", "file_setattr"),
    *("setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr", "setxattrat"),
    "removexattrat",
)
"""Modes, owners, times: Landlock lets everybody change them. Who may write nothing does not need them."""

Instruction = tuple[int, int, int, int]


def seccomp_works() -> bool:
    """Whether filters can be used, and this machine's system calls are known."""
    if os.uname().machine not in _MACHINES or _libc.prctl(_GET_SECCOMP, 0, 0, 0, 0) < 0:
        return False
    _libc.prctl(_SET_SECCOMP, 2, None, 0, 0)
    return ctypes.get_errno() == 14  # EFAULT: it only missed the filter


def _argument(index: int) -> Instruction:
    return (_LOAD, 0, 0, 16 + 8 * index)  # the lower half: the machines that we know have it first


def _answer(error: int) -> Instruction:
    return (_RETURN, 0, 0, _ERROR | error if error else _ALLOW)


def _one_of(*values: int) -> list[Instruction]:
    """Allow if what was loaded is one of these, else refuse."""
    tests = [part for value in values for part in ((_EQUAL, 0, 1, value), _answer(0))]
    return [*tests, _answer(_EACCES)]


def filter_for(rights: Rights, machine: str) -> list[Instruction]:
    """The filter as instructions: for each system call that matters its own little decision."""
    architecture, numbers = _MACHINES[machine]
    families = (_INET, _INET6, _NETLINK) if rights.net else ()
    decisions = {
        "socket": [_argument(0), *_one_of(*families)],
        # A datagram socket from here could still be sent elsewhere, to a path.
        "socketpair": [
            *(_argument(0), (_EQUAL, 1, 0, _UNIX), _answer(_EACCES)),
            *(_argument(1), (_AND, 0, 0, 0xF), *_one_of(_STREAM, _SEQPACKET)),
        ],
        "prlimit64": [_argument(0), *_one_of(0)],
        "io_uring_setup": [_answer(_ENOSYS)],  # it opens sockets and files past this filter
    }
    refused = list(_ELSEWHERE)
    if not rights.run:
        refused += ["fork", "vfork", "unshare", "setns"]
        decisions["clone"] = [_argument(0), (_HAS_BIT, 0, 1, _CLONE_THREAD), _answer(0), _answer(_EACCES)]
        decisions["clone3"] = [_answer(_ENOSYS)]  # its flags are out of sight; libraries fall back to clone
        decisions["memfd_create"] = [_answer(_ENOSYS)]  # what is in no directory could be executed all the same
    if not rights.write:
        refused += _ATTRIBUTES
    if 0 < rights.landlock < 3:
        refused.append("truncate")
    decisions |= {name: [_answer(_EACCES)] for name in refused}
    program: list[Instruction] = [
        *((_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, architecture), _answer(_ENOSYS)),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        program += [(_AT_LEAST, 0, 1, _X32), _answer(_ENOSYS)]
    for name, decision in decisions.items():
        if name in numbers:
            program += [(_EQUAL, 0, len(decision), numbers[name]), *decision]
    return [*program, _answer(0)]


def install_filter(program: Sequence[Instruction]) -> None:
    """Let the kernel decide every system call by a filter from now on. Raises :class:`ConfineError`."""
    code = b"".join(_number(c, 2) + bytes((yes, no)) + _number(k, 4) for c, yes, no, k in program)
    kept = ctypes.create_string_buffer(code, len(code))
    pointer = ctypes.addressof(kept)
    head = _number(len(program), 8) if sys.byteorder == "little" else _number(len(program), 2) + bytes(6)
    _must(_libc.prctl(_SET_SECCOMP, 2, head + _number(pointer, 8), 0, 0), "seccomp")


# --- capabilities ----------------------------------------------------------------------------------------------------

_DAC_OVERRIDE = 1 << 1
_CAPABILITY_VERSION = 0x20080522


def _drop_capabilities() -> None:
    """Root is root by these: without them it can neither mount, nor trace, nor change what is not its own.

    One stays: a daemon that runs as root in a container works on files that belong to others.
    """
    for number in range(64):
        if _libc.prctl(_BOUNDING_DROP, number, 0, 0, 0) < 0:
            break
    header = _number(_CAPABILITY_VERSION, 4) + _number(0, 4)
    data = ctypes.create_string_buffer(24)
    _must(_libc.capget(header, data), "capabilities")
    had = int.from_bytes(data.raw[:4], sys.byteorder)
    kept = _number(had & _DAC_OVERRIDE, 4)
    _must(_libc.capset(header, kept + kept + bytes(16)), "capabilities")


# --- all of it -------------------------------------------------------------------------------------------------------


def confine(rights: Rights) -> None:
    """Give up everything else, for this process and all that it will start. Raises :class:`ConfineError`."""
    _drop_capabilities()
    _must(_libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    if rights.landlock:
        _limit_files(rights)
    if rights.seccomp:
        install_filter(filter_for(rights, os.uname().machine))


def read_words(words: Iterable[str]) -> Rights:
    """What the words say. Raises :class:`ConfineError`."""
    rights = Rights()
    lists = {"read": rights.read, "write": rights.write, "execute": rights.execute, "device": rights.device}
    for word in words:
        key, _, value = word.partition("=")
        if key in lists:
            lists[key].append(f"/proc/{os.getpid()}" if value == "/proc/self" else value)
        elif key == "landlock":
            rights.landlock = min(int(value), LANDLOCK_NEWEST)
        elif key == "no-seccomp":
            rights.seccomp = False
        elif key in ("net", "run"):
            setattr(rights, key, True)
        else:
            raise ConfineError(f"unknown word {word!r}")
    return rights


def main(words: list[str]) -> NoReturn:
    """Confine this process and become the program behind ``--``."""
    import _signal  # type: ignore[import-not-found] # signal itself costs a millisecond, and typeshed has only that

    end = words.index("--")
    program = words[end + 1 :]
    try:
        rights = read_words(words[:end])
        for number in (_signal.SIGPIPE, _signal.SIGXFSZ):  # Python ignores these, and ignoring is inherited
            _signal.signal(number, _signal.SIG_DFL)
        confine(rights)
        os.execv(program[0], program)  # noqa: S606 - this is what it is for
    except ConfineError as exc:
        _say(str(exc))
    except OSError as exc:
        no_interpreter = isinstance(exc, FileNotFoundError) and os.path.exists(program[0])
        _say(f"{program[0]}: {'its interpreter (#!) was not found' if no_interpreter else exc.strerror}")
    os._exit(FAILED)


def _say(text: str) -> None:
    os.write(2, os.fsencode(f"sandbox: {text}\n"))
