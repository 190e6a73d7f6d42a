"""State that belongs to the branch: what comes back with session events, and what goes out with results."""

from typing import Any

import pytest

from tests.sdk.host import FakeHost, text_of
from zutd.sdk import Event, Extension, State, ToolResult


class Notes:
    """An extension that keeps a list of notes."""

    def __init__(self) -> None:
        self.ext = ext = Extension("notes")
        self.notes: State[list[str]] = ext.state([])

        @ext.tool
        def add(text: str) -> str:
            self.notes.value.append(text)
            return str(self.notes.value)

        @ext.tool
        def show() -> str:
            return str(self.notes.value)

        @ext.tool
        def big(size: int) -> str:
            self.notes.value.append("big")
            return "x" * size

        @ext.tool
        def own(details: Any) -> ToolResult:
            return ToolResult("ok", details=details)

        @ext.command("add")
        def command(args: str) -> None:
            self.notes.value.append(args)


def opened(host: FakeHost, event: str, branch: str, **more: Any) -> None:
    """Tell of a session."""
    host.send("event", event=event, session={"id": branch, "path": "", "cwd": "", "fork_point": 0}, **more)


def test_the_extension_subscribes_to_what_the_state_needs() -> None:
    """The session events are subscribed to without being asked for, and the author's own handlers see the new value."""
    notes = Notes()
    seen: list[list[str]] = []
    notes.ext.on("session_opened")(lambda _: seen.append(list(notes.notes.value)))
    with FakeHost(notes.ext) as host:
        subscribe = next(f for f in host.greet() if f["type"] == "subscribe")
        opened(host, "session_opened", "b1", state=["old"])
        assert text_of(host.call("show")) == "['old']"
    assert seen == [["old"]]
    assert set(subscribe["events"]) == {
        "session_start", "session_opened", "session_switched", "session_forked", "session_compacted",
    }  # fmt: skip


def test_results_carry_what_has_changed() -> None:
    """A result has ``details`` when the value is not the one that the host has, and only then."""
    with FakeHost(Notes().ext) as host:
        host.greet()
        assert "details" not in host.call("show")
        assert host.call("add", text="a")["details"] == ["a"]
        assert "details" not in host.call("show")
        host.command("add", "by the user")
        assert host.call("show")["details"] == ["a", "by the user"]


def test_branches_have_their_own_state() -> None:
    """A switch brings the branch's value, a branch without one begins with the default, which nothing has touched."""
    with FakeHost(Notes().ext) as host:
        host.greet()
        assert host.call("add", text="a")["details"] == ["a"]
        opened(host, "session_switched", "b2", state=["other"])
        assert host.call("add", text="b")["details"] == ["other", "b"]
        opened(host, "session_switched", "b3")
        assert text_of(host.call("show")) == "[]"
        assert host.call("add", text="c")["details"] == ["c"]


def test_a_compaction_loses_nothing() -> None:
    """What was not saved yet survives the compaction of its branch, and goes out with the next result."""
    with FakeHost(Notes().ext) as host:
        host.greet()
        opened(host, "session_opened", "b1", state=["saved"])
        host.command("add", "not saved")
        opened(host, "session_compacted", "b1", state=["saved"])
        assert host.call("show")["details"] == ["saved", "not saved"]
        opened(host, "session_compacted", "b2", state=["elsewhere"])
        assert text_of(host.call("show")) == "['elsewhere']"


def test_a_result_that_could_not_be_sent_saved_nothing() -> None:
    """When the line was too long, the change goes out with the next result."""
    with FakeHost(Notes().ext) as host:
        host.greet()
        failed = host.call("big", size=5_000_000)
        assert (failed["is_error"], "details" in failed) == (True, False)
        assert host.call("show")["details"] == ["big"]


def test_a_call_that_was_given_up_saved_nothing() -> None:
    """A result that nobody gets does not count as saved either."""
    notes = Notes()

    @notes.ext.on("turn_start")
    def change(_: Event) -> None:
        notes.notes.value.append("event")

    with FakeHost(notes.ext) as host:
        host.greet()
        host.send("event", event="turn_start", step=1)
        host.send("tool_call", id="c1", name="show", args={})
        host.send("tool_cancel", id="c1")
        frame = host.call("show", id="c2")
        while frame["id"] != "c2":  # the first one may have been too quick to be given up
            frame = host.frame()
        assert text_of(frame) == "['event']"


def test_the_handlers_own_details_win() -> None:
    """An explicit ``details`` is sent as it is, also null."""
    with FakeHost(Notes().ext) as host:
        host.greet()
        host.command("add", "x")
        assert host.call("own", details={"mine": True})["details"] == {"mine": True}
        assert host.call("own", details=None)["details"] is None


def test_a_value_that_is_no_json_is_not_saved(capsys: pytest.CaptureFixture[str]) -> None:
    """It costs the state, not the result."""
    ext = Extension("x")
    state: State[Any] = ext.state({})

    @ext.tool
    def spoil() -> str:
        state.value = {1, 2}
        return "fine"

    with FakeHost(ext) as host:
        host.greet()
        assert host.call("spoil") == {"type": "tool_result", "id": "c1", "content": [{"type": "text", "text": "fine"}]}
    assert "not saved" in capsys.readouterr().err


def test_one_state_an_extension() -> None:
    """There is one snapshot for each extension, so a second state is refused."""
    ext = Extension("x")
    ext.state(1)
    with pytest.raises(ValueError, match="has a state already"):
        ext.state(2)
