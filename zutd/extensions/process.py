"""ONE child: spawn it, shake hands, carry frames both ways, stop it and its whole process group.

A child lives once; being started again is its owner's business (:mod:`zutd.extensions.extension`). However it ends,
its pipes are closed, its group is gone, it has been reaped, and every open question has failed.
"""

import os
from collections.abc import Callable
from typing import Any, Final, Protocol

import attrs
import trio

from zutd.extensions.intercept import ExtensionGoneError
from zutd.extensions.lines import StartError, check_hello, excerpt, to_line
from zutd.extensions.logfile import ExtensionLog
from zutd.extensions.majors import MAJOR_2, Major
from zutd.frames.extension import (
    FROM_EXTENSION,
    Hello,
    HelloAck,
    Shutdown,
)
from zutd.processes.family import stop_family
from zutd.processes.group import PIPE, Watcher, close_pipes, describe_exit, spawn_group
from zutd.wire.codec import ProtocolError, decode_object, structure_tagged
from zutd.wire.lines import EXTENSION_LIMIT, TooLong
from zutd.wire.link import CHUNK, Bounds, Call, Calls, Counter, LinkClosedError, LinkFullError, Writer, read_lines

HELLO_DEADLINE: Final = 10.0
SHUTDOWN_GRACE: Final = 2.0
TERM_GRACE: Final = 1.0
EOF_GRACE: Final = 1.0
"""Seconds a child may live on after it closed its stdout."""

PIPE_GRACE: Final = 0.5
"""Seconds that its pipes are read after it exited: a grandchild may hold them open for ever."""

TALK_RATE: Final = 512 * 1024
"""Bytes a second that an extension may tell frontends while they are behind with reading."""

TALK_PAUSE: Final = 1.0
"""Seconds that it waits at most before it is read again, so that its answers are not late."""

TALK_LOOK: Final = 0.02
"""Seconds between two looks whether frontends have caught up."""

MARK: Final = "ZUTD_CHILD"
"""The variable that says from which child of ours a process descends."""

LAST_CHUNKS: Final = 16
"""Chunks of stderr that are read when a child is gone: a pipe holds no more, and who writes on is not waited for."""

BOUNDS: Final = Bounds(frames=256, bytes=16 * 1024 * 1024, stall_seconds=5.0)

IDS: Final = Counter()
"""Ids of questions are unique in the daemon's life, so a late answer never meets another question."""


@attrs.frozen(kw_only=True)
class Launch:
    """How to start a child. ``program`` is absolute, ``env`` is all it gets; ``wrapper`` are the words that confine it,
    none where it is not confined.
    """

    name: str
    program: str
    args: tuple[str, ...]
    directory: str
    env: dict[str, str]
    wrapper: tuple[str, ...] = ()
    hello_deadline: float = HELLO_DEADLINE
    major: Major = MAJOR_2

    @property
    def argv(self) -> tuple[str, ...]:
        """What is executed."""
        return (*self.wrapper, self.program, *self.args)


@attrs.frozen(kw_only=True)
class Ended:
    """How a child ended: ``exit_status`` (or signal) in words, ``error`` when it never came to life, and whether
    it had been told to stop. ``cause`` is why the host ended it, empty when it ended by itself.
    """

    exit_status: str
    error: StartError | None
    stopped: bool
    cause: str


def new_mark() -> dict[str, str]:
    """What one child's environment holds and no other's: whatever it starts can be told by it."""
    return {MARK: os.urandom(8).hex()}


class Owner(Protocol):
    """What a child needs of whoever runs it. All methods return at once."""

    def acknowledge(self) -> HelloAck:
        """The handshake is good; this is the answer."""
        ...

    def received(self, frame: Any) -> bool:
        """A frame came after the handshake. True when it is for others to see, not an answer or a registration."""
        ...

    def crowded(self) -> bool:
        """Whether those who see what extensions show are behind with it."""
        ...

    def problem(self, message: str) -> None:
        """A line was no frame."""
        ...


def _nothing() -> None:
    return None


