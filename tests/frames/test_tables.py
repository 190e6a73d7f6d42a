"""The tables of tags: each frame is said once, in one table, and answered by one class."""

from types import ModuleType
from typing import Any, get_args

import attrs
import pytest

from tests.frames.shapes import ALL, classes_of, is_union, tag_of
from zutd.frames import client, commands, events, extension, rows
from zutd.frames.define import ABSENT

TABLES: list[tuple[dict[str, type[Any]], Any]] = [
    (commands.COMMANDS, commands.Command),
    (events.EVENTS, events.Event),
    (extension.FROM_EXTENSION, extension.FromExtension),
    (extension.TO_EXTENSION, extension.ToExtension),
]

CONTRACT_COMMANDS = {
    *("hello", "ping", "prompt", "steer", "queue_list", "queue_remove", "abort", "compact", "get_state"),
    *("get_messages", "clear", "set_model", "set_reasoning", "get_models", "new_session", "list_sessions"),
    *("open_session", "rename_session", "delete_session", "get_tree", "fork", "switch_branch", "get_ext_state"),
    *("get_commands", "invoke_command", "get_tools", "get_extensions", "panel_key", "panel_close"),
    *("events_since", "shutdown"),
}

FROM_EXTENSION_WORDS = {
    *("hello", "register_command", "register_tool", "ready", "subscribe", "tool_result"),
    *("event_intercept_response", "command_response", "open_panel", "panel_render", "panel_close", "status"),
    *("widget", "widget_clear", "notify", "clear_notes", "alert", "submit", "submit_slash", "shutdown_ack"),
}

TO_EXTENSION_WORDS = {
    *("hello_ack", "command_invoked", "tool_call", "tool_cancel", "event", "event_intercept"),
    *("panel_key", "panel_close", "shutdown"),
}


@pytest.mark.parametrize(("table", "union"), TABLES)
def test_tables_hold_their_union(table: dict[str, type[Any]], union: Any) -> None:
    """No two classes share a tag, none is left out, and each stands under its own."""
    assert list(table.values()) == list(get_args(union))
    assert [cls.tag for cls in table.values()] == list(table)


@pytest.mark.parametrize(
    ("module", "tables"),
    [
        (client, [commands.COMMANDS]),
        (events, [events.EVENTS]),
        (extension, [extension.FROM_EXTENSION, extension.TO_EXTENSION]),
        (rows, [{cls.tag: cls for cls in (rows.Header, *get_args(rows.Row))}]),
    ],
)
def test_no_tagged_class_is_forgotten(module: ModuleType, tables: list[dict[str, type[Any]]]) -> None:
    """A class with a tag is in a table of its module, or is a block inside other frames."""
    spoken = {cls for table in tables for cls in table.values()} | set(get_args(client.ViewBlock))
    assert [cls.__name__ for cls in classes_of(module) if tag_of(cls) and cls not in spoken] == []


def test_frontends_find_what_they_were_promised() -> None:
    """No command or frame of the contract has gone; new ones may come."""
    assert set(commands.COMMANDS) >= CONTRACT_COMMANDS
    assert set(extension.FROM_EXTENSION) >= FROM_EXTENSION_WORDS
    assert set(extension.TO_EXTENSION) >= TO_EXTENSION_WORDS
    assert set(get_args(extension.Interceptable)) == extension.INTERCEPTABLE
    assert extension.INTERCEPTABLE <= extension.EVENTS


def test_every_command_has_a_reply() -> None:
    """The class of the answer is declared on the command and is a frame without a tag."""
    for cls in commands.COMMANDS.values():
        assert attrs.has(getattr(client, cls.reply))
        assert tag_of(getattr(client, cls.reply)) is None


def test_no_field_is_called_type() -> None:
    """``type`` is the tag's place on the wire; only an untagged block of an extension has it as a field."""
    with_type = {cls for cls in ALL if any(field.name == "type" for field in attrs.fields(cls))}
    assert with_type == {extension.ResultBlock}


def test_no_event_has_a_field_of_its_envelope() -> None:
    """``seq`` and ``turn_id`` are added to events, so no event has fields of these names."""
    for cls in events.EVENTS.values():
        assert not {field.name for field in attrs.fields(cls)} & {"seq", "turn_id"}


def test_every_row_is_a_node_of_the_tree() -> None:
    """``n``, ``parent`` and ``time`` are on every row but the header."""
    for cls in get_args(rows.Row):
        assert [field.name for field in attrs.fields(cls)][:3] == ["n", "parent", "time"]


def test_defaults_are_values() -> None:
    """A default is a plain value of the field's type: a factory's could not be left out on the wire."""
    for cls in ALL:
        for field in attrs.fields(cls):
            assert not isinstance(field.default, attrs.Factory)  # type: ignore[arg-type] # attrs types it as a function
            if field.default is None:
                assert is_union(field.type), f"{cls.__name__}.{field.name}"
            if field.default is ABSENT:
                assert field.type is Any, f"{cls.__name__}.{field.name}"
