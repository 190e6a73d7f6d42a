"""What interceptors decided, one value a question, and the records of who said what."""

from typing import Any, Literal

from zutd.frames.define import frame

Decision = Literal["allow", "block", "rewrite", "context", "timeout", "gone", "invalid"]


@frame
class Record:
    """One extension's part in one decision. ``args_*`` are JSON values before and after, for ``tool_call``."""

    extension: str
    event: str
    decision: Decision
    latency_ms: float
    tool_id: str = ""
    timed_out: bool = False
    digest_before: str = ""
    digest_after: str = ""
    problem: str = ""


@frame
class CallVerdict:
    """Whether a tool call may run, and with which arguments (opaque)."""

    blocked: bool
    reason: str
    args: Any
    rewritten_by: tuple[str, ...] = ()
    records: tuple[Record, ...] = ()


@frame
class TurnVerdict:
    """Whether a step may go to the model, and what only this request is told beside the conversation."""

    blocked: bool
    reason: str
    context: str
    records: tuple[Record, ...] = ()


@frame
class TextVerdict:
    """Whether the user may see an answer, and in which words."""

    blocked: bool
    reason: str
    text: str
    blocked_by: str = ""
    records: tuple[Record, ...] = ()
