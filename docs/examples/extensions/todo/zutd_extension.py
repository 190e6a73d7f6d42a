"""Extensions for zutd in Python: one file, only the standard library, so a copy of it works alone.

    from zutd.sdk import Extension

    ext = Extension("weather", "1.0.0")

    @ext.tool
    def weather(city: str) -> str:
        \"\"\"Current weather for a city.\"\"\"
        return f"{city}: sunny"

    ext.run()

Strategy: the thread that calls ``run`` reads frames and waits for no handler, so ``tool_cancel``, ``shutdown`` and the
end of stdin are never late. One thread runs the handlers of events and panel keys, in the order in which things
happened. Each command, tool call and question has a thread of a pool to itself, so these run side by side; one that
comes while an event is being handled begins after it. Coroutines run in one event loop, which is made when the first
is needed. Every frame is written whole, under a lock.
"""

from __future__ import annotations

import collections
import json
import os
import queue
import re
import sys
import threading
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar

PROTOCOL_VERSION: Final = 2
LINE_LIMIT: Final = 4 * 1024 * 1024
"""Bytes of the longest line that the host takes, its LF included."""

ERROR_LIMIT: Final = 32_768
"""Characters of an error that are sent: an error must always fit into a line."""

GRACE: Final = 1.0
"""Seconds that running handlers get to tidy up when the extension ends; the host kills it after 2."""

EventName = Literal[
    "session_start",
    "session_opened",
    "session_switched",
    "session_forked",
    "session_compacted",
    "turn_start",
    "tool_call",
    "tool_confirmation_requested",
    "assistant_message",
    "turn_end",
]
SESSION_EVENTS: Final = tuple(name for name in typing.get_args(EventName) if name.startswith("session_"))
Level = Literal["info", "success", "warn", "error"]

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
_Frame = dict[str, Any]
_ABSENT: Final[Any] = object()
_COROUTINE: Final = 0x80  # code flags, spelled out because importing inspect costs a third of the start
_STARRED: Final = 0x0C


# --- what handlers are given and give back ---------------------------------------------------------------------------


class ExtensionError(Exception):
    """Raise it in a handler: the command or tool fails with exactly this text."""


class HostError(Exception):
    """The program at the other end is no host that this file can talk to."""


class Prompt(NamedTuple):
    """A command's answer: this text goes to the model as if the user had typed it."""

    text: str


class Insert(NamedTuple):
    """A command's answer: this text is put into the user's editor."""

    text: str


class Panel(NamedTuple):
    """Lines of text that the user can send keys to; as a command's answer it opens."""

    id: str
    title: str = ""
    lines: Sequence[str] = ()
    footer: str = ""


class Block(NamedTuple):
    """An interceptor's no. The model reads the reason of a refused tool call, the user that of anything else."""

    reason: str = ""


class Image(NamedTuple):
    """A picture in a tool's result: the bytes of a PNG, JPEG, GIF or WebP file."""

    data: bytes
    mime_type: str = "image/png"


class ToolResult(NamedTuple):
    """A tool's result with more than its content.

    ``content`` is whatever a tool may return. ``details`` is any JSON value and replaces the extension's state on this
    branch (None clears it). ``activate`` names deferred tools that the model may use from now on.
    """

    content: Any = ""
    is_error: bool = False
    details: Any = _ABSENT
    activate: Sequence[str] = ()


class Session(NamedTuple):
    """The active branch: ``fork_point`` messages are older than it. ``path`` is empty when nothing is on disk."""

    id: str
    path: str = ""
    cwd: str = ""
    parent_id: str = ""
    fork_point: int = 0


class Host(NamedTuple):
    """Who runs this extension. ``cwd`` is the user's project, ``data_dir`` is where the extension keeps its files."""

    version: str
    provider: str
    model: str
    cwd: str
    data_dir: str
    session: Session | None


class Event(NamedTuple):
    """Something that happened; which fields are set depends on ``name``. ``state`` is None when there is none."""

    name: str
    session: Session | None = None
    state: Any = None
    step: int = 0
    tool_id: str = ""
    tool_name: str = ""
    tool_args: Any = None
    tool_preview: str = ""
    text: str = ""
    stop: str = ""
    error: str = ""


class Key(NamedTuple):
    """A key pressed in a panel: ``up``, ``enter``, ...; ``text`` is the character when ``name`` is ``rune``."""

    panel_id: str
    name: str
    text: str = ""


class Cancel:
    """Whether a tool call was given up; a handler that has a parameter of this type is told.

    It is also set when the extension has to end. What the handler returns after that is not sent.
    """

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._calls: list[Callable[[], object]] = []

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the result any more."""
        return self._event.is_set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait at most so long (for ever by default); whether it is cancelled then."""
        return self._event.wait(seconds)

    def on_cancel(self, call: Callable[[], object]) -> None:
        """Call this when it is cancelled, at once when it is already. Frames wait for it, so it must be quick."""
        with self._lock:
            if not self._event.is_set():
                self._calls.append(call)
                return
        call()

    def cancel(self) -> None:
        """Cancel; once."""
        with self._lock:
            calls, self._calls = self._calls, []
            self._event.set()
        for call in calls:
            try:
                call()
            except Exception:  # noqa: BLE001 - it runs where frames are read, and those must go on being read
                _log_failure("a callback of on_cancel")


