"""A model server on loopback that plays a script over both wires, and misbehaves when told to.

In a test, in a thread of its own::

    with ModelServer([{"text": "Hello"}, {"calls": [{"name": "read", "args": {"path": "a"}}]}]) as server:
        ... server.url ... server.requests

As a process, for benchmarks and for daemons that are processes themselves (``start_process`` wraps this)::

    python tests/fakes/model_server.py --port 0 --script script.json     # prints its URL as the first line

A script is a list of replies, played in order, one a request; a reply with ``when`` waits for a request whose last
message contains that text. When the script is used up, the answer is "ok". Keys of a reply (all optional):

====================  ==================================================================================
``text``              the answer; ``repeat`` says it so many times, ``split`` cuts it into deltas of n characters
``thinking``          reasoning before it; ``signature`` signs it (Anthropic), ``thinking_field`` names it (chat)
``calls``             tool calls ``{name, args | args_text, id}``; ``args_split`` cuts their JSON
``stop``              the wire's own stop reason; ``usage`` ``{input, output, cache_read, cache_write, reasoning}``
``events``            these events instead: JSON values, or strings that are sent as they are
``raw``               this text instead of any HTTP
``status``            an error: with ``headers`` and ``body`` (JSON, or text)
``delay``             seconds before the answer; ``gap`` seconds between events; ``hang`` never answers
``keep``              only so many events, then an orderly end; ``cut`` only so many bytes, then the connection breaks
``write``             bytes a chunk and a send; without it each event is a chunk and all are sent at once
``newline``           the line end of the event stream
``linger``            keeps the connection open after the last byte, without an end
``hold``              waits for ``release()`` after so many events; 0 holds the whole answer back
====================  ==================================================================================
"""

import argparse
import contextlib
import json
import select
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

Json = dict[str, Any]

_GONE = (ConnectionError, OSError)


@dataclass(frozen=True)
class Recorded:
    """A request as it came: header names are lower case, ``body`` is decoded JSON or None."""

    path: str
    headers: dict[str, str]
    body: Any
    raw: bytes


