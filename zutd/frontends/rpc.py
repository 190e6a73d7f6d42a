"""The frontends' protocol over stdin and stdout: typed lines or JSON-RPC 2.0, whichever the first line is.

Every line gets at most one answer, and bad input of any kind exactly one, which changes nothing. Nothing that is
told is lost: a frontend that reads slowly gets neighbouring deltas as one, everything else as it was.
"""

import os
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Final, cast

import trio

from zutd.daemon.errors import CommandError
from zutd.daemon.greeting import GREETINGS
from zutd.daemon.hub import Stamped
from zutd.daemon.server import Server
from zutd.frames.commands import COMMANDS, HelloCommand
from zutd.frames.define import evolve
from zutd.wire import jsonrpc, typed
from zutd.wire.codec import ProtocolError, decode_value, encode, structure_tagged, unstructure
from zutd.wire.envelope import Answer, Call, Dialect, EnvelopeError, Failure, Id, failure_of
from zutd.wire.lines import TooLong
from zutd.wire.link import Bounds, LinkClosedError, LinkFullError, Writer, read_lines
from zutd.wire.stdio import Stdio

BEFORE_OPEN: Final = 256
"""Events kept for a frontend that has not said anything, or not who it is; then the oldest is dropped."""

MERGE_AT: Final = 256 * 1024
"""Bytes that wait to be read before neighbouring deltas are joined."""

MERGED_MOST: Final = 1024 * 1024
"""Characters that one joined frame may hold: readers have a limit, and what is held back must count as waiting."""

ASKS: Final = "confirm_request"
ANSWERS: Final = "confirm_response"

_MERGED_FIELD: Final[dict[str, str]] = {
    "text_delta": "delta",
    "thinking_delta": "delta",
    "tool_use_args": "delta",
    "tool_progress": "text",
}
"""Events by tag, and their field that may be joined: their classes are not loaded when a frontend says hello."""