class State(Generic[T]):
    """A value that belongs to the active branch of the conversation; see :meth:`Extension.state`."""

    def __init__(self, default: T) -> None:
        self._default = _dumps(default)
        self._saved = self._default
        self._branch = ""
        self._lock = threading.Lock()
        self.value: T = json.loads(self._default)
        """Any JSON value. Change it as you like; tool results carry it to the host."""

    def restore(self, event: Event) -> None:
        """Take what a session event hands back."""
        branch = event.session.id if event.session else ""
        if event.name == "session_compacted" and branch == self._branch:
            return  # the same branch goes on, and what was not saved yet is not lost
        with self._lock:
            self._branch = branch
            self._saved = self._default if event.state is None else _dumps(event.state)
            self.value = json.loads(self._saved)

    def to_save(self) -> Any:
        """The value if it has changed since the host got it, else the marker for nothing."""
        with self._lock:
            text = _dumps(self.value)
            if text == self._saved:
                return _ABSENT
            self._saved = text
            return json.loads(text)

    def forget_saved(self) -> None:
        """The host did not get it after all."""
        self._saved = ""


# --- JSON and lines --------------------------------------------------------------------------------------------------

_dumps: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
"""JSON in ASCII: no line separators, no lone surrogates, whatever a text holds. Raises ValueError or TypeError."""


def _loads(line: bytes) -> _Frame:
    """A line's object. Half an emoji becomes U+FFFD. Raises ValueError."""
    text = line.decode("utf-8", "replace")
    try:
        frame = json.loads(text)
        if "\\ud" in text or "\\uD" in text:
            whole = json.dumps(frame, ensure_ascii=False)
            frame = json.loads(whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(frame, dict):
        raise ValueError("it is no object")  # noqa: TRY004 - a wrong value, not a programmer's wrong type
    return frame


def _lines(fd: int) -> Iterator[bytes]:
    """Lines as they come, split at LF only; the last one may lack it."""
    pieces: list[bytes] = []
    while chunk := os.read(fd, 65536):
        first, *more = chunk.split(b"\n")
        pieces.append(first)
        for piece in more:
            yield b"".join(pieces)
            pieces = [piece]
    if last := b"".join(pieces):
        yield last


class _Writer:
    """Writes frames, each as one line, whole, until it is closed or nobody reads."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()
        self._open = True

    def send(self, frame: _Frame) -> None:
        """Write a frame. Raises ValueError or TypeError when it is no JSON, ExtensionError when it is too long."""
        line = _dumps(frame).encode() + b"\n"
        if len(line) > LINE_LIMIT:
            raise ExtensionError(f"{frame['type']} has {len(line)} bytes; the host takes at most {LINE_LIMIT}")
        with self._lock:
            self._write(line)

    def close(self, last: _Frame | None = None) -> None:
        """Nothing is written from now on, but for this last frame."""
        with self._lock:
            if last is not None:
                self._write(_dumps(last).encode() + b"\n")
            self._open = False

    def _write(self, line: bytes) -> None:
        try:
            while line and self._open:
                line = line[os.write(self._fd, line) :]
        except OSError:
            self._open = False  # the host is gone: stdin ends too, and that ends the extension


def _take_stdio() -> tuple[int, int]:
    """Keep stdin and stdout for frames: what handlers and their children print goes to stderr, the extension's log."""
    mine = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(line_buffering=True, errors="backslashreplace")
    return mine


def _log(text: str) -> None:
    """A line for the extension's log."""
    sys.stderr.write(f"[sdk] {text}\n")


def _log_failure(what: str) -> None:
    """The exception that is being handled, for the log."""
    import traceback  # costs as much as a tenth of the start, and is seldom needed

    _log(f"{what} failed:\n{traceback.format_exc().rstrip()}")


def _explain(what: str, exc: BaseException) -> str:
    """A handler's exception for whoever waits for it, never empty; one that was not raised on purpose is logged."""
    meant = isinstance(exc, ExtensionError)
    if not meant:
        _log_failure(what)
    text = (str(exc) if meant else f"{type(exc).__name__}: {exc}".rstrip(": ")) or f"{what} failed"
    return text if len(text) <= ERROR_LIMIT else f"{text[:ERROR_LIMIT]} ..."


# --- from a signature to a schema ------------------------------------------------------------------------------------


class _Shape(NamedTuple):
    """A type: its schema, its name for people, and what makes a Python value of a JSON value or raises _WrongError."""

    schema: _Frame
    words: str
    read: Callable[[Any], Any]


class _WrongError(Exception):
    """A value is not of the type."""


class _Tool(NamedTuple):
    """A tool's handler, and how to call it. Without ``parameters`` it takes the model's object as it is.

    ``nullable`` are parameters without a default that take None when the model leaves them out; ``cancel`` is the one
    that takes the Cancel.
    """

    handler: Callable[..., Any]
    parameters: dict[str, _Shape] | None
    cancel: str
    required: tuple[str, ...] = ()
    nullable: tuple[str, ...] = ()


def _only(*kinds: type) -> Callable[[Any], Any]:
    """Accept these types and nothing else: ``True`` is no number here."""

    def read(value: Any) -> Any:
        if type(value) not in kinds:
            raise _WrongError
        return value

    return read


def _read_int(value: Any) -> int:
    """Whole numbers, also when the model writes ``3.0``."""
    return int(value) if isinstance(value, float) and value.is_integer() else int(_only(int)(value))


def _read_float(value: Any) -> float:
    return float(_only(int, float)(value))


_PLAIN: Final[dict[Any, _Shape]] = {
    str: _Shape({"type": "string"}, "a string", _only(str)),
    int: _Shape({"type": "integer"}, "an integer", _read_int),
    float: _Shape({"type": "number"}, "a number", _read_float),
    bool: _Shape({"type": "boolean"}, "true or false", _only(bool)),
    dict: _Shape({"type": "object"}, "an object", _only(dict)),
    list: _Shape({"type": "array"}, "a list", _only(list)),
    type(None): _Shape({"type": "null"}, "null", _only(type(None))),
    Any: _Shape({}, "anything", lambda value: value),
}


def _list_shape(arguments: tuple[Any, ...]) -> _Shape:
    item = _shape(arguments[0])
    return _Shape(
        {"type": "array", "items": item.schema},
        f"a list, each item {item.words}",
        lambda value: [item.read(one) for one in _only(list)(value)],
    )


def _dict_shape(arguments: tuple[Any, ...]) -> _Shape:
    value_of = _shape(arguments[1])
    return _Shape(
        {"type": "object", "additionalProperties": value_of.schema},
        f"an object, each value {value_of.words}",
        lambda value: {name: value_of.read(one) for name, one in _only(dict)(value).items()},
    )


def _literal_shape(choices: tuple[Any, ...]) -> _Shape:
    def read(value: Any) -> Any:
        if not any(value == choice and type(value) is type(choice) for choice in choices):
            raise _WrongError
        return value

    kinds = {_shape(type(choice)).schema["type"] for choice in choices}
    schema: _Frame = {"enum": list(choices)}
    if len(kinds) == 1:
        schema = {"type": kinds.pop(), **schema}
    return _Shape(schema, "one of " + ", ".join(_dumps(choice) for choice in choices), read)


def _union_shape(members: tuple[Any, ...]) -> _Shape:
    shapes = [_shape(member) for member in members]

    def read(value: Any) -> Any:
        for shape in shapes:
            try:
                return shape.read(value)
            except _WrongError:
                continue
        raise _WrongError

    named = [shape for shape in shapes if shape.schema != {"type": "null"}]  # models leave out what they do not need
    schema = named[0].schema if len(named) == 1 else {"anyOf": [shape.schema for shape in named]}
    return _Shape(schema, " or ".join(shape.words for shape in shapes), read)


def _annotated_shape(arguments: tuple[Any, ...]) -> _Shape:
    shape = _shape(arguments[0])
    described = next((note for note in arguments[1:] if isinstance(note, str)), "")
    return shape._replace(schema={**shape.schema, "description": described}) if described else shape


_MADE: Final[dict[Any, Callable[[tuple[Any, ...]], _Shape]]] = {
    list: _list_shape,
    dict: _dict_shape,
    Literal: _literal_shape,
    typing.Union: _union_shape,
    types.UnionType: _union_shape,
    typing.Annotated: _annotated_shape,
}


def _shape(hint: Any) -> _Shape:
    """A type's shape. Raises TypeError when it has none."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    make = _MADE.get(typing.get_origin(hint))
    if make is None:
        raise TypeError(
            f"no schema for the type {hint!r}: use str, int, float, bool, list, dict, Literal, or give schema="
        )
    return make(typing.get_args(hint))


_SECTION: Final = re.compile(r"^(Args|Arguments|Parameters|Returns|Raises|Yields|Examples?|Notes?):\s*$")
_ENTRY: Final = re.compile(r"^(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")


def _read_docstring(doc: str) -> tuple[str, dict[str, str]]:
    """A docstring's text before its sections, and what its ``Args:`` say of each parameter."""
    section, name = "", ""
    text: list[str] = []
    told: dict[str, str] = {}
    for line in doc.strip().splitlines():
        words = line.strip()
        if found := _SECTION.match(words):
            section, name = found[1], ""
        elif not section:
            text.append(words)
        elif section in ("Args", "Arguments", "Parameters"):
            if entry := _ENTRY.match(words):
                name = entry[1]
                told[name] = entry[2]
            elif name:
                told[name] = f"{told[name]} {words}".strip()
    paragraphs = "\n".join(text).strip().split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs), told


