#!/usr/bin/env python3
"""A to-do list that belongs to the branch of the conversation.

It keeps nothing on disk itself. Each result carries the whole list as `details`; zutd stores that with the session
and hands it back whenever the session is opened, forked, switched or compacted. So every branch has its own list.
"""

import json
import sys

SESSION_EVENTS = ["session_opened", "session_forked", "session_switched", "session_compacted"]
TOOL = {
    "type": "register_tool",
    "name": "todo",
    "description": "Keep a to-do list: add an item, tick one off, or give nothing to read the list.",
    "schema": {
        "type": "object",
        "properties": {
            "add": {"type": "string", "description": "an item to add"},
            "done": {"type": "integer", "description": "the number of an item to tick off"},
        },
    },
}
items = []  # the list of the active branch: [{"text": "buy milk", "done": false}, ...]


def emit(frame):
    """Send one frame: one line of JSON on stdout, which carries nothing else."""
    sys.stdout.write(json.dumps(frame) + "\n")
    sys.stdout.flush()


def text():
    """The list for a reader."""
    return "\n".join(f"{n}. [{'x' if i['done'] else ' '}] {i['text']}" for n, i in enumerate(items, 1)) or "(empty)"


def problem(args):
    """What is wrong with a call, or an empty string. The arguments are a model's, so nothing is taken for granted."""
    add, done = args.get("add"), args.get("done")
    if add is not None and not (isinstance(add, str) and add.strip()):
        return "add must be a text"
    if done is not None and not (type(done) is int and 1 <= done <= len(items)):
        return f"done must be the number of an item, 1 to {len(items)}"
    return ""


def run_tool(frame):
    """Change the list as the model asks, and answer with the list and the state to keep."""
    args = frame["args"]
    wrong = problem(args)
    if wrong:
        result = {"content": [{"type": "text", "text": wrong}], "is_error": True}
    else:
        if args.get("add") is not None:
            items.append({"text": args["add"].strip(), "done": False})
        if args.get("done") is not None:
            items[args["done"] - 1]["done"] = True
        result = {"content": [{"type": "text", "text": text()}], "details": {"items": items}}
    emit({"type": "tool_result", "id": frame["id"], **result})


def restore(frame):
    """Another branch is active: its list is what was stored on it, or nothing."""
    items[:] = (frame.get("state") or {}).get("items", [])


emit({"type": "hello", "protocol_version": 2, "name": "todo-py", "version": "1.0.0", "capabilities": ["tools"]})
for line in sys.stdin:
    frame = json.loads(line)
    kind = frame["type"]
    if kind == "hello_ack":
        emit(TOOL)
        emit({"type": "register_command", "name": "todos", "description": "show the to-do list"})
        emit({"type": "subscribe", "events": SESSION_EVENTS})
        emit({"type": "ready"})
    elif kind == "tool_call":
        run_tool(frame)
    elif kind == "command_invoked":
        emit({"type": "command_response", "id": frame["id"], "action": "display", "display": text()})
    elif kind == "event":
        restore(frame)
    elif kind == "shutdown":
        emit({"type": "shutdown_ack"})
        break
