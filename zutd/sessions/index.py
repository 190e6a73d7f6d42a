"""Where the rows of a session stand: their tree, its branches, and the last row of each kind on every path.

The path of a row is row -> parent -> ... -> root. An index takes raw lines, one at a time, and keeps a small
:class:`Node` for each: how many messages its path has, and the last row of each kind on it (:class:`~.trail.Trail`).
So forking, switching and every "what holds at this row" cost the same in a session of ten rows and of fifty
thousand. A branch's rows are those below its branch row, down to the next one; its tip is the last of them in the
file. (No trio, no I/O.)

Row numbers are integers here; ``r12`` is how the wires name row 12. Row 0 stands for "before every row".
"""

import re
from collections.abc import Iterable
from typing import Final

import attrs
import msgspec

from zutd.frames.rows import Header
from zutd.frames.session import SessionInfo
from zutd.sessions.entries import (
    AnyEntry,
    BranchEntry,
    HeadEntry,
    MessageEntry,
    OtherEntry,
    RowError,
    SettingsEntry,
    StateEntry,
    TitleEntry,
    kind_of,
    read_entry,
)
from zutd.sessions.errors import SessionNotFound
from zutd.sessions.trail import EMPTY, Key, Trail

STATE: Final = "extension_state"
TITLE: Final[Key] = ("title", "")
SETTINGS: Final[Key] = ("settings", "")

_ROW_ID = re.compile(r"r([1-9][0-9]{0,17})")


@attrs.frozen(kw_only=True)
class Choice:
    """Which model was chosen, and how hard it should think; empty where nothing was said."""

    provider: str = ""
    model: str = ""
    reasoning: str = ""


@attrs.define(eq=False)
class Branch:
    """A branch while it grows. ``row`` is its branch row, ``tip`` its last row."""

    id: str
    row: int
    parent_id: str
    fork_point: int
    tip: int


class Node(msgspec.Struct, frozen=True, gc=False):
    """A row's place.

    ``count`` is the number of messages on its path, ``last`` the last of them, ``answer`` the last of an assistant.
    ``role`` is the row's own, empty unless it is a message.
    """

    parent: int
    branch: Branch | None
    count: int
    last: int
    answer: int
    role: str
    trail: Trail


def row_id(row: int) -> str:
    """A row's name on the wires."""
    return f"r{row}" if row else ""


def row_number(text: str) -> int:
    """The number in a row's name. Raises :class:`SessionNotFound`."""
    found = _ROW_ID.fullmatch(text)
    if found is None:
        raise SessionNotFound(f"{text[:80]!r} names no row; rows are called r1, r2, ...")
    return int(found[1])