def _parameters(function: Any) -> dict[str, tuple[Any, Any]]:
    """A function's parameters, each with its type and its default. Raises TypeError."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = getattr(function, "__code__", None)
    if code is None or code.co_flags & _STARRED or code.co_posonlyargcount:
        raise TypeError(f"the parameters of {function!r} cannot be read: name them all, or give schema=")
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except NameError as exc:
        raise TypeError(f"the types of {function.__name__} cannot be read ({exc}): give schema=") from None
    positional = code.co_varnames[: code.co_argcount]
    defaults = dict(zip(reversed(positional), reversed(function.__defaults__ or ()), strict=False))
    defaults.update(function.__kwdefaults__ or {})
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    own = names[1:] if hasattr(function, "__self__") else names
    return {name: (hints.get(name, Any), defaults.get(name, _ABSENT)) for name in own}


def _make_tool(handler: Callable[..., Any], schema: _Frame | None) -> tuple[_Tool, _Frame]:
    """A tool of a function, and the schema of its arguments. Raises TypeError."""
    try:
        parameters = _parameters(handler)
    except TypeError:
        if schema is None:
            raise
        parameters = {}
    cancel = next((name for name, (hint, _) in parameters.items() if hint is Cancel), "")
    parameters.pop(cancel, None)
    if schema is not None:
        return _Tool(handler, None, cancel), schema
    shapes: dict[str, _Shape] = {}
    for name, (hint, _) in parameters.items():
        try:
            shapes[name] = _shape(hint)
        except TypeError as exc:
            raise TypeError(f"parameter {name} of {handler.__name__}: {exc}") from None
    bare = [name for name, (_, default) in parameters.items() if default is _ABSENT]
    nullable = tuple(name for name in bare if _takes_none(shapes[name]))
    required = tuple(name for name in bare if name not in nullable)
    defaults = {name: default for name, (_, default) in parameters.items()}
    made = _object_schema(shapes, defaults, required, _read_docstring(handler.__doc__ or "")[1])
    return _Tool(handler, shapes, cancel, required, nullable), made


def _takes_none(shape: _Shape) -> bool:
    """Whether a type says that it may be None; the type Any says nothing."""
    try:
        return shape.read(None) is None and bool(shape.schema)
    except _WrongError:
        return False


def _object_schema(
    shapes: dict[str, _Shape], defaults: _Frame, required: Sequence[str], told: dict[str, str]
) -> _Frame:
    """The schema of a tool's arguments."""
    properties: _Frame = {}
    for name, shape in shapes.items():
        properties[name] = dict(shape.schema)
        if told.get(name):
            properties[name].setdefault("description", told[name])
        if defaults[name] is not _ABSENT and defaults[name] is not None:
            properties[name]["default"] = defaults[name]
    needed = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, **needed}


