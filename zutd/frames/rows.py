"""Rows of a session file: one JSON object a line, a tree by ``n`` and ``parent``.

Line 1 is the :class:`Header`; every other row carries ``n`` (1, 2, 3 ... in file order),
``parent`` (an earlier ``n``; null for a root) and ``time`` (RFC 3339, UTC).
Row types that this version does not know are kept and skipped, never refused.
"""

from typing import Any, ClassVar

from zutd.frames.blocks import Message, Usage
from zutd.frames.define import frame


@frame
class Header:
    """The first line of a session file. ``started`` is RFC 3339; ``timezone`` an IANA name or offset."""

    tag: ClassVar[str] = "session"
    format: str
    version: int
    id: str
    cwd: str
    started: str
    zutd: str
    timezone: str


@frame
class BranchRow:
    """Everything below this row belongs to branch ``id`` (a uuid)."""

    tag: ClassVar[str] = "branch"
    n: int
    parent: int | None
    time: str
    id: str
    fork_point: int
    parent_id: str = ""
    title: str = ""


@frame
class HeadRow:
    """From here on ``branch`` (a branch id) is the active one.

    ``messages`` (on the path), ``branches`` (in the file) and ``title`` are what a list of sessions shows, so that it
    need not read more than the end of a file; ``branches`` is 0 where a writer left them out.
    """

    tag: ClassVar[str] = "head"
    n: int
    parent: int | None
    time: str
    branch: str
    messages: int = 0
    branches: int = 0
    title: str = ""


@frame
class MessageRow:
    """One message of the conversation.

    A tool message may be written as several rows, one as each result comes: a row that ``continues`` adds its blocks
    to the tool message before it on its path.
    """

    tag: ClassVar[str] = "message"
    n: int
    parent: int | None
    time: str
    message: Message
    continues: bool = False


@frame
class StateRow:
    """An extension's snapshot (opaque JSON; null clears it)."""

    tag: ClassVar[str] = "extension_state"
    n: int
    parent: int | None
    time: str
    extension: str
    state: Any


@frame
class CompactionRow:
    """From here the context is ``summary`` and then the rows from ``first_kept`` on."""

    tag: ClassVar[str] = "compaction"
    n: int
    parent: int | None
    time: str
    summary: str
    first_kept: int
    tokens_before: int
    tokens_after: int
    reason: str
    activated_tools: tuple[str, ...] = ()


@frame
class UsageRow:
    """A checkpoint at the end of a turn: that turn's usage and the session's total.

    ``messages``, ``branches`` and ``title`` are those of :class:`HeadRow`.
    """

    tag: ClassVar[str] = "usage"
    n: int
    parent: int | None
    time: str
    turn: Usage
    session: Usage
    messages: int = 0
    branches: int = 0
    title: str = ""


@frame
class SettingsRow:
    """A change of model or reasoning level in the middle; empty means unchanged."""

    tag: ClassVar[str] = "settings"
    n: int
    parent: int | None
    time: str
    provider: str = ""
    model: str = ""
    reasoning: str = ""


@frame
class TitleRow:
    """The session's title; the last one on the path wins."""

    tag: ClassVar[str] = "title"
    n: int
    parent: int | None
    time: str
    title: str


@frame
class VerdictRow:
    """What an interceptor decided. Digests are SHA-256 (hex) of canonical JSON arguments."""

    tag: ClassVar[str] = "verdict"
    n: int
    parent: int | None
    time: str
    extension: str
    event: str
    decision: str
    latency_ms: float
    tool_id: str = ""
    timed_out: bool = False
    args_digest_before: str = ""
    args_digest_after: str = ""


Row = BranchRow | HeadRow | MessageRow | StateRow | CompactionRow | UsageRow | SettingsRow | TitleRow | VerdictRow