class Index:
    """The places of a session's rows. Only grows."""

    def __init__(self, header: Header) -> None:
        self.header = header
        self._lines: list[bytes] = [b""]
        self._nodes: list[Node] = [Node(0, None, 0, 0, 0, "", EMPTY)]
        self._branches: dict[str, Branch] = {}
        self._active: Branch | None = None
        self._choices: dict[int, Choice] = {}
        self._titles: dict[int, str] = {}

    # --- growing -----------------------------------------------------------------------------------------------------

    def append(self, line: bytes) -> int:
        """Take one row (without its LF), give its number. Raises :class:`RowError`; then nothing has changed."""
        return self.place(read_entry(line), line)

    def place(self, entry: AnyEntry, line: bytes) -> int:
        """Take a row whose line was read already. Raises :class:`RowError`; then nothing has changed."""
        row, parent = entry.n, entry.parent or 0
        if row != len(self._nodes):
            raise RowError(f"row {row} where row {len(self._nodes)} should be")
        if not 0 <= parent < row or entry.parent == 0:
            raise RowError(f"row {row} hangs on row {entry.parent}, which is no earlier row")
        node = self._place(entry, parent, self._nodes[parent])
        self._nodes.append(node)
        self._lines.append(line)
        if node.branch is not None:
            node.branch.tip = row
        return row

    def extend(self, lines: Iterable[bytes]) -> None:
        """Take many rows; stops with :class:`RowError` at the first that is none, the ones before it stay."""
        for line in lines:
            self.append(line)

    def _place(self, entry: AnyEntry, parent: int, above: Node) -> Node:
        if isinstance(entry, MessageEntry) and above.branch is not None:  # first of all: most rows are messages
            role = entry.message.role
            answer = entry.n if role == "assistant" else above.answer
            count = above.count + (not self._continues(entry, above))
            return Node(parent, above.branch, count, entry.n, answer, role, above.trail)
        if isinstance(entry, BranchEntry):
            return self._place_branch(entry, parent, above)
        if above.branch is None and not isinstance(entry, OtherEntry):
            raise RowError(f"row {entry.n} belongs to no branch")
        return self._place_value(entry, parent, above)

    def _continues(self, entry: MessageEntry, above: Node) -> bool:
        """Whether a row adds results to a tool message instead of being a message of its own."""
        return entry.continues and entry.message.role == "tool" and self._nodes[above.last].role == "tool"

    def _place_branch(self, entry: BranchEntry, parent: int, above: Node) -> Node:
        if entry.id in self._branches:
            raise RowError(f"branch {entry.id} starts a second time")
        parent_id = entry.parent_id or (above.branch.id if above.branch else "")
        branch = Branch(entry.id, entry.n, parent_id, entry.fork_point, entry.n)
        self._branches[entry.id] = branch
        self._active = self._active or branch
        trail = above.trail
        if entry.title:
            self._titles[entry.n] = entry.title
            trail = trail.put(TITLE, entry.n)
        return Node(parent, branch, above.count, above.last, above.answer, "", trail)

    def _place_value(self, entry: AnyEntry, parent: int, above: Node) -> Node:
        """A row that says what holds from here on; what is often asked of it is kept aside."""
        owner = ""
        if isinstance(entry, StateEntry):
            owner = entry.extension
        elif isinstance(entry, HeadEntry):
            self.activate(entry.branch)
        elif isinstance(entry, TitleEntry):
            self._titles[entry.n] = entry.title
        elif isinstance(entry, SettingsEntry):
            self._choices[entry.n] = _choose(self._choices.get(above.trail.find(SETTINGS)), entry)
        trail = above.trail.put((kind_of(entry), owner), entry.n)
        return Node(parent, above.branch, above.count, above.last, above.answer, "", trail)

    # --- branches ----------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """The number of rows, the header not counted."""
        return len(self._nodes) - 1

    @property
    def active(self) -> str:
        """The id of the active branch, empty while there is no branch at all."""
        return self._active.id if self._active else ""

    @property
    def branch_count(self) -> int:
        """The number of branches."""
        return len(self._branches)

    def activate(self, branch: str) -> None:
        """Make a branch the active one. Raises :class:`RowError` for one that is not there."""
        found = self._branches.get(branch)
        if found is None:
            raise RowError(f"there is no branch {branch}")
        self._active = found

    def tip(self, branch: str = "") -> int:
        """The last row of a branch (default: the active one). Raises :class:`SessionNotFound`."""
        return self._branch(branch).tip

    def info(self, branch: str = "", *, path: str = "") -> SessionInfo:
        """A branch (default: the active one) as the wires name it."""
        found = self._branch(branch)
        return SessionInfo(
            id=found.id,
            path=path,
            cwd=self.header.cwd,
            fork_point=found.fork_point,
            parent_id=found.parent_id,
        )

    def _branch(self, id: str) -> Branch:
        found = self._branches.get(id) if id else self._active
        if found is None:
            raise SessionNotFound(f"this session has no branch {id!r}", candidates=tuple(self._branches))
        return found

    def branch_of(self, row: int) -> str:
        """The id of the branch that a row belongs to."""
        branch = self._node(row).branch
        return branch.id if branch else ""

    # --- rows --------------------------------------------------------------------------------------------------------

    def _node(self, row: int) -> Node:
        if not 0 <= row < len(self._nodes):
            raise SessionNotFound(f"this session has no row {row_id(row)}; its last is {row_id(len(self))}")
        return self._nodes[row]

    def line(self, row: int) -> bytes:
        """A row as it stands in the file."""
        return self._lines[row]

    def lines(self) -> list[bytes]:
        """All rows as they stand in the file, the header not among them."""
        return self._lines[1:]

    def path(self, row: int) -> list[int]:
        """The rows from the root to this one."""
        rows: list[int] = []
        while row:
            rows.append(row)
            row = self._node(row).parent
        return rows[::-1]

    def message_count(self, row: int) -> int:
        """The number of messages on the row's path."""
        return self._node(row).count

    def last_role(self, row: int) -> str:
        """Who speaks in the last message on the row's path, empty when there is none."""
        return self._nodes[self._node(row).last].role

    def last(self, kind: str, row: int, owner: str = "") -> int:
        """The last row of a type on the row's path, 0 when there is none; also of types that we do not know.

        ``owner`` is the extension whose state is meant.
        """
        return self._node(row).trail.find((kind, owner))


def _choose(before: Choice | None, now: SettingsEntry) -> Choice:
    before = before or Choice()
    return Choice(
        provider=now.provider or before.provider,
        model=now.model or before.model,
        reasoning=now.reasoning or before.reasoning,
    )