def _read_arguments(tool: _Tool, args: Any) -> _Frame:
    """Keyword arguments for a handler. Raises ExtensionError with words that help the model to do better."""
    assert tool.parameters is not None
    if not isinstance(args, dict):
        raise ExtensionError("the arguments must be an object")
    if missing := [name for name in tool.required if name not in args]:
        raise ExtensionError(f"missing: {', '.join(missing)}")
    if unknown := [name for name in args if name not in tool.parameters]:
        raise ExtensionError(f"there is no {', '.join(unknown)}; there is: {', '.join(tool.parameters) or 'nothing'}")
    read: _Frame = dict.fromkeys(tool.nullable)
    for name, value in args.items():
        shape = tool.parameters[name]
        try:
            read[name] = shape.read(value)
        except _WrongError:
            raise ExtensionError(f"{name} must be {shape.words}, not {_dumps(value)[:80]}") from None
    return read


def _blocks(content: Any) -> list[_Frame]:
    """What a tool returned, as blocks: text, images, a list of both, or anything else as JSON. Raises ValueError."""
    if content is None:
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if isinstance(content, Image):
        import base64

        data = base64.b64encode(content.data).decode()
        return [{"type": "image", "mime_type": content.mime_type, "data": data}]
    if isinstance(content, list) and content and all(isinstance(one, (str, Image)) for one in content):
        return [block for one in content for block in _blocks(one)]
    return [{"type": "text", "text": json.dumps(content, ensure_ascii=False, allow_nan=False)}]


# --- threads and coroutines ------------------------------------------------------------------------------------------


class _Pool:
    """Threads for what runs side by side. One that has nothing to do waits for the next task."""

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._changed = threading.Condition()
        self._threads = 0
        self._tasks_running = 0
        self._ending = False

    def start(self, task: Callable[[], None]) -> None:
        """Run a task at once; nothing begins any more when all is about to end."""
        with self._changed:
            if self._ending:
                return
            self._tasks_running += 1
            if self._tasks_running > self._threads:
                self._threads += 1
                threading.Thread(target=self._work, daemon=True).start()
        self._tasks.put(task)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                task()
            except BaseException:  # noqa: BLE001 - a thread that ended here would be missed by the next task
                _log_failure("an answer")
            with self._changed:
                self._tasks_running -= 1
                self._changed.notify_all()

    def end(self) -> None:
        """Begin nothing more."""
        with self._changed:
            self._ending = True

    def wait(self, seconds: float) -> None:
        """Wait at most so long for what runs."""
        with self._changed:
            self._changed.wait_for(lambda: not self._tasks_running, seconds)
        for _ in range(self._threads):
            self._tasks.put(None)


