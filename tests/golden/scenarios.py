"""The conversations that are recorded as golden files: what is given, what is said, what is waited for."""

from typing import Any

Entry = dict[str, Any]

USAGE = {"usage": {"input": 20, "output": 5}}
"""Counts of the scripted model's own would depend on the length of paths."""


def say(type: str, id: Any = None, **fields: Any) -> Entry:
    """A typed line."""
    return {"say": {"type": type, **({} if id is None else {"id": id}), **fields}}


def rpc(method: str, id: Any = None, **params: Any) -> Entry:
    """A JSON-RPC message; without an id a notification."""
    message: Entry = {"jsonrpc": "2.0", **({} if id is None else {"id": id}), "method": method}
    return {"say": {**message, **({"params": params} if params else {})}}


def text(line: str) -> Entry:
    """A line that is no JSON of ours."""
    return {"say": {"raw": line}}


def until(**values: Any) -> Entry:
    """Listen until a frame has these values."""
    return {"until": values}


def reply(id: Any) -> Entry:
    """Listen until the answer to a typed line."""
    return until(type="response", id=id)


def puppet_says(type: str, **fields: Any) -> Entry:
    """The extension says something."""
    return {"puppet": "say", "line": {"type": type, **fields}}


def puppet_hears(**values: Any) -> Entry:
    """The extension hears something; named placeholders in ``values`` are bound for what it says later."""
    return {"puppet": "hear", "line": values}


def meeting(*registrations: Entry, capabilities: tuple[str, ...] = ()) -> list[Entry]:
    """The frontend greets, the puppet shakes hands and registers, and is told to be ready."""
    return [
        say("hello", "1", client={"name": "golden", "version": "1"}, capabilities=list(capabilities)),
        reply("1"),
        puppet_says("hello", protocol_version=2, name="puppet", version="1.0.0"),
        puppet_hears(),
        *registrations,
        puppet_says("ready"),
        until(type="ext_ready"),
    ]


def answer(*steps: Entry, **more: Any) -> Entry:
    """One answer of the model, with fixed usage."""
    return {"steps": [*steps, USAGE], **more}


def words(said: str, **more: Any) -> Entry:
    """An answer of text in a few deltas."""
    return answer({"text": said, "chunk": 8}, **more)


def call(name: str, said: str = "", **args: Any) -> Entry:
    """An answer that calls a tool."""
    before = [{"text": said}] if said else []
    return answer(*before, {"tool_call": {"name": name, "args": args}})


HANG = answer({"text": "I was about to"}, {"delay_ms": 600_000})


def asked(number: int, **response: Any) -> list[Entry]:
    """The puppet is asked, and answers."""
    return [puppet_hears(id=f"<id:{number}>"), puppet_says(response.pop("type"), id=f"<id:{number}>", **response)]


def counted(number: int, count: int) -> list[Entry]:
    """The puppet's tool is called: it counts, and keeps the count as its state."""
    content = [{"type": "text", "text": str(count)}]
    return asked(number, type="tool_result", content=content, details={"n": count})


COUNT = puppet_says("register_tool", name="count", description="Counts", schema={"type": "object", "properties": {}})
GUARDS = puppet_says("subscribe", intercept=["tool_call", "turn_start"])

