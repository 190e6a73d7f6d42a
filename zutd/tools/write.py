"""The tool ``write``: a file's whole content, atomically."""

import os
from pathlib import Path
from typing import Any, ClassVar, Final

import attrs

from zutd.tools.arguments import check_arguments
from zutd.tools.base import BuiltinTool, ToolContext, ToolError, ToolOutput, text_output
from zutd.tools.files import off_loop, open_regular, read_all, readable, replace_file, resolve
from zutd.tools.text import counted, line_count

_COMPARED: Final = 4 * 1024 * 1024

SCHEMA: Final = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1, "description": "File, absolute or from the working directory"},
        "content": {"type": "string", "description": "The whole new content"},
    },
    "required": ["path", "content"],
    "additionalProperties": False,
}


@attrs.frozen(kw_only=True, eq=False, repr=False)
class WriteTool(BuiltinTool):
    """Makes or replaces a file."""

    name: ClassVar[str] = "write"
    description: ClassVar[str] = (
        "Create a file, or replace all of it. Missing directories are made. To change parts of a file use edit."
    )
    schema: ClassVar[dict[str, Any]] = SCHEMA

    async def run(self, args: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Make ``content`` the content of ``path``."""
        check_arguments(self.name, self.schema, args)
        if args["path"].endswith("/"):
            raise ToolError(f"cannot write {args['path']}: it names a directory; name a file in it")
        path = resolve(args["path"], context.cwd)
        data = _encoded(args["content"], path)
        return await off_loop(len(data) + _size(path), lambda: _write(path, data))

    async def preview(self, args: dict[str, Any], context: ToolContext) -> str:
        """The diff that the write would make; changes nothing."""
        check_arguments(self.name, self.schema, args)
        path = resolve(args["path"], context.cwd)
        data = _encoded(args["content"], path)
        return await off_loop(len(data) + _size(path), lambda: _preview(path, data))


def _preview(path: Path, data: bytes) -> str:
    from zutd.tools.diff import compare

    if len(data) > _COMPARED or b"\0" in data:
        return ""
    text: str = compare(_comparable(path) or b"", data).details()["diff"]
    return text


def _encoded(content: str, path: Path) -> bytes:
    try:
        return content.encode()
    except UnicodeEncodeError as error:
        raise ToolError(
            f"cannot write {readable(path)}: character {error.start} of the content is half a character "
            "(a lone surrogate); send it whole or leave it out"
        ) from None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _write(path: Path, data: bytes) -> ToolOutput:
    before = _comparable(path)
    created = replace_file(path, data)
    lines = line_count(data)
    details: dict[str, Any] = {"path": readable(path), "bytes": len(data), "lines": lines, "created": created}
    if created:
        before = b""
    if before is not None and len(data) <= _COMPARED and b"\0" not in data:
        from zutd.tools.diff import compare

        details |= compare(before, data).details()
    did = "Created" if created else "Wrote"
    return text_output(
        f"{did} {readable(path)}: {counted(lines, 'line')}, {counted(len(data), 'byte')}.", details=details
    )


def _comparable(path: Path) -> bytes | None:
    """The old text, None when there is none, or when it is not worth a diff."""
    try:
        descriptor, _ = open_regular(path, "read")
    except ToolError:
        return None  # absent, or unreadable: whether it can be written is asked next
    try:
        data = read_all(descriptor, path, "compare", _COMPARED)
    except ToolError:
        return None
    finally:
        os.close(descriptor)
    return None if b"\0" in data else data
