"""Sessions that lie on disk: listed, looked into, copied, given away, taken in, mended, renamed, deleted.

What ``zutd session`` does, and what frontends ask for beside the session that is open. Blocking, and to be called in a
thread. A list is wanted at once, so nothing heavy is loaded before it is needed.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from zutd.sessions import listing
from zutd.sessions.errors import SessionError, SessionInUse, SessionNotFound, SessionUnreadable
from zutd.sessions.listing import Listed, Page
from zutd.sessions.names import sessions_root

if TYPE_CHECKING:
    from zutd.frames.rows import Header
    from zutd.frames.session import SessionInfo
    from zutd.sessions.export import Exported, Format, Rendered
    from zutd.sessions.foreign.importing import Import, Imported
    from zutd.sessions.repair import Repaired
    from zutd.sessions.store import Store
    from zutd.sessions.tree import Tree

__all__ = [
    "NEWEST",
    "Archive",
    "Listed",
    "Page",
    "Place",
    "SessionError",
    "exit_code",
    "export_file",
    "export_rows",
    "format_by_name",
    "import_paths",
    "info_of",
    "plain",
    "read",
]

NEWEST: Final = "newest"
"""What the newest session of a working directory is called, where an id is asked for."""

_LONGEST_COUNT: Final = 10
"""No session has a number of messages of so many digits."""

_FAILED: Final = 1
_NOT_OPENED: Final = 5


def format_by_name(path: str) -> "Format | None":
    """The form that a file's name asks for, if it asks for one."""
    from zutd.sessions.export import format_by_name

    return format_by_name(path)


def plain(session: "Imported") -> dict[str, Any]:
    """An imported session as JSON values."""
    import attrs

    return {**attrs.asdict(session), "path": str(session.path)}


def exit_code(problem: SessionError) -> int:
    """5 for a session that is in use or cannot be read, 1 for everything else."""
    return _NOT_OPENED if isinstance(problem, (SessionInUse, SessionUnreadable)) else _FAILED


# --- what frontends ask for ------------------------------------------------------------------------------------------


def export_rows(header: "Header", lines: Sequence[bytes], branch: str, form: "Format", path: Path) -> "Exported":
    """A branch of a session in memory into a file. Raises :class:`SessionError`."""
    from zutd.sessions.export import export
    from zutd.sessions.tree import Tree

    tree = Tree(header)
    tree.extend(lines)
    return export(tree, tree.tip(branch), form, path)


def export_file(store: "Store", name: str, form: "Format", path: Path) -> "Exported":
    """The active branch of a session, or the branch that is named, into a file. Raises :class:`SessionError`."""
    from zutd.sessions.export import export

    found = store.find(name)
    tree, _ = read(found.path)
    return export(tree, tree.tip(found.branch), form, path)


def import_paths(store: "Store", paths: Sequence[Path], *, here: str, cwd: str = "") -> "Import":
    """Files of zutd, zut or pi as new sessions. Raises :class:`SessionError`; then there is nothing new."""
    from zutd.sessions.foreign.importing import import_files

    return import_files(store, paths, here=here, cwd=cwd)


def info_of(store: "Store", path: Path) -> "SessionInfo":
    """What a session is, without opening it for writing. Raises :class:`SessionError`."""
    from zutd.sessions.session import Session

    with Session.open(store, path, read_only=True) as session:
        return session.info


def read(path: Path) -> tuple["Tree", tuple[str, ...]]:
    """The rows of a file, also of one that is in use or broken, and what could not be read. Raises SessionError."""
    from zutd.sessions.opening import open_file

    opened = open_file(path, read_only=True, cwd=".")
    opened.journal.close()
    return opened.tree, opened.repaired


# --- what the command line does --------------------------------------------------------------------------------------


class Place(NamedTuple):
    """A session file, and the branch that is meant (empty: the active one)."""

    path: Path
    branch: str


