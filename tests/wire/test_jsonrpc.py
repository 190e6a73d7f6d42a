"""Both dialects: what is read, what is refused with which id, and that two ends understand each other."""

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.frames.shapes import JSON
from zutd.wire import codec, jsonrpc, typed
from zutd.wire.codec import ProtocolError
from zutd.wire.envelope import KINDS, Answer, Call, Dialect, EnvelopeError, Failure, Id, Kind, failure_of

CALM = settings(deadline=None)  # the machine may be busy

DIALECTS: list[Dialect] = [typed, jsonrpc]
BOTH = pytest.mark.parametrize("dialect", DIALECTS, ids=["typed", "jsonrpc"])

SCALAR_IDS: st.SearchStrategy[Id] = st.one_of(
    st.text(max_size=8), st.integers(), st.floats(allow_nan=False, allow_infinity=False)
)
FIELDS = st.dictionaries(
    st.text(max_size=6).filter(lambda key: key not in ("type", "id", "session_id")), JSON, max_size=3
)
NAMES = st.text(max_size=8).filter(lambda name: name != "response" and name not in typed._WITH_OWN_ID)


def refused(dialect: Dialect, raw: Any) -> EnvelopeError:
    """The error that a JSON value gives."""
    with pytest.raises(EnvelopeError) as caught:
        dialect.read(raw)
    return caught.value


def carried(raw: Any) -> Any:
    """A JSON value after its way over the wire."""
    return codec.decode_value(codec.encode(raw))


def command(dialect: Dialect, name: str, fields: dict[str, Any], id: Id) -> dict[str, Any]:
    """A command as a frontend writes it."""
    if dialect is jsonrpc:
        return {"jsonrpc": "2.0", "id": id, "method": name, "params": fields}
    return {"type": name, "id": id, **fields}


# --- both dialects ---------------------------------------------------------------------------------------------------


@BOTH
@CALM
@given(NAMES, FIELDS, SCALAR_IDS)
def test_a_command_is_read_as_it_was_meant(dialect: Dialect, name: str, fields: dict[str, Any], id: Id) -> None:
    """Name, fields and id arrive unchanged, the id also in its type."""
    call = dialect.read(carried(command(dialect, name, fields, id)))
    assert call == Call(name=name, fields=fields, id=id, has_id=True)
    assert isinstance(call, Call)
    assert type(call.id) is type(id)


@BOTH
@CALM
@given(SCALAR_IDS, FIELDS)
def test_a_success_reaches_the_one_who_asked(dialect: Dialect, id: Id, data: dict[str, Any]) -> None:
    """The other end reads the answer to its call, with the same id and data."""
    call = Call(name="ping", fields={}, id=id, has_id=True)
    assert dialect.read(carried(dialect.success(call, data))) == Answer(id=id, data=data)


@BOTH
@pytest.mark.parametrize("kind", KINDS.values())
def test_a_failure_reaches_the_one_who_asked(dialect: Dialect, kind: Kind) -> None:
    """Kind, sentence and details survive the way, under the same id, or none."""
    for id_ in ("a", 7, 1.5, 10**30, None):
        for details in ({}, {"ref": "e1", "path": ["$", 1]}):
            failure = Failure(kind=kind, message="no", details=details)
            assert dialect.read(carried(dialect.failure(id_, "ping", failure))) == Answer(id=id_, failure=failure)


@BOTH
@CALM
@given(FIELDS)
def test_an_event_is_told_without_an_id(dialect: Dialect, fields: dict[str, Any]) -> None:
    """Events have a name and fields; a ``type`` among the fields is not repeated."""
    call = dialect.read(carried(dialect.event("text_delta", {"type": "text_delta", **fields})))
    assert isinstance(call, Call)
    assert (call.name, call.fields, call.has_id) == ("text_delta", fields, False)


@BOTH
def test_a_question_names_its_request(dialect: Dialect) -> None:
    """Whatever the dialect, the frontend finds the ``request_id`` among the fields."""
    fields = {"type": "confirm_request", "tool_name": "bash"}
    call = dialect.read(carried(dialect.ask("q1", "confirm_request", fields)))
    assert isinstance(call, Call)
    assert (call.name, call.fields) == ("confirm_request", {"tool_name": "bash", "request_id": "q1"})


@BOTH
@CALM
@given(JSON)
def test_any_json_is_read_or_refused(dialect: Dialect, raw: Any) -> None:
    """No JSON value raises anything but an EnvelopeError, and that can be told to the peer."""
    try:
        dialect.read(raw)
    except EnvelopeError as error:
        carried(dialect.failure(error.id, error.command, failure_of(error)))


