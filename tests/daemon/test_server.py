"""How the server takes signals."""

import signal

import pytest

from zutd.daemon.server import ECHO, Signals

TERM, INT = signal.SIGTERM, signal.SIGINT


@pytest.mark.parametrize(
    ("came", "impatient"),
    [
        ([(TERM, 0.0)], False),
        ([(TERM, 0.0), (TERM, ECHO / 2)], False),
        ([(TERM, 0.0), (TERM, 0.0), (TERM, ECHO)], False),
        ([(TERM, 0.0), (TERM, ECHO * 2)], True),
        ([(TERM, 0.0), (INT, 0.0)], True),
    ],
)
def test_who_signals_again_is_impatient_but_an_echo_is_nobody(came: list[tuple[int, float]], impatient: bool) -> None:
    """A second signal means at once; the same one within half a second is the first one's echo."""
    signals = Signals()
    for number, at in came:
        signals.note(number, at)
    assert signals.impatient is impatient
