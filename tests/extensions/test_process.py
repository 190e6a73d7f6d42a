"""The first line of a child, and the lines that it is sent."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zutd.extensions.lines import StartError, check_hello, to_line
from zutd.frames.extension import CommandInvoked, ToolCallFrame

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_a_line_is_one_line_in_every_language(text: str) -> None:
    """What an extension is sent has one line end, its last byte, also by Unicode's rules, and means the same."""
    line = to_line(CommandInvoked(id="c1", name="x", args=f"{text}\u2028\u2029\u0085\x0b\x0c\x1c\x1d\x1e"))

    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert len(line.decode().splitlines()) == 1
    assert json.loads(line)["args"].startswith(text)


@given(st.dictionaries(st.text(alphabet=st.characters(exclude_categories=["Cs"])), st.text("\u2028\u0085\\u2028\"'")))
def test_escaping_never_changes_the_value(args: dict[str, str]) -> None:
    """Separators beside backslashes and in keys come out as they went in."""
    assert json.loads(to_line(ToolCallFrame(id="c1", name="x", args=args)))["args"] == args


@given(JSON | st.fixed_dictionaries({"type": st.just("hello") | JSON, "protocol_version": JSON, "name": JSON}))
def test_hello_is_accepted_or_refused_and_nothing_else(value: Any) -> None:
    """Any first line is a hello with version 2 and the manifest's name, or a StartError of the handshake."""
    try:
        hello = check_hello(json.dumps(value).encode(), "me")
    except StartError as exc:
        assert exc.stage == "handshake"
        assert len(exc.message) < 1000
        return
    assert (hello.protocol_version, hello.name) == (2, "me")


@given(st.binary(max_size=200))
def test_hello_of_any_bytes(line: bytes) -> None:
    """No bytes make it fail in another way."""
    with pytest.raises(StartError):
        check_hello(line, "me")


def test_hello_with_more_than_we_know() -> None:
    """Unknown fields and capabilities are the future's business."""
    line = b'{"type":"hello","protocol_version":2,"name":"me","capabilities":["tool_cancel","x"],"new":{"a":1}}'

    assert check_hello(line, "me").capabilities == ("tool_cancel", "x")
