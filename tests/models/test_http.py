"""The one POST: what becomes of every way in which a server or the network can fail."""

import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from tests.fakes.model_server import ModelServer
from tests.models.helpers import error_of
from zutd.models.base import ErrorKind
from zutd.models.http import Endpoint, HttpClient, Want

PATH = "/v1/chat/completions"


class Bytes:
    """A reader that keeps all bytes and has enough when it sees a certain text."""

    def __init__(self, enough: bytes = b"[DONE]", then: Want = Want.NOTHING) -> None:
        self.data = b""
        self.accepted = False
        self.first = trio.Event()
        self._enough = enough
        self._then = then

    @property
    def want(self) -> Want:
        """What it says after what it was fed."""
        return self._then if self._enough in self.data else Want.MORE

    def opened(self) -> None:
        """Remember it."""
        self.accepted = True

    def feed(self, chunk: bytes) -> None:
        """Keep them."""
        self.data += chunk
        self.first.set()


def endpoint(url: str, **more: object) -> Endpoint:
    """An endpoint at a URL."""
    values: dict[str, object] = {"provider": "p", "url": url, "headers": {"x-test": "1"}, "idle": 5.0}
    return Endpoint(**(values | more))  # type: ignore[arg-type] # tests change single fields


async def post(to: Endpoint, reader: Bytes | None = None) -> Bytes:
    """Make one request with a client of its own."""
    reader = reader or Bytes()
    client = HttpClient(to)
    try:
        await client.post(b"{}", reader)
    finally:
        await client.aclose()
    return reader


def test_a_stream_is_fed_and_the_connection_used_again() -> None:
    """Two requests go over one connection, with our headers and no others' compression."""

    async def main(url: str) -> None:
        client = HttpClient(endpoint(url))
        for _ in range(2):
            reader = Bytes()
            await client.post(b'{"a":1}', reader)
            assert reader.accepted
            assert reader.data.endswith(b"[DONE]\n\n")
        await client.aclose()

    with ModelServer([{"text": "one"}, {"text": "two"}]) as server:
        trio.run(main, server.url + PATH)
    assert server.connections == 1
    first = server.requests[0]
    assert first.raw == b'{"a":1}'
    assert first.headers["x-test"] == "1"
    assert first.headers["accept-encoding"] == "identity"
    assert first.headers["user-agent"].startswith("zutd/")
    assert "authorization" not in first.headers


@pytest.mark.parametrize("write", [1, 7])
def test_any_pieces_make_the_same_bytes(write: int) -> None:
    """The network's pieces do not matter."""
    with ModelServer([{"text": "\u2603 \U0001f600", "write": write}, {"text": "\u2603 \U0001f600"}]) as server:
        one, two = (trio.run(post, endpoint(server.url + PATH)).data for _ in range(2))
    assert one.rstrip() == two.rstrip()  # what follows the end mark may come too late to be read


class Fed(Bytes):
    """Counts how often it is fed."""

    feedings = 0

    def feed(self, chunk: bytes) -> None:
        """Count."""
        self.feedings += 1
        super().feed(chunk)


def test_chunks_that_come_together_are_fed_together() -> None:
    """A thousand chunks of one send come in a few feedings: the HTTP library is still one that we can help."""
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(data), data) for data in [b"data: x\n\n"] * 1000 + [b"[DONE]"])
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

    def serve(listening: socket.socket) -> None:
        with listening.accept()[0] as connection:
            connection.recv(65536)
            connection.sendall(head + chunks + b"0\r\n\r\n")

    reader = Fed()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, args=(listening,)).start()
        trio.run(post, endpoint(f"http://127.0.0.1:{listening.getsockname()[1]}/v1"), reader)
    assert reader.data.count(b"data: x") == 1000
    assert reader.feedings < 100