@BOTH
@CALM
@given(
    st.fixed_dictionaries(
        {},
        optional={
            name: st.one_of(JSON, st.sampled_from(["2.0", "ping", "response", "delete_session", {}]))
            for name in (
                *("type", "id", "jsonrpc", "method", "params", "result"),
                *("error", "success", "data", "code", "details", "session_id"),
            )
        },
    )
)
def test_any_mixture_of_the_known_keys_is_read_or_refused(dialect: Dialect, raw: dict[str, Any]) -> None:
    """Envelopes put together at random give a call, an answer or an EnvelopeError."""
    try:
        assert isinstance(dialect.read(raw), (Call, Answer))
    except EnvelopeError as error:
        assert error.kind in ("invalid_request", "invalid_params")
        assert error.id is None or error.id == raw["id"]


@BOTH
@pytest.mark.parametrize("id_", [True, False, [], {}, ["a"]])
def test_other_ids_are_refused_and_not_echoed(dialect: Dialect, id_: Any) -> None:
    """An id is a string or a number; the error names the place and still tells the command."""
    error = refused(dialect, command(dialect, "ping", {}, id_))
    assert (error.kind, error.id, error.command) == ("invalid_request", None, "ping")
    assert "$.id" in error.message


@BOTH
@pytest.mark.parametrize("raw", [None, 7, "ping", True, 1.5])
def test_what_is_no_object_is_refused(dialect: Dialect, raw: Any) -> None:
    """A line that is JSON but no object is an invalid request without an id."""
    error = refused(dialect, raw)
    assert (error.kind, error.id, error.command, error.wants_answer) == ("invalid_request", None, "", True)
    assert codec.describe(raw) in error.message


@BOTH
@pytest.mark.parametrize("id_", ["x", 7])
@pytest.mark.parametrize("name", [None, 7, [], {}])
def test_a_command_needs_a_name_and_the_error_has_its_id(dialect: Dialect, id_: Id, name: Any) -> None:
    """Without a string for a name the id is still echoed."""
    error = refused(dialect, command(dialect, name, {}, id_))
    assert (error.kind, error.id, error.command) == ("invalid_request", id_, "")


def test_both_modules_have_the_interface_and_share_the_kinds() -> None:
    """The modules fit the protocol, and every kind has a number of its own."""
    modules: list[ModuleType] = [typed, jsonrpc]
    for module in modules:
        assert all(callable(getattr(module, name)) for name in ("read", "success", "failure", "event", "ask"))
    assert list(jsonrpc.CODES) == list(KINDS)
    assert len(set(jsonrpc.CODES.values())) == len(KINDS)


def test_codec_errors_become_failures() -> None:
    """What the codec says about a line is what the peer is told."""
    assert failure_of(ProtocolError("parse_error", "not JSON")) == Failure(kind="parse_error", message="not JSON")


# --- JSON-RPC --------------------------------------------------------------------------------------------------------


def test_the_numbers_are_those_of_the_contract() -> None:
    """Kinds and codes are what frontends were promised."""
    assert jsonrpc.CODES == {
        "parse_error": -32700,
        "invalid_request": -32600,
        "unknown_command": -32601,
        "invalid_params": -32602,
        "internal": -32603,
        "auth_required": -32000,
        "busy": -32001,
        "not_found": -32002,
        "conflict": -32003,
        "no_session": -32004,
        "extension_error": -32010,
        "provider_error": -32011,
        "cancelled": -32800,
    }


def test_the_first_line_tells_the_dialect() -> None:
    """JSON-RPC is known by its ``jsonrpc``, a batch of it too; everything else is typed lines."""
    assert jsonrpc.recognises({"jsonrpc": "2.0", "method": "ping"})
    assert jsonrpc.recognises({"jsonrpc": "1.0"})
    assert jsonrpc.recognises([{"jsonrpc": "2.0", "method": "ping"}])
    for raw in ({"type": "ping"}, {}, [], [1], [[{"jsonrpc": "2.0"}]], None, "jsonrpc", 7):
        assert not jsonrpc.recognises(raw)


@pytest.mark.parametrize("raw", [[], [{"jsonrpc": "2.0", "id": 1, "method": "ping"}], [1, 2]])
def test_batches_are_refused_whole(raw: Any) -> None:
    """An array is one -32600 with a null id."""
    error = refused(jsonrpc, raw)
    written = jsonrpc.failure(error.id, error.command, failure_of(error))
    assert (written["id"], written["error"]["code"]) == (None, -32600)


