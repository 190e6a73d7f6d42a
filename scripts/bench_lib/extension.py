"""The extension that is measured; its first line is put before it. Arguments: its name, and what it does."""

import json
import sys


def emit(**frame: object) -> None:
    """Send a frame."""
    sys.stdout.write(json.dumps(frame) + "\n")
    sys.stdout.flush()


name, role = sys.argv[1:]
emit(type="hello", protocol_version=2, name=name, version="1.0.0", capabilities=["tools"])
for text in sys.stdin:
    frame = json.loads(text)
    kind = frame["type"]
    if kind == "hello_ack":
        if role == "guard":
            emit(type="subscribe", intercept=["tool_call"])
        elif role == "tool":
            emit(type="register_tool", name="echo", description="says it again", schema={"type": "object"})
        elif role == "command":
            emit(type="register_command", name="echo", description="says it again")
        emit(type="ready")
    elif kind == "event_intercept":
        emit(type="event_intercept_response", id=frame["id"])
    elif kind == "tool_call":
        emit(type="tool_result", id=frame["id"], content=[{"type": "text", "text": frame["args"]["text"]}])
    elif kind == "command_invoked":
        emit(type="command_response", id=frame["id"], action="display", display=frame["args"])
    elif kind == "shutdown":
        emit(type="shutdown_ack")
        break