class Archive:
    """The sessions below one home directory, seen from one working directory. All methods raise SessionError."""

    def __init__(self, home: str, cwd: str) -> None:
        self._root = sessions_root(Path(home))
        self._home = Path(home)
        self._cwd = cwd

    @property
    def _store(self) -> "Store":
        from zutd.sessions.store import Store

        return Store(self._home)

    def listed(self, *, everywhere: bool, query: str, limit: int, tick: Callable[[int], object]) -> Page:
        """Sessions of the working directory or of all, newest first; ``limit`` 0 gives all."""
        where = "*" if everywhere else self._cwd
        return listing.select(self._root, where, query=query, limit=limit, tick=tick)

    def find(self, name: str, branch: str = "") -> Place:
        """A session by the beginning of its id, the id of a branch, ``newest``, or the path of its file."""
        if os.sep in name or name.endswith(".jsonl"):
            return self._file(Path(name), branch)
        if name == NEWEST:
            newest = self._store.newest(self._cwd)
            if newest is None:
                raise SessionNotFound(f"there is no session of {self._cwd}; zutd session list --all shows the others")
            return Place(newest, branch)
        found = self._store.find(name)
        return Place(found.path, branch or found.branch)

    def _file(self, path: Path, branch: str) -> Place:
        if not os.path.exists(path):
            raise SessionNotFound(f"there is no file {path}")
        return Place(path.absolute(), branch)

    def _row(self, tree: "Tree", branch: str) -> int:
        """The tip of a branch that may be named by the beginning of its id."""
        matching = [known.id for known in tree.branches() if known.id.startswith(branch)] if branch else [""]
        if len(matching) > 1:
            raise SessionNotFound(
                f"{len(matching)} branches begin with {branch!r}: {', '.join(matching[:10])}", matching
            )
        return tree.tip(matching[0] if matching else branch)

    # --- looking -----------------------------------------------------------------------------------------------------

    def show(self, place: Place) -> dict[str, Any]:
        """What is in a session, as JSON values."""
        tree, repaired = read(place.path)
        row = self._row(tree, place.branch)
        listed = listing.read(str(place.path))
        choice, usage, header = tree.settings(row), tree.usage(row), tree.header
        from zutd.wire.codec import encode, unstructure

        return {
            "id": header.id,
            "path": str(place.path),
            "title": tree.title(row),
            "cwd": header.cwd,
            "started": header.started,
            "modified": listed.modified if listed else "",
            "in_use": self._in_use(place.path),
            "branch": tree.branch_of(row),
            "provider": choice.provider,
            "model": choice.model,
            "reasoning": choice.reasoning,
            "messages": tree.message_count(row),
            "usage": unstructure(usage.session) if usage else None,
            "states": {name: len(encode(state)) for name, state in tree.states(row).items()},
            "imported": _origin(tree, row),
            "branches": [_branch(branch) for branch in tree.branches()],
            "problems": list(repaired),
        }

    def _in_use(self, path: Path) -> bool:
        from zutd.sessions import locks

        return locks.in_use(str(path), locks.holders())

    def explain(self, place: Place) -> list[dict[str, Any]]:
        """Who intercepted what on a branch, as JSON values."""
        import attrs

        from zutd.sessions.export_verdicts import explain

        tree, _ = read(place.path)
        return [attrs.asdict(one) for one in explain(tree, self._row(tree, place.branch))]

    # --- copying -----------------------------------------------------------------------------------------------------

    def fork(self, place: Place, at: str, title: str) -> Path:
        """The conversation up to a row (``r12``) or a number of messages, as a session of its own; its file."""
        from zutd.sessions.session import Session

        store = self._store
        with Session.open(store, place.path, read_only=True) as session:
            if place.branch:
                session.show(self._named(session, place.branch))
            count = at.isascii() and at.isdigit() and len(at) < _LONGEST_COUNT
            return session.fork_to_file(int(at) if count else at or None, title)

    def _named(self, session: Any, branch: str) -> str:
        matching = [known.id for known in session.tree() if known.id.startswith(branch)]
        return str(matching[0]) if len(matching) == 1 else branch

    def export(self, place: Place, form: "Format", path: Path) -> "Exported":
        """A branch into a file."""
        from zutd.sessions.export import export

        tree, _ = read(place.path)
        return export(tree, self._row(tree, place.branch), form, path)

    def render(self, place: Place, form: "Format") -> "Rendered":
        """A branch in another form, not written anywhere."""
        from zutd.sessions.export import render

        tree, _ = read(place.path)
        return render(tree, self._row(tree, place.branch), form)

    def import_(self, paths: Sequence[Path], cwd: str) -> "Import":
        """Files as new sessions, all of them in ``cwd`` if it is given."""
        return import_paths(self._store, paths, here=self._cwd, cwd=cwd)

    # --- changing ----------------------------------------------------------------------------------------------------

    def repair(self, place: Place) -> "Repaired":
        """A copy without what is broken, beside the file."""
        from zutd.sessions.repair import repair

        return repair(place.path)

    def delete(self, place: Place) -> None:
        """The file, and what was cut off it."""
        self._store.delete(self._ours(place.path))

    def rename(self, place: Place, title: str) -> None:
        """Another title, on the active branch or on the one that is meant."""
        from zutd.sessions.session import Session

        with Session.open(self._store, self._ours(place.path)) as session:
            session.rename(title)

    def _ours(self, path: Path) -> Path:
        """A file that is a session, whatever its name says: others are not touched."""
        if listing.read(str(path)) is None:
            raise SessionUnreadable(str(path), "it is no session of zutd")
        return path


def _origin(tree: "Tree", row: int) -> dict[str, Any] | None:
    """Where a branch was imported from, if it was."""
    at = tree.last("import", row)
    raw = tree.raw(at) if at else {}
    return {key: raw.get(key) for key in ("format", "id", "file")} if raw else None


def _branch(branch: Any) -> dict[str, Any]:
    import attrs

    return attrs.asdict(branch)
