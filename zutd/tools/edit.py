"""The tool ``edit``: exact replacements in a file, all or none."""

import os
from pathlib import Path
from typing import Any, ClassVar, Final

import attrs

from zutd.tools.arguments import check_arguments
from zutd.tools.base import BuiltinTool, ToolContext, ToolError, ToolOutput, text_output
from zutd.tools.files import off_loop, open_regular, read_all, readable, replace_file, resolve
from zutd.tools.text import counted

MAX_FILE: Final = 16 * 1024 * 1024
_SNIFFED: Final = 8 * 1024
_SHOWN_LINES: Final = 80
_SHOWN_SIZE: Final = 4 * 1024

SCHEMA: Final = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1, "description": "File, absolute or from the working directory"},
        "edits": {
            "type": "array",
            "minItems": 1,
            "description": "Replacements; each oldText is looked for in the original file",
            "items": {
                "type": "object",
                "properties": {
                    "oldText": {"type": "string", "description": "Exact text that occurs once in the file"},
                    "newText": {"type": "string", "description": "What stands there afterwards"},
                },
                "required": ["oldText", "newText"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["path", "edits"],
    "additionalProperties": False,
}


@attrs.frozen(kw_only=True, eq=False, repr=False)
class EditTool(BuiltinTool):
    """Replaces texts in a file."""

    name: ClassVar[str] = "edit"
    description: ClassVar[str] = (
        "Replace exact texts in a file. Every oldText must occur exactly once in the original file, and the edits must "
        "not overlap; if one cannot be made, nothing is changed. Line ends may be given as LF for any file."
    )
    schema: ClassVar[dict[str, Any]] = SCHEMA

    async def run(self, args: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Make all ``edits`` in ``path``, or none."""
        check_arguments(self.name, self.schema, args)
        path = resolve(args["path"], context.cwd)
        descriptor, status = open_regular(path, "edit")
        try:
            return await off_loop(status.st_size, lambda: _edit(descriptor, path, args["edits"]))
        finally:
            os.close(descriptor)

    async def preview(self, args: dict[str, Any], context: ToolContext) -> str:
        """The diff that the edits would make; changes nothing. Raises ToolError when they cannot be made."""
        check_arguments(self.name, self.schema, args)
        path = resolve(args["path"], context.cwd)
        descriptor, status = open_regular(path, "edit")
        try:
            return await off_loop(status.st_size, lambda: _preview(descriptor, path, args["edits"]))
        finally:
            os.close(descriptor)


def _preview(descriptor: int, path: Path, raw: list[dict[str, Any]]) -> str:
    from zutd.tools.diff import compare

    before, after, _ = _plan(descriptor, path, raw)
    text: str = compare(before, after).details()["diff"]
    return text


def _plan(descriptor: int, path: Path, raw: list[dict[str, Any]]) -> tuple[bytes, bytes, int]:
    """The file before and after all edits, and how many there are."""
    from zutd.tools.replace import apply_edits, read_edits

    name = readable(path)
    edits = read_edits(raw, name)
    before = read_all(descriptor, path, "edit", MAX_FILE)
    if b"\0" in before[:_SNIFFED]:
        raise ToolError(f"cannot edit {name}: it looks binary; change it with bash")
    return before, apply_edits(before, edits, name), len(edits)


def _edit(descriptor: int, path: Path, raw: list[dict[str, Any]]) -> ToolOutput:
    # Loaded with the first edit and not with the daemon.
    from zutd.tools.diff import compare

    name = readable(path)
    before, after, count = _plan(descriptor, path, raw)
    replace_file(path, after)
    difference = compare(before, after)
    details = {"path": name, "edits": count, **difference.details()}
    made = f"Edited {name}: {counted(count, 'replacement')} (+{details['added']} -{details['removed']} lines)"
    shown, cut = difference.unified(lines=_SHOWN_LINES, size=_SHOWN_SIZE)
    more = "\n[the rest of the diff is left out]" if cut else ""
    return text_output(f"{made}\n{shown}{more}", details=details)