class _Loop:
    """An event loop in a thread of its own, made when it is first needed: asyncio alone costs as much as the rest."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: Any = None

    def get(self) -> Any:
        """The loop."""
        with self._lock:
            if self._loop is None:
                import asyncio

                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._run, args=(self._loop,), name="asyncio", daemon=True).start()
        return self._loop

    @staticmethod
    def _run(loop: Any) -> None:
        loop.run_forever()
        loop.close()

    def stop(self) -> None:
        """Let it end."""
        with self._lock:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._loop.stop)

    def run(self, awaitable: Any, cancel: Cancel) -> Any:
        """Wait here for something that runs there, to its very end, also when it is cancelled."""
        loop = self.get()
        ended = threading.Event()
        tasks: list[Any] = []

        async def wait() -> Any:
            return await awaitable

        def start() -> None:
            tasks.append(loop.create_task(wait()))
            tasks[0].add_done_callback(lambda _: ended.set())
            cancel.on_cancel(lambda: loop.call_soon_threadsafe(tasks[0].cancel))

        loop.call_soon_threadsafe(start)
        ended.wait()
        return tasks[0].result()


# --- one conversation with the host ----------------------------------------------------------------------------------

_ASKED: Final[dict[str, Callable[[_Frame], tuple[Any, ...]]]] = {
    "tool_call": lambda frame: (frame.get("tool_name", ""), frame.get("tool_args", {})),
    "turn_start": lambda frame: (frame.get("step", 0),),
    "assistant_message": lambda frame: (frame.get("text", ""),),
}
_REWRITES: Final[dict[str, tuple[str, type]]] = {
    "tool_call": ("modified_args", dict),
    "turn_start": ("context", str),
    "assistant_message": ("replace_text", str),
}


class _Declared:
    """What an extension has declared: its handlers by name, and the frames that announce them, in order."""

    def __init__(self) -> None:
        self.registrations: list[_Frame] = []
        self.commands: dict[str, Callable[[str], Any]] = {}
        self.tools: dict[str, _Tool] = {}
        self.observers: dict[str, list[Callable[[Event], Any]]] = {}
        self.interceptors: dict[str, Callable[..., Any]] = {}
        self.keys: dict[str, Callable[[Key], Any]] = {}
        self.closed: dict[str, Callable[[str], Any]] = {}
        self.hello: list[Callable[[Host], Any]] = []
        self.state: State[Any] | None = None

    def frames(self) -> Iterator[_Frame]:
        """The announcement: registrations, and one subscription if there is anything to subscribe to."""
        yield from self.registrations
        if self.observers or self.interceptors:
            yield {"type": "subscribe", "events": list(self.observers), "intercept": list(self.interceptors)}

    def capabilities(self) -> list[str]:
        """What ``hello`` says of it. ``tool_cancel`` only when a tool can do something about it."""
        parts = {
            "commands": self.commands,
            "tools": self.tools,
            "events": self.observers or self.interceptors,
            "session_state": self.state,
            "panels": self.keys,
            "tool_cancel": any(tool.cancel or _is_coroutine(tool.handler) for tool in self.tools.values()),
        }
        return [name for name, used in parts.items() if used]

    def has_coroutines(self) -> bool:
        """Whether some handler is written with ``async def``."""
        several = [self.commands.values(), self.interceptors.values(), self.keys.values(), *self.observers.values()]
        tools = (tool.handler for tool in self.tools.values())
        return any(map(_is_coroutine, tools)) or any(any(map(_is_coroutine, handlers)) for handlers in several)


class _Conversation:
    """From the handshake to the goodbye."""

    def __init__(self, name: str, declared: _Declared, write: int) -> None:
        self._name = name
        self._declared = declared
        self._writer = _Writer(write)
        self._inbox: queue.SimpleQueue[_Frame | None] = queue.SimpleQueue()
        self._unhandled: collections.deque[_Frame] = collections.deque()  # what is in the inbox, or was taken out of it
        self._calls: dict[str, Cancel] = {}
        self._pool = _Pool()
        self._loop = _Loop()
        self.send = self._writer.send
        self.announced = False

    def announce(self) -> None:
        """Registrations, subscription, and ``ready`` whatever happens."""
        self.announced = True
        for frame in self._declared.frames():
            self.attempt(f"{frame['type']} {frame.get('name', '')}", self.send, frame)
        self.send({"type": "ready"})

    def serve(self, lines: Iterator[bytes]) -> None:
        """Take frames until ``shutdown`` or the end; nothing in here waits for a handler."""
        self._pool.start(self._handle_in_order)
        if self._declared.has_coroutines():
            threading.Thread(target=self._loop.get, name="asyncio-start", daemon=True).start()
        goodbye: _Frame | None = None
        try:
            for line in lines:
                frame = self._parse(line)
                if frame.get("type") == "shutdown":
                    goodbye = {"type": "shutdown_ack"}
                    break
                self._take(frame)
        finally:
            self._end(goodbye)

    @staticmethod
    def _parse(line: bytes) -> _Frame:
        """A line's frame; an empty one when it has none."""
        try:
            return _loads(line) if line.strip() else {}
        except ValueError as exc:
            _log(f"ignored a line from the host: {exc} ({line[:60]!r})")
            return {}

    def _take(self, frame: _Frame) -> None:
        kind, call = frame.get("type"), str(frame.get("id"))
        if kind == "tool_cancel":
            if cancel := self._calls.pop(call, None):
                cancel.cancel()
            return
        if kind == "tool_call":
            self._calls[call] = Cancel()  # from here on it can be given up, also while it waits for its turn
        if kind in _AT_ONCE and not self._unhandled:
            self._handle(frame)
        else:
            self._unhandled.append(frame)
            self._inbox.put(frame)

    def _end(self, goodbye: _Frame | None) -> None:
        """Say goodbye and nothing after it, tell the running handlers, and give them a moment."""
        self._pool.end()
        self._writer.close(goodbye)
        self._inbox.put(None)
        for call in list(self._calls.values()):
            call.cancel()
        self._pool.wait(GRACE)
        self._loop.stop()

    # --- running handlers

    def _handle_in_order(self) -> None:
        while (frame := self._inbox.get()) is not None:
            self._handle(frame)
            self._unhandled.popleft()

    def _handle(self, frame: _Frame) -> None:
        kind = frame.get("type")
        handle = _FRAMES.get(kind) if isinstance(kind, str) else None
        if handle is not None:
            self.attempt(f"a frame {kind}", handle, self, frame)
        elif frame:
            _log(f"ignored a frame of the unknown type {kind!r}")

    def attempt(self, what: str, handler: Callable[..., Any], *args: Any) -> None:
        """Run a handler that has nobody to answer to."""
        try:
            self._settle(handler(*args))
        except BaseException:  # noqa: BLE001 - an author's mistake costs one event; sys.exit() would end a thread only
            _log_failure(what)

    def _settle(self, result: Any, cancel: Cancel | None = None) -> Any:
        """What a handler of either kind gives in the end."""
        return self._loop.run(result, cancel or Cancel()) if hasattr(result, "__await__") else result

    def on_event(self, frame: _Frame) -> None:
        """Something happened."""
        fields = {name: frame[name] for name in Event._fields if name in frame}
        event = Event(**{**fields, "name": frame["event"], "session": _session(frame.get("session"))})
        if self._declared.state is not None and event.name in SESSION_EVENTS:
            self._declared.state.restore(event)
        for handler in self._declared.observers.get(event.name, ()):
            self.attempt(f"the handler of {event.name}", handler, event)

    def on_key(self, frame: _Frame) -> None:
        """A key in a panel."""
        if handler := self._declared.keys.get(frame["panel_id"]):
            self.attempt("the handler of a key", handler, Key(frame["panel_id"], frame["key"], frame.get("text", "")))

    def on_close(self, frame: _Frame) -> None:
        """The user closed a panel."""
        if handler := self._declared.closed.get(frame["panel_id"]):
            self.attempt("the handler of a closed panel", handler, frame["panel_id"])

    def on_command(self, frame: _Frame) -> None:
        """The user runs a command."""
        self._pool.start(partial(self._answer_command, frame["id"], frame["name"], frame.get("args", "")))

    def on_intercept(self, frame: _Frame) -> None:
        """The host asks whether something may happen."""
        self._pool.start(partial(self._answer_intercept, frame["id"], frame["event"], frame))

    def on_tool_call(self, frame: _Frame) -> None:
        """The model calls a tool. The call may have been given up while it waited for the handler of an event."""
        call = str(frame["id"])
        if cancel := self._calls.get(call):
            self._pool.start(partial(self._answer_tool, call, frame["name"], frame.get("args", {}), cancel))

    # --- answering

    def _answer_command(self, id: str, name: str, args: str) -> None:
        frame = {"type": "command_response", "id": id}
        try:
            if name not in self._declared.commands:
                raise ExtensionError(f"unknown command {name}")
            self.send({**frame, **_command_fields(self._settle(self._declared.commands[name](args)))})
        except BaseException as exc:  # noqa: BLE001 - whatever it is, the user is told
            self.send({**frame, "action": "noop", "error": _explain(f"command {name}", exc)})

    def _answer_intercept(self, id: str, event: str, question: _Frame) -> None:
        frame = {"type": "event_intercept_response", "id": id}
        try:
            handler = self._declared.interceptors.get(event)
            answer = None if handler is None else self._settle(handler(*_ASKED[event](question)))
            self.send({**frame, **_verdict_fields(event, answer)})
        except BaseException as exc:  # noqa: BLE001 - a guard that fails lets nothing through
            reason = f"guard {self._name} failed: {_explain(f'the interceptor of {event}', exc)}"
            self.send({**frame, "block": True, "reason": reason})

    def _answer_tool(self, id: str, name: str, args: Any, cancel: Cancel) -> None:
        try:
            result = self._run_tool(name, args, cancel)
            blocks = _blocks(result.content)
        except BaseException as exc:  # noqa: BLE001 - whatever it is, the model is told
            text = "cancelled" if cancel.cancelled else _explain(f"tool {name}", exc)
            result, blocks = ToolResult(is_error=True), _blocks(text)
        if self._calls.pop(id, None) is not None:
            self._send_result(id, blocks, result)

    def _run_tool(self, name: str, args: Any, cancel: Cancel) -> ToolResult:
        tool = self._declared.tools.get(name)
        if tool is None:
            raise ExtensionError(f"unknown tool {name}")
        extra = {tool.cancel: cancel} if tool.cancel else {}
        if tool.parameters is None:
            result = tool.handler(args, **extra)
        else:
            result = tool.handler(**_read_arguments(tool, args), **extra)
        result = self._settle(result, cancel)
        return result if isinstance(result, ToolResult) else ToolResult(result)

    def _send_result(self, id: str, blocks: list[_Frame], result: ToolResult) -> None:
        frame: _Frame = {"type": "tool_result", "id": id}
        try:
            flags = {"is_error": result.is_error, "activate_tools": list(result.activate)}
            used = {name: value for name, value in flags.items() if value}
            self.send({**frame, "content": blocks, **used, **self._details_fields(result.details)})
        except Exception as exc:  # noqa: BLE001 - too long, or no JSON; the model must not wait for it
            if self._declared.state is not None:
                self._declared.state.forget_saved()
            self.send({**frame, "content": _blocks(_explain("the result", exc)), "is_error": True})

    def _details_fields(self, details: Any) -> _Frame:
        """The state to keep: the handler's own word, else what has changed; nothing when it cannot be JSON."""
        try:
            if details is _ABSENT and self._declared.state is not None:
                details = self._declared.state.to_save()
            if details is _ABSENT:
                return {}
            _dumps(details)
        except (TypeError, ValueError, RecursionError) as exc:
            _log(f"the state is no JSON and is not saved: {exc}")
            return {}
        return {"details": details}


