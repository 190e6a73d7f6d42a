"""A script for the scripted model, as a file: its shape, its checks, and which of its answers fits.

The shape is told in docs/reference/scripted.md. A wrong script is refused as a whole, with the place of the
first mistake: an extension author's test must not pass because half of a script was ignored.
"""

import re
from pathlib import Path
from typing import Any

import msgspec

from zutd.frames.blocks import Stop
from zutd.models.base import ErrorKind


class ScriptError(Exception):
    """A script cannot be used. The text names the file and the place in it."""


class Call(msgspec.Struct, forbid_unknown_fields=True):
    """A tool call. ``args_text`` stands for arguments that are no JSON object."""

    name: str
    args: dict[str, Any] = {}
    args_text: str = ""
    id: str = ""


class Fault(msgspec.Struct, forbid_unknown_fields=True):
    """A failure of the model. ``retry_after`` is seconds."""

    kind: ErrorKind
    message: str = "the script says so"
    retry_after: float | None = None


class Counts(msgspec.Struct, forbid_unknown_fields=True):
    """Tokens and US dollars."""

    input: int = 0
    output: int = 0
    reasoning: int | None = None
    cache_read: int = 0
    cache_write: int = 0
    cost_usd: float = 0.0


class Step(msgspec.Struct, forbid_unknown_fields=True):
    """One thing that happens: just one of the first seven fields is set.

    ``chunk`` cuts text, reasoning or arguments into deltas of so many characters; ``repeat`` says text so many times,
    each time as a delta.
    """

    text: str | None = None
    thinking: str | None = None
    tool_call: Call | None = None
    delay_ms: float | None = None
    error: Fault | None = None
    stop: Stop | None = None
    usage: Counts | None = None
    chunk: int = 0
    repeat: int = 1


WHAT = ("text", "thinking", "tool_call", "delay_ms", "error", "stop", "usage")


class Pattern(msgspec.Struct, forbid_unknown_fields=True):
    """A regular expression, searched without regard to case."""

    regex: str


class Reply(msgspec.Struct, forbid_unknown_fields=True):
    """One answer, and on what it waits: text in the last user message, a tool whose result came last (``*``: any).

    ``times`` is how often one session may get it, 0 for ever. Unsaid, it is once for an answer that waits on
    nothing and for ever for one that does.
    """

    steps: tuple[Step, ...]
    when: str | Pattern | None = None
    after_tool: str = ""
    times: int | None = None

    @property
    def waits(self) -> bool:
        """Whether it is for a certain situation only."""
        return self.when is not None or bool(self.after_tool)

    @property
    def most(self) -> int:
        """How often one session may get it; 0 for ever."""
        return (0 if self.waits else 1) if self.times is None else self.times

    def fits(self, said: str, tool: str) -> bool:
        """Say whether it answers this: the last user text, and the tool whose result came after it, if one did.

        An answer that names no tool is not for the moment after a result: it would call its tool again and again.
        """
        if bool(tool) != bool(self.after_tool) or self.after_tool not in {"", "*", tool}:
            return False
        if isinstance(self.when, Pattern):
            return re.search(self.when.regex, said, re.IGNORECASE | re.DOTALL) is not None
        return self.when is None or self.when.lower() in said.lower()


class _File(msgspec.Struct, forbid_unknown_fields=True):
    answers: tuple[Reply, ...]


def load(path: Path) -> tuple[Reply, ...]:
    """Read a script from a JSON file. Raises :class:`ScriptError`."""
    try:
        value = msgspec.json.decode(path.read_bytes())
    except OSError as exc:
        raise ScriptError(f"the script {path} cannot be read: {exc.strerror}") from exc
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise ScriptError(f"the script {path} is no JSON: {exc}") from exc
    return parse(value, str(path))


def parse(value: Any, name: str = "script") -> tuple[Reply, ...]:
    """Check a script: a list of answers, or an object with the list under ``answers``. Raises :class:`ScriptError`."""
    inside = "answers" if isinstance(value, dict) else ""
    try:
        answers = msgspec.convert(value, _File).answers if inside else msgspec.convert(value, tuple[Reply, ...])
    except msgspec.ValidationError as exc:
        raise ScriptError(f"{name}: {exc}") from None
    for number, reply in enumerate(answers):
        _check(reply, f"{name}: $.{inside}[{number}]" if inside else f"{name}: $[{number}]")
    return answers


def _check(reply: Reply, where: str) -> None:
    if isinstance(reply.when, Pattern):
        try:
            re.compile(reply.when.regex)
        except re.error as exc:
            raise ScriptError(f"{where}.when.regex is no regular expression: {exc}") from None
    for number, step in enumerate(reply.steps):
        said = [name for name in WHAT if getattr(step, name) is not None]
        if len(said) != 1:
            found = " and ".join(said) or "nothing"
            raise ScriptError(f"{where}.steps[{number}] must have one of {', '.join(WHAT)}; it has {found}")
        if step.chunk < 0 or step.repeat < 0 or (step.delay_ms or 0) < 0:
            raise ScriptError(f"{where}.steps[{number}] has a number below zero")
