"""The committed protocol files are what the frames say, and say the same as the codec."""

import functools
import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scripts import gen_protocol
from tests.frames.shapes import ALL, broken, frames, plain, tag_of
from zutd.frames import client, commands, events, extension
from zutd.wire import codec, jsonrpc, typed
from zutd.wire.envelope import KINDS, Call, Dialect, Failure, Kind, failure_of

DERIVED = gen_protocol.generate()
SCHEMAS = {
    name: json.loads(DERIVED[f"protocol/{name}.schema.json"])["$defs"] for name in ("client", "extension", "session")
}
FEW = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
IDS = st.one_of(st.text(max_size=8), st.integers(), st.floats(allow_nan=False, allow_infinity=False))


def refuse(uri: str) -> Any:
    """Schemas refer to nothing outside."""
    raise LookupError(uri)


@functools.cache
def validator(file: str, name: str) -> Any:
    """The validator of one definition."""
    schema = {"$ref": f"#/$defs/{name}", "$defs": SCHEMAS[file]}
    return jsonschema_rs.Draft202012Validator(schema, retriever=refuse)


def files_of(cls: type[Any]) -> list[str]:
    """The schema files that define a class."""
    return [name for name, defs in SCHEMAS.items() if cls.__name__ in defs]


def on_the_wire(frame: Any, file: str) -> Any:
    """What the daemon sends for a frame: the codec's bytes, and an event's number."""
    raw = codec.decode_value(codec.encode_frame(frame))
    return {**raw, "seq": 1} if file == "client" and type(frame) in events.EVENTS.values() else raw


# --- the files -------------------------------------------------------------------------------------------------------


def test_committed_files_are_fresh() -> None:
    """Nobody changes a frame without the files derived from it; the message says what mends it."""
    stale = gen_protocol.differing()
    assert not stale, f"{', '.join(stale)}: not what the frames say; run: {gen_protocol.COMMAND}"


def test_generation_is_deterministic() -> None:
    """Two runs give the same text."""
    assert gen_protocol.generate() == DERIVED


