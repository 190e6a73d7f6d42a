"""The chain of interceptors: asked one after another, each sees what the one before it left.

The first ``block`` ends the chain. An answer that does not come within :data:`DEADLINE`, or cannot come because the
extension is gone, means "allow" by the extension documents, unless the extension asked to fail closed; either way
it is recorded. Writing the question counts into the deadline: an extension that does not read cannot stretch it.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, Final, Protocol

import attrs
import msgspec
import trio

from zutd.frames.define import ABSENT, evolve
from zutd.frames.extension import InterceptResponse
from zutd.frames.verdicts import CallVerdict, Decision, Record, TextVerdict, TurnVerdict

DEADLINE: Final = 5.0
"""Seconds an extension has for its answer."""

CONTEXT_LIMIT: Final = 16_384
"""Bytes of UTF-8 that all hidden context of one step may have, the marker included."""

_CUT: Final = "\n[extension context truncated]"
_REFUSED_CALL: Final = "tool call refused by extension guard"
_REFUSED_TURN: Final = "turn blocked by extension guard"
_REFUSED_TEXT: Final = "message suppressed by extension guard"


class ExtensionGoneError(Exception):
    """The extension cannot be asked: its process is gone, does not read, or the question is too long for a line.

    The text says which, and how a process ended.
    """


@attrs.frozen(kw_only=True)
class Question:
    """What an interceptor is asked; which fields are set depends on ``event``."""

    event: str
    tool_id: str = ""
    tool_name: str = ""
    tool_args: Any = ABSENT
    step: int = 0
    text: str = ""


class Guard(Protocol):
    """An extension that intercepts."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def fail_closed(self) -> bool:
        """Whether no answer means no."""
        ...

    async def ask(self, question: Question) -> InterceptResponse:
        """Ask. Raises :class:`ExtensionGoneError`; the caller sets the deadline."""
        ...


@attrs.frozen(kw_only=True)
class _Answer:
    response: InterceptResponse
    record: Record


_ALLOW: Final = InterceptResponse(id="")


async def _ask(guard: Guard, question: Question) -> _Answer:
    started = trio.current_time()
    response: InterceptResponse | None = None
    decision: Decision = "timeout"
    problem = f"no answer to {question.event} within {DEADLINE:g} s"
    try:
        with trio.move_on_after(DEADLINE):
            response = await guard.ask(question)
    except ExtensionGoneError as exc:
        decision, problem = "gone", f"no answer to {question.event}: {exc}"
    latency = (trio.current_time() - started) * 1000
    record = Record(
        extension=guard.name,
        event=question.event,
        decision="allow",
        latency_ms=round(latency, 3),
        tool_id=question.tool_id,
    )
    if response is not None:
        if response.block:
            record = evolve(record, decision="block")
        return _Answer(response=response, record=record)
    record = evolve(record, decision=decision, timed_out=decision == "timeout", problem=problem)
    return _Answer(response=_silence(guard, problem), record=record)


def _silence(guard: Guard, problem: str) -> InterceptResponse:
    if not guard.fail_closed:
        return _ALLOW
    return InterceptResponse(id="", block=True, reason=f"refused because guard {guard.name} fails closed: {problem}")


def digest(args: Any) -> str:
    """SHA-256 (hex) of the arguments as JSON with sorted keys."""
    return hashlib.sha256(msgspec.json.encode(args, order="sorted")).hexdigest()


async def guard_tool_call(guards: Sequence[Guard], tool_id: str, name: str, args: Any) -> CallVerdict:
    """Ask whether a call may run. Rewrites replace the whole arguments and must be JSON objects."""
    records: list[Record] = []
    rewritten: list[str] = []
    for guard in guards:
        answer = await _ask(guard, Question(event="tool_call", tool_id=tool_id, tool_name=name, tool_args=args))
        response, record = answer.response, answer.record
        if response.block:
            records.append(evolve(record, digest_before=digest(args)))
            reason = response.reason or _REFUSED_CALL
            return CallVerdict(blocked=True, reason=reason, args=args, records=tuple(records))
        changed = response.modified_args
        if changed is not ABSENT and changed is not None and not isinstance(changed, dict):
            record = evolve(record, decision="invalid", problem="modified_args must be a JSON object; ignored")
        elif isinstance(changed, dict) and changed != args:
            record = evolve(record, decision="rewrite", digest_before=digest(args), digest_after=digest(changed))
            args = changed
            rewritten.append(guard.name)
        records.append(record)
    return CallVerdict(blocked=False, reason="", args=args, rewritten_by=tuple(rewritten), records=tuple(records))


async def guard_turn_start(guards: Sequence[Guard], step: int) -> TurnVerdict:
    """Ask whether a step may begin, and collect what only its request shall be told."""
    records: list[Record] = []
    context: list[tuple[str, str]] = []
    for guard in guards:
        answer = await _ask(guard, Question(event="turn_start", step=step))
        response, record = answer.response, answer.record
        if response.block:
            records.append(record)
            return TurnVerdict(
                blocked=True, reason=response.reason or _REFUSED_TURN, context="", records=tuple(records)
            )
        if response.context.strip():
            context.append((guard.name, response.context.strip()))
            record = evolve(record, decision="context")
        records.append(record)
    return TurnVerdict(blocked=False, reason="", context=join_context(context), records=tuple(records))


async def guard_text(guards: Sequence[Guard], text: str) -> TextVerdict:
    """Ask whether the user may see an answer. An empty replacement is none."""
    records: list[Record] = []
    for guard in guards:
        answer = await _ask(guard, Question(event="assistant_message", text=text))
        response, record = answer.response, answer.record
        if response.block:
            records.append(record)
            reason = response.reason or _REFUSED_TEXT
            return TextVerdict(blocked=True, reason=reason, text="", blocked_by=guard.name, records=tuple(records))
        if response.replace_text and response.replace_text != text:
            text = response.replace_text
            record = evolve(record, decision="rewrite")
        records.append(record)
    return TextVerdict(blocked=False, reason="", text=text, records=tuple(records))


def join_context(parts: Sequence[tuple[str, str]]) -> str:
    """Hidden context of several extensions as one text of at most :data:`CONTEXT_LIMIT` bytes of UTF-8."""
    text = "\n\n".join(f"[{name}]\n{context}" for name, context in parts).strip()
    raw = text.encode("utf-8", "replace")
    if len(raw) <= CONTEXT_LIMIT:
        return text
    return raw[: CONTEXT_LIMIT - len(_CUT)].decode("utf-8", "ignore").rstrip() + _CUT
