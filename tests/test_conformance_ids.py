"""The ids of docs/conformance/assertions.md: each has a row, and each row names all tests that carry its id."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

from tests.test_conformance_tables import NAMED, ROOT, rows

PAGE = ROOT / "docs/conformance/assertions.md"
GROUPS = {"M": 22, "P": 1, "K": 11, "C": 10, "S": 7, "V": 2, "L": 15, "R": 10, "B": 8, "U": 12}
"""How many assertions each group has."""

IDS = [f"{letter}{number}" for letter, count in GROUPS.items() for number in range(1, count + 1)]
_LEADING = re.compile(r"test_((?:[a-z]\d+_)+)")


def carried(name: str) -> list[str]:
    """The ids at the beginning of a test's name: ``test_m10_m11_case`` carries M10 and M11."""
    leading = _LEADING.match(name)
    return leading[1].strip("_").upper().split("_") if leading else []


def carriers() -> dict[str, set[str]]:
    """Every test that carries an id, as the tables name tests."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in sorted(Path(ROOT / "tests").rglob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                for one in carried(node.name):
                    found[one].add(f"{path.relative_to(ROOT)}::{node.name}")
    return dict(found)


def test_the_page_has_every_id_once_and_in_order() -> None:
    """The groups are complete; what has no id follows."""
    listed = [first for _, first, _ in rows(PAGE) if re.fullmatch(r"[A-Z]\d+", first)]
    assert sorted(listed) == sorted(IDS)
    for letter in GROUPS:
        numbers = [int(one[1:]) for one in listed if one[0] == letter]
        assert numbers == sorted(numbers)


@pytest.mark.parametrize("letter", GROUPS)
def test_a_row_names_all_tests_that_carry_its_id(letter: str) -> None:
    """At least one does, and whoever looks a rule up finds all of them."""
    named = {first: set(NAMED.findall(last)) for _, first, last in rows(PAGE)}
    found = carriers()
    for one in (one for one in IDS if one[0] == letter):
        assert found.get(one), f"no test carries {one}"
        assert found[one] <= named[one], f"{one} does not name {sorted(found[one] - named[one])}"


def test_ids_are_read_off_names() -> None:
    """One id, several, and names that only look like it."""
    assert carried("test_m13_conflicts") == ["M13"]
    assert carried("test_m10_m11_case_does_not_matter") == ["M10", "M11"]
    assert carried("test_b7") == []
    assert carried("test_a_line_of_5_words") == []
