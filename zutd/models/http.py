"""One POST whose answer streams: the only place that knows the HTTP client.

The client is imported when the first request is made, in a thread, for its import costs more than everything else
of zutd. A reader (a wire's state machine) takes the raw chunks and says after each what it still wants; this module
keeps the time and turns whatever goes wrong into :class:`ModelError`.

A stream is never left half way by a ``break``: it is read to its end or the scope around it is cancelled. So the
client's own generators end in order, and a finished stream leaves a connection that can be used again.
"""

import enum
import math
import os
import time
from collections.abc import AsyncIterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, Self, cast
from urllib.parse import urlsplit

import attrs
import trio

from zutd import __version__
from zutd.models import failures
from zutd.models.base import ErrorKind, ModelError
from zutd.models.network import Network

if TYPE_CHECKING:
    import httpx

CONNECT_SECONDS = 15.0
IDLE_SECONDS = 300.0
KEEP_ALIVE_SECONDS = 120.0
_ERROR_BODY_SECONDS = 10.0
_CLOSE_SECONDS = 2.0


class Want(enum.Enum):
    """What a reader says about the rest of its stream."""

    MORE = "more"  # the answer is not complete
    TAIL = "tail"  # it is; what may follow (usage, an end marker) is nice to have
    NOTHING = "nothing"  # the end marker was there
    STOP = "stop"  # the stream is broken, do not read on


_PATIENCE = {Want.TAIL: 5.0, Want.NOTHING: 0.2, Want.STOP: -math.inf}
"""Seconds to wait for the rest of a stream of which nothing more is needed."""


class Reader(Protocol):
    """What a wire does with a stream. The methods neither wait nor raise for what the server sent."""

    @property
    def want(self) -> Want:
        """What it needs after all that it was fed."""
        ...

    def opened(self) -> None:
        """The server accepted the request."""

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""


@attrs.frozen(kw_only=True)
class Server:
    """One server to talk to. ``idle`` is seconds of silence after which it is given up."""

    provider: str
    base_url: str
    api_key: str | None = attrs.field(default=None, repr=False)
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    insecure: bool = False
    idle: float = IDLE_SECONDS


@attrs.frozen(kw_only=True)
class Endpoint:
    """Where requests go and as whom. ``provider`` is the name that errors begin with.

    ``secret`` is the key inside ``headers``, so that it can be struck out of errors; ``idle`` the seconds without a
    byte after which the server is given up; ``insecure`` accepts any certificate.
    """

    provider: str
    url: str
    headers: Mapping[str, str] = attrs.field(repr=False)
    secret: str = attrs.field(default="", repr=False)
    idle: float = IDLE_SECONDS
    insecure: bool = False

    @classmethod
    def at(cls, server: Server, url: str, headers: Mapping[str, str]) -> Self:
        """Where a wire asks a server: the wire knows the URL and the headers, the server the rest."""
        return cls(
            provider=server.provider,
            url=url,
            headers=headers,
            secret=server.api_key or "",
            idle=server.idle,
            insecure=server.insecure,
        )


