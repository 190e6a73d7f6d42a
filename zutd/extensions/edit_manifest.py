"""Switch an extension on or off by changing one word of its manifest and not one byte more.

The text is scanned, not written anew: the order of keys, the spacing, numbers of any size and whatever else stands
in the file stay as their author wrote them.
"""

import contextlib
import json
import os
from typing import Any, Final, NamedTuple

from zutd.extensions.manifest import MANIFEST, ManifestError

KEY: Final = "enabled"
_SPACE: Final = " \t\r\n"


class _Member(NamedTuple):
    key: str
    key_at: int
    key_end: int
    value_at: int
    value_end: int


def set_enabled(text: str, *, enabled: bool) -> str:
    """The manifest's text with ``enabled`` set: in its place if it is there, else after the last member.

    ``text`` must hold a JSON object (a byte order mark before it stays); raises ValueError if it does not.
    """
    word = "true" if enabled else "false"
    members = _members(text)
    ours = [member for member in members if member.key == KEY]
    for member in reversed(ours):  # the last one counts; all of them say the same afterwards
        text = text[: member.value_at] + word + text[member.value_end :]
    if ours:
        return text
    if not members:
        at = text.index("{") + 1
        return f'{text[:at]}"{KEY}": {word}{text[at:]}'
    first, last = members[0], members[-1]
    before = text[text.index("{") + 1 : first.key_at]
    colon = text[first.key_end : first.value_at]
    return f'{text[: last.value_end]},{before}"{KEY}"{colon}{word}{text[last.value_end :]}'


def _members(text: str) -> list[_Member]:
    """Where the keys and values of the object are. Raises ValueError where the text is not JSON."""
    members: list[_Member] = []
    at = _expect(text, _skip(text, 1 if text.startswith("\ufeff") else 0), "{")
    at = _skip(text, at)
    while text[at : at + 1] != "}":
        if members:
            at = _skip(text, _expect(text, at, ","))
        _expect(text, at, '"')
        key, key_end = _value(text, at)
        value_at = _skip(text, _expect(text, _skip(text, key_end), ":"))
        _, value_end = _value(text, value_at)
        members.append(_Member(key, at, key_end, value_at, value_end))
        at = _skip(text, value_end)
    if text[at + 1 :].strip(_SPACE):
        raise json.JSONDecodeError("something stands after the object", text, at + 1)
    return members


_DECODER: Final = json.JSONDecoder(parse_int=str)  # the value is thrown away, and Python refuses very long integers


def _value(text: str, at: int) -> tuple[Any, int]:
    return _DECODER.raw_decode(text, at)


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _expect(text: str, at: int, character: str) -> int:
    if text[at : at + 1] != character:
        raise json.JSONDecodeError(f"expected {character!r}", text, at)
    return at + 1


def write_enabled(directory: str, *, enabled: bool) -> None:
    """Change the manifest in ``directory``, whole or not at all. Raises :class:`ManifestError`, OSError."""
    path = os.path.join(directory, MANIFEST)
    if os.path.islink(path):
        raise ManifestError(f"{path} is a symbolic link; edit what it points to yourself")
    with open(path, "rb") as file:
        raw = file.read()
    try:
        changed = set_enabled(raw.decode("utf-8"), enabled=enabled).encode("utf-8")
    except (ValueError, RecursionError) as exc:
        raise ManifestError(f"parse manifest: {path}: {exc}") from None
    if changed != raw:
        _replace(path, changed)


def _replace(path: str, data: bytes) -> None:
    temporary = f"{path}.{os.getpid()}.tmp"
    mode = os.stat(path).st_mode & 0o777
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