_AT_ONCE: Final = frozenset({"event_intercept", "command_invoked", "tool_call"})
_FRAMES: Final[dict[str, Callable[[_Conversation, _Frame], None]]] = {
    "event": _Conversation.on_event,
    "event_intercept": _Conversation.on_intercept,
    "command_invoked": _Conversation.on_command,
    "tool_call": _Conversation.on_tool_call,
    "panel_key": _Conversation.on_key,
    "panel_close": _Conversation.on_close,
}


def _is_coroutine(handler: Any) -> bool:
    """Whether a function is written with ``async def``."""
    return bool(getattr(getattr(handler, "__code__", None), "co_flags", 0) & _COROUTINE)


def _read_ack(line: bytes) -> Host:
    """The host's first frame. Raises HostError."""
    try:
        ack = _loads(line)
    except ValueError as exc:
        raise HostError(f"the host's first frame must be hello_ack: {exc} ({line[:60]!r})") from None
    if ack.get("type") != "hello_ack":
        raise HostError(f"the host's first frame must be hello_ack, not {ack.get('type')!r}")
    if ack.get("protocol_version") != PROTOCOL_VERSION:
        version = ack.get("protocol_version")
        raise HostError(f"unsupported host protocol version {version!r} (this extension speaks {PROTOCOL_VERSION})")
    texts = {name: str(ack.get(name, "")) for name in ("provider", "model", "cwd", "data_dir")}
    return Host(version=str(ack.get("zut_version", "")), session=_session(ack.get("session")), **texts)


