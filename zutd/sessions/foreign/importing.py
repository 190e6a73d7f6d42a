"""Files of zutd, zut and pi into the sessions of this home: read everything, then write everything, or nothing.

A file that cannot be read at all is an error. What is wrong inside one is noted with its line number, and the rest is
taken. Each session gets an id of its own; the one that it had is in its ``import`` row. Blocking: call it in a thread.
"""

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import attrs

from zutd.frames.define import evolve
from zutd.frames.rows import Header
from zutd.sessions.errors import SessionError, SessionNotFound, SessionUnreadable
from zutd.sessions.file import explain, write_whole
from zutd.sessions.foreign import zut_family
from zutd.sessions.foreign.build import Builder
from zutd.sessions.foreign.lines import Record, format_of, read_records
from zutd.sessions.foreign.notes import Notes
from zutd.sessions.foreign.pi import PiImport
from zutd.sessions.foreign.values import text_at, time_of
from zutd.sessions.foreign.zut_file import ZutFile
from zutd.sessions.foreign.zutd_copy import copy_under
from zutd.sessions.listing import stamp
from zutd.sessions.names import canonical
from zutd.sessions.repair import make_header, mend_data
from zutd.sessions.store import Store
from zutd.sessions.tree import Tree
from zutd.wire.codec import encode_frame

MOST_NOTES: Final = 500
"""A directory of thousands of files must not be answered with a book."""

ENDINGS: Final = (".jsonl", ".zutsession")
"""How the files that are looked for in a directory end."""


@attrs.frozen(kw_only=True)
class Imported:
    """A session that is new here. ``source`` is the program that it comes from, ``original`` its id there."""

    path: Path
    id: str
    source: str
    original: str
    title: str
    cwd: str
    messages: int
    branches: int
    last_time: str


@attrs.frozen(kw_only=True)
class Import:
    """The sessions that were made, in the order of their last messages, and what could not be carried over."""

    sessions: tuple[Imported, ...]
    notes: tuple[str, ...]


@attrs.frozen
class _File:
    path: Path
    data: bytes
    format: str
    records: list[Record]
    notes: Notes


@attrs.frozen
class _Plan:
    """A session that is not written yet."""

    tree: Tree
    source: str
    original: str
    last_time: str


def import_files(store: Store, paths: Sequence[Path], *, here: str, cwd: str = "") -> Import:
    """Import files, and all session files below directories.

    A session goes to its own working directory if there is such a one, else to ``here``; or all go to ``cwd``. Raises
    :class:`SessionNotFound`, :class:`SessionUnreadable`, :class:`SessionWriteError`; then nothing is there that was
    not there before.
    """
    files, notes = _read_all(paths)
    sessions = _write_all(store, _Planner(here, cwd).plan(files))
    notes += [text for file in files for text in file.notes.texts()]
    more = (f"and {len(notes) - MOST_NOTES} more notes",) if len(notes) > MOST_NOTES else ()
    return Import(sessions=sessions, notes=(*notes[:MOST_NOTES], *more))


# --- reading ---------------------------------------------------------------------------------------------------------


def _read_all(paths: Sequence[Path]) -> tuple[list[_File], list[str]]:
    files: list[_File] = []
    notes: list[str] = []
    for given in paths:
        if not os.path.isdir(given):
            files.append(_read(given))
            continue
        found = list(_below(given))
        taken = len(files)
        for path in found:
            try:
                files.append(_read(path))
            except SessionError as exc:
                notes.append(f"{path.name} was left out: {exc}")
        if len(files) == taken:
            problem = notes[-1] if found else f"no file in it ends in {' or '.join(ENDINGS)}"
            raise SessionUnreadable(str(given), f"there is no session in this directory ({problem})")
    return files, notes


def _below(directory: Path) -> Iterator[Path]:
    for place, directories, names in os.walk(directory):
        directories.sort()
        yield from (Path(place, name) for name in sorted(names) if name.endswith(ENDINGS))


def _read(path: Path) -> _File:
    data = _bytes_of(path)
    notes = Notes(path.name)
    records = read_records(data, notes)
    source = format_of(records)
    if source is None:
        problem = next(iter(notes.texts()), "it is empty" if not data.strip() else "it says nothing that they say")
        raise SessionUnreadable(str(path), f"it is no session of zutd, zut or pi ({problem})")
    return _File(path, data, source, records, notes if source != "zutd" else Notes(path.name))


