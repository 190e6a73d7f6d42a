"""The tool ``grep``: lines that match a pattern, found by the best searcher that the system has."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Final

import attrs
import trio

from zutd.processes.group import Watcher, describe_exit
from zutd.tools.arguments import check_arguments
from zutd.tools.base import BuiltinTool, ToolContext, ToolError, ToolOutput, text_output
from zutd.tools.child import Ending, Order, run_child
from zutd.tools.files import failure, kind_of, readable, resolve
from zutd.tools.text import MAX_BYTES, MAX_LINES, cut, decode, fit

TIMEOUT: Final = 30
"""Seconds a search may take."""

LONGEST_LINE: Final = 500
"""Bytes that are shown of one line."""

_ERRORS: Final = 2000

SCHEMA: Final = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "minLength": 1, "maxLength": 16384, "description": "Regular expression"},
        "path": {"type": "string", "minLength": 1, "description": "Directory or file to search; default: here"},
    },
    "required": ["pattern"],
    "additionalProperties": False,
}


@attrs.frozen(eq=False, repr=False)
class Engine:
    """A searcher: the program, its kind of patterns, and its arguments for a pattern and a root.

    Each prints ``path:line:text`` and exits with 0 for matches, 1 for none, 2 or more for trouble; trouble with the
    pattern is said on stderr, trouble with single files is not.
    """

    name: str
    program: str
    patterns: str
    arguments: Callable[[str, str], tuple[str, ...]]


def _rg(pattern: str, root: str) -> tuple[str, ...]:
    flags = ("--no-config", "--no-heading", "--with-filename", "--line-number", "--color=never", "--no-messages")
    return (*flags, "-e", pattern, "--", root)


def _grep(pattern: str, root: str) -> tuple[str, ...]:
    return ("-r", "-n", "-H", "-I", "-s", "-E", "--exclude-dir=.git", "-e", pattern, "--", root)


def _walk(pattern: str, root: str) -> tuple[str, ...]:
    return ("-I", "-S", str(Path(__file__).with_name("walkgrep.py")), pattern, root)


def find_engine() -> Engine:
    """``rg``, else ``grep``, else our own walk."""
    import shutil

    for name, patterns, arguments in (("rg", "ripgrep", _rg), ("grep", "POSIX extended (grep -E)", _grep)):
        if program := shutil.which(name):
            return Engine(name, program, patterns, arguments)
    return Engine("python", sys.executable, "Python", _walk)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class GrepTool(BuiltinTool):
    """Searches files for a pattern."""

    engine: Engine = attrs.field(factory=find_engine)
    watcher: Watcher | None = None
    timeout: float = TIMEOUT
    name: ClassVar[str] = "grep"
    schema: ClassVar[dict[str, Any]] = SCHEMA
    side_effects: ClassVar[bool] = False

    @property
    def description(self) -> str:
        """Says which kind of patterns it takes."""
        return (
            f"Search files below a directory for a {self.engine.patterns} regular expression; gives path:line:text, at "
            f"most {MAX_LINES} lines or {MAX_BYTES // 1024} KiB. Binary files are left out."
        )

    async def run(self, args: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Find the lines that match ``pattern`` at or below ``path``."""
        check_arguments(self.name, self.schema, args)
        raw = args.get("path", ".")
        root = resolve(raw, context.cwd)
        _check_root(root)
        matches, said = Matches(), _Said()
        order = Order(
            argv=(self.engine.program, *self.engine.arguments(args["pattern"], raw if raw[0] != "~" else str(root))),
            cwd=context.cwd,
            environment=context.environment,
            timeout=self.timeout,
        )
        try:
            ending = await run_child(order, matches, errors=said, watcher=self.watcher)
        except ValueError:
            raise ToolError("grep: the pattern holds a NUL or half a character; leave it out") from None
        except OSError as error:
            raise ToolError(f"grep: cannot start {self.engine.program}: {error.strerror}") from None
        matches.end()
        return _output(self, root, ending, matches, decode(bytes(said.text)).strip())


def _check_root(root: Path) -> None:
    try:
        status = root.stat()
    except OSError as error:
        raise failure("search", root, error) from None
    if not (root.is_dir() or root.is_file()):
        raise ToolError(f"cannot search {readable(root)}: it is {kind_of(status.st_mode)}; name a directory or a file")


class Matches:
    """Takes a searcher's output line by line: long lines are cut, and it is full at the result's limits."""

    def __init__(self) -> None:
        self.text = bytearray()
        self.lines = 0
        self.cut_lines = 0
        self.full = False
        self._partial = bytearray()

    async def feed(self, data: bytes | bytearray) -> bool:
        """Take output; False once nothing more fits."""
        *whole, rest = data.split(b"\n")
        for line in whole:
            self._partial += line[: LONGEST_LINE + 1 - len(self._partial)]
            self._take()
            if self.full:
                return False
        self._partial += rest[: LONGEST_LINE + 1 - len(self._partial)]
        await trio.lowlevel.checkpoint()
        return True

    def end(self) -> None:
        """The output has ended; a last line without its newline counts."""
        if self._partial and not self.full:
            self._take()

    def _take(self) -> None:
        line = bytes(self._partial)
        self._partial.clear()
        if len(line) > LONGEST_LINE:
            line = cut(line, LONGEST_LINE) + b" [...]"
            self.cut_lines += 1
        if self.lines == MAX_LINES or len(self.text) + len(line) + 1 > MAX_BYTES:
            self.full = True
            return
        self.text += line + b"\n"
        self.lines += 1


class _Said:
    """Takes the beginning of what a searcher says on stderr."""

    def __init__(self) -> None:
        self.text = bytearray()

    async def feed(self, data: bytes | bytearray) -> bool:
        self.text += data[: max(0, _ERRORS - len(self.text))]
        await trio.lowlevel.checkpoint()
        return True


def _output(tool: GrepTool, root: Path, ending: Ending, matches: Matches, said: str) -> ToolOutput:
    failed = not ending.timed_out and not matches.full and ending.returncode not in {0, 1}
    if failed and not matches.lines and (said or (ending.returncode or 0) < 0):
        raise ToolError(f"grep: {said or f'{tool.engine.name} ended: {describe_exit(ending.returncode)}'}")
    lines = [fit(bytes(matches.text), MAX_BYTES).removesuffix("\n")] if matches.lines else []
    if ending.timed_out:
        lines.append(f"[timed out after {tool.timeout:g} seconds; search a narrower path]")
    elif matches.full:
        lines.append(f"[cut after {matches.lines} lines; use a narrower pattern or path]")
    elif not matches.lines:
        lines.append("No matches found.")
    if matches.cut_lines:
        lines.append(f"[lines longer than {LONGEST_LINE} bytes are cut: {matches.cut_lines}]")
    if failed:
        lines.append("[some files could not be read]")
    details = {
        "engine": tool.engine.name,
        "path": readable(root),
        "exit_code": ending.returncode,
        "matched": matches.lines,
        "truncated": matches.full,
        "cut_lines": matches.cut_lines,
        "timed_out": ending.timed_out,
    }
    return text_output("\n".join(lines), details=details, is_error=ending.timed_out)