def _session(raw: Any) -> Session | None:
    """A session of a frame."""
    if not isinstance(raw, dict):
        return None
    return Session(**{"id": "", **{name: raw[name] for name in Session._fields if name in raw}})


def _panel(panel: Panel) -> _Frame:
    return {"id": panel.id, "title": panel.title, "lines": list(panel.lines), "footer": panel.footer}


def _command_fields(answer: Any) -> _Frame:
    """A command's answer as the fields of a frame. Raises TypeError."""
    if answer is None:
        return {"action": "noop"}
    if isinstance(answer, str):
        return {"action": "display", "display": answer}
    if isinstance(answer, Prompt):
        return {"action": "prompt", "prompt": answer.text}
    if isinstance(answer, Insert):
        return {"action": "insert", "insert": answer.text}
    if isinstance(answer, Panel):
        return {"action": "open_panel", "open_panel": _panel(answer)}
    raise TypeError(f"a command returns a text, Prompt, Insert, Panel or None, not {answer!r}")


def _verdict_fields(event: str, answer: Any) -> _Frame:
    """An interceptor's answer as the fields of a frame. Raises TypeError."""
    if answer is None:
        return {}
    if isinstance(answer, Block):
        return {"block": True, "reason": answer.reason}
    field, kind = _REWRITES[event]
    if not isinstance(answer, kind):
        raise TypeError(f"an interceptor of {event} returns a Block, a {kind.__name__} or None, not {answer!r}")
    return {field: answer}


# --- the extension ---------------------------------------------------------------------------------------------------