def _bytes_of(path: Path) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except FileNotFoundError:
        raise SessionNotFound(f"there is no file {path}") from None
    except OSError as exc:
        raise SessionUnreadable(str(path), explain(exc)) from exc
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise SessionUnreadable(str(path), "it is not a regular file")
        try:
            return file.read()
        except OSError as exc:
            raise SessionUnreadable(str(path), explain(exc)) from exc


# --- planning --------------------------------------------------------------------------------------------------------


class _Planner:
    """Files to sessions, in memory."""

    def __init__(self, here: str, cwd: str) -> None:
        self._here = canonical(here)
        self._cwd = canonical(cwd) if cwd else ""
        self._now = stamp(datetime.now(UTC))

    def plan(self, files: Sequence[_File]) -> list[_Plan]:
        plans = [self._zutd(file) for file in files if file.format == "zutd"]
        plans += [self._pi(file) for file in files if file.format == "pi"]
        zut = [ZutFile(file.path.name, file.records, file.notes) for file in files if file.format == "zut"]
        plans += [self._zut(family) for family in zut_family.families(zut)]
        return sorted(plans, key=lambda plan: plan.last_time)

    def _zutd(self, file: _File) -> _Plan:
        mended = mend_data(file.path, file.data)
        for note in mended.notes:
            file.notes.add(note)
        old = mended.tree.header
        header = self._header(old.cwd, old.started, old.timezone, file.notes)
        tree = copy_under(mended, header, name=file.path.name, now=self._now)
        return _Plan(tree, "zutd", old.id, str(tree.raw(len(tree))["time"]))

    def _pi(self, file: _File) -> _Plan:
        raw: dict[str, Any] = next((record.raw for record in file.records if record.type == "session"), {})
        header = self._header(text_at(raw, "cwd"), time_of(raw.get("timestamp"), ""), "", file.notes)
        builder = Builder(header, self._now)
        PiImport(builder, file.records, file.notes, file.path.name).run()
        return _Plan(builder.tree, "pi", text_at(raw, "id"), builder.last_time)

    def _zut(self, family: Sequence[ZutFile]) -> _Plan:
        root = family[0]
        zone = text_at(root.meta, "timezone") or text_at(root.meta, "timezone_offset")
        header = self._header(text_at(root.meta, "cwd"), root.started, zone, root.notes)
        if not root.id:
            root.notes.add("there is no row that says which session this is; its model and its directory are unknown")
        builder = Builder(header, self._now)
        zut_family.build(builder, family)
        return _Plan(builder.tree, "zut", root.id, builder.last_time)

    def _header(self, cwd: str, started: str, zone: str, notes: Notes) -> Header:
        place = self._cwd or (canonical(cwd) if os.path.isabs(cwd) and os.path.isdir(cwd) else "")
        if not place and cwd:
            notes.add(f"its working directory {cwd} is not here; it belongs to {self._here} now")
        when = _moment(started)
        header = make_header(place or self._here, str(uuid4()), started=when)
        return evolve(header, timezone=zone or header.timezone)


def _moment(time: str) -> datetime:
    try:
        return datetime.fromisoformat(time).astimezone(UTC)
    except (ValueError, OverflowError):
        return datetime.now(UTC)


# --- writing ---------------------------------------------------------------------------------------------------------


def _write_all(store: Store, plans: Sequence[_Plan]) -> tuple[Imported, ...]:
    """Write every session; if one cannot be written, take the others away again."""
    written: list[Path] = []
    with contextlib.ExitStack() as on_error:
        on_error.callback(_take_away, written)
        for plan in plans:
            header = plan.tree.header
            path = store.new_path(header.cwd, header.id, _moment(header.started))
            write_whole(path, b"\n".join([encode_frame(header), *plan.tree.lines(), b""]))
            written.append(path)
        on_error.pop_all()
    return tuple(_describe(plan, path) for plan, path in zip(plans, written, strict=True))


def _take_away(paths: Sequence[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _describe(plan: _Plan, path: Path) -> Imported:
    tree = plan.tree
    tip = tree.tip()
    return Imported(
        path=path,
        id=tree.header.id,
        source=plan.source,
        original=plan.original,
        title=tree.title(tip),
        cwd=tree.header.cwd,
        messages=tree.message_count(tip),
        branches=tree.branch_count,
        last_time=plan.last_time,
    )
