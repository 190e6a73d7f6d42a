"""What an approval is remembered for."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zutd.agent.approval import PREVIEW, Memory, digest, key_of, preview, read_memory


@pytest.mark.parametrize(
    ("command", "key"),
    [
        ("ls -la src", "bash:ls"),
        ("git status", "bash:git status"),
        ("git push origin main", "bash:git push"),
        ("npm test", "bash:npm test"),
        ("ls; rm -rf /", "bash:ls; rm -rf /"),
        ("ls && rm x", "bash:ls && rm x"),
        ("echo $(rm x)", "bash:echo $(rm x)"),
        ("cat a > b", "bash:cat a > b"),
        ("PATH=/tmp ls", "bash:PATH=/tmp ls"),
        ("ls\nrm x", "bash:ls\nrm x"),
        ("git -C /x status", "bash:git -C /x status"),
        ("sudo ls", "bash:sudo ls"),
        ("/usr/bin/env ls", "bash:/usr/bin/env ls"),
        ("python3 manage.py test", "bash:python3 manage.py test"),
        ("find . -delete", "bash:find . -delete"),
    ],
)
def test_a_command_is_remembered_by_what_it_runs(command: str, key: str) -> None:
    """A simple command is remembered by its program; what a shell takes apart, or what runs others, as a whole."""
    assert key_of("bash", {"command": command, "timeout": 5}) == key


def test_files_are_remembered_one_by_one() -> None:
    """Allowing a write to one file allows no other; other tools are remembered by name."""
    assert key_of("write", {"path": "a", "content": "x"}) == "write:a"
    assert key_of("weather", {"city": "Berlin"}) == "weather"
    assert key_of("bash", "garbage") == "bash"


def test_an_answer_is_remembered_as_far_as_it_goes() -> None:
    """Once is once, a tool is that key, a session is everything; it survives being written and read."""
    memory = Memory()
    assert memory.after("allow", "a") == memory
    assert memory.after("deny", "a") == memory
    one = read_memory(memory.after("allow_tool", "a").plain)
    assert one.covers("a")
    assert not one.covers("b")
    assert read_memory(one.after("allow_session", "b").plain).covers("c")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_reading_garbage_remembers_nothing_it_should_not(value: object) -> None:
    """A row that is no memory never allows everything by accident."""
    memory = read_memory(value)
    if memory.everything:
        assert isinstance(value, dict)
        assert value["everything"] is True


@pytest.mark.parametrize(
    ("args", "line"),
    [
        ({"name": "n", "query": "q", "url": "u", "file_path": "f", "path": "p", "command": "c"}, "c"),
        ({"name": "n", "query": "q", "url": "u", "file_path": "f", "path": "p"}, "p"),
        ({"name": "n", "query": "q", "url": "u", "file_path": "f"}, "f"),
        ({"name": "n", "query": "q", "url": "u"}, "u"),
        ({"name": "n", "query": "q"}, "q"),
        ({"name": "n", "x": 1}, "n"),
        ({"command": "", "path": 7, "name": "n"}, "n"),
        ({"x": 1, "y": ["é"]}, '{"x":1,"y":["é"]}'),
        ({}, "{}"),
        ([1], "[1]"),
        ({"command": "c" * 120}, "c" * 120),
        ({"command": "c" * 121}, "c" * 117 + "..."),
        ({"command": "é" * 61}, "é" * 58 + "..."),
    ],
)
def test_c10_what_a_preview_shows(args: Any, line: str) -> None:
    """The first text among command, path, file_path, url, query and name, else all as JSON; 120 bytes, cut at a
    character.
    """
    assert preview(args) == line


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=300), max_size=4))
def test_c10_a_preview_is_short(args: dict[str, str]) -> None:
    """A preview fits its line, whatever the arguments; equal arguments have equal digests."""
    assert len(preview(args).encode()) <= PREVIEW
    assert digest(args) == digest(dict(reversed(args.items())))
