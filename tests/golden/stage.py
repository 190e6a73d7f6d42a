"""Plays golden conversations with the real daemon, and records them.

A golden file is one JSON object a line. The first, ``{"given": ...}``, says what there is before the first word: the
model's script, files, arguments, environment, an extension. Each other line is ``{"to": who, "line": ...}`` or
``{"from": who, "line": ...}``, where ``who`` is ``daemon`` (a frontend talks to it) or ``extension``.

Values that differ from run to run are placeholders: ``<uuid>``, ``<time>``, ``<int>``, ``<number>``, ``<path>``,
``<id>``, ``<any>``. With a name, as in ``<uuid:2>``, it is the same value wherever it stands.

The extension is a puppet: it says its lines and hears the others in the order of the file.
"""

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.e2e.harness import ROOT, Daemon, write_extension
from tests.e2e.talking import scripted

GOLDEN = ROOT / "protocol" / "golden"

Entry = dict[str, Any]

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
PLACEHOLDER = re.compile(r"<(uuid|time|int|number|path|id|any)(?::(\w+))?>")

KINDS: dict[str, Callable[[Any], bool]] = {
    "uuid": lambda value: isinstance(value, str) and UUID.fullmatch(value) is not None,
    "time": lambda value: isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", value) is not None,
    "int": lambda value: type(value) is int,
    "number": lambda value: type(value) in (int, float),
    "path": lambda value: isinstance(value, str) and value.startswith("/"),
    "id": lambda value: isinstance(value, str) and value != "",
    "any": lambda _: True,
}

SAMPLES: dict[str, Any] = {
    "uuid": "11111111-1111-4111-8111-111111111111",
    "time": "2025-01-02T03:04:05.678Z",
    "int": 1,
    "number": 1.5,
    "path": "/somewhere",
    "id": "c1",
    "any": "anything",
}


def read(path: Path) -> list[Entry]:
    """The entries of a golden file."""
    return [json.loads(line) for line in path.read_text("utf-8").split("\n")[:-1]]


# --- placeholders ----------------------------------------------------------------------------------------------------


def matches(golden: Any, actual: Any, bound: dict[str, Any]) -> bool:
    """Whether a value is what the golden one says; named placeholders are bound by their first value."""
    if isinstance(golden, str) and (found := PLACEHOLDER.fullmatch(golden)):
        fits = KINDS[found[1]](actual)
        return fits and (found[2] is None or bool(bound.setdefault(golden, actual) == actual))
    if type(golden) is not type(actual):
        return False
    if isinstance(golden, dict):
        return set(golden) == set(actual) and all(matches(golden[key], actual[key], bound) for key in golden)
    if isinstance(golden, list):
        pairs = zip(golden, actual, strict=False)
        return len(golden) == len(actual) and all(matches(one, other, bound) for one, other in pairs)
    return bool(golden == actual)


def filled(golden: Any, bound: dict[str, Any], *, sample: bool = False) -> Any:
    """A golden value with its placeholders replaced: by what they are bound to, or by samples."""
    if isinstance(golden, str) and (found := PLACEHOLDER.fullmatch(golden)):
        return SAMPLES[found[1]] if sample else bound[golden]
    if isinstance(golden, dict):
        return {key: filled(value, bound, sample=sample) for key, value in golden.items()}
    if isinstance(golden, list):
        return [filled(value, bound, sample=sample) for value in golden]
    return golden


# --- the puppet ------------------------------------------------------------------------------------------------------

PUPPET = '''#!/usr/bin/env -S python3 -I -S
"""Says and hears the lines of play.json, in order; what it said and heard is in heard.jsonl."""
import json, os, re, sys

here = os.path.dirname(os.path.abspath(__file__))
bound = {}

def learn(golden, actual):
    if isinstance(golden, str) and re.fullmatch(r"<\\w+:\\w+>", golden):
        bound.setdefault(golden, actual)
    elif isinstance(golden, dict) and isinstance(actual, dict):
        for key in golden:
            learn(golden[key], actual.get(key))

def filled(value):
    if isinstance(value, dict):
        return {key: filled(item) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item) for item in value]
    return bound.get(value, value) if isinstance(value, str) else value

with open(os.path.join(here, "play.json")) as file:
    play = json.load(file)
heard = open(os.path.join(here, "heard.jsonl"), "w")

def note(direction, line):
    heard.write(json.dumps([direction, line]) + "\\n")
    heard.flush()

def hear():
    text = sys.stdin.readline()
    if not text:
        sys.exit()
    frame = json.loads(text)
    note("to", frame)
    return frame

for entry in play:
    if "from" in entry:
        line = filled(entry["line"])
        note("from", line)
        sys.stdout.write(json.dumps(line) + "\\n")
        sys.stdout.flush()
    else:
        learn(entry["line"], hear())
while hear()["type"] != "shutdown":
    pass
'''


