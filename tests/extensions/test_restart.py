"""The rule of restarts."""

from hypothesis import given
from hypothesis import strategies as st

from zutd.extensions.restart import FIRST, HEALTHY, IN_A_ROW, LAST, Restarts


def test_crash_loop_gives_up_after_five_restarts() -> None:
    """Five starts with doubling pauses, then no more."""
    restarts = Restarts()

    delays = [restarts.after(0.1, came_up=True) for _ in range(6)]

    assert delays == [0.5, 1.0, 2.0, 4.0, 8.0, None]


def test_health_forgets_crashes() -> None:
    """Thirty seconds of life begin the count anew, whatever was before."""
    restarts = Restarts()
    for _ in range(4):
        restarts.after(1, came_up=True)

    assert restarts.after(HEALTHY, came_up=True) == FIRST
    assert restarts.after(1, came_up=True) == FIRST * 2


def test_what_never_came_up_is_not_tried_again() -> None:
    """A first start that fails is final; a failed restart counts like a crash."""
    assert Restarts().after(0.1, came_up=False) is None

    restarts = Restarts()
    restarts.after(1, came_up=True)
    assert restarts.after(0.1, came_up=False) == FIRST * 2


@given(st.lists(st.tuples(st.floats(0, 100), st.booleans()), max_size=50))
def test_never_more_than_five_in_a_row(lives: list[tuple[float, bool]]) -> None:
    """However lives come and go, no six starts follow each other without health in between, and pauses are bounded."""
    restarts = Restarts()
    in_a_row = 0
    for lived, came_up in lives:
        delay = restarts.after(lived, came_up=came_up)
        in_a_row = 0 if lived >= HEALTHY else in_a_row
        if delay is None:
            break
        in_a_row += 1
        assert FIRST <= delay <= LAST
        assert in_a_row <= IN_A_ROW
