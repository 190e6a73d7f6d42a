"""How sessions and branches are named on every wire."""

from typing import ClassVar

from zutd.frames.define import frame


@frame
class SessionInfo:
    """The active branch of a session. ``id`` is the branch's; ``fork_point`` is the number of messages before it.

    ``path`` is the session file, empty when nothing is kept on disk.
    """

    tag: ClassVar[None] = None
    id: str
    path: str
    cwd: str
    fork_point: int
    parent_id: str = ""


@frame
class BranchInfo:
    """One branch of a session's tree. ``fork_row`` is the row it hangs on, empty for a root."""

    tag: ClassVar[None] = None
    id: str
    fork_point: int
    title: str
    messages: int
    active: bool
    parent_id: str = ""
    fork_row: str = ""


@frame
class SessionSummary:
    """One line of a list of sessions. Times are RFC 3339; ``messages`` counts the active branch."""

    tag: ClassVar[None] = None
    id: str
    path: str
    title: str
    cwd: str
    started: str
    modified: str
    messages: int
    branches: int
    in_use: bool
