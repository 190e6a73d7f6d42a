"""Commands, tools, events, interceptors and what an extension shows, as frames."""

import asyncio
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sdk.host import PATIENCE, FakeHost, text_of
from zutd.sdk import (
    Block,
    Event,
    Extension,
    ExtensionError,
    Image,
    Insert,
    Key,
    Panel,
    Prompt,
    Session,
    ToolResult,
)

# --- commands --------------------------------------------------------------------------------------------------------

PANEL = Panel("todos", "Todos", ["one", "two"], "esc close")


@pytest.mark.parametrize(
    ("answer", "fields"),
    [
        ("hi", {"action": "display", "display": "hi"}),
        (Prompt("go"), {"action": "prompt", "prompt": "go"}),
        (Insert("text"), {"action": "insert", "insert": "text"}),
        (None, {"action": "noop"}),
        (
            PANEL,
            {
                "action": "open_panel",
                "open_panel": {"id": "todos", "title": "Todos", "lines": ["one", "two"], "footer": "esc close"},
            },
        ),
    ],
)
def test_commands_answer(answer: Any, fields: dict[str, Any]) -> None:
    """Each kind of answer becomes its action."""
    ext = Extension("x")
    ext.command("c")(lambda _: answer)
    with FakeHost(ext) as host:
        host.greet()
        assert host.command("c") == {"type": "command_response", "id": "c1", **fields}


def test_commands_get_their_arguments_and_their_description() -> None:
    """The handler gets what stands after the name; its docstring describes it."""
    ext = Extension("x")

    @ext.command("Shout")
    def shout(args: str) -> str:
        """Says it
        loudly.

        Args:
            args: what

        """
        return args.upper()

    with FakeHost(ext) as host:
        assert host.greet()[1] == {"type": "register_command", "name": "Shout", "description": "Says it loudly."}
        assert host.command("Shout", "a b")["display"] == "A B"
        host.send("command_invoked", id="c2", name="Shout")
        assert host.frame()["display"] == ""


def test_a_raising_command_becomes_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """ExtensionError gives its text alone; anything else its type and text, and a traceback in the log."""
    ext = Extension("x")

    def fail(exc: BaseException) -> Any:
        def handler(_: str) -> None:
            raise exc

        return handler

    ext.command("polite")(fail(ExtensionError("no network")))
    ext.command("rude")(fail(KeyError("city")))
    ext.command("mute")(fail(ExtensionError()))
    ext.command("leaving")(fail(SystemExit(3)))
    ext.command("odd")(lambda _: 7)
    with FakeHost(ext) as host:
        host.greet()
        errors = {name: host.command(name)["error"] for name in ("polite", "rude", "mute", "leaving", "odd", "none")}

    assert errors == {
        "polite": "no network",
        "rude": "KeyError: 'city'",
        "mute": "command mute failed",
        "leaving": "SystemExit: 3",
        "odd": "TypeError: a command returns a text, Prompt, Insert, Panel or None, not 7",
        "none": "unknown command none",
    }
    log = capsys.readouterr().err
    assert "Traceback" in log
    assert "no network" not in log


# --- tools -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "content"),
    [
        ("hi", [{"type": "text", "text": "hi"}]),
        ("", [{"type": "text", "text": ""}]),
        (None, []),
        (Image(b"\x89PNG"), [{"type": "image", "mime_type": "image/png", "data": "iVBORw=="}]),
        (
            ["see", Image(b"GIF", "image/gif")],
            [{"type": "text", "text": "see"}, {"type": "image", "mime_type": "image/gif", "data": "R0lG"}],
        ),
        ({"temp": 16, "sky": "ü"}, [{"type": "text", "text": '{"temp": 16, "sky": "ü"}'}]),
        ([], [{"type": "text", "text": "[]"}]),
        ([1, "a"], [{"type": "text", "text": '[1, "a"]'}]),
        (0, [{"type": "text", "text": "0"}]),
    ],
)
def test_tools_return_what_is_natural(result: Any, content: list[dict[str, Any]]) -> None:
    """Text is text, an Image an image, a list of these several blocks, everything else is JSON."""
    ext = Extension("x")
    ext.tool(name="t")(lambda: result)
    with FakeHost(ext) as host:
        host.greet()
        assert host.call("t") == {"type": "tool_result", "id": "c1", "content": content}


