"""What was ignored when we were started stays so."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from zutd.extensions.errand import stoppable
from zutd.signals import end_at_interrupt, heeded, settle


@contextmanager
def ignored(number: signal.Signals) -> Iterator[None]:
    """As if our parent had ignored a signal."""
    before = signal.signal(number, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(number, before)


def test_only_what_is_not_ignored_is_heeded() -> None:
    """The order stays."""
    numbers = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)
    assert heeded(*numbers) == numbers
    with ignored(signal.SIGHUP):
        assert heeded(*numbers) == numbers[1:]


def test_an_errand_under_nohup_goes_on() -> None:
    """Installing an extension with ``nohup`` is not unwound by the hang-up; afterwards all is as before."""
    with ignored(signal.SIGHUP):
        with stoppable():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert callable(signal.getsignal(signal.SIGTERM))
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_children_are_waited_for_again() -> None:
    """SIGCHLD is never left ignored, and other signals are left as they are."""
    with ignored(signal.SIGCHLD), ignored(signal.SIGINT):
        settle()
        end_at_interrupt()
        assert signal.getsignal(signal.SIGCHLD) is signal.SIG_DFL
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