class ModelServer:
    """The server. It listens between ``__enter__`` and ``__exit__``."""

    def __init__(self, script: Sequence[Json] = (), *, port: int = 0) -> None:
        self.requests: list[Recorded] = []
        self.connections = 0
        self.closed_by_client = 0
        self._script = [dict(reply) for reply in script]
        self._port = port
        self._changed = threading.Condition()
        self._open: set[socket.socket] = set()
        self._listener: socket.socket | None = None
        self._built: dict[tuple[int, str], bytes] = {}
        self._let_go: socket.socket | None = None
        self._held: socket.socket | None = None

    @property
    def url(self) -> str:
        """The base URL, without a path."""
        assert self._listener is not None
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", self._port), backlog=128)
        self._let_go, self._held = socket.socketpair()
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        assert self._listener is not None
        _close(self._listener)
        with self._changed:
            for connection in list(self._open):
                _close(connection)
            for end in (self._let_go, self._held):
                assert end is not None
                _close(end)

    def release(self) -> None:
        """Let one answer go on that is held, or the next that will be."""
        assert self._let_go is not None
        self._let_go.sendall(b".")

    def wait_closed(self, count: int = 1, seconds: float = 5.0) -> bool:
        """Wait until clients have closed ``count`` connections while they were being answered."""
        with self._changed:
            return self._changed.wait_for(lambda: self.closed_by_client >= count, seconds)

    def wait_requests(self, count: int = 1, seconds: float = 5.0) -> bool:
        """Wait until so many requests have come."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self.requests) >= count, seconds)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with self._changed:
                self.connections += 1
                self._open.add(connection)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        reader = connection.makefile("rb")
        try:
            while self._one(connection, reader):
                pass
        except _GONE:
            with self._changed:
                self.closed_by_client += 1
                self._changed.notify_all()
        finally:
            with self._changed:
                self._open.discard(connection)
            _close(connection)
            with contextlib.suppress(OSError):
                reader.close()

    def _one(self, connection: socket.socket, reader: Any) -> bool:
        start = reader.readline().split()
        if len(start) < 2:
            return False
        headers = dict(_headers(reader))
        raw = reader.read(int(headers.get("content-length", "0")))
        path = start[1].decode()
        if path == "/requests":
            self._send_json(connection, [{"path": r.path, "headers": r.headers, "body": r.body} for r in self.requests])
            return True
        with self._changed:
            self.requests.append(Recorded(path, headers, _json(raw), raw))
            reply = self._next(self.requests[-1])
            self._changed.notify_all()
        return self._answer(connection, reply, path)

    def _next(self, request: Recorded) -> Json:
        messages = request.body.get("messages", []) if isinstance(request.body, dict) else []
        last = json.dumps(messages[-1], ensure_ascii=False) if messages else ""
        left = [reply for reply in self._script if not reply.get("used")]
        chosen = next((reply for reply in left if "when" in reply and reply["when"] in last), None)
        chosen = chosen or next((reply for reply in left if "when" not in reply), None)
        if chosen is None:
            return {"text": "ok"}
        chosen["used"] = not chosen.get("forever")
        return chosen

    def _send_json(self, connection: socket.socket, value: Any) -> None:
        body = json.dumps(value).encode()
        connection.sendall(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
        )
        connection.sendall(body)

    def _answer(self, connection: socket.socket, reply: Json, path: str) -> bool:
        if reply.get("hang"):
            _wait_for_close(connection)
        _pause(connection, reply.get("delay", 0))
        if reply.get("hold") == 0:
            self._wait_for_release(connection)
        if "raw" in reply:
            connection.sendall(reply["raw"].encode("utf-8", "surrogateescape"))
            return False
        if "status" in reply:
            return _refuse(connection, reply)
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        events = self._events(reply, path)
        if "cut" in reply:
            connection.sendall(_chunk(b"".join(events)[: reply["cut"]]))
            return False
        if _in_pieces(reply):
            for number, piece in enumerate(
                events if "write" not in reply else _pieces(b"".join(events), reply["write"])
            ):
                if number and number == reply.get("hold"):
                    self._wait_for_release(connection)
                connection.sendall(_chunk(piece))
                _pause(connection, reply.get("gap", 0))
        else:
            connection.sendall(self._whole(reply, path, events))
        if reply.get("linger"):
            _wait_for_close(connection)
        connection.sendall(b"0\r\n\r\n")
        return True

    def _wait_for_release(self, connection: socket.socket) -> None:
        assert self._held is not None
        ready, _, _ = select.select([connection, self._held], [], [])
        if self._held not in ready or not self._held.recv(1):
            raise ConnectionResetError

    def _events(self, reply: Json, path: str) -> list[bytes]:
        if (id(reply), path) in self._built and not _in_pieces(reply):
            return []
        wire = messages_events if path.endswith("/messages") else chat_events
        events = [_framed(event, reply.get("newline", "\n")) for event in reply.get("events") or wire(reply)]
        return events[: reply.get("keep", len(events))]

    def _whole(self, reply: Json, path: str, events: list[bytes]) -> bytes:
        """Build a long answer once: a benchmark shall measure its reader and not this."""
        key = (id(reply), path)
        if key not in self._built:
            whole = b"".join(map(_chunk, events))
            if not reply.get("forever"):
                return whole
            self._built[key] = whole
        return self._built[key]


def messages_events(reply: Json) -> list[Json]:
    """Make the events of the Anthropic wire."""
    usage = reply.get("usage", {})
    start = {
        "input_tokens": usage.get("input", 10),
        "cache_read_input_tokens": usage.get("cache_read", 0),
        "cache_creation_input_tokens": usage.get("cache_write", 0),
        "output_tokens": 1,
    }
    message = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "fake", "usage": start}
    events: list[Json] = [{"type": "message_start", "message": message}, {"type": "ping"}]
    blocks: list[tuple[Json, list[Json]]] = []
    if "thinking" in reply:
        deltas: list[Json] = [{"type": "thinking_delta", "thinking": piece} for piece in _said(reply, "thinking")]
        deltas += [{"type": "signature_delta", "signature": reply["signature"]}] if "signature" in reply else []
        blocks.append(({"type": "thinking", "thinking": ""}, deltas))
    if "redacted" in reply:
        blocks.append(({"type": "redacted_thinking", "data": reply["redacted"]}, []))
    if "text" in reply:
        blocks.append(({"type": "text", "text": ""}, [{"type": "text_delta", "text": p} for p in _said(reply, "text")]))
    for number, call in enumerate(reply.get("calls", []), 1):
        block = {"type": "tool_use", "id": call.get("id", f"toolu_{number}"), "name": call["name"]}
        pieces = _cut(_args(call), reply.get("args_split", 0))
        blocks.append((block, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]))
    for index, (block, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    stop = reply.get("stop", "tool_use" if reply.get("calls") else "end_turn")
    ended: Json = {"output_tokens": usage.get("output", 5)}
    if "reasoning" in usage:
        ended["output_tokens_details"] = {"thinking_tokens": usage["reasoning"]}
    events.append({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": ended})
    events.append({"type": "message_stop"})
    return events


def chat_events(reply: Json) -> list[Any]:
    """Make the events of the chat-completions wire."""
    deltas: list[Json] = [{"role": "assistant", "content": None}]
    field = reply.get("thinking_field", "reasoning_content")
    deltas += [{field: piece} for piece in _said(reply, "thinking")]
    deltas += [{"content": piece} for piece in _said(reply, "text")]
    for index, call in enumerate(reply.get("calls", [])):
        function = {"name": call["name"], "arguments": ""}
        first = {"index": index, "id": call.get("id", f"call_{index + 1}"), "type": "function", "function": function}
        deltas.append({"content": None, "tool_calls": [first]})
        for piece in _cut(_args(call), reply.get("args_split", 0)):
            deltas.append({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    stop = reply.get("stop", "tool_calls" if reply.get("calls") else "stop")
    events: list[Any] = [_chat_chunk([{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
    events.append(_chat_chunk([{"index": 0, "delta": {}, "finish_reason": stop}]))
    events.append(_chat_chunk([]) | {"usage": _chat_usage(reply.get("usage", {}))})
    events.append("data: [DONE]\n\n")
    return events


def _chat_usage(usage: Json) -> Json:
    cached = usage.get("cache_read", 0)
    made: Json = {
        "prompt_tokens": usage.get("input", 10) + cached,
        "completion_tokens": usage.get("output", 5),
        "total_tokens": usage.get("input", 10) + cached + usage.get("output", 5),
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    if "reasoning" in usage:
        made["completion_tokens_details"] = {"reasoning_tokens": usage["reasoning"]}
    return made


def _chat_chunk(choices: list[Json]) -> Json:
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "fake", "choices": choices}


def _in_pieces(reply: Json) -> bool:
    return bool(reply.get("gap") or reply.get("hold") or "write" in reply)


def _said(reply: Json, key: str) -> list[str]:
    return _cut(reply.get(key, ""), reply.get("split", 0)) * (reply.get("repeat", 1) if key == "text" else 1)


def _cut(text: str, size: int) -> list[str]:
    size = size or max(len(text), 1)
    return [text[start : start + size] for start in range(0, len(text), size)]


def _args(call: Json) -> str:
    return str(call["args_text"]) if "args_text" in call else json.dumps(call.get("args", {}))


def _framed(event: Any, newline: str) -> bytes:
    if isinstance(event, str):
        return event.encode("utf-8", "surrogateescape")
    name = f"event: {event['type']}{newline}" if isinstance(event, dict) and "type" in event else ""
    head, end = f"{name}data: ".encode(), newline.encode() * 2
    try:
        return head + json.dumps(event, ensure_ascii=False).encode() + end
    except UnicodeEncodeError:  # halves of surrogate pairs go as escapes, as servers do that cut between UTF-16 units
        return head + json.dumps(event).encode() + end


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data) if data else b""


def _pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


def _headers(reader: Any) -> Iterator[tuple[str, str]]:
    while (line := reader.readline()) not in {b"\r\n", b"\n", b""}:
        name, _, value = line.decode("latin-1").partition(":")
        yield name.strip().lower(), value.strip()


def _json(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return None


def _refuse(connection: socket.socket, reply: Json) -> bool:
    body = reply.get("body", {"error": {"message": "refused by the script"}})
    text = body if isinstance(body, str) else json.dumps(body)
    lines = {"content-type": "text/html" if isinstance(body, str) else "application/json", **reply.get("headers", {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    data = text.encode()
    status = f"HTTP/1.1 {reply['status']} Scripted\r\n{head}content-length: {len(data)}\r\n\r\n"
    connection.sendall(status.encode() + data)
    return True


def _pause(connection: socket.socket, seconds: float) -> None:
    """Wait, but notice when the client leaves."""
    if seconds:
        connection.settimeout(seconds)
        try:
            if connection.recv(1, socket.MSG_PEEK) == b"":
                raise ConnectionResetError
        except TimeoutError:
            pass
        finally:
            connection.settimeout(None)


def _wait_for_close(connection: socket.socket) -> None:
    while connection.recv(4096):
        pass
    raise ConnectionResetError


def _close(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


class ServerProcess:
    """A server that runs as a process of its own, so that it takes no time from what is measured."""

    def __init__(self, url: str) -> None:
        self.url = url

    @property
    def requests(self) -> list[Json]:
        """The requests so far."""
        with urllib.request.urlopen(f"{self.url}/requests", timeout=10) as response:
            found: list[Json] = json.load(response)
        return found


@contextlib.contextmanager
def start_process(script: Sequence[Json] = ()) -> Iterator[ServerProcess]:
    """Run the server as a process while the block runs."""
    command = [sys.executable, str(Path(__file__)), "--port", "0", "--script", "-"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(list(script)))
        process.stdin.close()
        yield ServerProcess(process.stdout.readline().strip())
    finally:
        process.kill()
        process.wait(10)
        if process.stdout is not None:
            process.stdout.close()


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", default="", help="a JSON file; - for standard input")
    options = parser.parse_args()
    text = (
        sys.stdin.read()
        if options.script == "-"
        else Path(options.script).read_text("utf-8")
        if options.script
        else "[]"
    )
    with ModelServer(json.loads(text), port=options.port) as server:
        print(server.url, flush=True)
        while True:
            time.sleep(3600)


if __name__ == "__main__":
    main()
