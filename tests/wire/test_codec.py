"""Lines to JSON values to frames: anything that is wrong is one ProtocolError, nothing is lost, nothing crashes."""

import json
import random
import time
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.frames.shapes import JSON, broken, plain
from zutd.frames import blocks, client, commands, events, extension
from zutd.frames.define import ABSENT, frame
from zutd.wire import codec
from zutd.wire.codec import MAX_DEPTH, ProtocolError

CALM = settings(deadline=None)  # the machine may be busy

TABLES: dict[str, dict[str, type[Any]]] = {
    "command": commands.COMMANDS,
    "event": events.EVENTS,
    "frame from an extension": extension.FROM_EXTENSION,
    "frame to an extension": extension.TO_EXTENSION,
}


def refused(line: bytes, *, replace: bool = False) -> ProtocolError:
    """The error that a line gives."""
    with pytest.raises(ProtocolError) as caught:
        codec.decode_object(line, replace=replace)
    return caught.value


def complaint(raw: Any, kind: Any) -> str:
    """What the codec says about a value that is no frame of a class."""
    with pytest.raises(ProtocolError) as caught:
        codec.structure(raw, kind)
    assert caught.value.kind == "invalid_params"
    return caught.value.message


# --- bytes -> JSON ---------------------------------------------------------------------------------------------------


def attempt(line: bytes) -> None:
    """Read a line in both ways; only an object or a ProtocolError may come of it."""
    for replace in (False, True):
        try:
            raw = codec.decode_object(line, replace=replace)
        except ProtocolError as error:
            assert error.kind in ("parse_error", "invalid_request")
            assert error.message
        else:
            assert type(raw) is dict
            codec.encode(raw)


def test_ten_thousand_mangled_lines() -> None:
    """Random bytes, and frames with bytes changed, removed and doubled, give an object or a ProtocolError."""
    chance = random.Random(7)
    good = [codec.encode(plain(cls)) for table in TABLES.values() for cls in table.values()]
    for _ in range(9_000):
        line = bytearray(chance.choice(good))
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(line))
            line[at : at + chance.randint(0, 2)] = chance.choice(
                [b"", b'"', b"\\", b"\\ud800", b"{", b"]", b"\xff", b"9"]
            )
            line = line or bytearray(b"{")
        attempt(bytes(line))
    for _ in range(1_000):
        attempt(chance.randbytes(chance.randint(0, 40)))


@CALM
@given(st.one_of(st.binary(max_size=30), st.text(alphabet='{}[]",:\\u0d8e+-.', max_size=30).map(str.encode)))
def test_any_bytes_give_an_object_or_a_protocol_error(line: bytes) -> None:
    """Nothing that a peer can send raises anything else."""
    attempt(line)


@CALM
@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4))
def test_json_values_come_back_equal(value: dict[str, Any]) -> None:
    """Any object is written and read without a change, and any other reader understands it the same."""
    line = codec.encode(value)
    assert b"\n" not in line
    assert codec.decode_object(line) == value
    assert json.loads(line) == value


@pytest.mark.parametrize(
    ("line", "kind", "words"),
    [
        (b"", "parse_error", "not JSON"),
        (b"   ", "parse_error", "not JSON"),
        (b"{", "parse_error", "not JSON"),
        (b'{"a":1}{"b":2}', "parse_error", "not JSON"),
        (b'{"a":1} x', "parse_error", "not JSON"),
        (b"\xef\xbb\xbf{}", "parse_error", "not JSON"),
        (b"{'a':1}", "parse_error", "not JSON"),
        (b'{"a":NaN}', "parse_error", "not JSON"),
        (b'{"a":-Infinity}', "parse_error", "not JSON"),
        (b'{"a":NaN,"b":"\\ud800"}', "parse_error", "NaN"),
        (b'{"a":1e999}', "parse_error", "range"),
        (b'{"a":1e999,"b":"\\ud800"}', "parse_error", "range"),
        (b'{"a":01}', "parse_error", "not JSON"),
        (b'{"a":"\x01"}', "parse_error", "not JSON"),
        (b'{"a":"\xff"}', "parse_error", "0xff at 6"),
        (b'{"a":"\xed\xa0\x80"}', "parse_error", "not UTF-8"),
        (b"[]", "invalid_request", "an array"),
        (b"null", "invalid_request", "null"),
        (b"7", "invalid_request", "an integer"),
        (b"7.5", "invalid_request", "a number"),
        (b"true", "invalid_request", "true or false"),
        (b'"x"', "invalid_request", "a string"),
    ],
)
def test_what_is_no_object_is_named(line: bytes, kind: str, words: str) -> None:
    """The error's kind tells JSON from what is none, its text what came."""
    error = refused(line)
    assert (error.kind, words in error.message) == (kind, True), error.message


