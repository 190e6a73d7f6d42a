"""Lists of sessions, from the first and the last bytes of each file.

``zutd session list`` must answer before anything heavy could be loaded, so this is standard library only, and
nothing here takes a lock. What a list shows stands near the end of a file: rows of the types ``usage`` and ``head``
carry the counts and the title as they were then (:class:`zutd.frames.rows.HeadRow`), and only the rows after the
last of them must be counted. The end is read in growing pieces until one is found; a file that has none is read as
a whole. Safe to call in a thread.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from zutd.sessions import locks
from zutd.sessions.names import FILE_NAME, canonical, directory_name

_HEAD_BYTES: Final = 4096
_TAIL_BYTES: Final = 8192
_LONGEST_HEADER: Final = 65536
_LONGEST_PREVIEW: Final = 80

# How zutd writes the beginning of a row. Rows that begin otherwise are read as JSON, which costs more.
_ROW: Final = re.compile(rb'\{"type":"(\w+)","n":(\d+),"parent":(\d+|null),"time":"([^"\\]+)"')
_FIRST_PROMPT: Final = re.compile(rb'"role":"user","content":\[\{"type":"text","text":"((?:[^"\\]|\\.){0,400})')


class Listed(NamedTuple):
    """One session of a list.

    Times are RFC 3339 in UTC, ``modified`` is the last row's. ``messages`` counts the active branch. ``preview`` is
    the beginning of the first prompt, for sessions without a title.
    """

    id: str
    path: str
    title: str
    cwd: str
    started: str
    modified: str
    messages: int
    branches: int
    preview: str


class Page(NamedTuple):
    """Some sessions with whether each is in use, and the cursor of the next page (empty: there is none)."""

    sessions: list[tuple[Listed, bool]]
    next: str


class _Row(NamedTuple):
    kind: str
    n: int
    parent: int
    time: str
    line: bytes

    @property
    def is_message(self) -> bool:
        """Whether it is a message of its own, and not more results for the one before it."""
        return self.kind == "message" and not self.line.rstrip().endswith(b',"continues":true}')

    def json(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.line)
        return value


# --- many files ------------------------------------------------------------------------------------------------------


def select(
    root: Path,
    cwd: str = "*",
    *,
    query: str = "",
    cursor: str = "",
    limit: int = 0,
    tick: Callable[[int], object] = lambda _: None,
) -> Page:
    """The sessions of a working directory (``*``: of all), newest first.

    ``query`` must occur in the title, or in the first prompt if there is none. ``limit`` 0 gives all. ``tick`` is told
    the number of sessions that were read so far, whenever there is one more.
    """
    wanted = query.casefold()
    found = []
    for count, session in enumerate(scan(root, cwd), 1):
        tick(count)
        if wanted in (session.title or session.preview).casefold():
            found.append(session)
    found.sort(key=_place, reverse=True)
    if cursor:
        found = [s for s in found if _place(s) < cursor]
    page = found[:limit] if limit > 0 else found
    held = locks.holders()
    return Page(
        sessions=[(session, locks.in_use(session.path, held)) for session in page],
        next=_place(page[-1]) if len(page) < len(found) else "",
    )


def _place(session: Listed) -> str:
    return f"{session.modified}/{session.id}"


def scan(root: Path, cwd: str = "*") -> Iterator[Listed]:
    """The sessions of a working directory (``*``: of all), in no order.

    Left out: links, files that are not named like sessions, and files whose header tells of another directory.
    """
    for directory, name_id, path in files(root, cwd):
        listed = read(path)
        if listed and listed.id == name_id and directory_name(listed.cwd) == directory:
            yield listed


def files(root: Path, cwd: str = "*") -> Iterator[tuple[str, str, str]]:
    """Session files: the name of the directory, the id in the file's name, the path."""
    only = "" if cwd == "*" else directory_name(canonical(cwd))
    for directory in _entries(root):
        if (only and directory.name != only) or not directory.is_dir(follow_symlinks=False):
            continue
        for entry in _entries(directory.path):
            name = FILE_NAME.fullmatch(entry.name)
            if name and entry.is_file(follow_symlinks=False):
                yield directory.name, name[2], entry.path


def _entries(directory: Path | str) -> Iterable["os.DirEntry[str]"]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except OSError:
        return []


# --- one file --------------------------------------------------------------------------------------------------------


