"""Where the sessions of a home directory are: new paths, lists, finding one, deleting one.

Sessions live in ``<home>/zutd/sessions/<directory of the working directory>/<time>-<uuid>.jsonl``.
"""

import glob
from datetime import datetime
from pathlib import Path
from typing import Final

import attrs

from zutd.frames.session import SessionSummary
from zutd.sessions import listing
from zutd.sessions.errors import SessionError, SessionNotFound, SessionWriteError
from zutd.sessions.file import SessionFile, explain
from zutd.sessions.names import canonical, directory_name, file_name, sessions_root

SHORTEST_PREFIX: Final = 4
"""How many characters of an id must be given."""

_UUID_LENGTH: Final = 36
_MOST_CANDIDATES: Final = 10


@attrs.frozen(kw_only=True)
class Found:
    """A session file, and the branch that was asked for (empty: whichever is active)."""

    path: Path
    branch: str


class Store:
    """The sessions below one home directory (``$ZUT_HOME``). Holds no state: files may come and go."""

    def __init__(self, home: Path) -> None:
        self.root = sessions_root(home)

    def new_path(self, cwd: Path | str, id: str, started: datetime) -> Path:
        """The path for a new session of a working directory; ``started`` is in UTC. Makes nothing."""
        return self.root / directory_name(canonical(cwd)) / file_name(started, id)

    def list_sessions(
        self, cwd: Path | str = "*", *, query: str = "", cursor: str = "", limit: int = 0
    ) -> tuple[tuple[SessionSummary, ...], str]:
        """Sessions of a working directory (``*``: of all), newest first, and the cursor of the next page.

        ``query`` must occur in the title (in the first prompt, for a session without one); ``limit`` 0 gives all.
        Reads the first and last bytes of each file; may be called in a thread.
        """
        page = listing.select(self.root, str(cwd), query=query, cursor=cursor, limit=limit)
        return tuple(_summary(session, in_use=in_use) for session, in_use in page.sessions), page.next

    def newest(self, cwd: Path | str) -> Path | None:
        """The session of a working directory whose last row is the latest, if there is any."""
        newest = max(listing.scan(self.root, str(cwd)), key=lambda s: (s.modified, s.id), default=None)
        return Path(newest.path) if newest else None

    def find(self, id: str) -> Found:
        """A session by the beginning of its id (4 characters or more), in any working directory.

        The whole id of a branch will do as well: that is what the wires call a session's ``id``.
        Raises :class:`SessionNotFound`, with the candidates when there are several.
        """
        wanted = id.strip().lower()
        if len(wanted) < SHORTEST_PREFIX:
            raise SessionNotFound(f"{id!r} is too short for a session's id; give {SHORTEST_PREFIX} characters or more")
        found = {file_id: path for _, file_id, path in listing.files(self.root) if file_id.startswith(wanted)}
        if len(found) == 1:
            return Found(path=Path(next(iter(found.values()))), branch="")
        if found:
            some = ", ".join(sorted(found)[:_MOST_CANDIDATES])
            raise SessionNotFound(f"{len(found)} sessions begin with {id!r}: {some}", candidates=sorted(found))
        return self._find_branch(wanted)

    def _find_branch(self, id: str) -> Found:
        """Look into the files: only for a whole uuid, which no session has."""
        needle = f'"id":"{id}"'.encode()
        for _, _, path in listing.files(self.root) if len(id) == _UUID_LENGTH else ():
            if _has_branch(path, needle):
                return Found(path=Path(path), branch=id)
        raise SessionNotFound(f"there is no session {id!r} below {self.root}")

    def delete(self, path: Path) -> None:
        """Delete a session, and what was cut off its file. Refuses one that is in use.

        Raises :class:`SessionInUse`, :class:`SessionNotFound`, :class:`SessionUnreadable`, :class:`SessionWriteError`.
        """
        file = SessionFile.open(path)
        try:
            path.unlink()
            for torn in path.parent.glob(f"{glob.escape(path.name)}.torn-*"):
                torn.unlink(missing_ok=True)
        except OSError as exc:
            raise SessionWriteError(str(path), explain(exc)) from exc
        finally:
            file.close()


def _has_branch(path: str, needle: bytes) -> bool:
    try:
        file = SessionFile.open(Path(path), read_only=True)
    except SessionError:
        return False
    try:
        data = file.read()
    except SessionError:
        return False
    finally:
        file.close()
    at = data.find(needle)
    while at >= 0:
        start = data.rfind(b"\n", 0, at) + 1
        if data.startswith(b'{"type":"branch",', start):
            return True
        at = data.find(needle, at + 1)
    return False


def _summary(session: listing.Listed, *, in_use: bool) -> SessionSummary:
    return SessionSummary(
        id=session.id,
        path=session.path,
        title=session.title,
        cwd=session.cwd,
        started=session.started,
        modified=session.modified,
        messages=session.messages,
        branches=session.branches,
        in_use=in_use,
    )