SCENARIOS: dict[str, tuple[Entry, list[Entry]]] = {
    "first-conversation": (
        {
            "about": "A frontend greets, asks, is answered, and looks at the transcript.",
            "script": [words("Hello, you.")],
        },
        [
            say("hello", "1", client={"name": "golden", "version": "1"}),
            reply("1"),
            say("prompt", "2", message="Hello!", prompt_id="p1"),
            until(type="done"),
            say("get_messages", "3"),
            reply("3"),
            say("shutdown", "4"),
            reply("4"),
        ],
    ),
    "first-conversation-jsonrpc": (
        {"about": "The same in JSON-RPC 2.0, with a notification and two errors.", "script": [words("Hello, you.")]},
        [
            rpc("hello", 1, client={"name": "golden", "version": "1"}),
            until(id=1),
            rpc("set_reasoning", reasoning="off"),
            rpc("prompt", 2, message="Hello!", prompt_id="p1"),
            until(method="done"),
            rpc("get_messages", "three"),
            until(id="three"),
            rpc("fly", 4),
            until(id=4),
            text("[]"),
            until(id=None),
            rpc("shutdown", 5),
            until(id=5),
        ],
    ),
    "tool-call": (
        {
            "about": "The model reads a file; reasoning is on.",
            "script": [
                answer(
                    {"thinking": "There is a file."},
                    {"text": "I look."},
                    {"tool_call": {"name": "read", "args": {"path": "a.txt"}}},
                ),
                words("It says hello."),
            ],
            "files": {"a.txt": "hello\n"},
        },
        [
            say("set_reasoning", 1, reasoning="low"),
            say("prompt", 2, message="What is in a.txt?", prompt_id="p1"),
            until(type="done"),
        ],
    ),
    "extension-command": (
        {
            "about": "Commands of an extension: shown, turned into a prompt, failed.",
            "script": [words("Hello, you.")],
            "extension": {},
        },
        [
            *meeting(
                puppet_says("register_command", name="greet", description="Says hello"),
                puppet_says("subscribe", events=["session_start", "session_opened"]),
            ),
            puppet_hears(),
            puppet_hears(),
            say("get_commands", "2"),
            reply("2"),
            say("invoke_command", "3", name="greet", args="  me "),
            *asked(1, type="command_response", action="display", display="Hello, you."),
            reply("3"),
            say("prompt", "4", message="/greet me", prompt_id="p1"),
            reply("4"),
            *asked(2, type="command_response", action="prompt", prompt="Greet me, please."),
            until(type="done"),
            say("invoke_command", "5", name="greet"),
            *asked(3, type="command_response", error="I am out of words"),
            reply("5"),
        ],
    ),
    "guard": (
        {
            "about": "A guard adds hidden context, rewrites one call, blocks another.",
            "script": [
                answer(
                    {"tool_call": {"name": "read", "args": {"path": "a.txt"}}},
                    {"tool_call": {"name": "read", "args": {"path": "c.txt"}}},
                ),
                words("I may not see c.txt."),
            ],
            "files": {"a.txt": "a\n", "b.txt": "b\n", "c.txt": "c\n"},
            "extension": {},
        },
        [
            *meeting(GUARDS),
            say("prompt", "2", message="Read a.txt and c.txt.", prompt_id="p1"),
            until(type="turn_start"),
            *asked(1, type="event_intercept_response", context="It is Tuesday."),
            until(type="turn_end"),
            *asked(2, type="event_intercept_response", modified_args={"path": "b.txt"}),
            *asked(3, type="event_intercept_response", block=True, reason="c.txt is private"),
            until(type="turn_start"),
            *asked(4, type="event_intercept_response"),
            until(type="done"),
        ],
    ),
    "panel": (
        {"about": "What extensions show, and a panel that hears keys.", "script": [words("Then b.")], "extension": {}},
        [
            *meeting(
                puppet_says("status", key="build", level="success", text="green"),
                puppet_says("widget", id="todo", title="To do", lines=["one", "two"]),
                puppet_says("notify", level="info", message="I am here."),
                puppet_says(
                    "open_panel", panel={"id": "p", "title": "Choose", "lines": ["> a", "  b"], "footer": "enter"}
                ),
                capabilities=("panels", "submit"),
            ),
            say("panel_key", "2", extension="puppet", panel_id="p", key="down"),
            reply("2"),
            puppet_hears(),
            puppet_says("panel_render", panel_id="p", lines=["  a", "> b"], footer="enter"),
            until(type="ext_panel_render"),
            say("panel_key", "3", extension="puppet", panel_id="p", key="rune", text="x"),
            reply("3"),
            puppet_hears(),
            puppet_says("clear_notes"),
            puppet_says("alert", kind="bell", reason="done"),
            puppet_says("submit", text="b was chosen"),
            until(type="done"),
            say("panel_close", "4", extension="puppet", panel_id="p"),
            reply("4"),
            puppet_hears(),
        ],
    ),
    "fork-and-state": (
        {
            "about": "An extension counts; a fork goes on from the count at its place, the first branch keeps its own.",
            "script": [item for said in ("one", "two", "two") for item in (call("count"), words(f"That is {said}."))],
            "extension": {},
        },
        [
            *meeting(COUNT),
            say("prompt", "2", message="Count.", prompt_id="p1"),
            until(type="tool_execution_started"),
            *counted(1, 1),
            until(type="done"),
            say("prompt", "3", message="Count.", prompt_id="p2"),
            until(type="tool_execution_started"),
            *counted(2, 2),
            until(type="done"),
            say("fork", "4", at=4, title="again"),
            reply("4"),
            say("get_ext_state", "5", extension="puppet"),
            reply("5"),
            say("prompt", "6", message="Count.", prompt_id="p3"),
            until(type="tool_execution_started"),
            *counted(3, 2),
            until(type="done"),
            say("get_tree", "7"),
            until(id="7", data={"branches": [{"id": "<uuid:root>"}]}),
            say("switch_branch", "8", branch="<uuid:root>"),
            reply("8"),
            say("get_ext_state", "9", extension="puppet"),
            reply("9"),
        ],
    ),
    "errors": (
        {
            "about": "One of each error that a frontend can meet; none of them changes anything.",
            "script": [HANG],
            "files": {"broken.jsonl": '{"type":"session"}\nno row\n{"type":"head"}\n'},
        },
        [
            text("{"),
            until(code="parse_error"),
            text("[1]"),
            until(code="invalid_request"),
            say("fly", 1),
            reply(1),
            say("prompt", 2, message="a", images=[{"mime_type": "image/png", "data": 7}]),
            reply(2),
            say("switch_branch", 3, branch="nowhere"),
            reply(3),
            say("open_session", 4, path="broken.jsonl"),
            reply(4),
            say("open_session", "4b", path="nowhere.jsonl"),
            reply("4b"),
            say("prompt", 5, message="Go.", prompt_id="p1"),
            until(type="text_delta"),
            say("prompt", 6, message="Go.", prompt_id="p1"),
            reply(6),
            say("clear", 7),
            reply(7),
            say("abort", 8),
            until(type="done"),
        ],
    ),
    "provider-error": (
        {
            "about": "A model that stumbles is asked again; one that refuses ends the prompt with an error.",
            "script": [
                answer({"error": {"kind": "overloaded", "message": "busy", "retry_after": 0}}),
                words("Here."),
                answer({"text": "I was"}, {"error": {"kind": "auth", "message": "the key is wrong"}}),
            ],
        },
        [
            say("prompt", 1, message="One.", prompt_id="p1"),
            until(type="done"),
            say("prompt", 2, message="Two.", prompt_id="p2"),
            until(type="done"),
        ],
    ),
    "token": (
        {"about": "With a token set, hello comes first.", "env": {"ZUTD_RPC_TOKEN": "s3cret"}},
        [
            say("ping", 1),
            reply(1),
            say("hello", 2, token="s3cret"),
            reply(2),
            say("ping", 3),
            reply(3),
        ],
    ),
    "abort": (
        {"about": "An answer is cut short; what was said of it stays.", "script": [HANG, words("Fine.")]},
        [
            say("prompt", 1, message="Go.", prompt_id="p1"),
            until(type="text_delta"),
            say("abort", 2),
            until(type="done"),
            say("abort", 3),
            reply(3),
            say("prompt", 4, message="And now?", prompt_id="p2"),
            until(type="done"),
        ],
    ),
    "queue": (
        {"about": "Prompts wait, are listed, removed, started and given back.", "script": [HANG, words("Two."), HANG]},
        [
            say("prompt", 1, message="One.", prompt_id="p1"),
            until(type="text_delta"),
            say("prompt", 2, message="Two.", prompt_id="p2"),
            reply(2),
            say("prompt", 3, message="Three.", prompt_id="p3"),
            reply(3),
            say("prompt", 4, message="Four.", when="reject"),
            reply(4),
            say("queue_list", 5),
            reply(5),
            say("queue_remove", 6, prompt_id="p3"),
            reply(6),
            say("abort", 7),
            until(type="done", prompt_id="p2"),
            say("prompt", 8, message="Five.", prompt_id="p5"),
            until(type="text_delta"),
            say("prompt", 9, message="Six.", prompt_id="p6"),
            reply(9),
            say("abort", 10, queue="drop"),
            until(type="done", prompt_id="p5"),
        ],
    ),
    "steer": (
        {
            "about": "A message reaches the running turn; the call that has not begun is skipped.",
            "arguments": ["--no-yolo"],
            "script": [
                answer(
                    {"tool_call": {"name": "read", "args": {"path": "a.txt"}}},
                    {"tool_call": {"name": "write", "args": {"path": "b.txt", "content": "b"}}},
                ),
                words("I stopped."),
            ],
            "files": {"a.txt": "a\n"},
        },
        [
            say("hello", 1, capabilities=["confirm"]),
            reply(1),
            say("prompt", 2, message="Copy a.txt.", prompt_id="p1"),
            until(type="confirm_request", request_id="<uuid:question>"),
            say("steer", 3, message="No, stop.", prompt_id="p2"),
            reply(3),
            say("confirm_response", 4, request_id="<uuid:question>", decision="allow"),
            until(type="done", prompt_id="p1"),
        ],
    ),
    "sessions": (
        {
            "about": "A second session beside the first; the first again, by the beginning of its id.",
            "script": [{**words("One."), "when": "first"}, {**words("Two."), "when": "second"}],
        },
        [
            say("prompt", 1, message="First.", prompt_id="p1"),
            until(type="done"),
            say("rename_session", 2, title="the first"),
            reply(2),
            say("new_session", 3, title="the second"),
            reply(3),
            say("prompt", 4, message="Second.", prompt_id="p2"),
            until(type="done"),
            say("list_sessions", 5),
            until(id=5, data={"sessions": [{}, {"id": "<uuid:first>"}]}),
            say("open_session", 6, session_id="<uuid:first>"),
            reply(6),
            say("get_messages", 7, limit=1),
            reply(7),
        ],
    ),
    "compaction": (
        {
            "about": "The older part of a conversation becomes a summary; the prompt after it still works.",
            "script": [words("One, at some length."), words("Two."), words("The user said one."), words("Three.")],
        },
        [
            say("prompt", 1, message="One.", prompt_id="p1"),
            until(type="done"),
            say("prompt", 2, message="Two.", prompt_id="p2"),
            until(type="done"),
            say("compact", 3, instructions="be brief"),
            until(type="done"),
            say("prompt", 4, message="Three.", prompt_id="p3"),
            until(type="done"),
        ],
    ),
}
