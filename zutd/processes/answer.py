"""Run a program to its end for the few words that it says."""

import os
from collections.abc import Mapping, Sequence
from typing import Final

import attrs
import trio

from zutd.processes.group import DEVNULL, PIPE, Watcher, close_pipes, spawn_group, stop_group

KEPT: Final = 4096
"""Bytes that are kept of what it says; the rest is read and forgotten."""

_CHUNK: Final = 4096
_GRACE: Final = 0.2


@attrs.frozen(kw_only=True)
class Answer:
    """How it ended (negative: by a signal), and the beginning of what it wrote."""

    code: int | None
    output: str
    errors: str


async def answer_of(
    argv: Sequence[str], *, cwd: str | os.PathLike[str], env: Mapping[str, str], watcher: Watcher
) -> Answer:
    """Run ``argv``, which reads nothing, until it and its pipes have ended; then nothing of it is left.

    The caller sets the deadline. Raises OSError when it cannot be started.
    """
    process = await spawn_group(argv, cwd=cwd, env=env, stdio=(DEVNULL, PIPE, PIPE), watcher=watcher)
    heard = (bytearray(), bytearray())
    try:
        async with trio.open_nursery() as nursery:
            for stream, kept in zip((process.stdout, process.stderr), heard, strict=True):
                assert stream is not None
                nursery.start_soon(_listen, stream, kept)
        await process.wait()
    finally:
        await stop_group(process, grace=_GRACE, watcher=watcher)
        close_pipes(process)
    output, errors = (os.fsdecode(bytes(data)) for data in heard)
    return Answer(code=process.returncode, output=output, errors=errors)


async def _listen(stream: trio.abc.ReceiveStream, kept: bytearray) -> None:
    while chunk := await stream.receive_some(_CHUNK):
        kept += chunk[: KEPT - len(kept)]
