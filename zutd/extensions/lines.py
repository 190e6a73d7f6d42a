"""What may stand on the lines between the host and an extension: frames as lines, and the first line, which is hello.

(pure)
"""

from typing import Any, Final

from zutd.extensions.majors import MAJOR_2, Major
from zutd.frames.extension import Hello
from zutd.wire.codec import ProtocolError, decode_object, encode_frame, structure_tagged


class StartError(Exception):
    """The child did not come to life. ``stage`` is ``load`` (spawn) or ``handshake``."""

    def __init__(self, stage: str, message: str) -> None:
        super().__init__(message)
        self.stage = stage
        self.message = message


def to_line(frame: Any) -> bytes:
    """A frame as a line. It holds no line end but its last byte, not even one that only Unicode knows: the line
    readers of some languages split at those.
    """
    data = encode_frame(frame)
    for separator, escaped in _SEPARATORS:
        if separator in data:
            data = data.replace(separator, escaped)
    return data + b"\n"


_SEPARATORS: Final = tuple((char.encode(), f"\\u{ord(char):04x}".encode()) for char in "\u0085\u2028\u2029")


def check_hello(line: bytes, name: str, major: Major = MAJOR_2) -> Hello:
    """The first line of a child. Raises :class:`StartError` for everything but a good ``hello``."""
    try:
        raw = decode_object(line, replace=True)
    except ProtocolError as exc:
        raise StartError("handshake", f"parse hello: {exc.message} (line begins {excerpt(line)})") from None
    tag = raw.get("type")
    if tag != "hello":
        raise StartError("handshake", f"first frame must be hello, got type {str(tag)[:80]!r}")
    version = raw.get("protocol_version", 0)
    if type(version) is not int:
        raise StartError("handshake", f"parse hello: protocol_version must be an integer, got {str(version)[:80]!r}")
    if not major.accepts(version):
        raise StartError("handshake", _version_problem(version, major))
    try:
        hello: Hello = structure_tagged(raw, {"hello": Hello}, "frame type")
    except ProtocolError as exc:
        raise StartError("handshake", f"parse hello: {exc.message}") from None
    if not hello.name:
        raise StartError("handshake", "first frame must be hello with a name")
    if hello.name != name and major.number != 1:  # zot took any name and used the manifest's
        raise StartError(
            "handshake",
            f"hello says its name is {hello.name[:80]!r}, but extension.json says {name!r}: make them equal",
        )
    return hello


def _version_problem(version: int, major: Major) -> str:
    problem = f"unsupported extension protocol version {version} (want {major.number})"
    if major.number == 1:
        return (
            f'{problem}: it runs as one of zot\'s, because its extension.json says "protocol": 1 or lies where zot '
            'keeps extensions; one of protocol 2 says "protocol": 2 there'
        )
    if version:
        return problem
    return (
        f"{problem}: hello has no protocol_version, as those of zot's extensions (protocol 1) have none; to run such "
        'an extension as it is, put "protocol": 1 into its extension.json'
    )


def excerpt(line: bytes) -> str:
    """The beginning of a line, for a complaint about it."""
    return repr(line[:60].decode("utf-8", "replace"))
