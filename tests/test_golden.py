"""The golden conversations: the real daemon says them word for word, and every line of them fits the schemas."""

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.talking import schema
from tests.golden.scenarios import SCENARIOS
from tests.golden.stage import GOLDEN, filled, matches, play, read

FILES = sorted(GOLDEN.glob("*.jsonl"))

DEFINITIONS = {
    ("to", "daemon"): ("client", "FromFrontend"),
    ("from", "daemon"): ("client", "FromDaemon"),
    ("to", "extension"): ("extension", "ToExtension"),
    ("from", "extension"): ("extension", "FromExtension"),
}

HOW = "if the change is meant: python -m tests.golden.record"


def test_there_is_a_file_for_every_scenario() -> None:
    """Nobody forgets to record one, or to remove one."""
    assert {path.stem for path in FILES} == set(SCENARIOS), HOW


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_daemon_says_the_golden_conversation(tmp_path: Path, path: Path) -> None:
    """Every frame is as the file has it, in order; nothing is said that is not in it; the extension hears its lines."""
    said, heard = play(tmp_path.resolve(), read(path))
    for frame in said:
        schema("client", "FromDaemon").validate(frame)
    for frame in heard:
        schema("extension", "ToExtension").validate(frame)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_golden_line_fits_its_schema(path: Path) -> None:
    """With samples in the place of placeholders; the lines that are wrong on purpose are refused by the schema too."""
    given, *lines = read(path)
    assert given["given"]["about"]
    wrong_ids = refused_ids(lines)
    for entry in lines:
        (direction, who), *_ = entry.items()
        line = filled(entry["line"], {}, sample=True)
        valid = schema(*DEFINITIONS[direction, who])
        if (direction, who) == ("to", "daemon") and (set(line) == {"raw"} or line.get("id") in wrong_ids):
            assert not valid.is_valid(line)
        else:
            valid.validate(line)


def refused_ids(lines: list[Any]) -> set[Any]:
    """The ids of lines that the daemon refuses for their shape."""
    answers = [entry["line"] for entry in lines if entry.get("from") == "daemon"]
    typed = {line.get("id") for line in answers if line.get("code") in ("unknown_command", "invalid_params")}
    rpc = {line.get("id") for line in answers if line.get("error", {}) and "jsonrpc" in line}
    return (typed | rpc) - {None}


def test_placeholders_are_held_to_what_they_say() -> None:
    """Kinds are checked, names mean the same value everywhere, and everything else is compared exactly."""
    bound: dict[str, Any] = {}
    uuid = "11111111-1111-4111-8111-111111111111"
    assert matches({"a": "<uuid:1>", "b": ["<int>"]}, {"a": uuid, "b": [3]}, bound)
    assert matches("<uuid:1>", uuid, bound)
    assert not matches("<uuid:1>", uuid.replace("1", "2"), bound)
    for golden, actual in (
        ("<uuid>", "x"),
        ("<int>", True),
        ("<int>", 1.5),
        ("<time>", "yesterday"),
        ("<path>", "relative"),
        (1, True),
        (1, 1.0),
        ({"a": 1}, {"a": 1, "b": 2}),
        ([1], [1, 2]),
    ):
        assert not matches(golden, actual, {})
