"""Messages that a newer zutd wrote, and other rows that are not quite what this version expects."""

import msgspec

from tests.sessions.helpers import HEADER, TIME, line, root, texts
from zutd.frames.blocks import Message, Text, ToolResult
from zutd.sessions.reading import read_json, read_message
from zutd.sessions.tree import Tree


def with_content(*content: object, role: str = "assistant", **more: object) -> bytes:
    """A message row with this content."""
    return line(2, 1, "message", message={"role": role, "content": content, "time": TIME, **more})


def test_an_unknown_block_is_replaced_by_a_text_that_says_so() -> None:
    """The rest of the message is there, and it is marked as not whole."""
    message, whole = read_message(with_content({"type": "text", "text": "a"}, {"type": "hologram", "x": 1}))

    assert message is not None
    assert not whole
    assert message.content[0] == Text(text="a")
    assert "hologram" in texts([message])[1]


def test_an_unknown_block_inside_a_result_leaves_the_result_a_result() -> None:
    """The call stays answered: only the item is replaced."""
    result = {"type": "tool_result", "call_id": "c", "content": [{"type": "smell"}], "is_error": False}
    message, whole = read_message(with_content(result, role="tool"))

    assert message is not None
    assert not whole
    assert isinstance(message.content[0], ToolResult)
    assert message.content[0].call_id == "c"


def test_unknown_fields_are_skipped() -> None:
    """A newer zutd may say more about a message."""
    message, whole = read_message(with_content({"type": "text", "text": "a", "mood": 1}, mood=2))

    assert (whole, texts([message])) == (True, ["a"])


def test_an_unknown_role_is_no_message_but_counts_as_one() -> None:
    """It has its place on the path, and the context names its row as not read."""
    tree = Tree(HEADER)
    tree.extend([root(), with_content({"type": "text", "text": "a"}, role="narrator")])

    assert tree.messages(2) == []
    assert tree.message_count(2) == 1
    assert (tree.context(2).messages, tree.context(2).partial) == ((), (2,))


def test_content_of_another_shape_is_shown_as_such() -> None:
    """Content that is no array becomes one unreadable block."""
    message, whole = read_message(with_content().replace(b'"content":[]', b'"content":"old style"'))

    assert not whole
    assert "cannot read" in texts([message])[0]


def test_lone_surrogates_of_other_writers_become_replacement_characters() -> None:
    """One bad escape does not make a session unusable for ever."""
    row = with_content({"type": "text", "text": "X"}).replace(b'"X"', b'"a\\ud83d"')
    tree = Tree(HEADER)
    tree.extend([root(), row])

    assert texts(tree.messages(2)) == ["a\N{REPLACEMENT CHARACTER}"]
    assert read_json(row)["n"] == 2


def test_a_message_that_was_just_written_is_not_read_again() -> None:
    """The object that was appended is the one that the context holds; after that only the context's are kept."""
    tree, message = Tree(HEADER), Message(role="assistant", content=(Text(text="a"),), time=TIME)
    tree.extend([root(), with_content({"type": "text", "text": "a"})])
    tree.remember(2, message)

    assert tree.context(2).messages[0] is message
    assert tree.messages(2)[0][1] is message
    tree.context(1)
    assert tree.messages(2)[0][1] == message
    assert tree.messages(2)[0][1] is not message


def test_big_integers_in_arguments_survive() -> None:
    """Rows keep integers of any size."""
    call = {"type": "tool_call", "id": "c", "name": "n", "args": {"x": 10**30}}
    message, whole = read_message(with_content(call))

    assert message is not None
    assert whole
    assert msgspec.to_builtins(getattr(message.content[0], "args", None)) == {"x": 10**30}
