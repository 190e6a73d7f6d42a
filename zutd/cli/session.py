"""``zutd session``: see which sessions there are, what is in them, and copy, give away, take in, mend or delete them.

What is printed comes from files that anybody may have written: nothing in it reaches the terminal as a command.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from zutd.cli.errors import UsageError
from zutd.cli.session_options import FORMATS, SESSION, SessionGiven
from zutd.cli.table import harmless, table
from zutd.daemon.archive import NEWEST, Archive, Listed, SessionError, exit_code

_SHORTEST_ID: Final = 8
_PATIENCE: Final = 0.5
"""Seconds after which somebody who waits at a terminal is told what takes so long."""


def run_session(words: list[str]) -> int:
    """Run ``zutd session WORDS``; the exit code."""
    return SESSION.run(words, _handle)


def _handle(given: SessionGiven) -> int:
    try:
        return _HANDLERS[given.command.name](given, Archive(given.home, given.cwd))
    except SessionError as exc:
        return _failed(given, exc)


def _failed(given: SessionGiven, problem: SessionError) -> int:
    if given.as_json:
        print(json.dumps({"error": str(problem)}))
    else:
        print(f"zutd: {harmless(str(problem))}", file=sys.stderr)
    return exit_code(problem)


def _print_json(value: Any) -> int:
    print(json.dumps(value, indent=2))
    return 0


def _note(notes: Sequence[str]) -> None:
    for note in notes:
        print(f"note: {harmless(note)}", file=sys.stderr)


# --- list ------------------------------------------------------------------------------------------------------------


class _Progress:
    """Says how far one is, on a terminal, when it takes long."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._shown = False
        self._wanted = sys.stderr.isatty()

    def tick(self, count: int) -> None:
        if self._wanted and count % 100 == 0 and time.monotonic() - self._begun > _PATIENCE:
            self._shown = True
            print(f"\rreading sessions: {count:,}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _list(given: SessionGiven, archive: Archive) -> int:
    progress = _Progress()
    everywhere = given.has("all")
    page = archive.listed(everywhere=everywhere, query=given.value("query"), limit=given.limit, tick=progress.tick)
    progress.end()
    if given.as_json:
        return _print_json([{**session._asdict(), "in_use": in_use} for session, in_use in page.sessions])
    if not page.sessions:
        where = "" if everywhere else f" of {harmless(given.cwd)}"
        print(f"zutd: there is no session{where}{_why(given, everywhere=everywhere)}", file=sys.stderr)
        return 0
    length = _id_length([session.id for session, _ in page.sessions])
    head = ("ID", "MODIFIED", "MESSAGES", "BRANCHES", *(("DIRECTORY",) if everywhere else ()), "TITLE")
    rows = [_row(session, length, in_use=in_use, everywhere=everywhere) for session, in_use in page.sessions]
    print(table(head, _fitted(head, rows)))
    return 0


def _why(given: SessionGiven, *, everywhere: bool) -> str:
    if given.has("query"):
        return f" with {harmless(given.value('query'))!r} in its title"
    return "" if everywhere else "; --all shows those of other directories"


def _row(session: Listed, length: int, *, in_use: bool, everywhere: bool) -> tuple[str, ...]:
    title = session.title or (f"({session.preview})" if session.preview else "")
    return (
        session.id[:length],
        local(session.modified),
        str(session.messages),
        str(session.branches),
        *((session.cwd,) if everywhere else ()),
        f"[in use] {title}" if in_use else title,
    )


def _id_length(ids: Sequence[str]) -> int:
    """How many characters tell all of these apart."""
    length = _SHORTEST_ID
    while length < 36 and len({name[:length] for name in ids}) < len(set(ids)):
        length += 1
    return length


def _fitted(head: Sequence[str], rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Rows whose titles are cut to the width of the terminal, if it is one."""
    if not sys.stdout.isatty():
        return list(rows)
    others = sum(max(len(row[column]) for row in (head, *rows)) + 2 for column in range(len(head) - 1))
    room = max(os.get_terminal_size(sys.stdout.fileno()).columns - others, 10)
    return [(*row[:-1], row[-1] if len(row[-1]) <= room else row[-1][: room - 1] + "…") for row in rows]


def local(moment: str) -> str:
    """A time for people: day and minute where they are."""
    try:
        return f"{datetime.fromisoformat(moment).astimezone():%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError):
        return harmless(moment)


# --- looking ---------------------------------------------------------------------------------------------------------


def _place(given: SessionGiven, archive: Archive) -> Any:
    return archive.find(given.operands[0] if given.operands else NEWEST, given.value("branch"))


def _show(given: SessionGiven, archive: Archive) -> int:
    shown = archive.show(_place(given, archive))
    if given.as_json:
        return _print_json(shown)
    from zutd.cli.session_show import print_session

    print_session(shown)
    return 0


def _explain(given: SessionGiven, archive: Archive) -> int:
    found = archive.explain(_place(given, archive))
    if given.as_json:
        return _print_json(found)
    if not found:
        print("zutd: no extension intercepted anything on this branch", file=sys.stderr)
        return 0
    from zutd.cli.session_show import print_decisions

    print_decisions(found)
    return 0


# --- doing -----------------------------------------------------------------------------------------------------------


def _fork(given: SessionGiven, archive: Archive) -> int:
    path = archive.fork(_place(given, archive), given.value("at"), given.value("title"))
    if given.as_json:
        return _print_json({"id": path.stem[-36:], "path": str(path)})
    print(f"{path.stem[-36:]}  {path}")
    return 0


def _export(given: SessionGiven, archive: Archive) -> int:
    target = given.operands[1] if len(given.operands) > 1 else "."
    form: Any = given.value("format") or _form_of(target)
    assert form in FORMATS
    place = _place(given, archive)
    if target == "-":
        rendered = archive.render(place, form)
        sys.stdout.buffer.write(rendered.data)
        sys.stdout.flush()
        _note(rendered.notes)
        return 0
    done = archive.export(place, form, Path(os.path.abspath(target)))
    if given.as_json:
        return _print_json({"path": str(done.path), "notes": list(done.notes)})
    print(done.path)
    _note(done.notes)
    return 0


def _form_of(target: str) -> str:
    from zutd.daemon.archive import format_by_name

    return format_by_name(target) or "html"


def _import(given: SessionGiven, archive: Archive) -> int:
    done = archive.import_([Path(path) for path in given.operands], given.cwd if given.has("cwd") else "")
    if given.as_json:
        from zutd.daemon.archive import plain

        return _print_json({"sessions": [plain(session) for session in done.sessions], "notes": list(done.notes)})
    for session in done.sessions:
        counts = f"{session.messages} messages, {session.branches} {'branches' if session.branches > 1 else 'branch'}"
        print(f"{session.id}  from {session.source}, {counts}  {harmless(session.title or session.cwd)}")
    _note(done.notes)
    return 0


def _repair(given: SessionGiven, archive: Archive) -> int:
    done = archive.repair(_place(given, archive))
    if given.as_json:
        return _print_json({"path": str(done.path), "rows": done.rows, "notes": list(done.notes)})
    if not done.notes:
        print(f"zutd: there is nothing to repair in {done.path}", file=sys.stderr)
        return 0
    print(done.path)
    _note(done.notes)
    return 0


def _rename(given: SessionGiven, archive: Archive) -> int:
    title = " ".join(given.operands[1:])
    archive.rename(_place(given, archive), title)
    return _print_json({"title": title}) if given.as_json else 0


def _delete(given: SessionGiven, archive: Archive) -> int:
    places = [archive.find(name) for name in given.operands]
    for place in places:
        if place.branch:
            raise UsageError(f"session delete deletes whole sessions, and {place.branch} is one of several branches")
    for place in dict.fromkeys(places):
        archive.delete(place)
    return _print_json({"deleted": [str(place.path) for place in places]}) if given.as_json else 0


_HANDLERS: Final[dict[str, Callable[[SessionGiven, Archive], int]]] = {
    "list": _list,
    "show": _show,
    "explain": _explain,
    "fork": _fork,
    "export": _export,
    "import": _import,
    "repair": _repair,
    "rename": _rename,
    "delete": _delete,
}
