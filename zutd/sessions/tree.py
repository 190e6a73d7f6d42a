"""A session as a tree of rows: what the rows of an :class:`~.index.Index` say.

Messages, states and the rest are made of the raw lines when they are asked for: those of the branch in use, not all
of them. The messages of the last context stay in memory, so that the next step of a turn reads only what is new.
(No trio, no I/O.)
"""

from bisect import bisect_right
from typing import Any

import attrs

from zutd.frames.blocks import NO_USAGE, Message, Usage, add_usage, calls_of
from zutd.frames.define import ABSENT, evolve
from zutd.frames.rows import Header, HeadRow, UsageRow
from zutd.frames.session import BranchInfo
from zutd.sessions.entries import CompactionEntry, read_entry
from zutd.sessions.errors import SessionNotFound
from zutd.sessions.index import SETTINGS, STATE, TITLE, Branch, Choice, Index, row_id, row_number
from zutd.sessions.reading import read_json, read_message, read_row


@attrs.frozen(kw_only=True)
class Context:
    """What a model gets to see at a row.

    ``rows[i]`` is the row of ``messages[i]``. ``summary`` stands for all earlier messages, if there was a compaction;
    messages that it kept have no usage, for that told of a context that is over.
    ``partial`` lists rows that could not be read, or not whole: a newer version wrote them.
    """

    summary: str | None
    messages: tuple[Message, ...]
    rows: tuple[int, ...]
    activated_tools: tuple[str, ...]
    partial: tuple[int, ...]


