"""Something that is run to its end from a shell: a signal unwinds it, so that nothing of it is left behind."""

import contextlib
import signal
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Final, TypeVar

from zutd.signals import heeded

if TYPE_CHECKING:
    import trio

T = TypeVar("T")

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StoppedError(BaseException):
    """A signal asked us to end; like KeyboardInterrupt it passes through to whoever makes an exit code of it."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by signal {number}")
        self.number = number


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Let SIGTERM and SIGHUP unwind the block as Ctrl-C does: as :class:`StoppedError`."""

    def stop(number: int, _: object) -> None:
        raise StoppedError(number)

    before = {number: signal.signal(number, stop) for number in heeded(*SIGNALS) if number != signal.SIGINT}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """For cleaning up: a signal that comes inside counts when the block is done."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def run_errand(main: Callable[[], Awaitable[T]]) -> T:
    """``trio.run`` that a signal cancels; then KeyboardInterrupt or :class:`StoppedError` is raised, plain."""
    import trio

    stopped_by: list[int] = []
    results: list[T] = []
    failures: list[Exception] = []

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(_watch_signals, stopped_by, nursery.cancel_scope)
            try:
                results.append(await main())
            except Exception as exc:  # noqa: BLE001 - handed to the caller as it is, not inside a group
                failures.append(exc)
            nursery.cancel_scope.cancel()

    trio.run(run)
    if stopped_by == [signal.SIGINT]:
        raise KeyboardInterrupt
    if stopped_by:
        raise StoppedError(stopped_by[0])
    if failures:
        raise failures[0]
    return results[0]


async def _watch_signals(
    stopped_by: list[int], scope: "trio.CancelScope", *, task_status: "trio.TaskStatus[None]"
) -> None:
    import trio

    with trio.open_signal_receiver(*heeded(*SIGNALS)) as signals:
        task_status.started()
        async for number in signals:
            stopped_by[:] = stopped_by or [number]
            scope.cancel()
