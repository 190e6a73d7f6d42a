"""The tables in docs/conformance say which test holds which rule: every test that they name is there.

A table's last column names tests as `tests/path/test_file.py::test_name`. The tests are found by reading the files, not
by importing them, so that a page costs nothing to check.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from zutd.frames.commands import COMMANDS
from zutd.frames.events import EVENTS

ROOT = Path(__file__).parents[1]
PAGES = sorted(page for page in (ROOT / "docs/conformance").glob("*.md") if page.name != "README.md")
NAMED = re.compile(r"`([^`]+::[^`]+)`")


@cache
def names_in(path: str) -> frozenset[str]:
    """The names of the test functions in one file; none where there is no such file."""
    file = ROOT / path
    if not file.is_file():
        return frozenset()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return frozenset(
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    )


def rows(page: Path) -> list[tuple[int, str, str]]:
    """(line number, first cell, last cell) of every row below a table's head."""
    found = []
    in_table = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.startswith("|"):
            in_table = False
        elif re.fullmatch(r"\|[-:| ]+\|", line):
            in_table = True
        elif in_table:
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            found.append((number, cells[0], cells[-1]))
    return found


def missing(last_cell: str) -> list[str]:
    """What a row's last cell names that is no test; the cell itself where it names nothing."""
    named = NAMED.findall(last_cell)
    return [name for name in named if name.split("::")[1] not in names_in(name.split("::")[0])] or (
        [] if named else [last_cell or "(nothing)"]
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_row_names_a_test_that_is_there(page: Path) -> None:
    """Each row of a conformance table names at least one test, and each named test exists."""
    table = rows(page)
    assert table, f"{page.name} holds no table"
    wrong = [f"{page.name}:{number}: {first}: {name}" for number, first, last in table for name in missing(last)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_rule_stands_twice(page: Path) -> None:
    """A rule has one row, so that nobody mends one of two."""
    first_cells = [first for _number, first, _last in rows(page)]
    assert sorted(first_cells) == sorted(set(first_cells))


def test_every_command_and_event_of_front_ends_has_a_row() -> None:
    """A new one cannot be forgotten: the page about their protocol names each, under its own name."""
    cells = {first.strip("`") for _number, first, _last in rows(ROOT / "docs/conformance/rpc.md")}
    assert {*COMMANDS, *EVENTS} - cells == set()


def test_a_wrong_name_is_found() -> None:
    """A name of no test, a file that is not there and an empty cell are all told of."""
    here = "tests/test_conformance_tables.py"
    assert missing(f"`{here}::test_a_wrong_name_is_found`") == []
    assert missing(f"`{here}::test_nothing`") == [f"{here}::test_nothing"]
    assert missing("`tests/no_file.py::test_x`") == ["tests/no_file.py::test_x"]
    assert missing("") == ["(nothing)"]
