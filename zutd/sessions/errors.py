"""Everything that can go wrong with a session, in words for the person who must act."""

from collections.abc import Sequence


class SessionError(Exception):
    """The base of all session errors; the text is a sentence that names the thing and, if there is one, a way out."""


class SessionNotFound(SessionError):  # noqa: N818 - says what is the case
    """No session, branch or row of that name, or more than one. ``candidates`` are ids that would do."""

    def __init__(self, message: str, candidates: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.candidates = tuple(candidates)


class SessionInUse(SessionError):  # noqa: N818 - says what is the case
    """Another process (or another part of this one) has the file open for writing. ``pid`` is 0 when unknown."""

    def __init__(self, path: str, pid: int) -> None:
        who = f"process {pid}" if pid else "another process"
        super().__init__(f"the session {path} is in use by {who}; close it there, or open it read-only")
        self.path = path
        self.pid = pid


class SessionUnreadable(SessionError):  # noqa: N818 - says what is the case
    """The file cannot be opened or is no session file."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"cannot open the session {path}: {reason}")
        self.path = path
        self.reason = reason


class SessionBroken(SessionUnreadable):
    """A line that is not the last one cannot be read. ``line`` counts from 1, the header."""

    def __init__(self, path: str, line: int, reason: str) -> None:
        super().__init__(
            path,
            f"line {line} is broken ({reason}); it can be opened read-only, "
            "and `zutd session repair` writes a repaired copy",
        )
        self.line = line
        self.reason = reason


class SessionWriteError(SessionError):
    """A row could not be written; the rows before it are safe. The text says what to do about it."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"cannot write to the session {path}: {reason}")
        self.path = path
        self.reason = reason


class StateTooLarge(SessionError):  # noqa: N818 - says what is the case
    """An extension's snapshot is over the limit; the former one stays. Sizes are bytes of compact JSON."""

    def __init__(self, extension: str, size: int, limit: int) -> None:
        super().__init__(
            f"the state of extension {extension!r} is {size:,} bytes and the limit is {limit:,}; "
            "it was not stored, the former state stays"
        )
        self.extension = extension
        self.size = size
        self.limit = limit