class HttpClient:
    """The connections to one endpoint. They are kept open between requests."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._client: httpx.AsyncClient | None = None
        self._opening = trio.Lock()

    async def post(self, body: bytes, reader: Reader) -> None:
        """Send ``body`` and feed the reader until it wants nothing or the stream ends.

        Raises :class:`ModelError`. Whether the stream was complete is for the reader to say.
        """
        if self._client is None:
            await self._open()
        try:
            await self._exchange(body, reader)
        except ModelError:
            raise
        except Exception as exc:
            if type(exc).__module__.partition(".")[0] != "httpx" and not isinstance(exc, UnicodeError):
                raise  # a fault of ours
            if reader.want is Want.MORE:
                raise self._mapped(exc) from exc

    async def aclose(self) -> None:
        """Close the connections. The next request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _open(self) -> None:
        async with self._opening:
            if self._client is None:
                self._client = await trio.to_thread.run_sync(self._make_client, abandon_on_cancel=True)

    def _make_client(self) -> "httpx.AsyncClient":
        if not _host(self._endpoint.url):
            raise ModelError(ErrorKind.REQUEST, f"{self._endpoint.provider}: the base URL is not valid")
        module = load()
        secure = self._endpoint.url.lower().startswith("https:")
        context: Any = secure and not self._endpoint.insecure and _trusted(module)
        try:
            client: httpx.AsyncClient = module.AsyncClient(
                headers={"user-agent": f"zutd/{__version__}", "accept-encoding": "identity"},
                verify=context,
                proxy=_proxy(self._endpoint.url) if secure else None,
                trust_env=False,
                timeout=module.Timeout(None, connect=CONNECT_SECONDS),
                limits=module.Limits(keepalive_expiry=KEEP_ALIVE_SECONDS),
            )
        except (ImportError, ValueError) as exc:
            raise ModelError(ErrorKind.REQUEST, f"the proxy of the environment cannot be used: {exc}") from exc
        _join_chunks(client)
        return client

    async def _exchange(self, body: bytes, reader: Reader) -> None:
        client, endpoint = self._client, self._endpoint
        assert client is not None
        refusal = None
        with trio.CancelScope(deadline=trio.current_time() + endpoint.idle) as scope:
            request = client.build_request("POST", endpoint.url, headers=dict(endpoint.headers), content=body)
            response = await client.send(request, stream=True)
            try:
                if _streams(response):
                    await _read(response, reader, scope, endpoint.idle)
                else:
                    refusal = await self._refusal(response)
            finally:
                with trio.CancelScope(shield=True, deadline=trio.current_time() + _CLOSE_SECONDS):
                    await response.aclose()
        if refusal is not None:
            raise refusal
        if scope.cancelled_caught and reader.want is Want.MORE:
            raise ModelError(ErrorKind.TIMEOUT, f"{self._where()} was silent for {endpoint.idle:g} s")

    async def _refusal(self, response: "httpx.Response") -> ModelError:
        body = bytearray()
        with trio.move_on_after(_ERROR_BODY_SECONDS) as scope:
            async for chunk in response.aiter_bytes():
                body += chunk[: failures.BODY_LIMIT - len(body)]
                if len(body) >= failures.BODY_LIMIT:
                    scope.cancel()
        provider, secret = self._endpoint.provider, self._endpoint.secret
        status, headers = response.status_code, response.headers
        if status < 300:
            kind = headers.get("content-type", "something").partition(";")[0]
            return failures.from_unstreamed(provider, kind, bytes(body), secret=secret)
        return failures.from_response(provider, status, headers, bytes(body), now=time.time(), secret=secret)

    def _mapped(self, exc: Exception) -> ModelError:
        kind, text = next(_FAULTS[cls.__name__] for cls in type(exc).__mro__ if cls.__name__ in _FAULTS)
        reason = failures.clean(_reason(exc), self._endpoint.secret)
        if type(exc).__name__ == "RemoteProtocolError" and "disconnected" not in reason and "closed" not in reason:
            kind = ErrorKind.PROTOCOL
        return ModelError(kind, f"{self._where()}: {text}" + (f": {reason}" if reason else ""))

    def _where(self) -> str:
        """Name the provider and the host, without what else a URL may hold."""
        return f"{self._endpoint.provider} ({_host(self._endpoint.url)})"


def _join_chunks(client: Any) -> None:
    """Put our network before the client's. It takes one where a pool is made, but makes the pools itself."""
    for transport in (client._transport, *client._mounts.values()):  # noqa: SLF001 - see above
        pool: Any = getattr(transport, "_pool", None)
        if hasattr(pool, "_network_backend"):
            pool._network_backend = Network(pool._network_backend)  # noqa: SLF001 - see above


def load() -> Any:
    """Import the HTTP client (some 100 ms); whoever wants it early calls this in a thread."""
    import httpcore._backends.trio  # noqa: F401 - the client would import it in the middle of the first request
    import httpx

    return httpx


