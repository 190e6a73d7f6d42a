"""Typed lines: the contract's very words, and an id that is always the line's own."""

from typing import Any

import pytest

from zutd.frames import commands
from zutd.wire import typed
from zutd.wire.envelope import Answer, Call, EnvelopeError, Failure


def refused(raw: Any) -> EnvelopeError:
    """The error that a JSON value gives."""
    with pytest.raises(EnvelopeError) as caught:
        typed.read(raw)
    return caught.value


def test_typed_lines_without_an_id_are_answered_without_one() -> None:
    """No id, or null, is no id: the response has none either."""
    for raw in ({"type": "ping"}, {"type": "ping", "id": None}):
        call = typed.read(raw)
        assert call == Call(name="ping", fields={})
        assert isinstance(call, Call)
        assert call.wants_answer
        assert typed.success(call, {"pong": True}) == {
            "type": "response",
            "command": "ping",
            "success": True,
            "data": {"pong": True},
        }


def test_typed_failures_read_as_the_contract_says() -> None:
    """The sentence is ``error``, the kind is ``code``, details only where there are some."""
    failure = Failure(kind="not_found", message="no such row", details={"row": "r9"})
    assert typed.failure("1", "fork", failure) == {
        "type": "response",
        "id": "1",
        "command": "fork",
        "success": False,
        "error": "no such row",
        "code": "not_found",
        "details": {"row": "r9"},
    }
    assert "details" not in typed.failure("1", "fork", Failure(kind="busy", message="later"))


def test_the_id_of_a_typed_line_is_never_a_field() -> None:
    """A command whose frame has an ``id`` gets it from ``session_id``; the line's own is only echoed."""
    call = typed.read({"type": "get_tree", "id": 9, "session_id": "4f1c"})
    assert call == Call(name="get_tree", fields={"id": "4f1c"}, id=9, has_id=True)
    assert typed.read({"type": "get_tree", "id": "9"}) == Call(name="get_tree", fields={}, id="9", has_id=True)


def test_a_missing_session_id_is_named_as_the_line_spells_it() -> None:
    """Where the frame's id is required, the error does not send people to the line's ``id``."""
    error = refused({"type": "delete_session", "id": "9"})
    assert (error.kind, error.id, error.command) == ("invalid_params", "9", "delete_session")
    assert "$.session_id" in error.message


def test_every_own_id_of_a_command_is_a_session() -> None:
    """A new command with an ``id`` of another meaning would need another spelling: think before this list grows."""
    assert set(typed._WITH_OWN_ID) <= {
        "open_session",
        "rename_session",
        "delete_session",
        "get_tree",
        "export_session",
    }
    assert not any(hasattr(kind, typed.OWN_ID) for kind in commands.COMMANDS.values())


@pytest.mark.parametrize("raw", [{}, {"success": "yes"}, {"success": False}, {"success": False, "error": 7}])
def test_broken_responses_are_refused_without_their_id(raw: dict[str, Any]) -> None:
    """The id of a response is one of ours; repeating it could be taken for an answer to the peer's own."""
    error = refused({"type": "response", "id": "q1", **raw})
    assert (error.kind, error.id) == ("invalid_request", None)


def test_unknown_kinds_from_a_peer_are_internal() -> None:
    """A failure that a peer made up is read, under a kind that we know."""
    raw = {"type": "response", "id": "q1", "success": False, "error": "no", "code": "mood"}
    assert typed.read(raw) == Answer(id="q1", failure=Failure(kind="internal", message="no"))
