"""What a program inherits about signals from whoever started it: what must be mended of it, and what must be kept.

Standard library only; anybody may import it.
"""

import os
import signal
from typing import Final, NoReturn

NEEDED: Final = frozenset({signal.SIGCHLD, signal.SIGHUP, signal.SIGINT, signal.SIGTERM})


def settle() -> None:
    """Make sure that we learn of the end of our children, and can be told to end.

    Where SIGCHLD is ignored, the kernel drops the status of every child, and each failure would pass for success.
    What a parent blocked for its own purposes stays blocked in all that it starts.
    """
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, NEEDED)


def end_at_interrupt() -> None:
    """Until somebody listens to signals, and after that, Ctrl-C ends the process on the spot and without a word.

    As an exception it could come anywhere, and there is nothing yet, or any more, that would have to be unwound.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def _end(number: int, _: object) -> NoReturn:
    os._exit(128 + number)


def ignore_from_now_on() -> None:
    """Nothing changes the exit code any more: while Python takes itself down, a signal would kill it instead."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def heeded(*numbers: signal.Signals) -> tuple[signal.Signals, ...]:
    """Those that are not to be ignored: ``nohup`` wants that of SIGHUP, a script of Ctrl-C for its background jobs."""
    return tuple(number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN)
