"""The agent's view of the session, kept in memory while it grows: always what the file would say."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from zutd.agent.ports import JournalError, StateRefusedError
from zutd.daemon.journal import SessionJournal
from zutd.frames.blocks import NO_USAGE, Block, Message, Text, ToolCall, ToolResult, Usage, add_usage
from zutd.frames.define import evolve
from zutd.frames.verdicts import Record
from zutd.sessions.session import STATE_LIMIT, Session
from zutd.sessions.store import Store

USED = Usage(input=3, output=2, reasoning=None, cache_read=0, cache_write=0, cost_usd=0.25)


def message(role: Any, *content: Block, **more: Any) -> Message:
    """A message."""
    return Message(role=role, content=content, time="2025-01-02T03:04:05.678Z", **more)


def new_session() -> Session:
    """A session that is not kept on disk."""
    return Session.new(Store(Path(tempfile.gettempdir())), "/", persist=False)


class JournalMachine(RuleBasedStateMachine):
    """Rows through the journal, and changes of the session behind its back."""

    def __init__(self) -> None:
        super().__init__()
        self.session = new_session()
        self.journal = SessionJournal(lambda: self.session)
        self.count = 0

    def next_id(self) -> str:
        """A call's id."""
        self.count += 1
        return f"c{self.count}"

    @rule(text=st.sampled_from(["hello", "é \ud83d", ""]))
    def user(self, text: str) -> None:
        """The user says something; lone surrogates are mended on the way."""
        self.journal.add_message(message("user", Text(text=text.encode("utf-8", "replace").decode())))

    @rule(parts=st.lists(st.integers(0, 2), max_size=3), activated=st.sampled_from([(), ("x",)]))
    def tools(self, parts: list[int], activated: tuple[str, ...]) -> None:
        """An answer with calls, and its results in one or several rows."""
        ids = [self.next_id() for _ in range(sum(parts))]
        self.journal.add_message(message("assistant", *(ToolCall(id=one, name="look", args={"n": 1}) for one in ids)))
        for size in parts:
            results = [ToolResult(call_id=ids.pop(0), content=(Text(text="r"),), is_error=False) for _ in range(size)]
            if results:
                self.journal.add_message(message("tool", *results, activated_tools=activated))

    @rule()
    def other_rows(self) -> None:
        """What is no message changes nothing of the context."""
        self.journal.add_state("ext", {"n": self.count})
        self.journal.add_usage(USED, USED)
        self.journal.add_records([Record(extension="g", event="tool_call", decision="allow", latency_ms=1.0)])
        self.journal.add_value("plan", ["a"])

    @rule(place=st.integers(0, 5))
    def compact(self, place: int) -> None:
        """The older part becomes a summary."""
        rows = self.journal.remembered().rows
        if rows:
            first = rows[min(place, len(rows) - 1)]
            self.journal.add_compaction(
                summary=f"s{self.count}", first_kept=first, tokens_before=9, tokens_after=1, reason="manual"
            )

    @rule(at=st.integers(0, 5))
    def fork(self, at: int) -> None:
        """Another branch becomes the active one, behind the journal's back."""
        self.session.fork(min(at, self.session.message_count()))

    @rule(which=st.integers(0, 9))
    def switch(self, which: int) -> None:
        """So does one that was there."""
        branches = self.session.tree()
        self.session.switch(branches[which % len(branches)].id)

    @rule()
    def clear(self) -> None:
        """And an empty one."""
        self.session.clear()

    @rule()
    def another(self) -> None:
        """Another session is opened."""
        self.session = new_session()

    @invariant()
    def agrees(self) -> None:
        """What is remembered is what the session says, read anew."""
        context = self.session.context()
        remembered = self.journal.remembered()
        assert remembered.summary == (context.summary or "")
        assert remembered.messages == context.messages
        assert remembered.rows == context.rows
        assert remembered.activated_tools == frozenset(context.activated_tools)


TestJournal = JournalMachine.TestCase
TestJournal.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def test_usage_is_that_of_the_last_turn_and_of_the_whole() -> None:
    """A checkpoint holds both; answers behind the last one belong to a turn that had no end, and count as well."""
    session = new_session()
    journal = SessionJournal(lambda: session)
    assert journal.last_usage() == (NO_USAGE, NO_USAGE)
    journal.add_usage(USED, add_usage(USED, USED))
    assert journal.last_usage() == (USED, add_usage(USED, USED))
    journal.add_message(message("user", Text(text="on")))
    assert journal.last_usage()[0] == USED
    cut = evolve(USED, input=100)
    journal.add_message(evolve(message("assistant", Text(text="I")), usage=cut))
    assert journal.last_usage() == (cut, add_usage(cut, add_usage(USED, USED)))
    assert journal.total_usage().input == 106
    session.fork(1)
    assert journal.total_usage().input == 6, "another branch has not asked for the answer"


def test_errors_come_in_the_agents_words(tmp_path: Path) -> None:
    """A file that is gone and a state that is too large are two kinds of no."""
    session = Session.new(Store(tmp_path), tmp_path)
    journal = SessionJournal(lambda: session)
    journal.add_message(message("user", Text(text="hi")))
    with pytest.raises(StateRefusedError, match="limit"):
        journal.add_state("ext", "x" * STATE_LIMIT)
    before = journal.remembered()
    assert session.path is not None
    session.path.unlink()
    with pytest.raises(JournalError, match="deleted"):
        journal.add_message(message("user", Text(text="lost")))
    assert journal.remembered() == before
    session.close()


def test_rows_are_on_the_disk_after_a_sync(tmp_path: Path) -> None:
    """Syncing works from the daemon's own loop, and a file that cannot be synced is told of."""
    session = Session.new(Store(tmp_path), tmp_path)
    journal = SessionJournal(lambda: session)
    journal.add_message(message("user", Text(text="hi")))
    trio.run(journal.sync)
    journal.add_message(message("user", Text(text="hi")))
    assert session.path is not None
    session.path.unlink()
    with pytest.raises(JournalError, match="deleted"):
        trio.run(journal.sync)
    session.close()