class Child:
    """One process of an extension."""

    def __init__(self, launch: Launch, owner: Owner, log: ExtensionLog, watcher: Watcher) -> None:
        self._launch = launch
        self._owner = owner
        self._log = log
        self._watcher = watcher
        self._process: trio.Process | None = None
        self._writer: Writer | None = None
        self._scope: trio.CancelScope | None = None
        self._greeted = trio.Event()
        self._stdout_ended = trio.Event()
        self._stopping = trio.Event()
        self._error: StartError | None = None
        self._cause = ""
        self._told = 0
        self._mark = new_mark()
        self.calls = Calls(IDS)
        self.capabilities: frozenset[str] = frozenset()

    @property
    def pid(self) -> int:
        """Its process id, 0 while there is none."""
        return self._process.pid if self._process is not None else 0

    @property
    def queue_depth(self) -> int:
        """Frames that it has not read."""
        return self._writer.pending_frames if self._writer is not None else 0

    # --- what its owner does with it

    def send(self, frame: Any) -> bytes:
        """Queue a frame; the line that it became. Raises :class:`ExtensionGoneError`; a child that reads nothing is
        ended.
        """
        if self._writer is None or not self._greeted.is_set():
            raise ExtensionGoneError("it is not running")
        known = self._launch.major.outgoing(frame)
        if known is None:
            return b""
        line = to_line(known)
        if len(line) > EXTENSION_LIMIT:
            raise ExtensionGoneError(f"a line of {len(line)} bytes is over the protocol's limit of {EXTENSION_LIMIT}")
        try:
            self._writer.put(line)
        except LinkFullError as exc:
            self.end(f"it does not read its stdin: {exc}")
            raise ExtensionGoneError(f"it does not read its stdin: {exc}") from None
        except LinkClosedError as exc:
            raise ExtensionGoneError(str(exc)) from None
        return line

    def stop(self) -> None:
        """Ask it to end: ``shutdown``, then its stdin is closed; after a grace its group is ended."""
        self._stopping.set()
        try:
            self.send(Shutdown())
        except ExtensionGoneError:
            self.end("")
        if self._writer is not None:
            self._writer.finish()

    def end(self, cause: str) -> None:
        """End it now, for ``cause``."""
        self._cause = self._cause or cause
        if self._scope is not None:
            self._scope.cancel()

    # --- its life

    async def run(self) -> Ended:
        """Live from spawn to reaping; raises nothing that concerns the child."""
        try:
            await self._spawn()
        except StartError as exc:
            return Ended(exit_status="", error=exc, stopped=False, cause="")
        process = self._process
        assert process is not None
        try:
            if not self._stopping.is_set():
                await self._serve(process)
        finally:
            await self._clean_up(process)
        status = describe_exit(process.returncode)
        return Ended(
            exit_status=status, error=self._start_error(status), stopped=self._stopping.is_set(), cause=self._cause
        )

    async def _spawn(self) -> None:
        launch = self._launch
        try:
            self._process = await spawn_group(
                launch.argv,
                cwd=launch.directory,
                env={**launch.env, **self._mark},
                stdio=(PIPE, PIPE, PIPE),
                watcher=self._watcher,
            )
        except (OSError, ValueError) as exc:
            raise StartError("load", _spawn_problem(exc, launch)) from None

    async def _serve(self, process: trio.Process) -> None:
        stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
        assert isinstance(stdin, trio.lowlevel.FdStream)
        assert isinstance(stdout, trio.lowlevel.FdStream)
        assert isinstance(stderr, trio.lowlevel.FdStream)
        self._writer = Writer(stdin, BOUNDS)
        async with trio.open_nursery() as nursery:
            self._scope = nursery.cancel_scope
            nursery.start_soon(self._pump_stderr, stderr)
            nursery.start_soon(self._write, self._writer)
            nursery.start_soon(self._watch_hello)
            nursery.start_soon(self._watch_exit, process)
            nursery.start_soon(self._watch_stop)
            await read_lines(stdout, EXTENSION_LIMIT, self._on_line, eager=True, between=self._breathe)
            self._stdout_ended.set()
            with trio.move_on_after(EOF_GRACE):
                await process.wait()
            if process.returncode is None and not self._cause:
                self._cause = "it closed its stdout without exiting"
            nursery.cancel_scope.cancel()

    async def _clean_up(self, process: trio.Process) -> None:
        """Nobody can answer any more: say so first, then end what is left of it, then close the pipes."""
        if self._writer is not None:
            self._writer.close()
        self._fail_calls(process)
        escaped = await stop_family(process, self._mark, grace=TERM_GRACE, watcher=self._watcher)
        if escaped:
            self._log.note(f"ended what had left its process group: {', '.join(map(str, escaped))}")
        self._hear_last_words(process)
        close_pipes(process)

    def _hear_last_words(self, process: trio.Process) -> None:
        """What nobody had read yet of its stderr: why it ended is in there."""
        assert isinstance(process.stderr, trio.lowlevel.FdStream)
        for _ in range(LAST_CHUNKS):
            try:
                chunk = os.read(process.stderr.fileno(), CHUNK)
            except OSError:
                return  # nothing is in the pipe, and somebody could still write to it
            if not chunk:
                return
            self._log.stderr(chunk)

    def _fail_calls(self, process: trio.Process) -> None:
        name = self._launch.name
        if self._stopping.is_set():
            reason = f"extension {name} is being stopped"
        elif self._cause or process.returncode is not None:
            reason = f"extension {name} disconnected: {self._cause or describe_exit(process.returncode)}"
        else:
            reason = f"extension {name} disconnected"
        self.calls.fail_all(ExtensionGoneError(reason))

    def _start_error(self, status: str) -> StartError | None:
        if self._error is not None or self._greeted.is_set() or self._stopping.is_set():
            return self._error
        if self._cause:
            return StartError("handshake", f"{self._cause} before hello")
        if self._launch.wrapper and (problem := _not_confined(self._log.last_lines)):
            return StartError("load", problem)
        return StartError("handshake", f"extension exited before hello: {status}")

    # --- its tasks

    async def _pump_stderr(self, stream: trio.lowlevel.FdStream) -> None:
        while chunk := await stream.receive_some(CHUNK):
            self._log.stderr(bytes(chunk))

    async def _write(self, writer: Writer) -> None:
        try:
            await writer.run()
        except LinkFullError as exc:
            self.end(f"it does not read its stdin: {exc}")
        except LinkClosedError:
            # It closed its stdin. It may still speak; whoever sends to it is told.
            return
        else:
            writer.close()

    async def _watch_hello(self) -> None:
        with trio.move_on_after(self._launch.hello_deadline):
            await self._greeted.wait()
        if not self._greeted.is_set():
            self._refuse(f"no hello within {self._launch.hello_deadline:g} s")

    async def _watch_exit(self, process: trio.Process) -> None:
        await process.wait()
        with trio.move_on_after(PIPE_GRACE):
            await self._stdout_ended.wait()
        self.end("")

    async def _watch_stop(self) -> None:
        await self._stopping.wait()
        await trio.sleep(SHUTDOWN_GRACE)
        self.end("it did not exit within 2 s of shutdown")

    # --- its lines

    async def _breathe(self) -> None:
        """Between two chunks: who talks faster than frontends read is read more slowly, until they have caught up.

        Nothing is lost by it, and no other extension waits: the pipe fills, and the writer of it stops.
        """
        told, self._told = self._told, 0
        if told and self._owner.crowded():
            with trio.move_on_after(min(TALK_PAUSE, told / TALK_RATE)):
                while self._owner.crowded():  # noqa: ASYNC110 - frontends do not tell when they have caught up
                    await trio.sleep(TALK_LOOK)
        await trio.lowlevel.checkpoint()

    def _on_line(self, line: bytes | TooLong) -> None:
        if isinstance(line, TooLong):
            self._over_long(line)
        elif not self._greeted.is_set():
            self._first_line(line)
        elif line.strip():
            self._next_line(line)

    def _over_long(self, line: TooLong) -> None:
        text = f"it sent a line of more than {line.limit} bytes"
        if self._greeted.is_set():
            self._owner.problem(f"{text}; it is ended")
            self.end(text)
        else:
            self._refuse(f"read hello: {text}")

    def _first_line(self, line: bytes) -> None:
        if self._error is not None:
            return
        try:
            hello = check_hello(line, self._launch.name, self._launch.major)
        except StartError as exc:
            self._refuse(exc.message)
            return
        self._greeted.set()
        self.capabilities = frozenset(hello.capabilities)
        try:
            self.send(self._owner.acknowledge())
        except ExtensionGoneError:
            return  # it did not wait for the answer; how it ended is told when it has ended

    def _refuse(self, message: str) -> None:
        self._error = self._error or StartError("handshake", message)
        self.end(message)

    def _next_line(self, line: bytes) -> None:
        try:
            frame = structure_tagged(decode_object(line, replace=True), FROM_EXTENSION, "frame type")
        except ProtocolError as exc:
            prefix = "malformed json frame: " if exc.kind == "parse_error" else ""
            self._owner.problem(f"{prefix}{exc.message} (line begins {excerpt(line)})")
            return
        if isinstance(frame, Hello):
            self._owner.problem("unknown frame type 'hello': the handshake is over")
            return
        meant = self._launch.major.incoming(frame)
        if meant is None:
            self._owner.problem(f"unknown frame type {frame.tag!r} in protocol {self._launch.major.number}")
            return
        if self._owner.received(meant):
            self._told += len(line)

    # --- questions

    async def ask(self, call: Call[Any], frame: Any, given_up: Callable[[], None] = _nothing) -> Any:
        """Send a question and wait for its answer. Raises :class:`ExtensionGoneError`.

        When nobody waits any more, a question that has not begun to leave is taken back; else ``given_up`` is called.
        """
        try:
            line = self.send(frame)
            try:
                return await call.wait()
            except trio.Cancelled:
                if self._writer is None or not self._writer.withdraw(line):
                    given_up()
                raise
        finally:
            self.calls.drop(call)


def _not_confined(last_lines: tuple[str, ...]) -> str:
    from zutd.processes.sandbox import failure

    return failure(last_lines)


def _spawn_problem(exc: OSError | ValueError, launch: Launch) -> str:
    if isinstance(exc, FileNotFoundError) and os.path.exists(launch.program):
        return "cannot start: the interpreter named in its first line (#!) was not found"
    if isinstance(exc, OSError) and exc.strerror == "Exec format error":
        return "cannot start: not a program for this machine, and no #! line names an interpreter"
    return f"cannot start: {exc.strerror if isinstance(exc, OSError) else exc}"
