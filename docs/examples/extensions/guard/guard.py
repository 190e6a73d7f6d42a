#!/usr/bin/env python3
"""A guard without an SDK: it is asked before a tool runs and before the user sees an answer.

It refuses bash commands that match a danger pattern, shortens long timeouts, and hides what looks like a key. What
cannot be judged is refused: an exception answers `block`, and `"on_timeout": "deny"` in the manifest has the host
refuse when the guard is gone or silent.

A pattern is no sandbox: it stops accidents, not a determined attacker.
"""

import json
import re
import sys

DANGER = [
    (re.compile(pattern), why)
    for pattern, why in (
        (r"\brm\s+(-\w*[rR]\w*\s+|--recursive\s+)+(/|~|\$HOME)", "rm -r of a home or root directory"),
        (r"\bgit\s+push\b.*(\s-f\b|--force\b)", "git push --force"),
        (r"\bmkfs\b|\bdd\b.*\bof=/dev/", "writing to a disk"),
        (r"\b(curl|wget)\b[^|;]*\|\s*(sudo\s+)?(ba|z|da)?sh\b", "running what was just downloaded"),
        (r":\s*\(\s*\)\s*\{", "a fork bomb"),
    )
]
KEY = re.compile(r"\b(sk-[A-Za-z0-9_-]{16,}|ghp_[A-Za-z0-9]{20,}|AKIA[0-9A-Z]{16})\b")
LONGEST = 120  # seconds that one bash command may take
counts = {"asked": 0, "refused": 0}


def emit(**frame):
    """One frame is one line of JSON on stdout, which carries nothing else."""
    sys.stdout.write(json.dumps(frame) + "\n")
    sys.stdout.flush()


def judge_call(frame):
    """The answer's fields for a tool call."""
    counts["asked"] += 1
    args = frame.get("tool_args", {})
    if frame["tool_name"] != "bash":
        return {}
    for pattern, why in DANGER:
        if pattern.search(args["command"]):
            counts["refused"] += 1
            return {"block": True, "reason": f"refused: {why}. Find another way, or ask the user to do it."}
    if args.get("timeout", 0) > LONGEST:
        return {"modified_args": {**args, "timeout": LONGEST}}  # replaces all arguments, so all must be there
    return {}


def judge_text(frame):
    """The answer's fields for what the user is about to see."""
    text = KEY.sub("[hidden key]", frame.get("text", ""))
    return {"replace_text": text} if text != frame.get("text", "") else {}


JUDGES = {"tool_call": judge_call, "assistant_message": judge_text}


def judge(frame):
    """Answer a question. Whatever goes wrong, there is an answer, and it is no."""
    try:
        verdict = JUDGES[frame["event"]](frame)
    except Exception as exc:
        verdict = {"block": True, "reason": f"the guard could not judge this: {exc!r}"}
    emit(type="event_intercept_response", id=frame["id"], **verdict)


def show_counts():
    text = f"{counts['asked']} calls, {counts['refused']} refused"
    emit(type="status", key="guard", level="warn" if counts["refused"] else "info", text=text)


def frames():
    """The host's frames. Bytes are split at LF only; texts would be split elsewhere too."""
    for line in sys.stdin.buffer:
        try:
            yield json.loads(line)
        except ValueError as exc:
            print(f"ignored a line that is no frame: {exc}", file=sys.stderr)  # stderr is the log


def main():
    emit(type="hello", protocol_version=2, name="guard", version="1.0.0", capabilities=["events", "status"])
    for frame in frames():
        if frame["type"] == "hello_ack":
            if frame["protocol_version"] != 2:
                sys.exit(f"unsupported host protocol version {frame['protocol_version']}")
            emit(type="subscribe", events=["turn_end"], intercept=sorted(JUDGES))
            emit(type="ready")
        elif frame["type"] == "event_intercept":
            judge(frame)
        elif frame["type"] == "event" and counts["asked"]:
            show_counts()
        elif frame["type"] == "shutdown":
            emit(type="shutdown_ack")
            break


main()