_FAULTS = {
    "ConnectError": (ErrorKind.NETWORK, "cannot connect"),
    "ConnectTimeout": (ErrorKind.NETWORK, f"no connection within {CONNECT_SECONDS:g} s"),
    "DecodingError": (ErrorKind.PROTOCOL, "the answer cannot be decompressed"),
    "Exception": (ErrorKind.NETWORK, "the request failed"),
    "InvalidURL": (ErrorKind.REQUEST, "the base URL is not valid"),
    "LocalProtocolError": (ErrorKind.REQUEST, "the request cannot be sent"),
    "NetworkError": (ErrorKind.NETWORK, "the connection broke"),
    "ProxyError": (ErrorKind.NETWORK, "the proxy refused"),
    "RemoteProtocolError": (ErrorKind.NETWORK, "the answer broke off"),
    "TimeoutException": (ErrorKind.TIMEOUT, "no answer in time"),
    "UnicodeError": (ErrorKind.REQUEST, "the key or a header has characters that cannot be sent"),
    "UnsupportedProtocol": (ErrorKind.REQUEST, "the base URL must begin with http:// or https://"),
}
"""The client's exceptions by class name, the most special one wins."""


async def _read(response: "httpx.Response", reader: Reader, scope: trio.CancelScope, idle: float) -> None:
    reader.opened()
    want = Want.MORE
    slack = min(1.0, idle / 16)  # the deadline moves in steps, for moving it costs more than reading an event
    moved = -math.inf
    async for chunk in _chunks(response):
        if want is Want.NOTHING or want is Want.STOP:
            continue
        reader.feed(chunk)
        now = trio.current_time()
        if want is not reader.want:
            want = reader.want
            scope.deadline = now + _PATIENCE[want]
        elif want is Want.MORE and now - moved > slack:
            moved = now
            scope.deadline = now + idle + slack


def _chunks(response: "httpx.Response") -> AsyncIterable[bytes]:
    """Give the body's chunks: as they come in, or unpacked if the server packs against our wish."""
    if response.headers.get("content-encoding", "identity") != "identity":
        return response.aiter_bytes()
    stream: Any = response.stream  # what aiter_raw() reads, without the chunks being counted and cut anew
    return cast("AsyncIterable[bytes]", stream)


def _streams(response: "httpx.Response") -> bool:
    """Say whether this is a stream; servers that do not stream answer 200 with a JSON or HTML document."""
    kind = response.headers.get("content-type", "").lower()
    return 200 <= response.status_code < 300 and not kind.startswith(("application/json", "text/html"))


def _trusted(module: Any) -> Any:
    """The certificates to trust: the environment's, else the client's own. Raises :class:`ModelError`."""
    try:
        return module.create_ssl_context()
    except OSError as exc:
        named = [f"{name}={os.environ[name]}" for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if os.environ.get(name)]
        problem = exc.strerror or str(exc)
        raise ModelError(
            ErrorKind.REQUEST, f"the certificates cannot be read ({', '.join(named) or 'the built-in ones'}): {problem}"
        ) from exc


def _host(url: str) -> str:
    """Give a URL's host and port; an empty string if it has none."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    return f"{host}:{port}" if port else host


def _proxy(url: str) -> str | None:
    """Find the proxy that the environment names for an https URL."""
    from urllib.request import getproxies_environment, proxy_bypass

    proxies = getproxies_environment()
    found = proxies.get("https") or proxies.get("all")
    if not found or proxy_bypass(urlsplit(url).hostname or ""):
        return None
    return found if "://" in found else f"http://{found}"


def _reason(exc: BaseException) -> str:
    """Find the words of the innermost exception that has some, such as a certificate error."""
    found = ""
    seen: BaseException | None = exc
    while seen is not None:
        if isinstance(seen, BaseExceptionGroup):
            seen = seen.exceptions[0]
            continue
        found = (seen.strerror if isinstance(seen, OSError) and seen.strerror else str(seen)) or found
        seen = seen.__cause__ or seen.__context__
    return found
