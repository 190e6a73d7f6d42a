"""The tool ``read``: a window of a text file, or a picture."""

import os
from pathlib import Path
from typing import Any, ClassVar, Final

import attrs
import trio

from zutd.frames.blocks import Image, Text
from zutd.tools.arguments import check_arguments
from zutd.tools.base import BuiltinTool, ToolContext, ToolError, ToolOutput, text_output
from zutd.tools.files import INLINE, failure, open_regular, readable, resolve
from zutd.tools.text import MAX_BYTES, MAX_LINES, counted, fit, is_lossy
from zutd.tools.window import LineWindow, Shown

MAX_IMAGE: Final = 3_750_000
"""Bytes of a picture file; providers refuse larger ones, and with them the whole conversation."""

_SNIFFED: Final = 8 * 1024
_CHUNK: Final = 64 * 1024
_IN_ONE_GO: Final = 8 * 1024 * 1024
_BOM: Final = b"\xef\xbb\xbf"

SCHEMA: Final = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1, "description": "File, absolute or from the working directory"},
        "offset": {"type": "integer", "minimum": 1, "description": "First line to read, from 1"},
        "limit": {"type": "integer", "minimum": 1, "description": "Most lines to read"},
    },
    "required": ["path"],
    "additionalProperties": False,
}


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ReadTool(BuiltinTool):
    """Reads a text file from a line on, or a picture."""

    name: ClassVar[str] = "read"
    description: ClassVar[str] = (
        f"Read a text file, at most {MAX_LINES} lines or {MAX_BYTES // 1024} KiB at a time: use offset and limit for "
        "the rest of a long file. PNG, JPEG, GIF and WebP files are shown as pictures."
    )
    schema: ClassVar[dict[str, Any]] = SCHEMA
    side_effects: ClassVar[bool] = False

    async def run(self, args: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Read ``path`` from line ``offset`` on."""
        check_arguments(self.name, self.schema, args)
        path = resolve(args["path"], context.cwd)
        await trio.lowlevel.checkpoint_if_cancelled()
        descriptor, status = open_regular(path, "read")
        try:
            start = _read(descriptor, path, _SNIFFED)
            if mime := image_type(start):
                return await _image(descriptor, path, status.st_size, start, mime)
            if b"\0" in start:
                raise ToolError(
                    f"cannot read {readable(path)}: it looks binary; inspect it with bash: file, xxd, strings"
                )
            window = LineWindow(args.get("offset", 1), min(args.get("limit", MAX_LINES), MAX_LINES))
            ended = await _fill(window, start, descriptor, path)
        finally:
            os.close(descriptor)
        return _output(path, window.result(ended=ended), status.st_size)


def image_type(start: bytes) -> str:
    """The MIME type of a picture by its first bytes, or an empty string. Names lie; providers look at the bytes."""
    if start.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if start.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if start.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if start.startswith(b"RIFF") and start[8:12] == b"WEBP":
        return "image/webp"
    return ""


def _read(descriptor: int, path: Path, size: int) -> bytes:
    try:
        return os.read(descriptor, size)
    except OSError as error:
        raise failure("read", path, error) from None


async def _fill(window: LineWindow, start: bytes, descriptor: int, path: Path) -> bool:
    """Feed the window until it is satisfied or the file ends (True). The first bytes at once, the rest in threads."""
    window.feed(start)
    if not start or _feed(window, descriptor, path, INLINE):
        return True
    while not window.satisfied:
        # Each thread reads a bounded part, so that cancelling is heard in between.
        if await trio.to_thread.run_sync(_feed, window, descriptor, path, _IN_ONE_GO):
            return True
    return False


def _feed(window: LineWindow, descriptor: int, path: Path, size: int) -> bool:
    """Feed up to about ``size`` bytes; True at the end of the file."""
    taken = 0
    while taken < size and not window.satisfied:
        data = _read(descriptor, path, _CHUNK)
        if not data:
            return True
        window.feed(data)
        taken += len(data)
    return False


async def _image(descriptor: int, path: Path, size: int, start: bytes, mime: str) -> ToolOutput:
    if size > MAX_IMAGE:
        raise ToolError(
            f"cannot read {readable(path)}: the picture is {size / 1e6:.2f} MB and the limit is "
            f"{MAX_IMAGE / 1e6:g} MB (providers take 5 MiB of base64); make a smaller copy first, "
            "for example with ImageMagick: convert IN -resize 1600x1600 OUT"
        )
    import base64

    def rest() -> str:
        data = start
        while len(data) <= MAX_IMAGE and (more := _read(descriptor, path, MAX_IMAGE)):
            data += more
        return base64.b64encode(data[:MAX_IMAGE]).decode()

    encoded = rest() if size <= INLINE else await trio.to_thread.run_sync(rest)
    return ToolOutput(
        content=(Text(text=f"{readable(path)}: {mime}, {counted(size, 'byte')}"), Image(mime_type=mime, data=encoded)),
        details={"path": readable(path), "mime_type": mime, "bytes": size},
    )


def _output(path: Path, shown: Shown, size: int) -> ToolOutput:
    if shown.last < shown.first:
        return _nothing(path, shown)
    data = shown.data.removeprefix(_BOM) if shown.first == 1 else shown.data
    text = fit(data, MAX_BYTES)
    lossy = is_lossy(data)
    notes = list(_notes(shown, lossy=lossy))
    if notes:
        text = text + ("" if text.endswith("\n") else "\n") + "\n".join(notes)
    details = {
        "path": readable(path),
        "start_line": shown.first,
        "end_line": shown.last,
        "total_lines": shown.total,
        "next_offset": shown.last + 1 if shown.following else None,
        "truncated": shown.following or bool(shown.cut_line),
        "lossy": lossy,
        "bytes": size,
    }
    return text_output(text, details=details)


def _nothing(path: Path, shown: Shown) -> ToolOutput:
    if shown.total == 0:
        details = {"path": readable(path), "start_line": 1, "end_line": 0, "total_lines": 0, "truncated": False}
        return text_output(f"[{readable(path)} is empty]", details=details)
    raise ToolError(
        f"cannot read {readable(path)} from line {shown.first}: it has {counted(shown.total or 0, 'line')}; "
        "use a smaller offset"
    )


def _notes(shown: Shown, *, lossy: bool) -> list[str]:
    notes = []
    if shown.cut_line:
        notes.append(
            f"[line {shown.first} is at least {shown.cut_line} bytes long: only its beginning is shown; "
            f"see more of it with bash: sed -n {shown.first}p FILE | cut -b {MAX_BYTES}-]"
        )
    if shown.following:
        of = "" if shown.total is None else f" of {shown.total}"
        lines = f"line {shown.first}" if shown.first == shown.last else f"lines {shown.first}-{shown.last}"
        notes.append(f"[{lines}{of} shown; use offset={shown.last + 1} to continue]")
    if lossy:
        notes.append("[bytes that are no UTF-8 text are shown as \N{REPLACEMENT CHARACTER}]")
    return notes