def test_k5_details_go_as_they_are() -> None:
    """``details`` is the JSON that the handler gave, also null; a result without says nothing of it."""
    ext = Extension("x")

    @ext.tool
    def keep(what: str) -> ToolResult:
        return {
            "state": ToolResult("ok", details={"state": 1}),
            "null": ToolResult("ok", details=None),
            "absent": ToolResult("ok"),
        }[what]

    with FakeHost(ext) as host:
        host.greet()
        host.send("tool_call", id="c1", name="keep", args={"what": "state"})
        assert host.line().endswith(b'"details":{"state":1}}')
        assert host.call("keep", what="null")["details"] is None
        assert "details" not in host.call("keep", what="absent")


@pytest.mark.parametrize("details", [{1, 2}, float("nan"), b"bytes", {"deep": [object()]}])
def test_details_that_are_no_json_are_left_out(details: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Details that cannot be JSON cost the state, not the result; the log says so."""
    ext = Extension("x")
    ext.tool(name="t")(lambda: ToolResult("fine", details=details))
    with FakeHost(ext) as host:
        host.greet()
        assert host.call("t") == {"type": "tool_result", "id": "c1", "content": [{"type": "text", "text": "fine"}]}
    assert "not saved" in capsys.readouterr().err


def test_details_that_contain_themselves_are_left_out() -> None:
    """A value that contains itself is no JSON either."""
    ext = Extension("x")
    loop: list[Any] = []
    loop.append(loop)
    ext.tool(name="t")(lambda: ToolResult("fine", details=loop))
    with FakeHost(ext) as host:
        host.greet()
        assert "details" not in host.call("t")


def test_k10_deferred_and_activated() -> None:
    """The flags of a tool are announced, and a result may name the tools that it activates."""
    ext = Extension("x")
    ext.tool(name="hidden", description="later", deferred=True)(lambda: "boo")
    ext.tool(name="person", interactive=True)(lambda: "yes")
    ext.tool(name="loader")(lambda: ToolResult("enabled", activate=("hidden",)))
    schema = {"type": "object", "properties": {}}
    with FakeHost(ext) as host:
        frames = host.greet()
        assert frames[1] == {
            "type": "register_tool", "name": "hidden", "description": "later", "schema": schema, "deferred": True,
        }  # fmt: skip
        assert frames[2]["interactive"] is True
        assert host.call("loader")["activate_tools"] == ["hidden"]
        assert text_of(host.call("hidden")) == "boo"


def test_a_raising_tool_becomes_an_error_result(capsys: pytest.CaptureFixture[str]) -> None:
    """The model reads what went wrong; an unknown tool is answered too."""
    ext = Extension("x")

    @ext.tool
    def fail(how: str) -> str:
        if how == "polite":
            raise ExtensionError("the city is unknown")
        if how == "leaving":
            raise SystemExit
        return {"polite": ""}[how]

    ext.tool(name="nan")(lambda: [float("nan")])
    with FakeHost(ext) as host:
        host.greet()
        frames = [host.call("fail", how=how) for how in ("polite", "rude", "leaving")] + [host.call("nan")]
        frames.append(host.call("nobody"))

    assert [f["is_error"] for f in frames] == [True] * 5
    assert [text_of(f) for f in frames] == [
        "the city is unknown",
        "KeyError: 'rude'",
        "SystemExit",
        "ValueError: Out of range float values are not JSON compliant",
        "unknown tool nobody",
    ]
    assert "the city is unknown" not in capsys.readouterr().err


def test_a_result_that_is_no_json_at_all_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever a handler puts into a ToolResult, the model gets an answer."""
    ext = Extension("x")
    results: dict[str, Any] = {
        "activate": ToolResult("ok", activate=[object()]),  # type: ignore[list-item] # that is the point
        "content": ToolResult(object()),
        "image": Image("text"),  # type: ignore[arg-type] # so it is here
    }
    ext.tool(name="t", schema={"type": "object"})(lambda args: results[args["which"]])
    with FakeHost(ext) as host:
        host.greet()
        for which in results:
            result = host.call("t", which=which)
            assert (result["is_error"], text_of(result).startswith("TypeError: ")) == (True, True)
    assert "the result failed" in capsys.readouterr().err


def test_an_error_always_fits_into_a_line() -> None:
    """However long an exception's text, whoever waits gets the beginning of it."""

    def fail(*_: Any) -> None:
        raise ExtensionError("x" * 5_000_000)

    ext = Extension("x")
    ext.tool(name="t", schema={"type": "object"})(fail)
    ext.command("c")(fail)
    ext.intercept_turn_start(fail)
    with FakeHost(ext) as host:
        host.greet()
        assert len(text_of(host.call("t"))) == 32_768 + 4
        assert len(host.command("c")["error"]) == 32_768 + 4
        assert host.ask("turn_start", step=1)["block"] is True


def test_an_error_result_may_be_returned() -> None:
    """``is_error`` marks a result that is none."""
    ext = Extension("x")
    ext.tool(name="t")(lambda: ToolResult("no", is_error=True))
    with FakeHost(ext) as host:
        host.greet()
        assert host.call("t")["is_error"] is True


def test_a_result_over_the_line_limit_becomes_an_error() -> None:
    """A line of more than 4 MiB would end the extension, so the model gets an error with the size instead."""
    ext = Extension("x")
    ext.tool(name="big")(lambda: "x" * 4_200_000)
    with FakeHost(ext) as host:
        host.greet()
        result = host.call("big")
    assert (result["is_error"], text_of(result)) == (
        True,
        "tool_result has 4200071 bytes; the host takes at most 4194304",
    )


def test_handlers_run_side_by_side() -> None:
    """Two tools, a command and a question that wait for each other all come to an end."""
    ext = Extension("x")
    together = threading.Barrier(4)

    def meet(*_: Any) -> None:
        together.wait(PATIENCE)

    ext.tool(name="one", schema={"type": "object"})(meet)
    ext.tool(name="two", schema={"type": "object"})(meet)
    ext.command("three")(meet)
    ext.intercept_turn_start(meet)
    with FakeHost(ext) as host:
        host.greet()
        host.send("tool_call", id="c1", name="one", args={})
        host.send("tool_call", id="c2", name="two", args={})
        host.send("command_invoked", id="c3", name="three", args="")
        host.send("event_intercept", id="c4", event="turn_start", step=1)
        assert {host.frame()["id"] for _ in range(4)} == {"c1", "c2", "c3", "c4"}


def test_coroutines_run_side_by_side_in_one_loop() -> None:
    """``async def`` handlers of every kind work, share a loop, and wait for each other."""
    ext = Extension("x")
    opened: dict[str, asyncio.Event] = {}

    def gate() -> asyncio.Event:
        return opened.setdefault("gate", asyncio.Event())

    @ext.tool
    async def wait(n: int) -> str:
        await gate().wait()
        return f"{n} after the event"

    @ext.on("turn_start")
    async def opens(_: Event) -> None:
        gate().set()

    @ext.command("async")
    async def command(args: str) -> Prompt:
        await asyncio.sleep(0)
        return Prompt(args)

    @ext.intercept_turn_start
    async def guard(step: int) -> str:
        await asyncio.sleep(0)
        return f"step {step}"

    with FakeHost(ext) as host:
        host.greet()
        host.send("tool_call", id="c1", name="wait", args={"n": 1})
        host.send("tool_call", id="c2", name="wait", args={"n": 2})
        assert host.command("async", "hi", id="c3")["prompt"] == "hi"
        assert host.ask("turn_start", step=4)["context"] == "step 4"
        host.send("event", event="turn_start", step=4)
        results = {f["id"]: text_of(f) for f in (host.frame(), host.frame())}

    assert results == {"c1": "1 after the event", "c2": "2 after the event"}


def test_a_raising_coroutine_is_an_error_too() -> None:
    """What a coroutine raises is answered like what a function raises."""
    ext = Extension("x")

    @ext.tool
    async def fail() -> None:
        await asyncio.sleep(0)
        raise ExtensionError("late")

    @ext.tool
    async def cancels_itself() -> None:
        raise asyncio.CancelledError

    with FakeHost(ext) as host:
        host.greet()
        assert text_of(host.call("fail")) == "late"
        assert text_of(host.call("cancels_itself")) == "CancelledError"


# --- interceptors ----------------------------------------------------------------------------------------------------


def test_interceptors_answer() -> None:
    """None allows, Block blocks, a value of the right type rewrites."""
    ext = Extension("x")
    asked: list[Any] = []

    @ext.intercept_tool_call
    def on_call(tool: str, args: dict[str, Any]) -> Block | dict[str, Any] | None:
        asked.append((tool, args))
        if "rm -rf" in args.get("command", ""):
            return Block("dangerous")
        return {**args, "command": "echo safe"} if tool == "bash" else None

    @ext.intercept_assistant_message
    def on_text(text: str) -> str | Block | None:
        return Block() if text == "drop" else text.replace("secret", "[redacted]")

    answer = {"type": "event_intercept_response", "id": "c1"}
    with FakeHost(ext) as host:
        host.greet()
        bash: dict[str, Any] = {"tool_id": "t1", "tool_name": "bash", "tool_args": {"command": "ls", "timeout": 30}}
        assert host.ask("tool_call", **bash) == {**answer, "modified_args": {"command": "echo safe", "timeout": 30}}
        assert host.ask("tool_call", tool_name="read", tool_args={"path": "a"}) == answer
        refused = host.ask("tool_call", tool_name="bash", tool_args={"command": "rm -rf /"})
        assert refused == {**answer, "block": True, "reason": "dangerous"}
        assert host.ask("assistant_message", text="my secret") == {**answer, "replace_text": "my [redacted]"}
        assert host.ask("assistant_message", text="drop") == {**answer, "block": True, "reason": ""}
        assert host.ask("turn_start", step=1) == answer
        assert host.ask("something_new") == answer
    assert asked[0] == ("bash", {"command": "ls", "timeout": 30})


def test_k7_turn_start_context() -> None:
    """A text is hidden context for this model call, answered with the same id and without a block."""
    ext = Extension("x")
    ext.intercept_turn_start(lambda step: f"this is step {step}")
    with FakeHost(ext) as host:
        assert host.greet()[1] == {"type": "subscribe", "events": [], "intercept": ["turn_start"]}
        answer = host.ask("turn_start", id="q7", step=3)
    assert answer == {"type": "event_intercept_response", "id": "q7", "context": "this is step 3"}


@pytest.mark.parametrize("wrong", [7, "text", ["a"], {"a": {1}}, {"a": float("nan")}])
def test_a_guard_that_answers_nonsense_blocks(wrong: Any) -> None:
    """An answer of the wrong type, or one that is no JSON, lets nothing through."""
    ext = Extension("gate")
    ext.intercept_tool_call(lambda tool, args: wrong)
    with FakeHost(ext) as host:
        host.greet()
        answer = host.ask("tool_call", tool_name="bash", tool_args={})
    assert answer["block"] is True
    assert answer["reason"].startswith("guard gate failed: ")


@pytest.mark.parametrize("exc", [ZeroDivisionError("oops"), SystemExit(1), ExtensionError("no rules yet")])
def test_a_raising_guard_blocks(exc: BaseException) -> None:
    """A guard that fails closes: the answer is ``block`` and names the guard and the error."""

    def fail(tool: str, args: dict[str, Any]) -> None:
        raise exc

    ext = Extension("gate")
    ext.intercept_tool_call(fail)
    with FakeHost(ext) as host:
        host.greet()
        answer = host.ask("tool_call", tool_name="bash", tool_args={})
    assert answer["block"] is True
    assert answer["reason"].startswith("guard gate failed: ")
    assert str(exc) in answer["reason"]


def test_one_interceptor_an_event() -> None:
    """Two interceptors of one event would have to agree; the second is refused when it is declared."""
    ext = Extension("x")
    ext.intercept_turn_start(lambda step: None)
    with pytest.raises(ValueError, match="turn_start has an interceptor already"):
        ext.intercept_turn_start(lambda step: None)


# --- events ----------------------------------------------------------------------------------------------------------


def test_events_come_in_order_and_before_what_follows() -> None:
    """Handlers of events see them one after the other; a tool that is called after an event starts after it."""
    ext = Extension("x")
    seen: list[int] = []

    @ext.on("turn_start")
    def told(event: Event) -> None:
        if event.step == 1:
            threading.Event().wait(0.05)  # a slow handler: nothing overtakes it
        seen.append(event.step)

    ext.tool(name="seen")(lambda: list(seen))
    with FakeHost(ext) as host:
        host.greet()
        for step in range(1, 51):
            host.send("event", event="turn_start", step=step)
        assert text_of(host.call("seen")) == str(list(range(1, 51)))


def test_k6_session_events_carry_session_and_state() -> None:
    """The handler of a session event gets the branch, its parent, its file, its fork point, and the state."""
    ext = Extension("x")
    seen: list[Event] = []
    ext.on("session_opened")(seen.append)
    with FakeHost(ext) as host:
        host.greet()
        session = {"id": "b2", "parent_id": "b1", "path": "/s.jsonl", "cwd": "/p", "fork_point": 4}
        host.send("event", event="session_opened", session=session, state={"version": 1}, more="new")

    assert seen == [Event("session_opened", Session("b2", "/s.jsonl", "/p", "b1", 4), {"version": 1})]


def test_k9_tool_confirmation() -> None:
    """``tool_confirmation_requested`` carries id, name and preview."""
    ext = Extension("x")
    seen: list[Event] = []
    ext.on("tool_confirmation_requested")(seen.append)
    with FakeHost(ext) as host:
        host.greet()
        host.send("event", event="tool_confirmation_requested", tool_id="t", tool_name="read", tool_preview="a.txt")

    assert (seen[0].tool_id, seen[0].tool_name, seen[0].tool_preview) == ("t", "read", "a.txt")


def test_a_raising_event_handler_costs_itself_only(capsys: pytest.CaptureFixture[str]) -> None:
    """The next handler and the next event are served, even after ``sys.exit()``."""
    ext = Extension("x")
    seen: list[str] = []

    @ext.on("turn_end")
    def leaves(_: Event) -> None:
        raise SystemExit(1)

    @ext.on("turn_end")
    async def fails(_: Event) -> None:
        raise ValueError("oops")

    ext.on("turn_end")(lambda event: seen.append(event.stop))
    with FakeHost(ext) as host:
        host.greet()
        host.send("event", event="turn_end", stop="tool_use")
        host.send("event", event="turn_end", stop="end_turn")

    assert seen == ["tool_use", "end_turn"]
    assert capsys.readouterr().err.count("ValueError: oops") == 2


def test_an_unknown_event_is_refused_at_once() -> None:
    """A typing error in an event's name would silently never happen, so it is an error where it stands."""
    with pytest.raises(ValueError, match=r"no event turn_strat; there is: session_start"):
        Extension("x").on("turn_strat")  # type: ignore[arg-type] # that is the point


# --- what is shown ---------------------------------------------------------------------------------------------------


def shown(act: Any) -> list[dict[str, Any]]:
    """The frames that an act sends."""
    ext = Extension("x")
    ext.command("act")(lambda _: act(ext))
    with FakeHost(ext) as host:
        host.greet()
        frames = [host.command("act")]
        while frames[-1]["type"] != "command_response":
            frames.append(host.frame())
    assert host.error is None, "the end of stdin is a good end"
    return frames[:-1]


def test_k3_open_panel_has_all_fields() -> None:
    """A panel that is opened without being asked for carries id, title, lines and footer."""
    fields = {"id": "todos", "title": "Todos", "lines": ["one", "two"], "footer": "esc close"}
    assert shown(lambda ext: ext.open_panel(PANEL)) == [{"type": "open_panel", "panel": fields}]


def test_panel_render_and_close() -> None:
    """A panel is drawn anew and closed by its id."""

    def act(ext: Extension) -> None:
        ext.render_panel(PANEL)
        ext.close_panel("todos")

    assert shown(act) == [
        {"type": "panel_render", "panel_id": "todos", "title": "Todos", "lines": ["one", "two"], "footer": "esc close"},
        {"type": "panel_close", "panel_id": "todos"},
    ]


def test_k4_status_and_widget() -> None:
    """Status items and widgets carry what the wire says, and are taken away again."""

    def act(ext: Extension) -> None:
        ext.status("progress", "2/4", "success")
        ext.status("progress", "")
        ext.widget("w", ["a", "b"], "Progress")
        ext.clear_widget("w")

    assert shown(act) == [
        {"type": "status", "key": "progress", "level": "success", "text": "2/4"},
        {"type": "status", "key": "progress", "level": "info", "text": ""},
        {"type": "widget", "id": "w", "position": "above_input", "title": "Progress", "lines": ["a", "b"]},
        {"type": "widget_clear", "id": "w"},
    ]


def test_k8_alert_and_a_clean_end_at_eof() -> None:
    """An alert carries kind and reason; notes and prompts go out; EOF ends the extension without an error."""

    def act(ext: Extension) -> None:
        ext.alert("question_ready")
        ext.notify("saved", "success")
        ext.clear_notes()
        ext.submit("go on")

    assert shown(act) == [
        {"type": "alert", "kind": "bell", "reason": "question_ready"},
        {"type": "notify", "level": "success", "message": "saved"},
        {"type": "clear_notes"},
        {"type": "submit", "text": "go on"},
    ]


@pytest.mark.parametrize(("key", "is_error"), [("y", False), ("n", True)])
def test_k11_a_tool_waits_for_a_key(key: str, is_error: bool) -> None:
    """A tool opens a panel and waits; the key decides how it ends."""
    ext = Extension("x")
    pressed = threading.Event()
    keys: list[Key] = []

    @ext.on_key("ask")
    def press(key: Key) -> None:
        keys.append(key)
        pressed.set()

    @ext.tool(interactive=True)
    def approve(what: str) -> ToolResult:
        ext.open_panel(Panel("ask", "Approve?", [what], "y/n"))
        assert pressed.wait(PATIENCE)
        ext.close_panel("ask")
        yes = keys[0].text == "y"
        return ToolResult("approved" if yes else "declined", is_error=not yes)

    with FakeHost(ext) as host:
        host.greet()
        opened = host.call("approve", what="deploy")
        host.send("panel_key", panel_id="other", key="enter")
        host.send("panel_key", panel_id="ask", key="rune", text=key)
        closed, result = host.frame(), host.frame()

    assert opened["panel"] == {"id": "ask", "title": "Approve?", "lines": ["deploy"], "footer": "y/n"}
    assert closed == {"type": "panel_close", "panel_id": "ask"}
    assert (text_of(result), result.get("is_error", False)) == ("declined" if is_error else "approved", is_error)
    assert keys == [Key("ask", "rune", key)]


def test_the_user_closes_a_panel() -> None:
    """The handler of a closed panel gets its id; panels without a handler are nobody's business."""
    ext = Extension("x")
    closed: list[str] = []
    ext.on_close("p")(closed.append)
    with FakeHost(ext) as host:
        host.greet()
        host.send("panel_close", panel_id="other")
        host.send("panel_close", panel_id="p")
    assert closed == ["p"]


# --- frames of any shape ---------------------------------------------------------------------------------------------

JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KINDS = ["event", "event_intercept", "command_invoked", "tool_call", "tool_cancel", "panel_key", "panel_close", "new"]
NAMES = ["id", "name", "args", "event", "session", "state", "panel_id", "key", "text", "step", "tool_args"]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(NAMES), JSON)), max_size=8))
def test_frames_of_any_shape_are_survived(frames: list[tuple[str, dict[str, Any]]]) -> None:
    """Whatever fields the host leaves out or fills with something else, the next good frame is served."""
    ext = Extension("x")
    ext.state([])
    ext.tool(name="t")(lambda n=0: n)
    ext.command("c")(lambda _: None)
    ext.on("turn_start", "session_opened")(lambda event: None)
    ext.intercept_tool_call(lambda tool, args: None)
    ext.on_key("p")(lambda key: None)
    with FakeHost(ext) as host:
        host.greet()
        for kind, fields in frames:
            host.send(**{**fields, "type": kind})
        host.send("command_invoked", id="the last", name="c", args="")
        while host.frame().get("id") != "the last":
            continue
