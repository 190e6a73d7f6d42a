"""A model server on loopback that answers with bytes made beforehand, so that it is never what is measured.

    python scripts/bench_lib/server.py          prints its URL, serves until killed

It speaks the chat-completions wire. What it answers stands in the path, so one server plays every row::

    /text/N/...       an answer of N text deltas
    /calls/N/NAME/... N answers that call a tool each, then one that is text, and so on from the beginning

Every event is an HTTP chunk of its own, as with the real servers, and all of an answer goes out in one send. Requests
are read to their end and not looked into.
"""

import json
import socket
import threading
from collections.abc import Callable
from typing import Any, Final

HEAD: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
DELTA: Final = "word and "
ARGUMENTS: Final[dict[str, Callable[[int], dict[str, Any]]]] = {
    "read": lambda number: {"path": "small.txt", "limit": number % 1000 + 1},
    "bash": lambda number: {"command": f"true {number}", "timeout": 10},
    "echo": lambda number: {"text": f"hello {number}"},
}
"""What each tool is called with: never twice the same, for the daemon stops a model that repeats itself."""

_lock: Final = threading.Lock()
_answers: Final[dict[str, bytes]] = {}
_counts: Final[dict[str, int]] = {}


def _event(choices: list[dict[str, Any]], **more: Any) -> bytes:
    value = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, **more}
    return _chunk(b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n")


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def _delta(delta: dict[str, Any], reason: str | None = None) -> bytes:
    return _event([{"index": 0, "delta": delta, "finish_reason": reason}])


def _answer(deltas: list[dict[str, Any]], reason: str) -> bytes:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    events = [_delta({"role": "assistant", "content": ""}), *map(_delta, deltas), _delta({}, reason)]
    return b"".join([HEAD, *events, _event([], usage=usage), _chunk(b"data: [DONE]\n\n"), b"0\r\n\r\n"])


def text_answer(count: int) -> bytes:
    """An HTTP response of ``count`` text deltas."""
    return _answer([{"content": DELTA}] * count, "stop")


def call_answer(tool: str, number: int) -> bytes:
    """An HTTP response that calls a tool."""
    function = {"name": tool, "arguments": json.dumps(ARGUMENTS[tool](number))}
    call = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
    return _answer([{"tool_calls": [call]}], "tool_calls")


def answer_to(path: str) -> bytes:
    """The whole response to one request."""
    words = path.split("/")
    if words[1] == "text":
        return _kept(f"text/{words[2]}", lambda: text_answer(int(words[2])))
    steps, tool = int(words[2]), words[3]
    with _lock:
        count = _counts.get(path, 0)
        _counts[path] = (count + 1) % (steps + 1)
    if count == steps:
        return _kept("text/1", lambda: text_answer(1))
    return call_answer(tool, count)


def _kept(name: str, make: Any) -> bytes:
    if name not in _answers:
        _answers[name] = make()
    return _answers[name]


def serve(connection: socket.socket) -> None:
    """Answer the requests of one connection, one after another."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    buffer = bytearray()
    try:
        while _one(connection, buffer):
            pass
    except ConnectionError:
        return
    finally:
        connection.close()


def _one(connection: socket.socket, buffer: bytearray) -> bool:
    while (end := buffer.find(b"\r\n\r\n")) < 0:
        if not _more(connection, buffer):
            return False
    head = bytes(buffer[:end])
    size = end + 4 + _length(head)
    while len(buffer) < size:
        if not _more(connection, buffer):
            return False
    del buffer[:size]
    connection.sendall(answer_to(head.split(None, 2)[1].decode()))
    return True


def _more(connection: socket.socket, buffer: bytearray) -> bool:
    data = connection.recv(1 << 20)
    buffer += data
    return bool(data)


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


def main() -> None:
    """Serve until killed."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=16)
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection,), daemon=True).start()


if __name__ == "__main__":
    main()