def test_lone_surrogates_become_the_replacement_character() -> None:
    """What JavaScript peers send is mended, in keys and values; whole pairs are left alone."""
    line = b'{"\\ud83d":["\\ud83d","x\\ude00y","\\ud83d\\ude00"],"n":{"k":"\\ude00"}}'
    assert codec.decode_object(line) == {"�": ["�", "x�y", "😀"], "n": {"k": "�"}}


def test_lone_surrogates_never_reach_the_wire() -> None:
    """A string that cannot be encoded is mended when it is written."""
    assert codec.encode({"a\ud800": ["\udfff", ("\ud800",)]}) == '{"a�":["�",["�"]]}'.encode()


def test_bad_utf8_is_replaced_where_that_is_asked_for() -> None:
    """Extensions' bytes are read as far as they can be."""
    assert codec.decode_object(b'{"a":"x\xffy"}', replace=True) == {"a": "x�y"}
    assert refused(b'{"a":"\xff"', replace=True).kind == "parse_error"


@pytest.mark.parametrize("digits", [20, 100, 4000])
@pytest.mark.parametrize("sign", ["", "-"])
def test_integers_of_any_size_survive(digits: int, sign: str) -> None:
    """No digit is lost on the way through, also beside a surrogate that needs the slow way."""
    number = sign + "9" * digits
    line = f'{{"a":{number}}}'.encode()
    assert codec.decode_object(line) == {"a": int(number)}
    assert codec.encode(codec.decode_object(line)) == line
    slow = codec.decode_object(f'{{"a":{number},"b":"\\ud800"}}'.encode())
    assert slow == {"a": int(number), "b": "�"}


def test_integers_beyond_what_python_reads_are_an_error() -> None:
    """More digits than the interpreter converts are refused, not a crash."""
    assert refused(b'{"a":' + b"9" * 5000 + b"}").kind == "parse_error"
    assert refused(b'{"b":"\\ud800","a":' + b"9" * 5000 + b"}").kind == "parse_error"


