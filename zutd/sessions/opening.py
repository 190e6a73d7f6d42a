"""From a path to a tree and a journal: what must be mended at the end of the file is mended, the rest is refused."""

from pathlib import Path
from typing import Final
from uuid import uuid4

import attrs

from zutd.frames.rows import BranchRow
from zutd.sessions.errors import SessionBroken, SessionUnreadable
from zutd.sessions.file import SessionFile
from zutd.sessions.journal import Journal
from zutd.sessions.loading import LineError, Loaded, load
from zutd.sessions.names import FILE_NAME
from zutd.sessions.repair import make_header, mend_data
from zutd.sessions.tree import Tree
from zutd.wire.codec import encode_frame

_NO_BRANCH: Final = "the row of the first branch was missing; there is a new one"


@attrs.frozen(kw_only=True)
class Opened:
    """An open session file.

    ``repaired`` says what was changed or left out, ``broken`` is the error of a broken file that is only read.
    """

    tree: Tree
    journal: Journal
    repaired: tuple[str, ...]
    broken: str = ""


def open_file(path: Path, *, read_only: bool, cwd: str) -> Opened:
    """Open a session file (see :meth:`zutd.sessions.session.Session.open`); ``cwd`` is canonical."""
    file = SessionFile.open(path, read_only=read_only)
    try:
        data = file.read()
        try:
            loaded = load(data)
        except LineError as exc:
            broken = SessionBroken(str(path), exc.line, exc.reason)
            if not read_only:
                raise broken from None
            mended = mend_data(path, data)
            return Opened(tree=mended.tree, journal=Journal(path, file), repaired=mended.notes, broken=str(broken))
        if read_only:
            return _only_read(file, loaded, len(data))
        return _take_over(file, loaded, len(data), cwd)
    except BaseException:
        file.close()
        raise


def begin(tree: Tree, *, title: str = "") -> list[bytes]:
    """Give an empty tree its first branch, called like the session; the lines of the file so far."""
    header = tree.header
    root = BranchRow(n=len(tree) + 1, parent=None, time=header.started, id=header.id, fork_point=0, title=title)
    line = encode_frame(root)
    tree.append(line)
    return [encode_frame(header), line]


def _only_read(file: SessionFile, loaded: Loaded, size: int) -> Opened:
    if loaded.tree is None:
        raise SessionUnreadable(str(file.path), "it is empty")
    notes = []
    if loaded.torn:
        notes.append(f"the last line is torn and was left out: {size - loaded.whole} bytes ({loaded.torn})")
    if not loaded.tree.active:
        begin(loaded.tree)
        notes.append(_NO_BRANCH)
    return Opened(tree=loaded.tree, journal=Journal(file.path, file), repaired=tuple(notes))


def _take_over(file: SessionFile, loaded: Loaded, size: int, cwd: str) -> Opened:
    """Make the file end in a whole row, and make sure that there is a branch to write on."""
    notes = []
    if loaded.torn:
        copy = file.set_aside(loaded.whole)
        notes.append(f"the last line was torn: {size - loaded.whole} bytes are in {copy.name} now ({loaded.torn})")
    if loaded.unended:
        file.end_line()
        notes.append("the last line had no line end; it has one now")
    if loaded.tree is None:
        name = FILE_NAME.fullmatch(file.path.name)
        tree = Tree(make_header(cwd, name[2] if name else str(uuid4())))
        return Opened(tree=tree, journal=Journal(file.path, file, begin(tree)), repaired=tuple(notes))
    if not loaded.tree.active:
        file.append(begin(loaded.tree)[1])
        notes.append(_NO_BRANCH)
    return Opened(tree=loaded.tree, journal=Journal(file.path, file), repaired=tuple(notes))
