"""The HTTP client's network, with a :class:`~zutd.models.rechunk.Rechunker` in front of what it reads.

These two classes have the shape of the client's own (httpcore's network backend and stream), without importing it.
"""

from typing import Any

from zutd.models.rechunk import Rechunker


class Network:
    """Opens connections as ``inner`` does."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def connect_tcp(self, *args: Any, **options: Any) -> "Connection":
        """Connect to a host."""
        return Connection(await self._inner.connect_tcp(*args, **options))

    async def connect_unix_socket(self, *args: Any, **options: Any) -> "Connection":
        """Connect to a socket in the file system."""
        return Connection(await self._inner.connect_unix_socket(*args, **options))

    async def sleep(self, seconds: float) -> None:
        """Wait between two tries."""
        await self._inner.sleep(seconds)


class Connection:
    """One connection; another one begins inside it with TLS."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._rechunker = Rechunker()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - the client's shape
        """Give what has come in, its chunks joined; nothing at the end."""
        while data := await self._inner.read(max_bytes, timeout):
            if joined := self._rechunker.feed(data):
                return joined
        return self._rechunker.finish()

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - the client's shape
        """Send."""
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        """Close."""
        await self._inner.aclose()

    async def start_tls(self, *args: Any, **options: Any) -> "Connection":
        """Go on encrypted."""
        return Connection(await self._inner.start_tls(*args, **options))

    def get_extra_info(self, info: str) -> Any:
        """What the client asks of its socket."""
        return self._inner.get_extra_info(info)
