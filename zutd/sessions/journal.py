"""Where a session's rows go: into its file, into memory until there is a file, or nowhere.

A file comes into being with the first message or extension state, in one step with everything that was said before
it, so there are no empty files to tidy up.
"""

from pathlib import Path

from zutd.sessions.errors import SessionWriteError
from zutd.sessions.file import SessionFile


class Journal:
    """The written side of a session. ``path`` None keeps nothing; ``waiting`` lines are not in the file yet."""

    def __init__(self, path: Path | None, file: SessionFile | None = None, waiting: list[bytes] | None = None) -> None:
        self.path = path
        self._file = file
        self._waiting = waiting or []
        self._closed = False

    @property
    def read_only(self) -> bool:
        """Whether the file was opened only to be read."""
        return self._file is not None and self._file.read_only

    def is_sound(self) -> bool:
        """Whether what is written goes where it should: the file was not deleted, replaced or changed by others."""
        return not self._closed and (self._file is None or self._file.is_sound())

    def write(self, line: bytes, *, lasting: bool) -> None:
        """Put a row on record. Rows that are not ``lasting`` do not bring a file into being: they wait for one.

        Raises :class:`SessionWriteError`; then the row is not on record.
        """
        if self._closed:
            raise SessionWriteError(str(self.path or "in memory"), "it is closed")
        if self.path is None:
            return
        if self._file is not None and not self._waiting:
            self._file.append(line)
        elif not lasting:
            self._waiting.append(line)
        elif self._file is None:
            self._file = SessionFile.create(self.path, [*self._waiting, line])
            self._waiting.clear()
        else:
            self._fill(self._file, line)

    def _fill(self, file: SessionFile, line: bytes) -> None:
        """An empty file was opened: it has its name already, so it is filled in place."""
        while self._waiting:
            file.append(self._waiting[0])
            del self._waiting[0]
        file.append(line)

    def sync(self) -> None:
        """Wait until everything is on disk. May be called in a thread. Raises :class:`SessionWriteError`."""
        if self._file is not None:
            self._file.sync()

    def close(self) -> None:
        """Let the file go. What still waits is forgotten: nothing was ever said in that session."""
        self._closed = True
        if self._file is not None:
            self._file.close()