def test_a_message_without_an_id_wants_no_answer() -> None:
    """A notification is a call that must stay unanswered, also when its params are wrong."""
    assert jsonrpc.read({"jsonrpc": "2.0", "method": "abort"}) == Call(name="abort", fields={}, wants_answer=False)
    assert not refused(jsonrpc, {"jsonrpc": "2.0", "method": "abort", "params": []}).wants_answer


def test_a_null_id_is_an_id() -> None:
    """Null is poor style in JSON-RPC, but it is answered, with null."""
    call = jsonrpc.read({"jsonrpc": "2.0", "method": "ping", "id": None})
    assert call == Call(name="ping", fields={}, id=None, has_id=True)
    assert isinstance(call, Call)
    assert jsonrpc.success(call, {}) == {"jsonrpc": "2.0", "id": None, "result": {}}


@pytest.mark.parametrize("params", [[], ["a"], "a", 7, True])
def test_params_are_named(params: Any) -> None:
    """Positions and scalars are invalid params, answered under the request's id."""
    error = refused(jsonrpc, {"jsonrpc": "2.0", "id": 3, "method": "prompt", "params": params})
    assert (error.kind, error.id, error.command, error.wants_answer) == ("invalid_params", 3, "prompt", True)
    assert "$.params" in error.message


@pytest.mark.parametrize("version", ["1.0", 2.0, None, "2"])
def test_the_version_must_be_right(version: Any) -> None:
    """Each message says that it is JSON-RPC 2.0; the error has the id."""
    error = refused(jsonrpc, {"jsonrpc": version, "id": 3, "method": "ping"})
    assert (error.kind, error.id) == ("invalid_request", 3)
    assert refused(jsonrpc, {"id": 3, "method": "ping"}).id == 3


def test_params_cannot_change_the_method() -> None:
    """A ``type`` among the params is dropped: the method names the command."""
    call = jsonrpc.read({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"type": "shutdown", "a": 1}})
    assert call == Call(name="ping", fields={"a": 1}, id=1, has_id=True)


def test_own_ids_stand_in_the_params() -> None:
    """In JSON-RPC a command's own ``id`` does not collide with the message's."""
    call = jsonrpc.read({"jsonrpc": "2.0", "id": 1, "method": "delete_session", "params": {"id": "4f1c"}})
    assert call == Call(name="delete_session", fields={"id": "4f1c"}, id=1, has_id=True)


def test_failures_have_their_kind_and_details_in_data() -> None:
    """``data`` holds the kind first, then the details, which cannot hide it."""
    failure = Failure(kind="busy", message="later", details={"kind": "other", "limit": 256})
    assert jsonrpc.failure(7, "prompt", failure) == {
        "jsonrpc": "2.0",
        "id": 7,
        "error": {"code": -32001, "message": "later", "data": {"kind": "busy", "limit": 256}},
    }


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": -32601, "message": "no"}, "unknown_command"),
        ({"code": -32601, "message": "no", "data": {"kind": "busy"}}, "busy"),
        ({"code": -32601, "message": "no", "data": {"kind": ["busy"]}}, "unknown_command"),
        ({"code": -1, "message": "no", "data": {"kind": "mood"}}, "internal"),
        ({"code": [], "message": "no", "data": 7}, "internal"),
        ({"message": "no"}, "internal"),
    ],
)
def test_failures_of_any_peer_have_a_kind(error: dict[str, Any], kind: Kind) -> None:
    """The kind is read from ``data``, else from the code, else it is internal."""
    answer = jsonrpc.read({"jsonrpc": "2.0", "id": "q1", "error": error})
    assert isinstance(answer, Answer)
    assert answer.failure is not None
    assert answer.failure.kind == kind


@pytest.mark.parametrize(
    "raw",
    [{"id": "q1", "error": "boom"}, {"id": "q1", "error": {"message": 7}}, {"id": True, "result": {}}, {"result": 1}],
)
def test_broken_answers_are_refused_without_their_id(raw: dict[str, Any]) -> None:
    """As with typed lines, an id of ours is not repeated."""
    version = {} if raw == {"result": 1} else {"jsonrpc": "2.0"}
    error = refused(jsonrpc, {**version, **raw})
    assert (error.kind, error.id) == ("invalid_request", None)
