"""The clock counts what the event loop lived through, and not what it slept through without meaning to."""

from collections.abc import Callable
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from zutd.daemon.clock import LATE, Clock


class Loop:
    """An event loop that sleeps as long as a test says, whatever its clock asks for."""

    def __init__(self) -> None:
        self.real = 100.0
        self.clock = Clock(lambda: self.real)
        self.clock.start_clock()

    def sleeps(self, deadline: float, woken_after: float) -> float:
        """One pass: what it means to sleep, and how long it takes; what the clock says then."""
        self.clock.deadline_to_sleep_time(deadline)
        self.real += woken_after
        return self.clock.current_time()


def passing(begun: float) -> Callable[[float], float]:
    """Seconds since ``begun``, without the noise of floats."""
    return lambda now: round(now - begun, 6)


def test_time_passes_as_it_does_for_everyone() -> None:
    """Woken early, on time, or a little late: the clock shows real time, and the sleep is what is left."""
    loop = Loop()
    begun = loop.clock.current_time()
    since = passing(begun)
    assert since(loop.sleeps(begun + 5, 2.0)) == 2.0
    assert loop.clock.deadline_to_sleep_time(begun + 5) == 3.0
    assert since(loop.sleeps(begun + 5, 3.0)) == 5.0
    assert since(loop.sleeps(begun + 6, 1.0 + LATE / 2)) == 6.0 + LATE / 2


def test_a_stop_while_it_sleeps_does_not_count() -> None:
    """A minute later than it was meant to: the deadline is as far away as it was."""
    loop = Loop()
    begun = loop.clock.current_time()
    since = passing(begun)
    assert since(loop.sleeps(begun + 5, 1.0)) == 1.0
    assert since(loop.sleeps(begun + 5, 60.0)) == 1.0
    assert loop.clock.deadline_to_sleep_time(begun + 5) == 4.0
    assert since(loop.sleeps(begun + 5, 4.0)) == 5.0


def test_a_stop_while_it_works_does_not_count() -> None:
    """Also between two looks at the clock without a sleep; a moment of work does."""
    loop = Loop()
    since = passing(loop.clock.current_time())
    loop.real += 0.5
    assert since(loop.clock.current_time()) == 0.5
    loop.real += 60.0
    assert since(loop.clock.current_time()) == 0.5


def test_a_sleep_without_a_deadline_is_never_too_long() -> None:
    """Nobody waits for the time then, so all of it counts."""
    loop = Loop()
    since = passing(loop.clock.current_time())
    assert since(loop.sleeps(float("inf"), 3600.0)) == 3600.0


@given(st.lists(st.tuples(st.floats(-5, 90), st.floats(0, 90)), max_size=30))
def test_it_never_goes_back_and_never_ahead(passes: list[tuple[float, float]]) -> None:
    """Whatever sleeps were meant and taken: time only grows, by no more than really passed."""
    loop = Loop()
    shown = [loop.clock.current_time()]
    for meant, taken in passes:
        shown.append(loop.sleeps(shown[-1] + meant, taken))
        assert shown[-1] - shown[-2] <= taken + 1e-6
    assert all(after >= before - 1e-6 for before, after in pairwise(shown))
