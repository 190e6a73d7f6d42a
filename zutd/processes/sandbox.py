"""Start a program with fewer rights: what this machine offers for that, what it comes to, and the words to say it.

Every such program is started through :mod:`zutd.processes.confine`, which gives up rights in its own process. Where
bubblewrap works, that happens inside it: there, what may not be used is not even there. Neither needs privileges.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from typing import Final

import attrs
import trio

from zutd.processes.answer import answer_of
from zutd.processes.group import Watcher, describe_exit

SCOPES: Final = ("read", "write", "net", "run")
"""What can be enforced, or not, each for itself. (What a program is given of the environment always can.)"""

TRIAL_LIMIT: Final = 5.0
"""Seconds that a first try of bubblewrap may take; it needs a few milliseconds."""

_NAMESPACES: Final = ("--unshare-pid", "--unshare-ipc", "--proc", "/proc", "--dev", "/dev")


@attrs.frozen(kw_only=True)
class Place:
    """A file or directory: the path by which it is asked for, and the one without links at which it lies."""

    name: str
    real: str


@attrs.frozen(kw_only=True)
class Confinement:
    """What a program may do.

    ``read`` and ``write`` hold for all that is below; who may write may read. ``execute`` are the files that it is made
    of (its own, its interpreter's, its loader's); with ``run`` it may execute whatever it may read.
    """

    read: tuple[Place, ...] = ()
    write: tuple[Place, ...] = ()
    execute: tuple[Place, ...] = ()
    net: bool = False
    run: bool = False


@attrs.frozen(kw_only=True)
class Facts:
    """What there is to confine with: Landlock's version (0: none), seccomp, the path of a bubblewrap that works.

    ``missing`` says why something is not there.
    """

    landlock: int = 0
    seccomp: bool = False
    bwrap: str = ""
    missing: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """What is used, for people."""
        return tuple(
            name
            for name, there in (
                ("bubblewrap", self.bwrap),
                (f"Landlock {self.landlock}", self.landlock),
                ("seccomp", self.seccomp),
            )
            if there
        )


async def look(search_path: str, watcher: Watcher) -> Facts:
    """Find out what this machine offers; bubblewrap is looked for in ``search_path`` and tried."""
    if sys.platform != "linux":
        return Facts(missing=(f"there is nothing on {sys.platform} that zutd can use",))
    from zutd.processes import confine

    landlock, seccomp = confine.landlock_version(), confine.seccomp_works()
    bwrap, why = await _try_bwrap(search_path, watcher)
    missing = (
        "" if landlock else "the kernel has no Landlock",
        "" if seccomp else "seccomp cannot be used",
        why,
    )
    return Facts(landlock=landlock, seccomp=seccomp, bwrap=bwrap, missing=tuple(text for text in missing if text))


async def _try_bwrap(search_path: str, watcher: Watcher) -> tuple[str, str]:
    """Its path, or why there is none."""
    found, harmless = (shutil.which(name, path=search_path) for name in ("bwrap", "true"))
    if found is None or harmless is None or not found.startswith("/"):
        return "", "bubblewrap (bwrap) is not installed"
    words = (found, *_NAMESPACES, "--unshare-net", "--ro-bind", "/", "/", "--", harmless)
    try:
        with trio.fail_after(TRIAL_LIMIT):
            answer = await answer_of(words, cwd="/", env={"PATH": search_path}, watcher=watcher)
    except OSError as exc:
        return "", f"bubblewrap cannot be started ({exc.strerror})"
    except trio.TooSlowError:
        return "", f"bubblewrap does not work here (nothing within {TRIAL_LIMIT:g} s)"
    if answer.code == 0:
        return found, ""
    said = [*answer.errors.strip().splitlines()[-1:], describe_exit(answer.code)]
    return "", f"bubblewrap does not work here ({said[0]})"


# --- what it comes to ------------------------------------------------------------------------------------------------


def not_enforced(confinement: Confinement, facts: Facts) -> tuple[str, ...]:
    """The scopes that a program confined in this way could step out of: of read, write, net and run."""
    boxed = bool(facts.bwrap)
    files = boxed or facts.landlock > 0
    lost = (
        not files,
        not files or (facts.landlock < _TRUNCATES and not boxed and not facts.seccomp),
        not confinement.net and not facts.seccomp and not boxed,
        not confinement.run and not facts.seccomp,
    )
    return tuple(name for name, is_lost in zip(SCOPES, lost, strict=True) if is_lost)


_TRUNCATES: Final = 3
_SCOPES_SIGNALS: Final = 6


def gaps(confinement: Confinement, facts: Facts) -> tuple[str, ...]:
    """What it can do all the same, although its scopes are enforced: for those who want to know exactly."""
    if facts.bwrap:
        found = {
            "it may replace itself by another program": not facts.landlock and not confinement.run,
            "it may talk to local sockets below the paths that it may use": not facts.seccomp,
        }
    else:
        found = {
            "it can see that a file exists elsewhere, its size and times, but not what is in it": True,
            "it can change modes and times of your files elsewhere": bool(confinement.write),
            "it can empty files that it may read": 0 < facts.landlock < _TRUNCATES,
            "it can send signals to your other processes": facts.landlock < _SCOPES_SIGNALS,
            "it may talk to local sockets": not facts.seccomp and confinement.net,
        }
    return tuple(text for text, is_so in found.items() if is_so)


# --- the words -------------------------------------------------------------------------------------------------------


def wrapper(confinement: Confinement, facts: Facts) -> tuple[str, ...]:
    """What to put before a program's words."""
    boxed = tuple(_box(confinement, facts.bwrap)) if facts.bwrap else ()
    return (
        *boxed,
        *(_python(), "-I", "-S", "-c", _PROGRAM, _folder()),
        *_words(confinement, facts),
        "--",
    )