class Outgoing:
    """Events on their way to one frontend; joins neighbouring deltas while it is behind."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self.dialect: Dialect | None = None
        self._typed = True
        self._held: Stamped | None = None
        self._pieces: list[str] = []
        self._size = 0
        writer.on_drained = self.flush

    def speak(self, dialect: Dialect) -> None:
        """Use a dialect from now on."""
        self.dialect = dialect
        self._typed = dialect is cast("Any", typed)

    def send(self, value: Mapping[str, Any]) -> None:
        """Send a reply; what was told before goes before it."""
        self.flush()
        self._put(encode(value) + b"\n", soon=False)

    def tell(self, stamped: Stamped) -> None:
        """Send an event, perhaps joined with the one before."""
        field = _MERGED_FIELD.get(stamped.event.tag)
        if field is not None and self._writer.pending_bytes > MERGE_AT:
            self._hold(stamped, field)
            return
        if self._held is not None:
            self.flush()
        line = stamped.line if self._typed else self._line(stamped)
        self._put(line, soon=field is not None)

    def _hold(self, stamped: Stamped, field: str) -> None:
        if self._held is not None and not _joins(self._held, stamped):
            self.flush()
        piece = getattr(stamped.event, field)
        self._held = stamped
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size > MERGED_MOST:
            self.flush()

    def flush(self) -> None:
        """Send what is held back."""
        held, self._held = self._held, None
        if held is None:
            return
        text, self._pieces, self._size = "".join(self._pieces), [], 0
        joined = evolve(held.event, **{_MERGED_FIELD[held.event.tag]: text})
        self._put(self._line(Stamped(joined, held.seq, held.turn_id)), soon=True)

    def _line(self, stamped: Stamped) -> bytes:
        if self._typed or self.dialect is None:
            return stamped.line
        tag, fields = stamped.event.tag, stamped.fields
        if tag == ASKS:
            return encode(self.dialect.ask(fields["request_id"], tag, fields)) + b"\n"
        return encode(self.dialect.event(tag, fields)) + b"\n"

    def _put(self, data: bytes, *, soon: bool) -> None:
        try:
            self._writer.put(data, soon=soon)
        except (LinkClosedError, LinkFullError):
            # The task that writes has seen it too, and ends the daemon in good order.
            return


def _joins(a: Stamped, b: Stamped) -> bool:
    return (
        type(a.event) is type(b.event)
        and a.turn_id == b.turn_id
        and getattr(a.event, "id", "") == getattr(b.event, "id", "")
    )


class RpcFrontend:
    """One frontend on a pair of pipes."""

    lasting = True

    def __init__(self, stdio: Stdio) -> None:
        self._stdio = stdio
        self._server: Server | None = None
        self._nursery: trio.Nursery | None = None
        self._open = False
        self._waiting: deque[Stamped] = deque()
        self._closed = trio.Event()
        self._ended = False
        self._writer: Writer | None = None
        self._out: Outgoing | None = None

    # --- life

    async def run(self, server: Server) -> None:
        """Serve until cancelled."""
        settings = server.settings
        self._server = server
        bounds = Bounds(stall_seconds=settings.stall_timeout, stall_bytes=settings.stall_bytes)
        writer = self._writer = Writer(self._stdio.stdout, bounds)
        self._out = Outgoing(writer)
        server.hub.subscribe(self._tell, lambda: writer.pending_bytes)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write, writer)
            async with trio.open_nursery() as slow:
                self._nursery = slow
                await read_lines(self._stdio.stdin, settings.max_line, self._on_line)
                server.nobody_answers()
                if settings.on_eof == "cancel":
                    server.stop(0, abort=True)
            server.stop(0, abort=False)  # not before every command has been answered
            await trio.sleep_forever()

    async def _write(self, writer: Writer) -> None:
        assert self._server is not None
        try:
            await writer.run()
        except (LinkClosedError, LinkFullError):
            self._server.lose_stdout(writer.problem)
        finally:
            self._closed.set()

    async def drain(self) -> None:
        """Write what is queued."""
        if self._writer is not None and self._out is not None:
            self._out.flush()
            self._writer.finish()
            await self._closed.wait()

    # --- events

    def _tell(self, stamped: Stamped) -> None:
        assert self._out is not None
        assert self._server is not None
        if self._open:
            self._out.tell(stamped)
            return
        self._waiting.append(stamped)
        if len(self._waiting) > BEFORE_OPEN:
            self._waiting.popleft()
            self._server.hub.dropped += 1

    def _open_up(self) -> None:
        """The frontend has said who it is, as far as it must: from now on it is told everything."""
        assert self._out is not None
        self._open = True
        while self._waiting:
            self._out.tell(self._waiting.popleft())

    # --- lines

    @property
    def _runtime(self) -> Any:
        assert self._server is not None
        return self._server.runtime

    def _on_line(self, line: bytes | TooLong) -> None:
        if self._ended:
            return
        if isinstance(line, TooLong):
            message = f"a line of {line.size} bytes is over the limit of {line.limit} bytes and was skipped"
            self._refuse(None, "", Failure(kind="invalid_request", message=message))
            return
        if not line.strip():
            return
        try:
            raw = decode_value(line)
            self._choose_dialect(raw)
            said = self._dialect.read(raw)
        except EnvelopeError as exc:
            if exc.wants_answer:
                self._refuse(exc.id, exc.command, failure_of(exc))
            return
        except ProtocolError as exc:
            self._refuse(None, "", failure_of(exc))
            return
        if isinstance(said, Answer):
            said = _as_command(said)
        self._on_call(said)

    def _choose_dialect(self, raw: Any) -> None:
        assert self._out is not None
        if self._out.dialect is None:
            module: ModuleType = jsonrpc if jsonrpc.recognises(raw) else typed
            self._out.speak(cast("Dialect", module))

    @property
    def _dialect(self) -> Dialect:
        assert self._out is not None
        return self._out.dialect or cast("Dialect", typed)

    def _on_call(self, call: Call) -> None:
        assert self._server is not None
        token = self._server.settings.token
        if token and not self._open and call.name != "hello":
            message = "the first frame must be hello with the token"
            self._fail(call, Failure(kind="auth_required", message=message))
            return
        try:
            command = structure_tagged({**call.fields, "type": call.name}, COMMANDS, "command")
            self._check_token(command, token)
        except ProtocolError as exc:
            self._fail(call, failure_of(exc))
            return
        except CommandError as exc:
            self._fail(call, _failure(exc))
            self._ended = True
            self._server.stop(1, abort=True)
            return
        if type(command) in GREETINGS:
            self._succeed(call, GREETINGS[type(command)](self._server, command))
            return
        from zutd.daemon.commands import is_slow

        if is_slow(command):
            assert self._nursery is not None
            self._nursery.start_soon(self._run_slow, call, command)
        else:
            self._run(call, command)

    def _check_token(self, command: Any, token: str) -> None:
        if not token or not isinstance(command, HelloCommand):
            return
        import hmac

        if not hmac.compare_digest(command.token.encode(), token.encode()):
            raise CommandError("auth_required", "wrong token")

    def _run(self, call: Call, command: Any) -> None:
        from zutd.daemon.commands import execute

        assert self._server is not None
        with self._failing(call):
            self._succeed(call, execute(self._server, command))

    async def _run_slow(self, call: Call, command: Any) -> None:
        from zutd.daemon.commands import execute_slow

        assert self._server is not None
        with self._failing(call):
            self._succeed(call, await execute_slow(self._server, command))

    @contextmanager
    def _failing(self, call: Call) -> Iterator[None]:
        """What goes wrong is the answer, also a fault of ours: that is one answer, not the end."""
        try:
            yield
        except CommandError as exc:
            self._fail(call, _failure(exc))
        except Exception as exc:  # noqa: BLE001 - whatever it is
            self._fail(call, self._internal(exc))

    def _internal(self, exc: Exception) -> Failure:
        reference = self._runtime.report(exc)
        message = f"internal error; the log has it under {reference}"
        return Failure(kind="internal", message=message, details={"ref": reference})

    # --- answers

    def _succeed(self, call: Call, reply: Any) -> None:
        assert self._out is not None
        if call.wants_answer:
            self._out.send(self._dialect.success(call, unstructure(reply)))
        if not self._open:
            self._open_up()

    def _fail(self, call: Call, failure: Failure) -> None:
        assert self._server is not None
        if call.wants_answer or call.has_id:
            self._refuse(call.id, call.name, failure)
        if not self._open and not self._server.settings.token:
            self._open_up()

    def _refuse(self, id: Id, command: str, failure: Failure) -> None:
        assert self._out is not None
        self._out.send(self._dialect.failure(id, command, failure))


def _failure(exc: CommandError) -> Failure:
    return Failure(kind=exc.kind, message=exc.message, details=exc.details)


def _as_command(answer: Answer) -> Call:
    """An answer to a request of ours, as the command that it stands for; a failure is a no.

    Nothing is said of it (``wants_answer``) unless it cannot be used (``has_id``: it is no notification).
    """
    fields = dict(answer.data) if isinstance(answer.data, dict) else {}
    if answer.failure is not None:
        fields = {"decision": "deny", "reason": answer.failure.message}
    return Call(name=ANSWERS, fields={**fields, "request_id": str(answer.id)}, has_id=True, wants_answer=False)


def is_terminal() -> bool:
    """Whether a person sits at stdin, who cannot want to speak JSON."""
    return os.isatty(0)
