"""The retry policy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.helpers import KINDS
from zutd.models.base import RETRYABLE, ErrorKind, ModelError
from zutd.models.retry import DEFAULT, Retry

BUSY = ModelError(ErrorKind.OVERLOADED, "busy")

kinds = st.sampled_from(KINDS)
demands = st.none() | st.floats(0, 10_000)


def asks(seconds: float, kind: ErrorKind = ErrorKind.RATE_LIMIT) -> ModelError:
    """An error whose server asks to wait."""
    return ModelError(kind, "wait", retry_after=seconds)


@pytest.mark.parametrize(("attempt", "wait"), [(1, 0.5), (2, 1.0), (3, 2.0), (4, 4.0)])
def test_waits_double(attempt: int, wait: float) -> None:
    """Without chance (its middle), the waits are 0.5, 1, 2, 4 seconds."""
    assert DEFAULT.decide(attempt=attempt, error=BUSY, elapsed=0, rand=0.5) == wait


def test_the_fifth_try_is_the_last() -> None:
    """Five tries fail: then the error is told."""
    assert DEFAULT.decide(attempt=5, error=BUSY, elapsed=0, rand=0.5) is None


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in RETRYABLE])
def test_what_waiting_cannot_mend_is_not_tried_again(kind: ErrorKind) -> None:
    """Keys, money, the request itself, the window and a broken protocol are final, even if a delay is asked for."""
    assert DEFAULT.decide(attempt=1, error=asks(1, kind), elapsed=0, rand=0.5) is None


def test_a_demand_is_honoured() -> None:
    """The server's delay is kept, and never undercut."""
    assert DEFAULT.decide(attempt=1, error=asks(20), elapsed=0, rand=0.0) == 20
    assert DEFAULT.decide(attempt=1, error=asks(60), elapsed=0, rand=0.9) == 60
    assert DEFAULT.decide(attempt=4, error=asks(0), elapsed=0, rand=0.5) == 4


@pytest.mark.parametrize("seconds", [60.1, 3600.0])
def test_too_long_a_demand_fails_at_once(seconds: float) -> None:
    """Nobody waits for hours."""
    assert DEFAULT.decide(attempt=1, error=asks(seconds), elapsed=0, rand=0.5) is None


def test_the_budget_ends_it() -> None:
    """All waits of one call together stay within a minute."""
    assert DEFAULT.decide(attempt=2, error=BUSY, elapsed=59.5, rand=0.5) is None
    assert DEFAULT.decide(attempt=1, error=asks(30), elapsed=31, rand=0.5) is None


def test_what_was_delivered_is_not_said_twice() -> None:
    """Content that reached a client rules a second try out."""
    assert DEFAULT.decide(attempt=1, error=BUSY, elapsed=0, rand=0.5, delivered=True) is None


@given(kinds, demands, st.integers(1, 10), st.floats(0, 100), st.floats(0, 1, exclude_max=True), st.booleans())
def test_a_wait_keeps_every_bound(
    kind: ErrorKind, demand: float | None, attempt: int, elapsed: float, rand: float, delivered: bool
) -> None:
    """Whatever happens, a wait is within the budget, long enough for the server, and only where it can help."""
    error = ModelError(kind, "x", retry_after=demand)
    wait = DEFAULT.decide(attempt=attempt, error=error, elapsed=elapsed, rand=rand, delivered=delivered)
    if wait is None:
        return
    assert kind in RETRYABLE
    assert not delivered
    assert attempt < DEFAULT.attempts
    assert 0 < wait <= DEFAULT.budget - elapsed
    assert demand is None or wait >= demand


@given(st.floats(0, 1, exclude_max=True))
def test_a_call_always_comes_to_an_end(rand: float) -> None:
    """Following the policy to its end takes at most its tries and its budget."""
    policy = Retry(attempts=100)
    elapsed, attempt = 0.0, 1
    while (wait := policy.decide(attempt=attempt, error=BUSY, elapsed=elapsed, rand=rand)) is not None:
        elapsed += wait
        attempt += 1
    assert elapsed <= policy.budget
    assert attempt < 10
