"""Talking to the daemon in tests: scripts for its model, tools that wait for a sign, frames held to their schema."""

import functools
import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import jsonschema_rs

from tests.e2e.harness import PATIENCE, ROOT, Daemon
from tests.extensions.programs import eventually

Json = dict[str, Any]


# --- scripts ---------------------------------------------------------------------------------------------------------


def text(said: str, **more: Any) -> Json:
    """An answer that says this."""
    return {"steps": [{"text": said, "chunk": 4}], **more}


def calls(*wanted: tuple[str, Json], said: str = "", **more: Any) -> Json:
    """An answer that calls tools."""
    steps: list[Json] = [{"text": said}] if said else []
    steps += [{"tool_call": {"name": name, "args": args}} for name, args in wanted]
    return {"steps": steps, **more}


def bash(command: str, timeout: int = 60) -> tuple[str, Json]:
    """A call of the shell."""
    return "bash", {"command": command, "timeout": timeout}


def hanging(said: str = "", **more: Any) -> Json:
    """An answer that begins and never ends."""
    steps: list[Json] = [{"text": said}] if said else []
    return {"steps": [*steps, {"delay_ms": 600_000}], **more}


def scripted(home: Path, *answers: Json) -> dict[str, str]:
    """The environment in which the scripted model gives these answers."""
    home.mkdir(parents=True, exist_ok=True)
    path = home / "script.json"
    path.write_text(json.dumps(list(answers)))
    return {"ZUTD_SCRIPT": str(path)}


class Gate:
    """A command that ends when the test says so: it reads from a named pipe."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "gate"
        os.mkfifo(self._path)
        self.call = bash(f"cat '{self._path}'")

    def open(self, said: str = "open") -> None:
        """Let the command go on, with this output; returns when it has begun to read."""
        self._path.write_text(said)


# --- schemas ---------------------------------------------------------------------------------------------------------


def _refuse(uri: str) -> Any:
    raise LookupError(uri)


@functools.cache
def schema(file: str, name: str) -> Any:
    """The validator of one definition of ``protocol/<file>.schema.json``."""
    definitions = json.loads((ROOT / "protocol" / f"{file}.schema.json").read_text())["$defs"]
    whole = {"$ref": f"#/$defs/{name}", "$defs": definitions}
    return jsonschema_rs.Draft202012Validator(whole, retriever=_refuse)


class Checked(Daemon):
    """A daemon all of whose frames fit the protocol's schema, and whose stderr shows no traceback."""

    definition = "FromDaemon"

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        super().__exit__(kind, exc, tb)
        if kind is None:
            self.check()

    def have(self, type: str, **fields: Any) -> Json:
        """An event of a type with these fields, whether it has come already or comes yet."""
        for frame in self.frames:
            if frame.get("type") == type and all(frame.get(key) == value for key, value in fields.items()):
                return frame
        return self.event(type, **fields)

    def check(self) -> None:
        """Hold every frame so far to the schema."""
        valid = schema("client", self.definition)
        for frame in self.frames:
            valid.validate(frame)
        assert b"Traceback" not in self.stderr, self.stderr.decode("utf-8", "replace")


class RpcClient(Checked):
    """The daemon spoken to in JSON-RPC 2.0."""

    def request(self, method: str, params: Json | None = None, *, id: Any = None) -> Json:
        """Send a request and give the whole response."""
        self._next_id += 1
        message_id = self._next_id if id is None else id
        message: Json = {"jsonrpc": "2.0", "id": message_id, "method": method}
        self.raw(message if params is None else {**message, "params": params})
        return self.wait_for(lambda frame: "method" not in frame and frame.get("id") == message_id)

    def result(self, method: str, params: Json | None = None) -> Json:
        """Send a request that must succeed; its result."""
        response = self.request(method, params)
        assert "error" not in response, response
        found: Json = response["result"]
        return found

    def raw(self, value: Any) -> None:
        """Send any JSON value as a line."""
        self.send_bytes(json.dumps(value).encode() + b"\n")

    def told(self, method: str, patience: float = PATIENCE) -> Json:
        """The parameters of the next notification of this kind."""
        found: Json = self.wait_for(lambda frame: frame.get("method") == method, patience)["params"]
        return found


def wait_until(true: Callable[[], bool], patience: float = PATIENCE) -> None:
    """Return when something is the case that nobody tells of: there is nothing to wait for but to look."""
    assert eventually(true, patience), "it did not come about"


# --- looking at frames -----------------------------------------------------------------------------------------------


def of(frames: Iterable[Json], *types: str) -> list[Json]:
    """The frames of these types."""
    return [frame for frame in frames if frame.get("type") in types]


def types(frames: Iterable[Json]) -> list[str]:
    """The types of all events, in order."""
    return [str(frame["type"]) for frame in frames if frame.get("type") != "response"]


def said(frame: Mapping[str, Any]) -> str:
    """All text of an event's content."""
    return "".join(block["text"] for block in frame.get("content", ()) if block.get("type") == "text")


def rows(path: str | Path) -> list[Json]:
    """All whole rows of a session file, the header included."""
    data = Path(path).read_bytes()
    return [json.loads(line) for line in data.split(b"\n")[:-1]]
