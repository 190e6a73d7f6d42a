"""The table of commands: complete, and nothing that a frontend may send wrongly passes for a command."""

from typing import Any

import pytest

from tests.frames.shapes import broken, plain
from zutd.daemon.commands import TABLE
from zutd.daemon.greeting import GREETINGS
from zutd.frames.commands import COMMANDS
from zutd.wire.codec import ProtocolError, structure_tagged

BUSY = {"compact", "clear", "new_session", "open_session", "fork", "switch_branch"}
"""The commands that the protocol refuses during a turn."""


def test_every_command_has_a_handler() -> None:
    """Whatever can be said is dealt with, by exactly one handler."""
    assert {*TABLE, *GREETINGS} == set(COMMANDS.values())
    for entry in TABLE.values():
        assert (entry.handler is None) != (entry.slow is None)


def test_what_must_not_overlap_a_turn_is_marked() -> None:
    """The marks are those of the protocol; and a slow command cannot promise that nothing runs meanwhile."""
    assert {tag for tag, cls in COMMANDS.items() if cls in TABLE and TABLE[cls].idle} >= BUSY
    assert not any(entry.idle for entry in TABLE.values() if entry.slow is not None)


@pytest.mark.parametrize("name", COMMANDS)
def test_bad_fields_are_named_with_their_path(name: str) -> None:
    """Each field left out, null or of another type is refused before the handler, with its path."""
    cls = COMMANDS[name]
    assert type(structure_tagged(plain(cls), COMMANDS, "command")) is cls
    for field, raw in broken(cls):
        with pytest.raises(ProtocolError) as caught:
            structure_tagged({**raw, "type": name}, COMMANDS, "command")
        assert caught.value.kind == "invalid_params"
        assert f"bad {name}: " in caught.value.message
        assert f"$.{field}" in caught.value.message


@pytest.mark.parametrize("tag", [None, 7, "", "Prompt", "prompt ", "response", "hello_ack", "\ufffd"])
def test_other_names_are_no_commands(tag: Any) -> None:
    """Names match exactly."""
    with pytest.raises(ProtocolError) as caught:
        structure_tagged({"type": tag}, COMMANDS, "command")
    assert caught.value.kind == ("unknown_command" if isinstance(tag, str) else "invalid_request")