class Tree(Index):
    """The rows of one session and what they say."""

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self._thread: list[int] = []
        self._read: dict[int, tuple[Message | None, bool]] = {}

    def remember(self, row: int, message: Message) -> None:
        """Spare the reading of a message row that was just appended."""
        self._read[row] = self._joined(row, message, whole=True)

    # --- what holds at a row: all of these cost the same at any length -----------------------------------------------

    def raw(self, row: int) -> dict[str, Any]:
        """A row's JSON (opaque)."""
        return read_json(self.line(row))

    def value(self, kind: str, row: int) -> Any:
        """The ``value`` (opaque) of the last row of a type on the row's path, or ABSENT (also for null)."""
        at = self.last(kind, row)
        value = self.raw(at).get("value") if at else None
        return ABSENT if value is None else value

    def state(self, extension: str, row: int) -> Any:
        """An extension's snapshot at a row (opaque), or ABSENT when it never had one or cleared it."""
        return self._snapshot(self.last(STATE, row, extension))

    def states(self, row: int) -> dict[str, Any]:
        """The snapshots of all extensions that have one at a row, by name."""
        found = {owner: at for (kind, owner), at in self._node(row).trail.all().items() if kind == STATE}
        states = {owner: self._snapshot(at) for owner, at in sorted(found.items())}
        return {owner: state for owner, state in states.items() if state is not ABSENT}

    def _snapshot(self, row: int) -> Any:
        state = self.raw(row)["state"] if row else None
        return ABSENT if state is None else state

    def title(self, row: int) -> str:
        """The title at a row: the last one given on its path, to the session or to a branch."""
        return self._titles.get(self._node(row).trail.find(TITLE), "")

    def settings(self, row: int) -> Choice:
        """The model and reasoning level at a row: what was set on its path, else what the last answer came from."""
        node = self._node(row)
        choice = self._choices.get(node.trail.find(SETTINGS)) or Choice()
        if choice.model or not node.answer:
            return choice
        answer, _ = self._message(node.answer)
        return attrs.evolve(choice, provider=answer.provider, model=answer.model) if answer else choice

    def usage(self, row: int) -> UsageRow | None:
        """The last usage checkpoint on the row's path."""
        at = self.last(UsageRow.tag, row)
        return read_row(self.line(at), UsageRow) if at else None

    def uncounted(self, row: int) -> Usage:
        """What the answers behind the last checkpoint on the row's path have used: their turn did not get to its end,
        or the branch begins in the middle of it.
        """
        checkpoint, used = self.last(UsageRow.tag, row), NO_USAGE
        answer = self._node(row).answer
        while answer > checkpoint:
            message, _ = self._message(answer)
            if message is not None and message.usage is not None:
                used = add_usage(message.usage, used)
            answer = self._nodes[self._nodes[answer].parent].answer
        return used

    def branches(self) -> tuple[BranchInfo, ...]:
        """All branches, in the order in which they were made."""
        return tuple(self._describe(branch) for branch in self._branches.values())

    def _describe(self, branch: Branch) -> BranchInfo:
        return BranchInfo(
            id=branch.id,
            fork_point=branch.fork_point,
            title=self.title(branch.tip),
            messages=self.message_count(branch.tip),
            active=branch is self._active,
            parent_id=branch.parent_id,
            fork_row=row_id(self._nodes[branch.row].parent),
        )

    def head_row(self, branch: str, time: str) -> HeadRow:
        """The next row, if it is to make a branch the active one."""
        tip = self.tip(branch)
        return HeadRow(
            n=len(self) + 1,
            parent=tip,
            time=time,
            branch=branch,
            messages=self.message_count(tip),
            branches=self.branch_count,
            title=self.title(tip),
        )

    # --- messages ----------------------------------------------------------------------------------------------------

    def _messages_to(self, row: int) -> tuple[list[int], int]:
        """Message rows, of which the first so many are those on the row's path.

        The list is that of the last question, changed where the two paths differ: going on from there costs nothing,
        another branch costs what it does not share.
        """
        thread = self._thread
        fresh: list[int] = []
        last = self._node(row).last
        count = self._nodes[last].count
        while last:
            at = self._nodes[last].count
            if at <= len(thread) and thread[at - 1] == last:
                break
            if at == count - len(fresh):  # else it is continued by the row that was taken before it
                fresh.append(last)
            last = self._nodes[self._nodes[last].parent].last
        if fresh:
            del thread[count - len(fresh) :]
            thread.extend(reversed(fresh))
        return thread, count

    def _messages_from(self, first: int, row: int) -> list[int]:
        """Message rows on the row's path, from row ``first`` on: what lies before it is not looked at."""
        found: list[int] = []
        last = self._node(row).last
        count = self._nodes[last].count
        while last and last >= first:
            if self._nodes[last].count == count - len(found):  # else it is continued by the row that was taken before
                found.append(last)
            last = self._nodes[self._nodes[last].parent].last
        return found[::-1]

    def messages(self, row: int, *, after: int = 0, limit: int = 0) -> list[tuple[int, Message]]:
        """Messages on the row's path with their rows, those after row ``after``, at most ``limit`` (0: all)."""
        thread, count = self._messages_to(row)
        found: list[tuple[int, Message]] = []
        for at in range(bisect_right(thread, after, 0, count), count):
            message, _ = self._message(thread[at])
            if message is not None:
                found.append((thread[at], message))
            if limit and len(found) == limit:
                break
        return found

    def context(self, row: int) -> Context:
        """What a model sees at a row: all messages of its path, or a summary and those from ``first_kept`` on."""
        compaction = self._compaction(row)
        if compaction:
            shown = self._messages_from(compaction.first_kept, row)
        else:
            thread, count = self._messages_to(row)
            shown = thread[:count]
        self._read = {n: self._message(n) for n in shown}  # what else was read is not needed any more
        kept = [(n, message) for n, (message, _) in self._read.items() if message is not None]
        if compaction:
            kept = [(n, _uncounted(message) if n < compaction.n else message) for n, message in kept]
        active = dict.fromkeys(compaction.activated_tools if compaction else ())
        for _, message in kept:
            active.update(dict.fromkeys(message.activated_tools))
        return Context(
            summary=compaction.summary if compaction else None,
            messages=tuple(message for _, message in kept),
            rows=tuple(n for n, _ in kept),
            activated_tools=tuple(active),
            partial=tuple(n for n, (_, whole) in self._read.items() if not whole),
        )

    def _compaction(self, row: int) -> CompactionEntry | None:
        at = self.last("compaction", row)
        entry = read_entry(self.line(at)) if at else None
        return entry if isinstance(entry, CompactionEntry) else None

    def _message(self, row: int) -> tuple[Message | None, bool]:
        known = self._read.get(row)
        if known is not None:
            return known
        message, whole = read_message(self.line(row))
        return (None, whole) if message is None else self._joined(row, message, whole=whole)

    def _joined(self, row: int, message: Message, *, whole: bool) -> tuple[Message | None, bool]:
        """The message that ends with a row: the row's own, behind the rows that it continues."""
        above = self._nodes[self._nodes[row].parent].last
        if not above or self._nodes[above].count != self._nodes[row].count:
            return message, whole
        earlier, all_of_it = self._message(above)
        if earlier is None:
            return message, False
        joined = evolve(
            message,
            content=(*earlier.content, *message.content),
            activated_tools=(*earlier.activated_tools, *message.activated_tools),
        )
        return joined, whole and all_of_it

    # --- where to fork -----------------------------------------------------------------------------------------------

    def resolve(self, at: str | int | None, tip: int, *, whole_calls: bool = True) -> int:
        """The row that ``at`` means: a row's name, a number of messages on the path of ``tip``, or None for ``tip``.

        A number means the last row before the next message, so what was written after the last message counts.
        With ``whole_calls`` calls and their results stay together: an assistant message whose calls were answered
        stands for the tool message that answers them. Raises :class:`SessionNotFound`.
        """
        if isinstance(at, int):
            return self._resolve_count(at, tip, whole_calls=whole_calls)
        row = tip if at is None else row_number(at)
        return self._answer(self._node(row).last, row) if whole_calls else row

    def _resolve_count(self, count: int, tip: int, *, whole_calls: bool) -> int:
        thread, total = self._messages_to(tip)
        if not 0 <= count <= total:
            raise SessionNotFound(f"there are {total} messages here, so there is no place after message {count}")
        if whole_calls and 0 < count < total and self._calls(thread[count - 1]):
            count += self._nodes[thread[count]].role == "tool"
        return tip if count == total else self._nodes[thread[count]].parent

    def _calls(self, row: int) -> bool:
        """Whether a row is an assistant message with tool calls."""
        message = self._message(row)[0] if self._nodes[row].role == "assistant" else None
        return message is not None and bool(calls_of(message))

    def _answer(self, calling: int, row: int) -> int:
        """The tool message below ``row`` that answers the calls of message ``calling``, or ``row`` if there is none."""
        if not self._calls(calling):
            return row
        answer, below = row, calling
        for later in range(row + 1, len(self._nodes)):
            node = self._nodes[later]
            if not node.role or self._nodes[node.parent].last != below or not self._hangs_on(later, row):
                continue
            if node.role == "tool" and (answer == row or node.count == self._nodes[answer].count):
                answer = below = later
            elif answer != row:
                break
        return answer

    def _hangs_on(self, row: int, upper: int) -> bool:
        while row > upper:
            row = self._nodes[row].parent
        return row == upper


def _uncounted(message: Message) -> Message:
    """A message that a compaction kept: what was counted with it was a context that is over."""
    return evolve(message, usage=None) if message.usage is not None else message
