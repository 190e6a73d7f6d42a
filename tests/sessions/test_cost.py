"""What opening and asking cost in a long session, against bounds that a slow machine keeps too."""

import time
from collections.abc import Callable

import msgspec
import pytest

from tests.sessions.helpers import HEADER, line, root, said
from zutd.sessions.loading import load
from zutd.sessions.tree import Tree
from zutd.wire.codec import encode_frame

ROWS = 50_000


def long_session() -> list[bytes]:
    """Fifty thousand rows and five hundred branches, with two extensions, one of them loud."""
    rows = [root()]
    for n in range(2, ROWS + 1):
        if n % 100 == 0:
            rows.append(line(n, n - 20 if n > 40 else 1, "branch", id=f"b{n}", fork_point=0))
        elif n % 3 == 0:
            rows.append(line(n, n - 1, "extension_state", extension="loud", state={"n": n}))
        elif n == 4:
            rows.append(line(n, n - 1, "extension_state", extension="quiet", state="here"))
        else:
            rows.append(said(n, n - 1, "x" * 150))
    return rows


@pytest.fixture(scope="module")
def rows() -> list[bytes]:
    """The rows, made once."""
    return long_session()


@pytest.fixture(scope="module")
def tree(rows: list[bytes]) -> Tree:
    """The tree of them."""
    made = Tree(HEADER)
    made.extend(rows)
    return made


def best(work: Callable[[], object], times: int = 5) -> float:
    """The shortest of some runs, in seconds."""
    found = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        found.append(time.perf_counter() - started)
    return min(found)


def test_opening_costs_at_most_three_times_plain_decoding(rows: list[bytes]) -> None:
    """Checked, numbered and placed: still no more than three times what making dicts of the lines costs."""
    data = b"".join(row + b"\n" for row in (encode_frame(HEADER), *rows))

    plain = best(lambda: [msgspec.json.decode(row) for row in rows])
    opened = best(lambda: load(data))

    assert opened < 3 * plain


@pytest.mark.parametrize(
    "ask",
    [
        lambda tree, row: tree.state("quiet", row),
        lambda tree, row: tree.state("nobody", row),
        lambda tree, row: tree.states(row),
        lambda tree, row: tree.settings(row),
        lambda tree, row: tree.title(row),
        lambda tree, row: tree.usage(row),
        lambda tree, row: tree.resolve(None, row),
        lambda tree, row: tree.message_count(row),
    ],
)
def test_what_holds_at_a_row_costs_the_same_early_and_late(tree: Tree, ask: Callable[[Tree, int], object]) -> None:
    """No question walks the path: fifty thousand rows later the answer takes no more than microseconds."""
    late = tree.tip(f"b{ROWS}")

    assert best(lambda: ask(tree, late), 20) < 0.001


def test_going_on_costs_the_same_early_and_late(tree: Tree) -> None:
    """Pages and counts near the end of a path that was asked for before do not walk it again."""
    late = tree.tip(f"b{ROWS}")
    count = tree.message_count(late)
    tree.messages(late, limit=1)

    assert best(lambda: tree.messages(late, after=late - 50), 20) < 0.01
    assert best(lambda: tree.resolve(count - 1, late), 20) < 0.001