@pytest.mark.parametrize(("opener", "closer"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_depth_has_a_limit(opener: bytes, closer: bytes) -> None:
    """JSON up to the limit is read, beyond it refused, however deep it claims to be."""
    inner = MAX_DEPTH - 1
    codec.decode_object(b'{"x":' + opener * inner + b"1" + closer * inner + b"}")
    for depth in (MAX_DEPTH, 1_000, 100_000):
        error = refused(b'{"x":' + opener * depth + b"1" + closer * depth + b"}")
        assert (error.kind, str(MAX_DEPTH) in error.message) == ("invalid_request", True)
        assert refused(opener * depth).kind in ("invalid_request", "parse_error")


def test_brackets_in_strings_are_not_depth() -> None:
    """Only real nesting counts: text full of brackets, and many shallow values, are fine."""
    value = {"text": '[{"\\' * 1000, "many": [[]] * 1000, "q": '\\"' * 500}
    assert codec.decode_object(codec.encode(value)) == value


HOSTILE = {
    "an open string of escaped quotes": b'"' + b'\\"' * 500_000,
    "strings after strings": b'"' + b'a"' * 500_000,
    "backslashes": b"\\" * 1_000_000,
    "many arrays": b"[]" * 500_000,
    "deep arrays": b"[" * 1_000_000,
}


@pytest.mark.parametrize("tail", HOSTILE.values(), ids=HOSTILE)
def test_hostile_lines_cost_linear_time(tail: bytes) -> None:
    """No line of a megabyte keeps the daemon busy: an open string full of escaped quotes once took hours."""
    begin = time.process_time()
    refused(b"[" * (MAX_DEPTH + 1) + tail)
    assert time.process_time() - begin < 3.0


def test_output_is_compact() -> None:
    """No spaces, raw UTF-8, one line."""
    assert codec.encode({"a": [1, {"b": "\u2028é\n"}]}) == '{"a":[1,{"b":"\u2028é\\n"}]}'.encode()


# --- JSON -> frames --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", TABLES)
def test_frames_with_a_field_removed_or_retyped_are_refused(what: str) -> None:
    """Each field that is missing or of another type gives one error with the tag and the field's path."""
    table = TABLES[what]
    for tag, cls in table.items():
        assert type(codec.structure_tagged(plain(cls), table, what)) is cls
        for field, raw in broken(cls):
            with pytest.raises(ProtocolError) as caught:
                codec.structure_tagged(raw, table, what)
            assert caught.value.kind == "invalid_params"
            assert caught.value.message.startswith(f"bad {tag}: ")
            assert f"$.{field}" in caught.value.message


@pytest.mark.parametrize(
    ("raw", "kind", "message"),
    [
        ({}, "invalid_request", "$.type is missing"),
        ({"type": None}, "invalid_request", "$.type must be a string, got null"),
        ({"type": 7}, "invalid_request", "$.type must be a string, got an integer"),
        ({"type": ["ping"]}, "invalid_request", "$.type must be a string, got an array"),
        ({"type": "fly"}, "unknown_command", "unknown command 'fly'"),
        ({"type": "PING"}, "unknown_command", "unknown command 'PING'"),
    ],
)
def test_the_type_decides(raw: dict[str, Any], kind: str, message: str) -> None:
    """Without a known ``type`` nothing else is looked at."""
    with pytest.raises(ProtocolError) as caught:
        codec.structure_tagged(raw, commands.COMMANDS, "command")
    assert (caught.value.kind, caught.value.message) == (kind, message)


def test_long_unknown_types_are_cut_in_the_message() -> None:
    """A peer cannot make the daemon repeat a megabyte."""
    with pytest.raises(ProtocolError) as caught:
        codec.structure_tagged({"type": "x" * 10**6}, commands.COMMANDS, "command")
    assert len(caught.value.message) < 200


@pytest.mark.parametrize(
    ("raw", "kind", "message"),
    [
        ({"images": [{"mime_type": "image/png", "data": 7}]}, commands.Prompt, "$.images[0].data"),
        (
            {"images": [{"mime_type": "a", "data": "b"}, 7]},
            commands.Prompt,
            "expected an object, got an integer at $.images[1]",
        ),
        ({"when": "never"}, commands.Prompt, "expected one of queue, steer, reject, got 'never' at $.when"),
        ({"when": 7}, commands.Prompt, "got an integer at $.when"),
        ({"message": None, "images": {}}, commands.Prompt, "expected an array, got an object at $.images"),
        ({"at": True}, commands.Fork, "expected a string or an integer, got true or false at $.at"),
        ({"client": []}, commands.HelloCommand, "$.client"),
        ({"client": {"name": 1}}, commands.HelloCommand, "$.client.name"),
        ({}, commands.QueueRemove, "required field missing at $.prompt_id"),
        (
            {"call_id": "1", "is_error": False, "content": [{"type": "video"}]},
            blocks.ToolResult,
            "unknown type 'video'",
        ),
        ({"call_id": "1", "is_error": False, "content": [{}]}, blocks.ToolResult, "unknown type None"),
        (
            {"call_id": "1", "is_error": False, "content": [{"type": ["text"]}]},
            blocks.ToolResult,
            "unknown type ['text']",
        ),
        ([], commands.Ping, "expected an object, got an array"),
        ("ping", commands.Ping, "expected an object, got a string"),
    ],
)
def test_errors_name_the_place(raw: Any, kind: Any, message: str) -> None:
    """A message says what was expected, what came, and where."""
    assert message in complaint(raw, kind)


def test_several_errors_are_told_at_once() -> None:
    """All that is wrong is named, up to three things."""
    text = complaint({"extension": 1, "panel_id": 2, "key": 3, "text": 4}, commands.PanelKeyCommand)
    assert [f"$.{name}" in text for name in ("extension", "panel_id", "key", "text")] == [True, True, True, False]


def test_scalars_are_not_converted() -> None:
    """A number is no string, true is no number, and a whole number may stand where a number is expected."""
    assert codec.structure({"count": 1, "p50": 2, "p99": 2.5}, client.LatencyView).p50 == 2.0
    assert type(codec.structure({"count": 1, "p50": 2, "p99": 2.5}, client.LatencyView).p50) is float
    for value in (True, 1.0, "1", None):
        assert "$.count" in complaint({"count": value, "p50": 2, "p99": 2.5}, client.LatencyView)


def test_a_number_too_large_for_a_float_is_refused() -> None:
    """An integer of any size is JSON, but not every one is a float."""
    assert "$.p50" in complaint({"count": 1, "p50": 10**400, "p99": 1}, client.LatencyView)


def test_unknown_fields_are_ignored() -> None:
    """A newer peer is understood."""
    assert codec.structure({"later": {"a": 1}}, commands.Ping) == commands.Ping()


def test_null_is_the_default_of_an_optional_field() -> None:
    """Null where a value may be left out means that it was; elsewhere it is a wrong type."""
    raw = {"message": "a", "images": None, "when": None, "literal": None}
    assert codec.structure(raw, commands.Prompt) == commands.Prompt(message="a")
    assert "$.prompt_id" in complaint({"prompt_id": None}, commands.QueueRemove)


def test_null_in_an_opaque_field_is_a_value() -> None:
    """``details: null`` clears an extension's state; no ``details`` leaves it alone."""
    assert codec.structure({"id": "1"}, extension.ToolResultFrame).details is ABSENT
    assert codec.structure({"id": "1", "details": None}, extension.ToolResultFrame).details is None
    assert codec.encode_frame(extension.ToolResultFrame(id="1", details=None)) == (
        b'{"type":"tool_result","id":"1","details":null}'
    )
    assert codec.encode_frame(extension.ToolResultFrame(id="1")) == b'{"type":"tool_result","id":"1"}'


@given(JSON)
@settings(max_examples=50, deadline=None)
def test_opaque_values_are_passed_on_as_they_came(value: Any) -> None:
    """What is opaque is neither converted nor looked into."""
    call = extension.ToolCallFrame(id="1", name="t", args=value)
    assert codec.decode_object(codec.encode_frame(call))["args"] == value


def test_type_comes_first_and_defaults_are_left_out() -> None:
    """Lines can be read by eye, and are short."""
    assert codec.encode_frame(commands.Prompt(message="hi")) == b'{"type":"prompt","message":"hi"}'
    assert codec.encode_frame(client.Done()) == b"{}"
    message = blocks.Message(role="user", content=(blocks.Text(text="a"),), time="t")
    assert codec.encode(codec.unstructure(message)) == (
        b'{"role":"user","content":[{"type":"text","text":"a"}],"time":"t"}'
    )


@frame
class Tree:
    """A shape that refers to nothing of ours: the codec's rules hold for any frame class."""

    names: tuple[str, ...]
    any: tuple[Any, ...] = ()
    number: float = 0.0


def test_any_frame_class_will_do() -> None:
    """Hooks are made when a class is first met."""
    tree = Tree(names=("a", "b"), any=(1, {"k": [None]}), number=2.5)
    assert codec.structure(codec.unstructure(tree), Tree) == tree
    assert "$.names[1]" in complaint({"names": ["a", 1]}, Tree)
    assert attrs.has(Tree)