def test_nobody_there() -> None:
    """A port without a server is a matter of the network, and the message names the place and the cause."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    error = error_of(lambda: post(endpoint(f"http://user:pw@127.0.0.1:{port}/v1")))
    assert error.kind is ErrorKind.NETWORK
    assert f"p (127.0.0.1:{port}): cannot connect" in error.message
    assert "refused" in error.message.lower()
    assert "pw" not in error.message


def test_no_such_host() -> None:
    """A name that nobody has is a matter of the network too."""
    assert error_of(lambda: post(endpoint("http://no-such-host.invalid/v1"))).kind is ErrorKind.NETWORK


@pytest.mark.parametrize("url", ["localhost:1234/v1", "ftp://h/v1", "http://[", "http:///v1", ""])
def test_a_url_that_is_none_is_the_users_mistake(url: str) -> None:
    """It is told and not tried again."""
    assert error_of(lambda: post(endpoint(url))).kind is ErrorKind.REQUEST


def test_a_header_that_cannot_be_sent_is_the_users_mistake() -> None:
    """A key with strange characters is told, and not shown."""
    headers = {"authorization": "Bearer k\u00e9y\u2603"}
    with ModelServer() as server:
        error = error_of(lambda: post(endpoint(server.url + PATH, headers=headers, secret="k\u00e9y\u2603")))
    assert error.kind is ErrorKind.REQUEST
    assert "\u2603" not in error.message


@pytest.mark.parametrize("reply", [{"hang": True}, {"delay": 5.0, "text": "x"}])
def test_silence_before_the_answer_is_a_timeout(reply: dict[str, object]) -> None:
    """A server that accepts and says nothing is given up."""
    with ModelServer([reply]) as server:
        error = error_of(lambda: post(endpoint(server.url + PATH, idle=0.2)))
        assert server.wait_closed()
    assert error.kind is ErrorKind.TIMEOUT
    assert "silent for 0.2 s" in error.message


def test_silence_in_the_middle_is_a_timeout() -> None:
    """Then what was fed stays fed."""
    reader = Bytes(b"never")
    with ModelServer([{"text": "x", "keep": 1, "linger": True}]) as server:
        error = error_of(lambda: post(endpoint(server.url + PATH, idle=0.2), reader))
        assert server.wait_closed()
    assert error.kind is ErrorKind.TIMEOUT
    assert reader.data


def test_a_slow_stream_that_goes_on_is_no_silence() -> None:
    """The time counts from the last byte, not from the first."""
    with ModelServer([{"text": "abcdefgh", "split": 1, "gap": 0.06}]) as server:
        assert trio.run(post, endpoint(server.url + PATH, idle=0.45)).want is Want.NOTHING


@pytest.mark.parametrize(("then", "seconds"), [(Want.NOTHING, 0.0), (Want.STOP, 0.0)])
def test_a_server_that_does_not_hang_up_is_not_waited_for(then: Want, seconds: float) -> None:
    """When the end mark was there, or the stream is broken, the connection is closed soon."""

    async def main(url: str) -> float:
        start = trio.current_time()
        await post(endpoint(url, idle=60.0), Bytes(then=then))
        return trio.current_time() - start

    with ModelServer([{"text": "x", "linger": True}]) as server:
        assert trio.run(main, server.url + PATH) < seconds + 2
        assert server.wait_closed()


def test_a_connection_that_breaks_is_a_matter_of_the_network() -> None:
    """In the middle of a chunk, or before the answer began."""
    for reply in ({"text": "x" * 100, "cut": 80}, {"raw": ""}):
        with ModelServer([reply]) as server:
            assert error_of(lambda: post(endpoint(server.url + PATH))).kind is ErrorKind.NETWORK


def test_a_break_after_the_end_does_not_matter() -> None:
    """The answer was whole."""
    with ModelServer([{"events": ["data: [DONE]\n\n"], "cut": 14}]) as server:
        assert trio.run(post, endpoint(server.url + PATH)).want is Want.NOTHING


@pytest.mark.parametrize(
    "raw", ["hello, this is no web server\r\n\r\n", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"]
)
def test_what_is_no_http_is_an_error_of_the_protocol(raw: str) -> None:
    """Something else listens there."""
    with ModelServer([{"raw": raw}]) as server:
        error = error_of(lambda: post(endpoint(server.url + PATH)))
    assert error.kind is ErrorKind.PROTOCOL


def test_a_refusal_has_its_kind_delay_and_words() -> None:
    """Status, header and body make the error; the connection can be used again."""
    reply = {
        "status": 429,
        "headers": {"Retry-After": "7"},
        "body": {"error": {"message": "slow down, sk-secret-0123456789abcdef"}},
    }
    with ModelServer([reply]) as server:
        error = error_of(lambda: post(endpoint(server.url + PATH, secret="sk-secret-0123456789abcdef")))
    assert error.kind is ErrorKind.RATE_LIMIT
    assert error.retry_after == 7
    assert error.status == 429
    assert error.message == "p answered 429: slow down, ***"


def test_a_page_of_an_error_is_not_shown() -> None:
    """However large it is."""
    with ModelServer([{"status": 502, "body": "<html>" + "internal " * 100_000}]) as server:
        error = error_of(lambda: post(endpoint(server.url + PATH)))
    assert error.kind is ErrorKind.SERVER
    assert error.message == "p answered 502: no explanation given"


def test_a_redirect_is_not_followed() -> None:
    """The key stays with the host that it was meant for."""
    with ModelServer([{"status": 307, "headers": {"Location": "http://127.0.0.1:1/"}}]) as server:
        assert error_of(lambda: post(endpoint(server.url + PATH))).kind is ErrorKind.REQUEST


def test_a_document_instead_of_a_stream_is_told() -> None:
    """A server that does not stream, or a web page at the URL."""
    raw = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
    with ModelServer([{"raw": raw}]) as server:
        error = error_of(lambda: post(endpoint(server.url + PATH)))
    assert error.kind is ErrorKind.PROTOCOL
    assert "application/json" in error.message


def test_a_packed_stream_is_unpacked() -> None:
    """A gateway may pack although we ask it not to."""
    import gzip

    body = gzip.compress(b"data: [DONE]\n\n")
    head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n"
    head += f"content-length: {len(body)}\r\n\r\n"
    with ModelServer([{"raw": head + body.decode("utf-8", "surrogateescape")}]) as server:
        assert trio.run(post, endpoint(server.url + PATH)).data == b"data: [DONE]\n\n"


@pytest.mark.parametrize("reply", [{"hang": True}, {"text": "x" * 50, "split": 1, "gap": 0.5}])
def test_a_cancelled_call_closes_its_connection_at_once(reply: dict[str, object]) -> None:
    """Before the answer and in the middle of it."""

    async def main(server: ModelServer) -> float:
        reader = Bytes()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(post, endpoint(server.url + PATH), reader)
            await trio.to_thread.run_sync(server.wait_requests)
            if not reply.get("hang"):
                await reader.first.wait()
            start = trio.current_time()
            nursery.cancel_scope.cancel()
        return trio.current_time() - start

    with ModelServer([reply]) as server:
        assert trio.run(main, server) < 0.5
        assert server.wait_closed(seconds=1.0)


def test_two_first_requests_share_one_client() -> None:
    """Both wait for the same import and both are answered."""

    async def main(url: str) -> list[bytes]:
        client, readers = HttpClient(endpoint(url)), [Bytes(), Bytes()]
        async with trio.open_nursery() as nursery:
            for reader in readers:
                nursery.start_soon(client.post, b"{}", reader)
        await client.aclose()
        await client.aclose()
        return [reader.data for reader in readers]

    with ModelServer() as server:
        assert all(trio.run(main, server.url + PATH))


def test_a_client_that_was_closed_opens_again() -> None:
    """Closing gives connections back, and is no end."""

    async def main(url: str) -> None:
        client = HttpClient(endpoint(url))
        for _ in range(2):
            await client.post(b"{}", Bytes())
            await client.aclose()

    with ModelServer() as server:
        trio.run(main, server.url + PATH)
    assert len(server.requests) == 2


# --- TLS -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate that nobody trusts, with its key in one file."""
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    command += " -addext subjectAltName=IP:127.0.0.1"
    try:
        made = subprocess.run(
            [*command.split(), "-keyout", str(path), "-out", str(path) + ".crt"], capture_output=True, check=False
        )
    except FileNotFoundError:
        pytest.skip("there is no openssl command to make a certificate with")
    assert made.returncode == 0, made.stderr
    path.write_bytes(path.read_bytes() + Path(str(path) + ".crt").read_bytes())
    return path


