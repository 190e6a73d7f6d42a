"""A new session, row by row: what every importer makes of the records that it reads.

Rows hang where the importer says; each method gives the row's number. Nothing is written: at the end there is a tree,
and what it says has been read back once, as if it came from a file.
"""

from typing import Any, Final
from uuid import uuid4

from zutd.frames.blocks import Message, Usage
from zutd.frames.define import ABSENT
from zutd.frames.rows import (
    BranchRow,
    CompactionRow,
    Header,
    MessageRow,
    Row,
    SettingsRow,
    StateRow,
    TitleRow,
    UsageRow,
)
from zutd.sessions.index import Choice
from zutd.sessions.tree import Tree
from zutd.wire.codec import encode, encode_frame

REASON: Final = "imported"
"""Why a context was compacted, when another program did it."""

IMPORT: Final = "import"
"""The type of the row that tells where a branch comes from."""

LABEL: Final = "label"
"""The type of the row that carries a reader's mark for the row it hangs on."""


def one_line(title: str) -> str:
    """A title without line ends."""
    return " ".join(title.split())


class Builder:
    """Makes the rows of one session. ``now`` is the time of the import."""

    def __init__(self, header: Header, now: str) -> None:
        self.tree = Tree(header)
        self.now = now
        self.last_time = header.started

    def _add(self, row: Row | dict[str, Any]) -> int:
        return self.tree.append(encode(row) if isinstance(row, dict) else encode_frame(row))

    def _place(self, parent: int, time: str) -> dict[str, Any]:
        self.last_time = max(self.last_time, time)
        return {"n": len(self.tree) + 1, "parent": parent, "time": time}

    # --- branches ----------------------------------------------------------------------------------------------------

    def branch(self, parent: int, time: str, *, parent_id: str = "", title: str = "") -> int:
        """A branch at a row, or with ``parent`` 0 from the beginning. The first one is called like the session."""
        place = self._place(parent, time)
        row = BranchRow(
            n=place["n"],
            parent=parent or None,
            time=time,
            id=str(uuid4()) if len(self.tree) else self.tree.header.id,
            fork_point=self.tree.message_count(parent),
            parent_id=self.tree.branch_of(parent) or parent_id,
            title=one_line(title),
        )
        return self._add(row)

    def tip_of(self, row: int) -> int:
        """The last row of the branch that a row belongs to."""
        return self.tree.tip(self.tree.branch_of(row))

    def open_end(self, row: int, time: str) -> int:
        """A place to go on from a row: the row itself, or a new branch there if others went on already."""
        return row if self.tip_of(row) == row else self.branch(row, time)

    def origin(self, parent: int, *, format: str, id: str, file: str, original: dict[str, Any]) -> int:
        """Where the branch comes from: the other program, its name for the session, the file, its header (opaque)."""
        place = {"n": len(self.tree) + 1, "parent": parent, "time": self.now}
        return self._add({"type": IMPORT, **place, "format": format, "id": id, "file": file, "original": original})

    def finish(self, row: int) -> Tree:
        """Make the branch of a row the active one."""
        active = self.tree.branch_of(self.open_end(row, self.last_time))
        self._add(self.tree.head_row(active, self.last_time))
        return self.tree

    # --- rows --------------------------------------------------------------------------------------------------------

    def message(self, parent: int, time: str, message: Message) -> int:
        """A message. Results behind other results continue their message."""
        continues = message.role == "tool" and self.tree.last_role(parent) == "tool"
        return self._add(MessageRow(**self._place(parent, time), message=message, continues=continues))

    def compaction(
        self, parent: int, time: str, summary: str, *, first_kept: int = 0, tokens: int = 0, tools: tuple[str, ...] = ()
    ) -> int:
        """A compaction; with ``first_kept`` 0 nothing but the summary stays in the context."""
        place = self._place(parent, time)
        row = CompactionRow(
            **place,
            summary=summary,
            first_kept=first_kept or place["n"],
            tokens_before=tokens,
            tokens_after=0,
            reason=REASON,
            activated_tools=tools,
        )
        return self._add(row)

    def state(self, parent: int, time: str, extension: str, state: Any) -> int:
        """An extension's snapshot; no row if it is the one that is there already."""
        before = self.tree.state(extension, parent)
        if encode(None if before is ABSENT else before) == encode(state):
            return parent
        return self._add(StateRow(**self._place(parent, time), extension=extension, state=state))

    def settings(self, parent: int, time: str, choice: Choice) -> int:
        """Model and reasoning level; no row where they hold already."""
        before = self.tree.settings(parent)
        wanted = (
            choice.provider or before.provider,
            choice.model or before.model,
            choice.reasoning or before.reasoning,
        )
        if wanted == (before.provider, before.model, before.reasoning):
            return parent
        place = self._place(parent, time)
        row = SettingsRow(**place, provider=choice.provider, model=choice.model, reasoning=choice.reasoning)
        return self._add(row)

    def title(self, parent: int, time: str, title: str) -> int:
        """A title; no row if it is the one already."""
        if one_line(title) == self.tree.title(parent):
            return parent
        return self._add(TitleRow(**self._place(parent, time), title=one_line(title)))

    def usage(self, parent: int, time: str, turn: Usage, session: Usage) -> int:
        """A checkpoint; no row if the last one says the same total."""
        before = self.tree.usage(parent)
        if before is not None and before.session == session:
            return parent
        row = UsageRow(
            **self._place(parent, time),
            turn=turn,
            session=session,
            messages=self.tree.message_count(parent),
            branches=self.tree.branch_count,
            title=self.tree.title(parent),
        )
        return self._add(row)

    def label(self, parent: int, time: str, text: str) -> int:
        """A reader's mark for the row ``parent``."""
        return self._add({"type": LABEL, **self._place(parent, time), "text": text})
