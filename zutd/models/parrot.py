"""What the scripted model answers without a script                                              (pure).

It says what was asked and how to get a real model, and it calls tools when it is told to in so many words: enough to
see a frontend, a session or an extension work from end to end before there is a key.
"""

import json
import re
from typing import Any

from zutd.frames.blocks import Message, ToolResult, text_of
from zutd.models.base import Request
from zutd.models.script import Call, Step

_LONGEST_QUOTE = 400
_SECONDS = 60
"""What a command may take: the bash tool wants to be told."""

_CALL = re.compile(
    r"\b(?:call|use)\s+(?:the\s+)?(?:tool\s+)?[`\"']?(?P<name>[A-Za-z0-9_-]{1,64})[`\"']?(?:\s+tool)?"
    r"(?:\s+with)?(?:\s+(?:args|arguments))?\s*:?\s*(?P<json>\{)?",
    re.IGNORECASE,
)
_READ = re.compile(
    r"\s*(?:please\s+)?read\s+(?:the\s+file\s+)?[`\"']?(?P<path>[^\s`\"']+?)[`\"']?[.?!]?\s*", re.IGNORECASE
)
_RUN = re.compile(r"\s*(?:please\s+)?run\s*:\s*(?P<command>.+)", re.IGNORECASE | re.DOTALL)
_GREETING = re.compile(r"\s*(?:hi|hello|hey|good (?:morning|afternoon|evening)|greetings|moin)\b.{0,40}", re.IGNORECASE)

HOW_TO = (
    "I am the scripted model that zutd uses while no provider is chosen. For a real model, choose a provider and a "
    "model (--provider anthropic --model NAME) and set its key, such as ANTHROPIC_API_KEY; or give a --base-url."
)
WHAT_I_DO = 'Ask me to "read FILE", to "run: COMMAND", or to "call TOOL {...}", and I call that tool.'


def answer(request: Request) -> list[Step]:
    """Make the steps of an answer to the last message."""
    last = request.messages[-1] if request.messages else None
    if last is not None and last.role == "tool":
        return [Step(text=_report(last))]
    said = text_of(last.content) if last is not None and last.role == "user" else ""
    steps = _calls(said, request) or [Step(text=_talk(said, request), chunk=16)]
    if request.reasoning != "off":
        steps.insert(0, Step(thinking=f"The last message has {len(said)} characters; I look for a tool to call in it."))
    return steps


def _report(message: Message) -> str:
    results = [block for block in message.content if isinstance(block, ToolResult)]
    return " ".join(_sentence(result) for result in results) or "There was no result."


def _sentence(result: ToolResult) -> str:
    who = f"The tool {result.name}" if result.name else "The tool"
    text = _quoted(text_of(result.content))
    if result.is_error:
        return f"{who} failed: {text or 'it did not say why'}"
    return f"{who} answered: {text or 'nothing'}"


def _quoted(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_QUOTE else line[: _LONGEST_QUOTE - 1] + "…"


def _calls(said: str, request: Request) -> list[Step]:
    offered = [tool.name for tool in request.tools]
    found = [*_asked(said, offered), *_read_or_run(said, offered)]
    if request.tool_choice in offered and all(call.name != request.tool_choice for call in found):
        found = [Call(name=request.tool_choice)]
    return [Step(tool_call=call) for call in found]


def _asked(said: str, offered: list[str]) -> list[Call]:
    """Find the calls that are asked for by name. With arguments any name is meant, without them only a tool's."""
    found, at = [], 0
    while match := _CALL.search(said, at):
        at = match.end()
        if match["json"]:
            call, at = _with_args(match["name"], said, match.start("json"))
            found.append(call)
        elif match["name"] in offered:
            found.append(Call(name=match["name"]))
    return found


def _with_args(name: str, said: str, start: int) -> tuple[Call, int]:
    args: Any
    try:
        args, end = json.JSONDecoder().raw_decode(said, start)
    except (ValueError, RecursionError):
        return Call(name=name, args_text=said[start:]), len(said)
    return Call(name=name, args=args), end


def _read_or_run(said: str, offered: list[str]) -> list[Call]:
    if "read" in offered and (match := _READ.fullmatch(said)):
        return [Call(name="read", args={"path": match["path"]})]
    if "bash" in offered and (match := _RUN.fullmatch(said)):
        return [Call(name="bash", args={"command": match["command"].strip(), "timeout": _SECONDS})]
    return []


def _talk(said: str, request: Request) -> str:
    if not said.strip():
        return f"You said nothing. {WHAT_I_DO}"
    if _GREETING.fullmatch(said):
        return f"Hello! {HOW_TO} {WHAT_I_DO}"
    if _READ.fullmatch(said) or _RUN.fullmatch(said):
        return f"I have no tool for that here: {_tools(request)}."
    return f"You said: {_quoted(said)}\n\n{HOW_TO} {WHAT_I_DO}"


def _tools(request: Request) -> str:
    names = ", ".join(tool.name for tool in request.tools)
    return f"there are {names}" if names else "there are no tools"
