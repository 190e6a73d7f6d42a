"""Which extension intercepted what on a branch, and what it decided. (No trio, no I/O.)"""

import attrs

from zutd.frames.blocks import calls_of
from zutd.frames.rows import VerdictRow
from zutd.sessions.entries import kind_of, read_entry
from zutd.sessions.index import row_id
from zutd.sessions.reading import read_row
from zutd.sessions.tree import Tree


@attrs.frozen(kw_only=True)
class Explained:
    """One decision. ``tool`` is the tool's name and ``tool_id`` the call's id, both empty for other events.

    Digests are SHA-256 (hex) of the arguments before and after, empty where there are none.
    """

    row: str
    time: str
    extension: str
    event: str
    tool: str
    tool_id: str
    decision: str
    latency_ms: float
    timed_out: bool
    args_digest_before: str
    args_digest_after: str


def explain(tree: Tree, row: int) -> tuple[Explained, ...]:
    """The decisions on a row's path, in order."""
    messages = dict(tree.messages(row))
    tools: dict[str, str] = {}
    found = []
    for n in tree.path(row):
        if n in messages:
            tools |= {call.id: call.name for call in calls_of(messages[n])}  # ids come back: the last one is meant
        elif kind_of(read_entry(tree.line(n))) == VerdictRow.tag:
            verdict = read_row(tree.line(n), VerdictRow)
            if verdict is not None:
                found.append(_explained(verdict, tools.get(verdict.tool_id, "")))
    return tuple(found)


def _explained(verdict: VerdictRow, tool: str) -> Explained:
    return Explained(
        row=row_id(verdict.n),
        time=verdict.time,
        extension=verdict.extension,
        event=verdict.event,
        tool=tool,
        tool_id=verdict.tool_id,
        decision=verdict.decision,
        latency_ms=verdict.latency_ms,
        timed_out=verdict.timed_out,
        args_digest_before=verdict.args_digest_before,
        args_digest_after=verdict.args_digest_after,
    )