def failure(last_lines: tuple[str, ...]) -> str:
    """Why a confined program did not even start, as the last line on stderr says; empty when it is not about that."""
    said = last_lines[-1] if last_lines else ""
    for prefix in ("sandbox: ", "bwrap: "):
        if said.startswith(prefix):
            return f"it cannot be started with its permissions: {said.removeprefix(prefix)}"
    return ""


def _python() -> str:
    """The interpreter itself, which needs no virtual environment."""
    return os.path.realpath(sys.executable)


_PROGRAM: Final = "import sys; sys.path.append(sys.argv[1]); import confine; confine.main(sys.argv[2:])"
"""Imported and not run as a script, because only what is imported is kept compiled."""


def _folder() -> str:
    return os.path.dirname(os.path.realpath(__file__))


def _words(confinement: Confinement, facts: Facts) -> Iterator[str]:
    yield from (f"read={place.real}" for place in _least(confinement.read, confinement.write))
    yield from (f"read={path}" for path in (_PROC_INSIDE if facts.bwrap else _PROC_OUTSIDE))
    yield from (f"write={place.real}" for place in _least(confinement.write))
    yield from (f"execute={path}" for path in sorted({place.real for place in confinement.execute}))
    yield from (f"device={device}" for device in _DEVICES)
    yield from (word for word, wanted in (("net", confinement.net), ("run", confinement.run)) if wanted)
    yield f"landlock={facts.landlock}"
    if not facts.seccomp:
        yield "no-seccomp"


_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_PROC_INSIDE: Final = ("/proc",)
_PROC_OUTSIDE: Final = (
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/uptime", "/proc/loadavg", "/proc/version"),
    *("/proc/filesystems", "/proc/sys", "/proc/self"),
)
"""Of /proc only what is about the machine, and about the program itself: never what other processes do."""


def _least(places: tuple[Place, ...], covered: tuple[Place, ...] = ()) -> list[Place]:
    """The places without those that lie in another one of them, or in one of ``covered``."""
    kept: list[Place] = []
    for place in sorted(places, key=lambda place: place.real):
        if not any(is_below(place.real, other.real) for other in (*covered, *kept)):
            kept.append(place)
    return kept


def is_below(path: str, directory: str) -> bool:
    """Whether a real path is a directory or lies in it."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def _box(confinement: Confinement, bwrap: str) -> Iterator[str]:
    """The words for bubblewrap: a file system that holds only the places, and namespaces without anybody else."""
    yield from (bwrap, *_NAMESPACES)
    if os.path.exists(_KEYS):
        yield from ("--ro-bind", "/dev/null", _KEYS)
    if not confinement.net:
        yield "--unshare-net"
    if os.geteuid() == 0:
        yield from ("--cap-drop", "ALL", "--cap-add", "CAP_DAC_OVERRIDE")
    ours = tuple(Place(name=path, real=path) for path in _for_ourselves())
    readable = _least((*confinement.read, *confinement.execute, *ours), confinement.write)
    writable = _least(confinement.write)
    binds = sorted([(p.real, "--ro-bind") for p in readable] + [(p.real, "--bind") for p in writable])
    for path, how in binds:
        yield from (how, path, path)
    yield from _links((*confinement.read, *confinement.write, *confinement.execute), [path for path, _ in binds])


_KEYS: Final = "/proc/keys"
"""The names of the user's keys in the kernel, which no namespace hides."""


def _for_ourselves() -> tuple[str, ...]:
    """What the confining program is made of."""
    python = _python()
    prefix = os.path.dirname(os.path.dirname(python))
    libraries = (os.path.realpath(os.path.join(prefix, name)) for name in ("lib", "lib64"))
    return tuple(path for path in (python, *libraries, _folder()) if os.path.exists(path))


def _links(places: tuple[Place, ...], bound: list[str]) -> Iterator[str]:
    """Paths that only lead to a place: they are there as links, unless they lie in what is there anyway."""
    for name, real in sorted({(place.name, place.real) for place in places if place.name != place.real}):
        if not any(is_below(os.path.realpath(os.path.dirname(name)), path) for path in bound):
            yield from ("--symlink", real, name)