@pytest.fixture
def secure(certificate: Path) -> Iterator[str]:
    """The URL of a server behind TLS: it passes bytes on to a plain one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with ModelServer([{"text": "x"}]) as plain, socket.create_server(("127.0.0.1", 0)) as listener:
        port = int(plain.url.rpartition(":")[2])
        threading.Thread(target=_pass_on, args=(listener, context, port), daemon=True).start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}{PATH}"


def _pass_on(listener: socket.socket, context: ssl.SSLContext, port: int) -> None:
    while True:
        try:
            raw, _ = listener.accept()
            outer = context.wrap_socket(raw, server_side=True)
        except ssl.SSLError:
            continue
        except OSError:
            return
        inner = socket.create_connection(("127.0.0.1", port))
        with outer, inner:
            request = b""
            while b"{}" not in request:
                request += outer.recv(65_536)
            inner.sendall(request)
            while data := inner.recv(65_536):
                outer.sendall(data)
                if data.endswith(b"0\r\n\r\n"):
                    break


def test_a_certificate_that_nobody_trusts_is_refused(secure: str) -> None:
    """The reason is told."""
    error = error_of(lambda: post(endpoint(secure)))
    assert error.kind is ErrorKind.NETWORK
    assert "certificate" in error.message.lower()


def test_the_environment_names_certificates_to_trust(
    secure: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a company's network."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert trio.run(post, endpoint(secure)).want is Want.NOTHING


@pytest.mark.parametrize("file", ["missing", ".", "no-certificate"])
def test_certificates_that_cannot_be_read_are_a_setting_to_mend(
    secure: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable and the reason are named; it is not tried again, and no fault of ours."""
    (tmp_path / "no-certificate").write_text("hello")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / file))
    error = error_of(lambda: post(endpoint(secure)))
    assert error.kind is ErrorKind.REQUEST
    assert f"SSL_CERT_FILE={tmp_path / file}" in error.message