class Stage:
    """A daemon in the situation that a golden file gives, and its puppet."""

    def __init__(self, home: Path, given: Entry, play: Iterable[Entry]) -> None:
        env = {**scripted(home, *given.get("script", [])), **given.get("env", {})}
        for name, content in given.get("files", {}).items():
            (home / name).write_text(content)
        arguments = list(given.get("arguments", []))
        self._heard: Path | None = None
        if "extension" in given:
            directory = write_extension(home / "extensions-of-the-test", "puppet", PUPPET, **given["extension"])
            (directory / "play.json").write_text(json.dumps(list(play)))
            self._heard = directory / "heard.jsonl"
            arguments += ["-e", str(directory)]
        self.daemon = Daemon(home, *arguments, env=env)

    def lines_of_extension(self) -> list[Entry]:
        """What the puppet has said and heard."""
        if self._heard is None or not self._heard.exists():
            return []
        notes = [json.loads(line) for line in self._heard.read_text().split("\n")[:-1]]
        return [{direction: "extension", "line": line} for direction, line in notes]


def play(home: Path, entries: list[Entry]) -> tuple[list[Any], list[Any]]:
    """Play a golden conversation; what the daemon said to the frontend, and what the extension heard.

    Fails where the daemon says something else than the file.
    """
    given, *lines = entries
    bound: dict[str, Any] = {}
    stage = Stage(home, given["given"], [entry for entry in lines if "extension" in entry.values()])
    said: list[Any] = []
    with stage.daemon as daemon:
        for number, entry in enumerate(lines, 2):
            if entry.get("to") == "daemon":
                daemon.send_bytes(raw(filled(entry["line"], bound)))
            elif entry.get("from") == "daemon":
                frame = daemon.next_frame()
                said.append(frame)
                assert matches(entry["line"], frame, bound), (
                    f"line {number}: expected {json.dumps(entry['line'])[:1500]}\ngot {json.dumps(frame)[:1500]}"
                )
        daemon.finish()
        rest = [frame for frame in daemon.frames[len(said) :] if frame.get("type") not in ENDING]
        assert not rest, f"said after the end of the file: {rest[:3]}"
        assert b"Traceback" not in daemon.stderr, daemon.stderr.decode("utf-8", "replace")
    heard = [entry["line"] for entry in stage.lines_of_extension() if "to" in entry]
    for number, entry in enumerate(lines, 2):
        if entry.get("to") == "extension":
            frame = heard.pop(0)
            said.append(("extension", frame))
            assert matches(entry["line"], frame, bound), f"line {number}: {entry['line']} is not {frame}"
    return [one for one in said if not isinstance(one, tuple)], [one[1] for one in said if isinstance(one, tuple)]


ENDING = ("ext_exit", "ext_chrome_clear", "ext_error")
"""Events of extensions that end with the daemon: no part of the conversation."""


def raw(line: Any) -> bytes:
    """A line as it is sent: JSON, or (given as ``{"raw": text}``) that text as it is."""
    if isinstance(line, dict) and set(line) == {"raw"}:
        return str(line["raw"]).encode() + b"\n"
    return json.dumps(line).encode() + b"\n"


# --- recording -------------------------------------------------------------------------------------------------------

BY_KEY = {
    "time": "<time>",
    "started": "<time>",
    "modified": "<time>",
    "cwd": "<path>",
    "directory": "<path>",
    "log": "<path>",
    "extension_dir": "<path>",
    "data_dir": "<path>",
    "version": "<any>",
    "zut_version": "<any>",
    "pid": "<int>",
    "used": "<int>",
    "delay_ms": "<int>",
    "latency_ms": "<number>",
}
"""Placeholders for keys whose values differ from run to run, where the value is of that kind."""