def read(path: str) -> Listed | None:
    """What a list shows of a file, or None when it is no session (or is gone, or not ours to read)."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return _read(path, fd, os.fstat(fd).st_size)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    finally:
        os.close(fd)


def _read(path: str, fd: int, size: int) -> Listed:
    head = os.pread(fd, _HEAD_BYTES, 0)
    if b"\n" not in head:
        head = os.pread(fd, _LONGEST_HEADER, 0)
    first = head[: head.index(b"\n")]
    header = json.loads(first)
    if header["type"] != "session" or header["format"] != "zutd":
        raise ValueError("no header of a zutd session")
    modified, messages, branches, title = _summary(fd, len(first) + 1, size)
    return Listed(
        id=str(header["id"]),
        path=path,
        title=title,
        cwd=str(header["cwd"]),
        started=utc(str(header["started"])),
        modified=utc(modified or str(header["started"])),
        messages=messages,
        branches=branches,
        preview=_preview(head),
    )


def _summary(fd: int, start: int, size: int) -> tuple[str, int, int, str]:
    """Last row's time, messages on the active branch, branches, title. Rows are those from byte ``start`` on."""
    length = _TAIL_BYTES
    while True:
        at = max(start, size - length)
        rows = _rows(os.pread(fd, size - at, at), partial=at > start)
        found = _count_back(rows)
        if found or at == start:
            return found or _count_all(rows)
        length *= 8


def _rows(data: bytes, *, partial: bool) -> list[_Row]:
    """The rows of a piece of a file; its first line is ``partial`` unless the piece begins where a row does."""
    lines = data.split(b"\n")
    last = lines.pop()
    rows = [row for line in lines[partial:] if (row := _row(line))]
    if last and (lines or not partial):
        try:
            json.loads(last)  # a row that only lacks its LF counts, a torn one does not
        except (ValueError, RecursionError):
            return rows
        rows.extend(row for row in [_row(last)] if row)
    return rows


def _row(line: bytes) -> _Row | None:
    found = _ROW.match(line)
    if found:
        kind, n, parent, time = found.groups()
        row = _Row(kind.decode(), int(n), 0 if parent == b"null" else int(parent), time.decode(), line)
    else:
        try:
            raw = json.loads(line)
            row = _Row(str(raw["type"]), int(raw["n"]), int(raw["parent"] or 0), str(raw["time"]), line)
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
    return row if row.parent < row.n else None


def _count_back(rows: list[_Row]) -> tuple[str, int, int, str] | None:
    """The summary, if one of these rows carries the counts; all rows after that one belong to the active branch."""
    messages = branches = 0
    title: str | None = None
    for row in reversed(rows):
        if row.is_message:
            messages += 1
        elif row.kind == "branch":
            branches += 1
        elif row.kind == "title" and title is None:
            title = str(row.json()["title"])
        elif row.kind in ("usage", "head"):
            counts = row.json()
            if counts.get("branches"):
                messages += counts.get("messages", 0)
                shown = str(counts.get("title", "")) if title is None else title
                return rows[-1].time, messages, branches + counts["branches"], shown
    return None


def _count_all(rows: list[_Row]) -> tuple[str, int, int, str]:
    """The summary of a whole file: what its active branch's path says."""
    branch: dict[int, str] = {0: ""}
    tips: dict[str, _Row] = {}
    active = ""
    for row in rows:
        branch[row.n] = str(row.json()["id"]) if row.kind == "branch" else branch.get(row.parent, "")
        tips[branch[row.n]] = row
        if row.kind == "head":
            active = str(row.json()["branch"])
        active = active or branch[row.n]
    by_number = {row.n: row for row in rows}
    messages, titles = 0, list[str]()
    on_path = tips.get(active)
    while on_path:
        messages += on_path.is_message
        if on_path.kind == "title" or (on_path.kind == "branch" and on_path.json().get("title")):
            titles.append(str(on_path.json()["title"]))
        on_path = by_number.get(on_path.parent)
    branches = sum(row.kind == "branch" for row in rows)
    return rows[-1].time if rows else "", messages, branches, titles[0] if titles else ""


def _preview(head: bytes) -> str:
    found = _FIRST_PROMPT.search(head)
    if not found:
        return ""
    raw = found[1].decode("utf-8", "ignore")  # the cut may go through a character
    try:
        text = str(json.loads(f'"{raw}"'))
    except ValueError:
        return ""
    return " ".join(text.split())[:_LONGEST_PREVIEW]


def utc(time: str) -> str:
    """An RFC 3339 time as zutd writes it, so that texts compare as times do. Other texts stay as they are."""
    if len(time) == 24 and time.endswith("Z"):
        return time
    try:
        when = datetime.fromisoformat(time)
        return stamp(when if when.tzinfo else when.replace(tzinfo=UTC))
    except (ValueError, OverflowError):  # the first and the last day of the calendar have no neighbours
        return time


def stamp(when: datetime) -> str:
    """A time as zutd writes it: UTC, milliseconds, Z."""
    return f"{when.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
