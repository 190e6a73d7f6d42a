"""Run git or go for an installation: everything they say is passed on, and Ctrl-C ends them with all their helpers.

They get no terminal: whatever would ask a question fails instead of waiting.
"""

import functools
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import trio

from zutd.extensions.errand import run_errand
from zutd.extensions.install_stage import InstallError
from zutd.processes.environment import NEVER
from zutd.processes.group import DEVNULL, PIPE, close_pipes, spawn_group, stop_group
from zutd.processes.guardian import Guardian

Echo = Callable[[bytes], None]
"""Called with what a program says, as it says it."""

TERM_GRACE: Final = 1.0
PIPE_GRACE: Final = 0.5
"""Seconds that output is read after the program has ended: a helper it left (ssh keeps some) may hold the pipe."""

_KEPT: Final = 2 * 1024 * 1024
_CHUNK: Final = 65536


class Ended(NamedTuple):
    """How a program ended: its exit code (negative for a signal), and the last of its stdout and of its stderr."""

    code: int
    output: str
    errors: str


def our_environment(*without: str, **more: str) -> dict[str, str]:
    """The user's own environment, for a tool of theirs, but for names in ``without`` and what no child gets."""
    return {name: value for name, value in os.environ.items() if name not in {*NEVER, *without}} | more


def run_program(argv: Sequence[str], *, cwd: str, environ: Mapping[str, str], echo: Echo) -> Ended:
    """Run ``argv`` in ``cwd``; ``echo`` gets its stdout and stderr.

    Raises :class:`InstallError` if it cannot be started, and what
    :func:`zutd.extensions.errand.run_errand` raises for a signal (the program is gone then).
    """
    guardian = Guardian()
    try:
        return run_errand(functools.partial(_run, argv, cwd=cwd, environ=environ, echo=echo, guardian=guardian))
    except FileNotFoundError:
        raise InstallError(f"{argv[0]} was not found in PATH; install it first") from None
    except OSError as exc:
        raise InstallError(f"cannot start {argv[0]}: {exc.strerror}") from None
    finally:
        guardian.close()


async def _run(argv: Sequence[str], *, cwd: str, environ: Mapping[str, str], echo: Echo, guardian: Guardian) -> Ended:
    process = await spawn_group(argv, cwd=cwd, env=environ, stdio=(DEVNULL, PIPE, PIPE), watcher=guardian)
    heard = (bytearray(), bytearray())
    heard_all = trio.Event()
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_listen, process, heard, heard_all, echo)
            await process.wait()
            with trio.move_on_after(PIPE_GRACE):
                await heard_all.wait()
            nursery.cancel_scope.cancel()
    finally:
        await stop_group(process, grace=TERM_GRACE, watcher=guardian)
        close_pipes(process)
    code = process.returncode if process.returncode is not None else -signal.SIGKILL
    return Ended(code, *(data.decode("utf-8", "replace") for data in heard))


async def _listen(process: trio.Process, heard: tuple[bytearray, bytearray], heard_all: trio.Event, echo: Echo) -> None:
    async with trio.open_nursery() as nursery:
        for stream, kept in zip((process.stdout, process.stderr), heard, strict=True):
            assert stream is not None
            nursery.start_soon(_keep, stream, kept, echo)
    heard_all.set()


async def _keep(stream: trio.abc.ReceiveStream, kept: bytearray, echo: Echo) -> None:
    while chunk := await stream.receive_some(_CHUNK):
        kept += chunk
        del kept[:-_KEPT]
        echo(bytes(chunk))


def quiet(_: bytes) -> None:
    """An echo that says nothing."""