def test_insecure_accepts_any_certificate(secure: str) -> None:
    """The user may know better."""
    assert trio.run(post, endpoint(secure, insecure=True)).want is Want.NOTHING


def test_the_environments_proxy_is_for_https_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A local server is never asked through a proxy; an https one is, unless the environment says otherwise."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        nobody = f"http://127.0.0.1:{free.getsockname()[1]}"
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, nobody)
    with ModelServer() as server:
        assert trio.run(post, endpoint(server.url + PATH)).want is Want.NOTHING
    assert "cannot connect" in error_of(lambda: post(endpoint("https://model.invalid/v1"))).message
    monkeypatch.setenv("no_proxy", "model.invalid")
    assert error_of(lambda: post(endpoint("https://model.invalid/v1"))).kind is ErrorKind.NETWORK


def test_a_proxy_that_cannot_be_used_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kind that the client does not know is a setting to mend."""
    monkeypatch.setenv("https_proxy", "gopher://127.0.0.1:1")
    error = error_of(lambda: post(endpoint("https://model.invalid/v1")))
    assert error.kind is ErrorKind.REQUEST
    assert "proxy" in error.message


def test_http_needs_no_tls_and_no_client_before_the_first_request() -> None:
    """Importing this module imports no client; making one for a plain URL loads no certificates."""
    code = (
        "import sys, ssl, trio, zutd.models.http as h\n"
        "assert 'httpx' not in sys.modules\n"
        "def no(*a, **k): raise SystemExit('certificates were loaded')\n"
        "ssl.create_default_context = no\n"
        "client = h.HttpClient(h.Endpoint(provider='p', url='http://127.0.0.1:1/', headers={}))\n"
        "client._make_client()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
