"""Results that are written one by one are one message."""

from pathlib import Path

import pytest

from tests.sessions.helpers import calls, results, user
from zutd.frames.blocks import ToolResult
from zutd.sessions.session import Session
from zutd.sessions.store import Store


def _ids(session: Session) -> list[list[str]]:
    """The call ids of each message's results, for messages that have any."""
    found = []
    for _, message in session.messages():
        ids = [block.call_id for block in message.content if isinstance(block, ToolResult)]
        if ids:
            found.append(ids)
    return found


def _session(tmp_path: Path) -> Session:
    session = Session.new(Store(tmp_path), tmp_path)
    session.add_message(user("go"))
    session.add_message(calls("a", "b", "c"))
    session.add_message(results("a", activated_tools=("late",)))
    session.add_state("todo", {"n": 1})
    session.add_message(results("b"))
    return session


def test_results_join_the_message_before(tmp_path: Path) -> None:
    """Every row with a result of the same answer belongs to one tool message, state rows between them or not."""
    with _session(tmp_path) as session:
        assert _ids(session) == [["a", "b"]]
        assert session.message_count() == 3
        assert session.context().activated_tools == ("late",)

        session.add_message(results("c"))
        session.add_message(user("next"))

        assert _ids(session) == [["a", "b", "c"]]
        assert session.message_count() == 4


def test_results_join_when_the_file_is_read(tmp_path: Path) -> None:
    """A file says the same when it is opened again, also when its writer stopped between two results."""
    with _session(tmp_path) as session:
        path = session.path
    assert path is not None
    with Session.open(Store(tmp_path), path) as again:
        assert _ids(again) == [["a", "b"]]
        assert again.message_count() == 3
        assert again.state("todo") == {"n": 1}


def test_a_fork_at_the_calls_takes_all_results(tmp_path: Path) -> None:
    """Forking at an answer, by row or by count, keeps every result of it."""
    with _session(tmp_path) as session:
        session.add_message(results("c"))
        last = session.add_message(user("more"))
        assert last
        calling = session.messages()[1][0]

        for at in (f"r{calling}", 2, 3):
            session.switch(session.id)
            session.fork(at)
            assert _ids(session) == [["a", "b", "c"]]
            assert session.message_count() == 3


@pytest.mark.parametrize("at", ["r4", "r6"])
def test_a_fork_between_two_results_keeps_those_before(tmp_path: Path, at: str) -> None:
    """A row in the middle of the results is a place like any other."""
    with _session(tmp_path) as session:
        session.fork(at)

        assert _ids(session) == [["a"] if at == "r4" else ["a", "b"]]


def test_a_list_counts_messages_not_rows(tmp_path: Path) -> None:
    """A listing counts results that were written one by one as one message."""
    with _session(tmp_path):
        (listed,), _ = Store(tmp_path).list_sessions()

        assert listed.messages == 3