def test_check_names_the_file_and_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--check`` exits 1 on a difference, names the file and the command, and writes nothing."""
    monkeypatch.setattr(gen_protocol, "differing", lambda: ["protocol/client.schema.json"])
    before = (gen_protocol.ROOT / "protocol/client.schema.json").read_bytes()
    assert gen_protocol.main(["--check"]) == 1
    said = capsys.readouterr().err
    assert "protocol/client.schema.json" in said
    assert gen_protocol.COMMAND in said
    assert (gen_protocol.ROOT / "protocol/client.schema.json").read_bytes() == before


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_schemas(name: str) -> None:
    """Each file is a valid schema of the 2020-12 draft, and all its references are inside."""
    whole = json.loads(DERIVED[f"protocol/{name}.schema.json"])
    jsonschema_rs.Draft202012Validator(whole, retriever=refuse)
    assert jsonschema_rs.meta.is_valid(whole)


def test_every_class_is_described() -> None:
    """No frame class is missing from the schemas, and each has a description."""
    for cls in ALL:
        assert files_of(cls), f"{cls.__name__} is in no schema"
        for file in files_of(cls):
            assert SCHEMAS[file][cls.__name__]["description"]


def test_readme_names_every_extension_event() -> None:
    """The prose tells of each event that an extension may subscribe to, and of each error kind."""
    text = DERIVED["protocol/README.md"]
    missing = [name for name in (*sorted(extension.EVENTS), *KINDS) if f"`{name}`" not in text]
    assert not missing


# --- frames: the codec and the schema agree --------------------------------------------------------------------------


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: f"{cls.__module__.rsplit('.', 1)[1]}.{cls.__name__}")
def test_every_frame_survives_the_wire_and_fits_its_schema(cls: type[Any]) -> None:
    """A frame that is encoded, decoded and structured is equal to itself, and its JSON fits each schema of it."""
    validators = [(file, validator(file, cls.__name__)) for file in files_of(cls)]

    @FEW
    @given(frames(cls))
    def check(frame: Any) -> None:
        assert codec.structure(codec.decode_object(codec.encode_frame(frame)), cls) == frame
        for file, valid in validators:
            valid.validate(on_the_wire(frame, file))

    check()


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: f"{cls.__module__.rsplit('.', 1)[1]}.{cls.__name__}")
def test_codec_and_schema_refuse_the_same(cls: type[Any]) -> None:
    """What has all its fields is taken by both; with one removed or of another type it is refused by both."""
    for file in files_of(cls):
        valid = validator(file, cls.__name__)
        event = {"seq": 1} if file == "client" and cls in events.EVENTS.values() else {}
        whole = plain(cls)
        codec.structure(whole, cls)
        valid.validate(whole | event)
        for field, raw in broken(cls):
            with pytest.raises(codec.ProtocolError) as caught:
                codec.structure(raw, cls)
            assert caught.value.kind == "invalid_params"
            assert f"$.{field}" in caught.value.message
            assert not valid.is_valid(raw | event), raw


@pytest.mark.parametrize("file", SCHEMAS)
def test_type_is_part_of_the_schema(file: str) -> None:
    """A tagged frame needs its own ``type``."""
    for cls in (cls for cls in ALL if tag_of(cls) and file in files_of(cls)):
        valid = validator(file, cls.__name__)
        whole = {**plain(cls), "seq": 1}
        assert valid.is_valid(whole), cls
        assert not valid.is_valid({**whole, "type": "hologram"}), cls
        assert not valid.is_valid({key: value for key, value in whole.items() if key != "type"}), cls


def test_unknown_fields_are_allowed() -> None:
    """The schemas take fields that they do not name, as the codec does."""
    assert validator("client", "Ping").is_valid({"type": "ping", "later": 1})


def test_an_event_needs_its_number() -> None:
    """``seq`` is required, ``turn_id`` is not, and both have their type."""
    valid = validator("client", "Event")
    delta = {"type": "text_delta", "delta": "a"}
    assert valid.is_valid({**delta, "seq": 10**30})
    assert valid.is_valid({**delta, "seq": 1, "turn_id": "t1"})
    assert not valid.is_valid(delta)
    assert not valid.is_valid({**delta, "seq": "1"})
    assert not valid.is_valid({**delta, "seq": 1, "turn_id": 1})


# --- envelopes -------------------------------------------------------------------------------------------------------

LINE, FROM, TO = (
    validator("client", "TypedCommand"),
    validator("client", "FromFrontend"),
    validator("client", "FromDaemon"),
)
COMMANDS = list(commands.COMMANDS.values())


def typed_line(frame: Any, id: Any) -> dict[str, Any]:
    """A command as a frontend writes it: an own ``id`` of the frame is spelled ``session_id``."""
    raw = codec.unstructure(frame)
    own = {typed.OWN_ID: raw.pop("id")} if "id" in raw else {}
    return {**raw, **own, "id": id}


@FEW
@given(st.data())
def test_commands_fit_both_dialects(data: st.DataObject) -> None:
    """Any command in either envelope fits the schema, and reading it gives the same frame and the same id."""
    for cls in COMMANDS:
        frame, line_id = data.draw(frames(cls)), data.draw(IDS)
        line = typed_line(frame, line_id)
        fields = {key: value for key, value in codec.unstructure(frame).items() if key != "type"}
        message = {"jsonrpc": "2.0", "id": line_id, "method": cls.tag, "params": fields}
        LINE.validate(line)
        FROM.validate(line)
        FROM.validate(message)
        for dialect, raw in ((typed, line), (jsonrpc, message)):
            call = dialect.read(codec.decode_value(codec.encode(raw)))
            assert isinstance(call, Call)
            assert (call.id, call.has_id) == (line_id, True)
            assert codec.structure_tagged({"type": call.name, **call.fields}, commands.COMMANDS, "command") == frame


@FEW
@given(st.data())
def test_answers_fit_both_dialects(data: st.DataObject) -> None:
    """What the daemon answers and tells fits the schema, in either dialect."""
    for cls in COMMANDS:
        call = Call(name=cls.tag, fields={}, id=data.draw(IDS), has_id=True)
        reply = codec.unstructure(data.draw(frames(getattr(client, cls.reply))))
        for dialect in (typed, jsonrpc):
            TO.validate(codec.decode_value(codec.encode(dialect.success(call, reply))))
    for cls in events.EVENTS.values():
        fields = {**codec.unstructure(data.draw(frames(cls))), "seq": 7, "turn_id": "t1"}
        for dialect in (typed, jsonrpc):
            TO.validate(codec.decode_value(codec.encode(dialect.event(cls.tag, fields))))


@pytest.mark.parametrize("kind", KINDS.values())
def test_failures_fit_both_dialects(kind: Kind) -> None:
    """Every kind of failure fits the schema, with and without id and details."""
    for line_id in ("1", 2, None):
        for details in ({}, {"ref": "e1"}):
            failure = Failure(kind=kind, message="no", details=details)
            validator("client", "FailureResponse").validate(typed.failure(line_id, "ping", failure))
            validator("client", "RpcError").validate(jsonrpc.failure(line_id, "ping", failure))


def test_a_success_has_the_reply_of_its_command() -> None:
    """The schema ties ``data`` to the command that it answers."""
    valid = validator("client", "SuccessResponse")
    answer = {"type": "response", "id": 1, "command": "ping", "success": True, "data": {"pong": True}}
    assert valid.is_valid(answer)
    assert not valid.is_valid({**answer, "data": {}})
    assert not valid.is_valid({**answer, "command": "get_state"})
    assert not valid.is_valid({**answer, "success": False})
    assert not valid.is_valid({**answer, "id": True})


# --- the README's examples -------------------------------------------------------------------------------------------


def examples() -> list[tuple[str, str]]:
    """The lines shown in the README: ``>`` from a frontend, ``<`` from the daemon."""
    text = DERIVED["protocol/README.md"]
    return [(line[0], line[2:]) for line in text.split("\n") if line.startswith(("> {", "< {"))]


def refusal(line: str) -> dict[str, Any] | None:
    """What the daemon answers to a line that is no command."""
    raw = codec.decode_value(line.encode())
    dialect: Dialect = jsonrpc if jsonrpc.recognises(raw) else typed
    call = dialect.read(raw)
    assert isinstance(call, Call)
    try:
        codec.structure_tagged({"type": call.name, **call.fields}, commands.COMMANDS, "command")
    except codec.ProtocolError as error:
        return dialect.failure(call.id, call.name, failure_of(error))
    return None


def test_examples_are_true() -> None:
    """Each example line fits the schema, or is followed by the very words with which the daemon refuses it."""
    shown = examples()
    assert len(shown) == 10
    for (side, line), following in zip(shown, [*shown[1:], None], strict=True):
        refused = refusal(line) if side == ">" else None
        if refused is None:
            (FROM if side == ">" else TO).validate(json.loads(line))
        else:
            assert following is not None
            assert not FROM.is_valid(json.loads(line))
            assert json.loads(following[1]) == refused