class Normaliser:
    """Puts placeholders in the place of what differs; uuids and paths of sessions keep their identity by number."""

    def __init__(self, home: Path) -> None:
        self._home = str(home)
        self._names: dict[str, str] = {}

    def _named(self, kind: str, value: str) -> str:
        if value not in self._names:
            count = sum(name.startswith(f"<{kind}:") for name in self._names.values())
            self._names[value] = f"<{kind}:{count + 1}>"
        return self._names[value]

    def line(self, value: Any, key: str = "", *, own: bool = False, asks: bool = False) -> Any:
        """A line with placeholders.

        ``own`` lines are the test's: only what the daemon had chosen is replaced in them. With ``asks`` an ``id`` is
        one of the daemon's questions to an extension.
        """
        if isinstance(value, dict):
            return {name: self.line(item, name, own=own, asks=asks) for name, item in value.items()}
        if isinstance(value, list):
            return [self.line(item, own=own, asks=asks) for item in value]
        found = None if own else BY_KEY.get(key)
        if found is not None and KINDS[found[1:-1]](value):
            return found
        return self._text(value, key, asks=asks) if isinstance(value, str) else value

    def _text(self, value: str, key: str, *, asks: bool) -> str:
        if UUID.fullmatch(value):
            return self._named("uuid", value)
        if asks and key == "id" and re.fullmatch(r"c\d+", value):
            return self._named("id", value)
        if key == "path" and value.startswith("/"):
            return self._named("path", value)
        return "<any>" if self._home in value else value


def record(home: Path, given: Entry, steps: list[Entry]) -> list[Entry]:
    """Run a scenario and give the entries of its golden file, in the order of its steps.

    ``steps`` are ``{"say": line}`` (to the daemon), ``{"until": {...}}`` (listen until a frame has these values), and
    ``{"puppet": "say", "line": ...}`` and ``{"puppet": "hear"}`` for the extension.
    """
    puppet = [_part(step) for step in steps if "puppet" in step]
    stage = Stage(home, given, puppet)
    entries: list[Entry | None] = []
    known: dict[str, Any] = {}
    with stage.daemon as daemon:
        for step in steps:
            if "say" in step:
                line = filled(step["say"], known)
                entries.append({"to": "daemon", "line": line})
                daemon.send_bytes(raw(line))
            elif "until" in step:
                entries += _listen(daemon, step["until"], known)
            else:
                entries.append(None)  # what the puppet said or heard here is known at the end
        heard = len(daemon.frames)
        daemon.finish()
        rest = [frame for frame in daemon.frames[heard:] if frame.get("type") not in ENDING]
        assert not rest, f"not waited for: {rest}"
    notes = iter(stage.lines_of_extension())
    normal = Normaliser(home)
    whole = [next(notes) if entry is None else entry for entry in entries]
    return [{"given": given}, *(normalised(entry, normal) for entry in whole)]


def _part(step: Entry) -> Entry:
    direction = "from" if step["puppet"] == "say" else "to"
    return {direction: "extension", "line": step["line"]}


def normalised(entry: Entry, normal: Normaliser) -> Entry:
    """An entry as it stands in the file."""
    extension = "extension" in entry.values()
    own = entry.get("to") == "daemon" or entry.get("from") == "extension"
    return {**entry, "line": normal.line(entry["line"], own=own, asks=extension)}


def _listen(daemon: Daemon, wanted: Entry, known: dict[str, Any]) -> list[Entry]:
    """Read until a frame fits; ``wanted`` may bind named placeholders that later lines use."""
    entries: list[Entry] = []
    while True:
        frame = daemon.next_frame()
        entries.append({"from": "daemon", "line": frame})
        if isinstance(frame, dict) and _fits(wanted, frame, known):
            return entries


def _fits(wanted: Any, actual: Any, known: dict[str, Any]) -> bool:
    if isinstance(wanted, dict):
        return isinstance(actual, dict) and all(
            key in actual and _fits(value, actual[key], known) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(actual, list) and all(
            _fits(one, two, known) for one, two in zip(wanted, actual, strict=False)
        )
    return matches(wanted, actual, known)


def write(path: Path, entries: list[Entry]) -> None:
    """Write a golden file."""
    text = "".join(json.dumps(entry, ensure_ascii=False, separators=(",", ":")) + "\n" for entry in entries)
    path.write_text(text, "utf-8")
