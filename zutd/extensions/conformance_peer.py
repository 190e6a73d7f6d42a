"""The host's side of one conversation with an extension, for looking closely: nothing is repaired, all is remembered.

A :class:`Peer` is one process from its start to its end. What it says wrong on stdout is kept as sentences in
``faults``; its answers go to whoever asked; its registrations are collected.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeVar

import trio

from zutd.extensions.intercept import ExtensionGoneError
from zutd.extensions.lines import StartError, check_hello
from zutd.extensions.majors import Major
from zutd.extensions.process import IDS, PIPE_GRACE, TERM_GRACE, Launch, new_mark
from zutd.extensions.registrations import claim_of
from zutd.extensions.registry import Claims, CommandClaim, ToolClaim
from zutd.frames.extension import (
    FROM_EXTENSION,
    CommandResponse,
    Hello,
    InterceptResponse,
    Ready,
    RegisterCommand,
    RegisterTool,
    ShutdownAck,
    Subscribe,
    ToolResultFrame,
)
from zutd.processes.family import stop_family
from zutd.processes.group import PIPE, Watcher, close_pipes, describe_exit, group_alive, spawn_group
from zutd.wire.codec import ProtocolError, decode_object, encode_frame, structure_tagged
from zutd.wire.lines import EXTENSION_LIMIT, LineBuffer, TooLong
from zutd.wire.link import CHUNK, Calls, LinkClosedError, LinkFullError, Writer

T = TypeVar("T")

FAULTS: Final = 100
LEFT_GRACE: Final = 0.5
"""Seconds that helpers of a process may need to follow it."""

_STDERR: Final = 20
_LONGEST: Final = 300
_POLL: Final = 0.02


class Peer:
    """One process of an extension, seen from the host. The caller sets deadlines."""

    def __init__(self, launch: Launch, watcher: Watcher) -> None:
        self._launch = launch
        self._watcher = watcher
        self._process: trio.Process | None = None
        self._writer: Writer | None = None
        self._calls = Calls(IDS)
        self._may_read = trio.Event()
        self._may_read.set()
        self._stderr: deque[str] = deque(maxlen=_STDERR)
        self._scope = trio.CancelScope()
        self.greeted = trio.Event()
        """Its ``hello`` came, or it is clear that none will."""
        self.ready = trio.Event()
        self.exited = trio.Event()
        """Its own process has ended; helpers of it may still be there."""
        self.ended = trio.Event()
        """All of it has ended, and nothing more comes from it."""
        self.hello: Hello | None = None
        self.refusal = ""
        """Why there is no ``hello``."""
        self.faults: list[str] = []
        self.commands: list[CommandClaim] = []
        self.tools: list[ToolClaim] = []
        self.events: list[str] = []
        self.intercepts: list[str] = []
        self.acknowledged_shutdown = False
        self.exit_code: int | None = None
        self.left_behind = False
        """Whether processes that it started were still there when it had ended."""

    @property
    def major(self) -> Major:
        """The protocol that is spoken with it."""
        return self._launch.major

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.returncode is None and not self.ended.is_set()

    @property
    def claims(self) -> Claims:
        """What it registered."""
        return Claims(extension=self._launch.name, commands=tuple(self.commands), tools=tuple(self.tools))

    @property
    def last_stderr(self) -> tuple[str, ...]:
        """The last lines of its stderr."""
        return tuple(self._stderr)

    @property
    def how_it_ended(self) -> str:
        """Its end in words."""
        return describe_exit(self.exit_code)

    # --- its life

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Start it and stay until it has ended, or is ended by a cancellation. Raises :class:`StartError`."""
        launch, mark = self._launch, new_mark()
        try:
            process = self._process = await spawn_group(
                launch.argv,
                cwd=launch.directory,
                env={**launch.env, **mark},
                stdio=(PIPE, PIPE, PIPE),
                watcher=self._watcher,
            )
        except OSError as exc:
            raise StartError("load", f"cannot start {launch.program}: {exc.strerror}") from None
        try:
            with self._scope:
                await self._serve(process, task_status)
        finally:
            if await stop_family(process, mark, grace=TERM_GRACE, watcher=self._watcher):
                self.left_behind = True
            self._end(process)
            close_pipes(process)

    async def _serve(self, process: trio.Process, task_status: trio.TaskStatus[None]) -> None:
        stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
        assert isinstance(stdin, trio.lowlevel.FdStream)
        assert stdout is not None
        assert stderr is not None
        self._writer = Writer(stdin)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write, self._writer)
            nursery.start_soon(self._read, stdout)
            nursery.start_soon(self._pump_stderr, stderr)
            task_status.started()
            self.exit_code = await process.wait()
            self.exited.set()
            with trio.move_on_after(LEFT_GRACE):
                while group_alive(process.pid):  # noqa: ASYNC110 - nobody tells us of the end of others' children
                    await trio.sleep(_POLL)
            self.left_behind = group_alive(process.pid)
            self._writer.close()
            nursery.cancel_scope.deadline = trio.current_time() + PIPE_GRACE

    def _end(self, process: trio.Process) -> None:
        self.exit_code = process.returncode
        if self._writer is not None:
            self._writer.close()
        if self.hello is None and not self.refusal:
            self.refusal = f"it ended before hello: {self.how_it_ended}"
        self._calls.fail_all(ExtensionGoneError(f"it ended: {self.how_it_ended}"))
        for event in (self.greeted, self.exited, self.ended):
            event.set()

    async def _write(self, writer: Writer) -> None:
        try:
            await writer.run()
        except (LinkClosedError, LinkFullError):
            return  # it closed its stdin; whoever waits for an answer will notice
        writer.close()

    async def _pump_stderr(self, stream: trio.abc.ReceiveStream) -> None:
        rest = b""
        while chunk := await stream.receive_some(CHUNK):
            *lines, rest = (rest + chunk).split(b"\n")
            self._stderr.extend(line[:_LONGEST].decode("utf-8", "replace") for line in lines[-_STDERR:])
            rest = rest[-_LONGEST:]
        if rest:
            self._stderr.append(rest.decode("utf-8", "replace"))

    # --- what it says

    async def _read(self, stream: trio.abc.ReceiveStream) -> None:
        buffer = LineBuffer(EXTENSION_LIMIT)
        while chunk := await stream.receive_some(CHUNK):
            for line in buffer.feed(bytes(chunk)):
                self._take(line)
            await self._may_read.wait()
        for line in buffer.finish():
            self._take(line)

    def pause(self) -> None:
        """Read nothing more (but what is in our hands already) until :meth:`resume`."""
        self._may_read = trio.Event()

    def resume(self) -> None:
        """Read on."""
        self._may_read.set()

    def _take(self, line: bytes | TooLong) -> None:
        if isinstance(line, TooLong):
            self._fault(f"a line of {line.size} bytes; the longest that a host reads has {line.limit}")
        elif self.hello is None and not self.refusal:
            self._take_first(line)
        elif line.strip():
            self._take_frame(line)

    def _take_first(self, line: bytes) -> None:
        try:
            self.hello = check_hello(line, self._launch.name, self.major)
        except StartError as exc:
            self.refusal = exc.message
        self.greeted.set()

    def _take_frame(self, line: bytes) -> None:
        try:
            frame = structure_tagged(decode_object(line), FROM_EXTENSION, "frame type")
        except ProtocolError as exc:
            self._fault(f"{exc.message} (the line begins {_excerpt(line)})")
            return
        meant = self.major.incoming(frame)
        if meant is None:
            self._fault(f"there is no frame {frame.tag!r} in protocol {self.major.number}")
            return
        handler = _HANDLERS.get(type(meant))
        if handler is not None:
            handler(self, meant)

    def _fault(self, text: str) -> None:
        if len(self.faults) < FAULTS:
            self.faults.append(text)

    def _register_command(self, frame: RegisterCommand) -> None:
        self.commands.append(CommandClaim(name=frame.name, description=frame.description))

    def _register_tool(self, frame: RegisterTool) -> None:
        self.tools.append(claim_of(frame))

    def _subscribe(self, frame: Subscribe) -> None:
        self.events.extend(name for name in frame.events if name not in self.events)
        self.intercepts.extend(name for name in frame.intercept if name not in self.intercepts)

    def _on_ready(self, _: Ready) -> None:
        self.ready.set()

    def _on_shutdown_ack(self, _: ShutdownAck) -> None:
        self.acknowledged_shutdown = True

    def _second_hello(self, _: Hello) -> None:
        self._fault("a second hello; the handshake is over after the first")

    def _answer(self, frame: ToolResultFrame | CommandResponse | InterceptResponse) -> None:
        if not self._calls.settle(frame.id, frame):
            self._fault(f"{frame.tag} with id {frame.id[:80]!r}, which nobody waits for (late, twice, or never asked)")

    # --- what it is told

    def send(self, frame: Any) -> None:
        """Send a frame as its protocol knows it, if it does. Raises :class:`ExtensionGoneError`."""
        known = self.major.outgoing(frame)
        if known is not None:
            self.send_line(encode_frame(known))

    def send_line(self, line: bytes) -> None:
        """Send a line as it is. Raises :class:`ExtensionGoneError`."""
        if self._writer is None or not self.alive:
            raise ExtensionGoneError(f"it ended: {self.how_it_ended}")
        try:
            self._writer.put(line + b"\n")
        except LinkClosedError:
            raise ExtensionGoneError("it does not read its stdin any more") from None

    async def kill(self) -> None:
        """End it, with all that it started."""
        self._scope.cancel()
        await self.ended.wait()

    def close_stdin(self) -> None:
        """Send what is queued, then close its stdin."""
        if self._writer is not None:
            self._writer.finish()

    async def ask(self, make: Callable[[str], Any], kind: type[T]) -> T:
        """Send the frame that ``make`` makes of an id, and wait for the answer. Raises :class:`ExtensionGoneError`."""
        call = self._calls.open()
        try:
            self.send(make(call.id))
            answer = await call.wait()
        finally:
            self._calls.drop(call)
        if not isinstance(answer, kind):
            raise ExtensionGoneError(f"it answered with {answer.tag}")
        return answer


_HANDLERS: Final[dict[type, Callable[[Peer, Any], None]]] = {
    Hello: Peer._second_hello,  # noqa: SLF001 - a table of this module's own methods
    RegisterCommand: Peer._register_command,  # noqa: SLF001
    RegisterTool: Peer._register_tool,  # noqa: SLF001
    Subscribe: Peer._subscribe,  # noqa: SLF001
    Ready: Peer._on_ready,  # noqa: SLF001
    ShutdownAck: Peer._on_shutdown_ack,  # noqa: SLF001
    ToolResultFrame: Peer._answer,  # noqa: SLF001
    CommandResponse: Peer._answer,  # noqa: SLF001
    InterceptResponse: Peer._answer,  # noqa: SLF001
}


def _excerpt(line: bytes) -> str:
    return repr(line[:60].decode("utf-8", "replace"))
