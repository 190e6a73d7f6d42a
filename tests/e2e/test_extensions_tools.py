"""Tools of extensions as the model uses them: results, names, activation, people in the loop, cancelling."""

import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import Daemon
from tests.extensions.programs import (
    eventually,
    extension,
    installed,
    log_of,
    only_result,
    seen,
    text_of,
    tool_results,
    view,
)

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n rest").decode()

RAW = """
def call(frame):
    emit(type="tool_result", id=frame["id"], **frame["args"])
serve(tool("raw"), tool_call=call)
"""

RESULTS: dict[str, tuple[dict[str, Any], bool, list[str]]] = {
    "empty text is dropped": (
        {"content": [{"type": "text", "text": ""}, {"type": "text", "text": "b"}]}, False, ["b"],
    ),
    "nothing": ({"content": []}, False, ["(extension returned no content)"]),
    "no content at all": ({}, False, ["(extension returned no content)"]),
    "error": ({"content": [{"type": "text", "text": "no"}], "is_error": True}, True, ["no"]),
    "unknown block": (
        {"content": [{"type": "video", "data": "x"}]}, False, ['[unknown block type "video" from extension raw]'],
    ),
    "bad image": (
        {"content": [{"type": "image", "mime_type": "image/png", "data": "!"}]},
        True, ["extension raw/raw returned undecodable image: "],
    ),
    "image without data": (
        {"content": [{"type": "image", "mime_type": "image/png"}]},
        True, ["extension raw/raw returned undecodable image: it is empty"],
    ),
    "image of another kind": (
        {"content": [{"type": "image", "mime_type": "image/bmp", "data": PNG}]}, True, ["'image/bmp'"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RESULTS)
def test_what_becomes_of_a_result(tmp_path: Path, name: str) -> None:
    """Blocks that cannot be used are named in their place; a result is never empty; its extension is told."""
    fields, is_error, texts = RESULTS[name]
    installed(tmp_path, "raw", RAW)
    with Daemon(tmp_path) as daemon:
        result = only_result(daemon.prompt("call raw " + json.dumps(fields)))

        assert (result["is_error"], result["extension"], len(result["content"])) == (is_error, "raw", len(texts))
        for block, text in zip(result["content"], texts, strict=True):
            assert text in block["text"]


def test_an_image_arrives(tmp_path: Path) -> None:
    """Pictures of the usual types go through; frontends are told type and size."""
    installed(tmp_path, "raw", RAW)
    fields = {"content": [{"type": "image", "mime_type": "image/png", "data": PNG}, {"type": "text", "text": "a dot"}]}
    with Daemon(tmp_path) as daemon:
        result = only_result(daemon.prompt("call raw " + json.dumps(fields)))

        size = len(base64.b64decode(PNG))
        assert result["content"] == [
            {"type": "image", "mime_type": "image/png", "bytes": size}, {"type": "text", "text": "a dot"},
        ]  # fmt: skip
        assert result["is_error"] is False


def test_attribution(tmp_path: Path) -> None:
    """Calls, results, the transcript and the list of tools all say whose tool it was."""
    installed(tmp_path, "mine", "serve(tool('work', 'does it'), tool_call=lambda f: result(f, 'ok'))")
    with Daemon(tmp_path) as daemon:
        frames = daemon.prompt("call work {}")
        called = next(f for f in frames if f["type"] == "tool_call")
        stored = [
            b for m in daemon.call("get_messages")["messages"] for b in m["content"] if b["type"] == "tool_result"
        ]
        tools = {t["name"]: t for t in daemon.call("get_tools")["tools"]}

        assert called["extension"] == only_result(frames)["extension"] == stored[0]["extension"] == "mine"
        assert tools["work"] == {
            "name": "work", "source": "extension", "description": "does it", "schema": {"type": "object"},
            "active": True, "deferred": False, "extension": "mine",
        }  # fmt: skip
        assert tools["bash"]["source"] == "builtin"


def test_m22_a_tool_is_there_when_its_extension_is_ready(tmp_path: Path) -> None:
    """What was registered before ``ready`` is listed then, and a call of it gives its one block of text."""
    installed(tmp_path, "mine", "time.sleep(0.3)\nserve(tool('work'), tool_call=lambda f: result(f, 'done'))")
    with Daemon(tmp_path) as daemon:
        daemon.ready("mine")
        assert "work" in [tool["name"] for tool in daemon.call("get_tools")["tools"]]
        assert view(daemon, "mine")["tools"] == ["work"]
        result = only_result(daemon.prompt("call work {}"))
        assert (result["is_error"], result["content"]) == (False, [{"type": "text", "text": "done"}])


BOTH = "serve(tool('shared', NAME), command('CaseTest'), command('casetest'), tool_call=lambda f: result(f, NAME))"


def test_m13_conflicts_have_one_winner(tmp_path: Path) -> None:
    """One name, one owner by precedence, however slow; the losers know it, in their state and in their log."""
    winner = extension(tmp_path / "work", "z-explicit", "time.sleep(0.3)\n" + BOTH)
    installed(tmp_path, "a-global", BOTH)
    with Daemon(tmp_path, "-e", str(winner)) as daemon:
        daemon.ready("z-explicit", "a-global")
        result = only_result(daemon.prompt("call shared {}"))
        owner, loser = view(daemon, "z-explicit"), view(daemon, "a-global")
        described = next(t for t in daemon.call("get_tools")["tools"] if t["name"] == "shared")

        assert text_of(result) == described["description"] == described["extension"] == "z-explicit"
        assert (owner["tools"], owner["commands"]) == (["shared"], ["CaseTest"])
        assert owner["conflicts"] == [
            "command /casetest conflicts with an earlier registration of this extension, which keeps it"
        ]
        assert (loser["tools"], loser["commands"]) == ([], [])
        assert sorted(loser["conflicts"]) == [
            "command /CaseTest conflicts with extension z-explicit, which keeps it",
            "command /casetest conflicts with extension z-explicit, which keeps it",
            "tool shared conflicts with extension z-explicit, which keeps it",
        ]
        assert "tool shared conflicts with extension z-explicit" in log_of(tmp_path, "a-global")


def test_the_heir_of_a_name(tmp_path: Path) -> None:
    """When the owner of a name is gone, the next in line has it."""
    mortal = (
        "serve(tool('shared'), command('die'), tool_call=lambda f: result(f, NAME),"
        " command_invoked=lambda f: sys.exit())"
    )
    installed(tmp_path, "a-mortal", mortal, restart=False)
    installed(tmp_path, "b-heir", "serve(tool('shared'), tool_call=lambda f: result(f, NAME))")
    with Daemon(tmp_path) as daemon:
        assert text_of(only_result(daemon.prompt("call shared {}"))) == "a-mortal"
        daemon.refused("invoke_command", name="die")
        assert text_of(only_result(daemon.prompt("call shared {}"))) == "b-heir"


BUILT_IN = ("bash", "grep", "skill")
RESERVED = (
    "web_search", "web_open", "web_find", "web_click", "ast", "python", "schedule", "update_goal", "update_plan",
)  # fmt: skip
REFUSED = {
    **dict.fromkeys(BUILT_IN, "is shadowed: the name is built in"),
    **dict.fromkeys(RESERVED, "is shadowed: the name is reserved for the host"),
}
FREE = ("edit", "lsp", "read", "worktree", "write")
"""Names of built-in tools that are switched off, or that there are none of."""


def test_names_that_belong_to_the_daemon(tmp_path: Path) -> None:
    """Built-in and reserved names cannot be taken, also when the built-in is switched off; others of those can."""
    names = [*REFUSED, *FREE]
    tools = ", ".join(f"tool({name!r})" for name in names)
    installed(tmp_path, "greedy", f"serve({tools}, tool_call=lambda f: result(f, 'mine'))")
    with Daemon(tmp_path, "--tools", "bash,grep") as daemon:
        daemon.ready("greedy")
        shown = view(daemon, "greedy")

        assert shown["tools"] == list(FREE)
        assert shown["conflicts"] == [f"tool {name} {why}" for name, why in REFUSED.items()]
        assert text_of(only_result(daemon.prompt('call bash {"command": "echo real", "timeout": 5}'))) != "mine"
        assert text_of(only_result(daemon.prompt("call write {}"))) == "mine"


BAD = r"""
bad = {
    "": {"type": "object"}, "has space": {"type": "object"}, "x" * 65: {"type": "object"}, "sl/ash": {"type": "object"},
    "no_schema": None, "array": [], "not_object": {"type": "string"}, "no_type": {},
    "bad_properties": {"type": "object", "properties": []}, "huge": {"type": "object", "x": "y" * 300000},
}
registrations = [dict(type="register_tool", name=name, schema=schema) for name, schema in bad.items()]
serve(*registrations, command(""), command("/slash"), command("with space"), tool("good"),
      tool_call=lambda f: result(f, "fine"))
"""


def test_bad_registrations_are_refused_one_by_one(tmp_path: Path) -> None:
    """A name or schema that would break a provider's request is refused with its reason; the rest is registered."""
    installed(tmp_path, "sloppy", BAD)
    with Daemon(tmp_path) as daemon:
        daemon.ready("sloppy")
        shown = view(daemon, "sloppy")
        assert text_of(only_result(daemon.prompt("call good {}"))) == "fine"

        assert (shown["tools"], shown["commands"]) == (["good"], [])
        assert len(shown["warnings"]) == 13
        for words in (
            "'has space'",
            "'sl/ash'",
            "no_schema is refused",
            '"type": "object"',
            "properties",
            "300",
            "'/slash'",
        ):
            assert any(words in w for w in shown["warnings"]), words
        assert len([f for f in daemon.frames if f["type"] == "ext_error"]) == 13


DEFERRED = """
def call(frame):
    loads = frame["name"] == "loader"
    result(frame, frame["name"], activate_tools=["late", "no_such", "late"] if loads else [])
serve(tool("loader"), tool("late", deferred=True), tool("never", deferred=True), tool_call=call)
"""


def test_v2_s7_deferred_tools(tmp_path: Path) -> None:
    """A deferred tool is offered to the model after a result activated it, on this branch, also after a restart."""
    installed(tmp_path, "lazy", DEFERRED)

    def offered(daemon: Daemon) -> set[str]:
        return {t["name"] for t in daemon.call("get_tools")["tools"] if t["active"] and t["source"] == "extension"}

    with Daemon(tmp_path) as daemon:
        daemon.ready("lazy")
        before = offered(daemon)
        daemon.prompt("call loader {}")
        after = offered(daemon)
        assert text_of(only_result(daemon.prompt("call late {}"))) == "late"
        first = daemon.call("get_state")["branch"]
        daemon.call("fork", at=0)
        on_fork = offered(daemon)
        daemon.call("switch_branch", branch=first)
        daemon.finish()
    with Daemon(tmp_path, "--continue") as daemon:
        daemon.ready("lazy")
        reopened = offered(daemon)

    assert (before, after, on_fork, reopened) == ({"loader"}, {"loader", "late"}, {"loader"}, {"loader", "late"})


PERSON = r"""
def call(frame):
    global waiting
    waiting = frame
    emit(type="open_panel", panel={"id": "ask", "title": "Sure?", "lines": ["y/n"]})

def key(frame):
    emit(type="panel_close", panel_id="ask")
    result(waiting, "yes" if frame["text"] == "y" else "no", is_error=frame["text"] != "y")

serve(tool("approve", interactive=True), tool("plain"), panel_key=key,
      tool_call=lambda f: call(f) if f["name"] == "approve" else result(f, "plain"))
"""


@pytest.mark.parametrize(("key", "is_error"), [("y", False), ("n", True)])
def test_k11_a_tool_that_waits_for_a_person(tmp_path: Path, key: str, is_error: bool) -> None:
    """With a frontend that shows panels, an interactive tool asks there and returns what the person said."""
    installed(tmp_path, "person", PERSON)
    with Daemon(tmp_path) as daemon:
        daemon.call("hello", capabilities=["panels"])
        daemon.send("prompt", message="call approve {}")
        panel = daemon.event("ext_panel_open")
        daemon.call("panel_key", extension="person", panel_id=panel["panel_id"], key="rune", text=key)
        daemon.event("done")

        result = only_result(daemon.frames)
        assert (text_of(result), result["is_error"]) == ("no" if is_error else "yes", is_error)
        assert seen(daemon, "ext_panel_close")["panel_id"] == "ask"


def test_u11_nobody_there_to_ask(tmp_path: Path) -> None:
    """Without such a frontend an interactive tool fails at once, and nothing is sent; plain tools work."""
    directory = installed(tmp_path, "person", PERSON.replace("panel_key=key,", "panel_key=key, every=remember,"))
    with Daemon(tmp_path) as daemon:
        refused = only_result(daemon.prompt("call approve {}"))

        assert refused["is_error"]
        assert "needs a frontend that shows panels" in text_of(refused)
        assert text_of(only_result(daemon.prompt("call plain {}"))) == "plain"
        assert not any(f["type"] == "ext_panel_open" for f in daemon.frames)
    frames = [json.loads(line) for line in (directory / "frames.jsonl").read_text().splitlines()]
    assert [f["name"] for f in frames if f["type"] == "tool_call"] == ["plain"]


@pytest.mark.parametrize("capable", [True, False])
def test_u5_abort_cancels_the_call(tmp_path: Path, capable: bool) -> None:
    """An abort ends the call at once; only who declared ``tool_cancel`` is told; a late result is ignored."""
    body = f"""
calls = []
def every(frame):
    remember(frame)
    if frame["type"] == "tool_call":
        calls.append(frame)
        note("begun")
        if len(calls) == 2:
            result(calls[0], "too late")
            result(calls[1], "in time")
serve(tool("slow"), every=every, capabilities={["tool_cancel"] if capable else []!r})
"""
    directory = installed(tmp_path, "slow", body)
    with Daemon(tmp_path) as daemon:
        daemon.ready("slow")
        daemon.send("prompt", message="call slow {}")
        daemon.event("ext_notify", message="begun")
        began = time.monotonic()
        daemon.call("abort")
        daemon.event("done", outcome="aborted")
        took = time.monotonic() - began
        assert only_result(daemon.frames)["is_error"]

        assert took < 2
        assert text_of(only_result(daemon.prompt("call slow {}"))) == "in time"
        warnings = view(daemon, "slow")["warnings"]
        assert any("nobody waits for" in w for w in warnings)
    frames = [json.loads(line) for line in (directory / "frames.jsonl").read_text().splitlines()]
    called = [f["id"] for f in frames if f["type"] == "tool_call"]
    assert [f["id"] for f in frames if f["type"] == "tool_cancel"] == (called[:1] if capable else [])


def test_arguments_that_fit_no_line(tmp_path: Path) -> None:
    """Arguments over the protocol's 4 MiB fail their call, and a guard that cannot be asked about them is told of."""
    body = "serve(tool('eat'), subscribe('tool_call', intercept=['tool_call']), event_intercept=lambda f: answer(f),"
    installed(tmp_path, "eater", body + "tool_call=lambda f: result(f, str(len(f['args']['x']))))")
    with Daemon(tmp_path) as daemon:
        fits = only_result(daemon.prompt("call eat " + json.dumps({"x": "y" * 4_000_000})))
        too_big = only_result(daemon.prompt("call eat " + json.dumps({"x": "y" * 4_200_000})))

        assert text_of(fits) == "4000000"
        assert too_big["is_error"]
        assert "over the protocol's limit of 4194304" in text_of(too_big)
        assert "over the protocol's limit" in seen(daemon, "ext_error", stage="intercept")["message"]
        assert view(daemon, "eater")["dropped_events"] == 1
        assert len(tool_results(daemon.frames)) == 2
        assert eventually(lambda: view(daemon, "eater")["state"] == "ready")


def test_an_answer_of_the_wrong_kind(tmp_path: Path) -> None:
    """A call that is answered as if it were a command fails, and says so."""
    installed(tmp_path, "mixed", "serve(tool('mix'), tool_call=lambda f: respond(f, action='display', display='x'))")
    with Daemon(tmp_path) as daemon:
        result = only_result(daemon.prompt("call mix {}"))

        assert (result["is_error"], text_of(result)) == (
            True, "extension mixed/mix failed: it answered with command_response",
        )  # fmt: skip