class Extension:
    """An extension: declare what it does with the decorators, then call :meth:`run`.

    Handlers may be plain functions or coroutines. They run side by side, only those of events, keys and closed panels
    run one after the other. ``name`` must be the one in extension.json.
    """

    def __init__(self, name: str, version: str = "", capabilities: Sequence[str] = ()) -> None:
        self.name = name
        self.version = version
        self.host = Host("", "", "", "", "", None)
        """Who runs this extension; empty until the handshake."""
        self._capabilities = tuple(capabilities)
        self._declared = _Declared()
        self._conversation: _Conversation | None = None

    # --- what it does

    def command(self, name: str, description: str = "") -> Callable[[F], F]:
        """A slash command. The handler gets what stands after the name.

        It returns a text to show, a :class:`Prompt`, an :class:`Insert`, a :class:`Panel`, or None for nothing.
        """

        def declare(handler: F) -> F:
            self._declared.commands[name] = handler
            text = description or _read_docstring(handler.__doc__ or "")[0]
            self._register({"type": "register_command", "name": name, "description": text})
            return handler

        return declare

    @typing.overload
    def tool(self, handler: F, /) -> F: ...

    @typing.overload
    def tool(
        self,
        /,
        *,
        name: str = "",
        description: str = "",
        schema: _Frame | None = None,
        deferred: bool = False,
        interactive: bool = False,
    ) -> Callable[[F], F]: ...

    def tool(self, handler: Any = None, /, **options: Any) -> Any:
        """A tool for the model, plain ``@ext.tool`` or with options.

        The handler's parameters are the tool's arguments, already checked; with ``schema`` (a JSON Schema) it gets the
        model's object unchecked instead. It returns a text, an :class:`Image`, a list of these, a
        :class:`ToolResult`, None, or anything that JSON can say. ``deferred`` hides the tool until a result activates
        it; ``interactive`` tools wait for a person and have no deadline.
        """
        if handler is None:
            return lambda handler: self._declare_tool(handler, **options)
        return self._declare_tool(handler, **options)

    def _declare_tool(
        self, handler: F, *, name: str = "", description: str = "", schema: _Frame | None = None, **flags: bool
    ) -> F:
        tool, made = _make_tool(handler, schema)
        name = name or handler.__name__
        text = description or _read_docstring(handler.__doc__ or "")[0]
        frame = {"type": "register_tool", "name": name, "description": text, "schema": made, **flags}
        _dumps(frame)  # a default or schema that is no JSON is found here, not at the start
        self._declared.tools[name] = tool
        self._register(frame)
        return handler

    def on(self, *events: EventName) -> Callable[[F], F]:
        """Be told of these events; the handler gets an :class:`Event`."""
        known = typing.get_args(EventName)
        if wrong := [event for event in events if event not in known]:
            raise ValueError(f"there is no event {', '.join(wrong)}; there is: {', '.join(known)}")

        def declare(handler: F) -> F:
            for event in events:
                self._declared.observers.setdefault(event, []).append(handler)
            self._subscribe(events=list(events))
            return handler

        return declare

    def intercept_tool_call(self, handler: F) -> F:
        """Be asked before a tool runs: ``handler(tool, args)`` returns a Block, other arguments (a dict), or None."""
        return self._intercept("tool_call", handler)

    def intercept_turn_start(self, handler: F) -> F:
        """Be asked before the model is called: ``handler(step)`` returns a Block, context for this call, or None."""
        return self._intercept("turn_start", handler)

    def intercept_assistant_message(self, handler: F) -> F:
        """Be asked before the user sees an answer: ``handler(text)`` returns a Block, another text, or None."""
        return self._intercept("assistant_message", handler)

    def _intercept(self, event: str, handler: F) -> F:
        if event in self._declared.interceptors:
            raise ValueError(f"{event} has an interceptor already; call what you need from that one")
        self._declared.interceptors[event] = handler
        self._subscribe(intercept=[event])
        return handler

    def on_hello(self, handler: F) -> F:
        """Be called with the :class:`Host` before registrations are sent; more can be declared there."""
        self._declared.hello.append(handler)
        return handler

    def on_key(self, panel_id: str) -> Callable[[F], F]:
        """Be told of keys in a panel; the handler gets a :class:`Key`."""

        def declare(handler: F) -> F:
            self._declared.keys[panel_id] = handler
            return handler

        return declare

    def on_close(self, panel_id: str) -> Callable[[F], F]:
        """Be told that the user closed a panel; the handler gets its id."""

        def declare(handler: F) -> F:
            self._declared.closed[panel_id] = handler
            return handler

        return declare

    def state(self, default: T) -> State[T]:
        """A value kept with the conversation: each branch has its own, forks begin with the one of their moment.

        ``state.value`` is ``default`` where nothing was saved. Every tool result saves what has changed since the
        last; changes made elsewhere wait in memory for the next tool result.
        """
        if self._declared.state is not None:
            raise ValueError("the extension has a state already; one value holds everything")
        self._declared.state = state = State(default)
        for event in SESSION_EVENTS:
            self._declared.observers.setdefault(event, [])
        return state

    # --- what it shows

    def notify(self, message: str, level: Level = "info") -> None:
        """Show a note; it goes with the user's next prompt."""
        self._send({"type": "notify", "level": level, "message": message})

    def clear_notes(self) -> None:
        """Take this extension's notes away."""
        self._send({"type": "clear_notes"})

    def status(self, key: str, text: str, level: Level = "info") -> None:
        """Show a status item until it is replaced; an empty text takes it away."""
        self._send({"type": "status", "key": key, "level": level, "text": text})

    def widget(self, id: str, lines: Sequence[str], title: str = "") -> None:
        """Show a few lines above the input until they are replaced."""
        self._send({"type": "widget", "id": id, "position": "above_input", "title": title, "lines": list(lines)})

    def clear_widget(self, id: str) -> None:
        """Take a widget away."""
        self._send({"type": "widget_clear", "id": id})

    def alert(self, reason: str = "", kind: str = "bell") -> None:
        """Ask for the user's attention."""
        self._send({"type": "alert", "kind": kind, "reason": reason})

    def submit(self, text: str) -> None:
        """Queue a prompt as if the user had typed it, where the frontend allows that."""
        self._send({"type": "submit", "text": text})

    def open_panel(self, panel: Panel) -> None:
        """Open a panel without being asked for it."""
        self._send({"type": "open_panel", "panel": _panel(panel)})

    def render_panel(self, panel: Panel) -> None:
        """Draw an open panel anew; one that is not open stays closed."""
        shown = _panel(panel)
        self._send({"type": "panel_render", "panel_id": shown.pop("id"), **shown})

    def close_panel(self, id: str) -> None:
        """Close a panel."""
        self._send({"type": "panel_close", "panel_id": id})

    def _send(self, frame: _Frame) -> None:
        if self._conversation is None:
            raise RuntimeError(f"{frame['type']} before run(): the host is not there yet; do it in on_hello or later")
        self._conversation.send(frame)

    def _register(self, frame: _Frame) -> None:
        if self._conversation is not None and self._conversation.announced:
            self._send(frame)
        else:
            self._declared.registrations.append(frame)

    def _subscribe(self, **fields: list[Any]) -> None:
        if self._conversation is not None and self._conversation.announced:
            self._send({"type": "subscribe", **fields})

    # --- its life

    def run(self) -> None:
        """Serve until the host says ``shutdown`` or goes away; the program goes on after it.

        Everything printed from now on goes to the extension's log, as stdout belongs to the host.
        """
        if os.isatty(0):
            sys.exit(f"{self.name} is an extension: zutd starts it, for example with zutd --ext {os.getcwd()}")
        try:
            self.serve(*_take_stdio())
        except HostError as exc:
            sys.exit(f"{self.name}: {exc}")

    def serve(self, read: int, write: int) -> None:
        """Like :meth:`run`, over two file descriptors. Raises :class:`HostError`."""
        self._conversation = conversation = _Conversation(self.name, self._declared, write)
        lines = _lines(read)
        conversation.send(
            {
                "type": "hello",
                "protocol_version": PROTOCOL_VERSION,
                "name": self.name,
                "version": self.version,
                "capabilities": [*self._declared.capabilities(), *self._capabilities],
            }
        )
        first = next(lines, None)
        if first is None:
            return
        self.host = _read_ack(first)
        for handler in self._declared.hello:
            conversation.attempt("on_hello", handler, self.host)
        conversation.announce()
        conversation.serve(lines)
