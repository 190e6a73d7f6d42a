"""What is done to session files beside appending: a broken one is copied without what is broken, a path is copied out.

Both write a file of their own in one step and leave the original alone.
"""

import os
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import attrs

from zutd import __version__
from zutd.frames.rows import Header
from zutd.sessions.entries import RowError
from zutd.sessions.errors import SessionUnreadable
from zutd.sessions.file import SessionFile, write_whole
from zutd.sessions.listing import stamp
from zutd.sessions.loading import FORMAT, VERSION, load
from zutd.sessions.names import FILE_NAME, canonical, file_name
from zutd.sessions.rewrite import Mended, extract, mend, patch
from zutd.sessions.tree import Tree
from zutd.wire.codec import encode_frame


@attrs.frozen(kw_only=True)
class Repaired:
    """What a repair did. ``path`` is the copy, or the original when ``notes`` is empty: nothing was to be repaired."""

    path: Path
    rows: int
    notes: tuple[str, ...]


def make_header(cwd: str, id: str = "", *, started: datetime | None = None) -> Header:
    """The header of a new session of a canonical working directory."""
    now = started or datetime.now(UTC)
    return Header(
        format=FORMAT,
        version=VERSION,
        id=id or str(uuid4()),
        cwd=cwd,
        started=stamp(now),
        zutd=__version__,
        timezone=timezone(),
    )


def timezone() -> str:
    """The name of the machine's time zone if it tells one, else its offset from UTC."""
    name = os.environ.get("TZ", "").removeprefix(":")
    if "/" in name and not name.startswith("/"):
        return name
    _, found, zone = os.path.realpath("/etc/localtime").partition("/zoneinfo/")
    return zone if found else datetime.now(UTC).astimezone().strftime("%z")


def mend_data(path: Path, data: bytes) -> Mended:
    """What can be saved of a file's bytes. Raises :class:`SessionUnreadable` when it is no session file."""
    try:
        return mend(data, make_header(canonical(Path.cwd())))
    except RowError as exc:
        raise SessionUnreadable(str(path), str(exc)) from None


def repair(path: Path) -> Repaired:
    """Write a copy of a session file without what is broken in it, beside it, as a session with an id of its own.

    Raises :class:`SessionInUse`, :class:`SessionNotFound`, :class:`SessionUnreadable`, :class:`SessionWriteError`.
    """
    file = SessionFile.open(path)
    try:
        data = file.read()
        mended = mend_data(path, data)
        notes = mended.notes or _last_line(data)
        if not notes:
            return Repaired(path=path, rows=len(mended.tree), notes=())
        copy = _write_copy(path, mended)
    finally:
        file.close()
    return Repaired(path=copy, rows=len(mended.tree), notes=notes)


def _last_line(data: bytes) -> tuple[str, ...]:
    """Whether a file in which mending changed nothing lacks its last line end."""
    return ("the last line had no line end",) if load(data).unended else ()


def _write_copy(path: Path, mended: Mended) -> Path:
    now, uuid = datetime.now(UTC), str(uuid4())
    named = FILE_NAME.fullmatch(path.name)
    name = file_name(now, uuid) if named else f"{path.stem}-repaired-{uuid[:8]}{path.suffix}"
    tree = mended.tree
    tree.append(encode_frame(tree.head_row(tree.active, stamp(now))))  # the counts for lists, after what was lost
    copy = path.with_name(name)
    write_whole(copy, b"\n".join([patch(mended.header_line, id=uuid), *tree.lines(), b""]))
    return copy


def copy_path(tree: Tree, row: int, path: Path, header: Header, *, title: str = "") -> None:
    """Write the path of a row as a session of its own. Raises :class:`SessionWriteError`."""
    copy = extract(tree, row, header, time=stamp(datetime.now(UTC)), title=title)
    write_whole(path, b"\n".join([encode_frame(header), *copy.lines(), b""]))
