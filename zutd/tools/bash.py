"""The tool ``bash``: one command line, its output, its exit status."""

import codecs
import errno
import os
from pathlib import Path
from typing import Any, ClassVar, Final

import attrs
import trio

from zutd.processes.group import Watcher, describe_exit
from zutd.tools.arguments import check_arguments
from zutd.tools.base import BuiltinTool, ToolContext, ToolError, ToolOutput, text_output
from zutd.tools.child import Ending, Order, Remainder, run_child
from zutd.tools.files import readable
from zutd.tools.spill import Kept, Spill
from zutd.tools.text import MAX_BYTES, MAX_LINES, HeadTail, counted

DEFAULT_MAX_TIMEOUT: Final = 600
"""Seconds a command may ask for, unless the settings say otherwise."""

PROGRESS_BURST: Final = 128 * 1024
PROGRESS_RATE: Final = 256 * 1024
"""Bytes of progress at once, and a second. People cannot read more, and frontends should not have to."""

_LEFTOVERS: Final[dict[Remainder, str]] = {
    "nothing": "",
    "background": "[a background process is still running in process group {pgid}; stop it with: kill -- -{pgid}]",
    "stopped": (
        "[a background process held the output open and was stopped; "
        "to leave one running redirect its output: COMMAND >FILE 2>&1 &]"
    ),
    "detached": "[a detached process still holds the output open; what it says is no longer read]",
}


def find_shell() -> str:
    """``/bin/bash``, else a bash from PATH, else ``/bin/sh``."""
    if os.access("/bin/bash", os.X_OK):
        return "/bin/bash"
    import shutil

    return shutil.which("bash") or "/bin/sh"


@attrs.frozen(kw_only=True, eq=False, repr=False)
class BashTool(BuiltinTool):
    """Runs command lines. ``spill_directory`` takes files with long outputs; None is the system's place."""

    max_timeout: int = DEFAULT_MAX_TIMEOUT
    shell: str = attrs.field(factory=find_shell)
    watcher: Watcher | None = None
    spill_directory: str | None = None
    kept: Kept = attrs.field(factory=Kept)
    name: ClassVar[str] = "bash"

    @property
    def description(self) -> str:
        """Says which shell runs the command."""
        return (
            f"Run a command with {self.shell} -c in the working directory. stdout and stderr come together, at most "
            f"{MAX_LINES} lines or {MAX_BYTES // 1024} KiB: of more, the beginning and the end, and the name of a file "
            "with all of it. There is no input. At the timeout the command and its children are killed. "
            "For a long-running server use: COMMAND >FILE 2>&1 &"
        )

    @property
    def schema(self) -> dict[str, Any]:
        """The arguments: a command, and how long it may take."""
        return {
            "type": "object",
            "properties": {
                "command": {"type": "string", "minLength": 1, "description": "Command line"},
                "timeout": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": self.max_timeout,
                    "description": "Seconds it may take",
                },
            },
            "required": ["command", "timeout"],
            "additionalProperties": False,
        }

    async def run(self, args: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Run ``command`` for at most ``timeout`` seconds."""
        check_arguments(self.name, self.schema, args)
        started = trio.current_time()
        output = _Output(context, self.spill_directory)
        order = Order(
            argv=(self.shell, "-c", args["command"]),
            cwd=context.cwd,
            environment=context.environment,
            timeout=args["timeout"],
            keep_background=True,
        )
        try:
            ending = await run_child(order, output, watcher=self.watcher)
        except (OSError, ValueError) as error:
            raise _not_started(error, self.shell, args["command"], context.cwd) from None
        finally:
            output.close(self.kept)
        return _result(output, ending, args["timeout"], round((trio.current_time() - started) * 1000))


class _Output:
    """Where a command's output goes: to the result, to people, and to a file once it is too long."""

    def __init__(self, context: ToolContext, directory: str | None) -> None:
        self.kept = HeadTail()
        self.spill: Spill | None = None
        self._directory = directory
        self._progress = Progress(context)

    async def feed(self, data: bytes | bytearray) -> bool:
        self._progress.feed(data, trio.current_time())
        if self.spill is None and self.kept.overflows_with(data):
            self.spill = Spill.create(self._directory, "zutd-bash-")
            self.spill.write(self.kept.head)
        if self.spill is not None and not self.spill.problem:
            await trio.to_thread.run_sync(self.spill.write, data)
        self.kept.feed(data)
        return True

    def close(self, kept: Kept) -> None:
        if self.spill is not None and self.spill.path:
            self.spill.close()
            kept.add(self.spill)


class Progress:
    """Text for people while a command runs: whole characters, and no more than people can use.

    A budget refills with time; what comes when it is used up is skipped, and the next text says how much.
    """

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._budget = float(PROGRESS_BURST)
        self._filled = 0.0
        self._skipped = 0

    def feed(self, data: bytes | bytearray, now: float) -> None:
        """Pass ``data`` on, or skip it. ``now`` is seconds on any clock that does not go back."""
        self._budget = min(PROGRESS_BURST, self._budget + (now - self._filled) * PROGRESS_RATE)
        self._filled = now
        if len(data) > self._budget:
            self._skipped += len(data)
            self._decoder.reset()
            return
        self._budget -= len(data)
        text = self._decoder.decode(data)
        if self._skipped:
            text = f"\n[... {counted(self._skipped, 'byte')} not shown ...]\n{text}"
            self._skipped = 0
        if text:
            self._context.progress(text)


def _result(output: _Output, ending: Ending, timeout: int, duration: int) -> ToolOutput:
    spill = output.spill
    text = output.kept.render(spill.where if spill else "")
    code = _exit_code(ending)
    lines = [text.removesuffix("\n")] if text else []
    if leftover := _LEFTOVERS[ending.remainder]:
        lines.append(leftover.format(pgid=ending.pgid))
    lines.append(_last_line(ending, timeout))
    details = {
        "exit_code": code,
        "timed_out": ending.timed_out,
        "duration_ms": duration,
        "truncated": output.kept.overflowed,
        "bytes": output.kept.size,
        "lines": output.kept.lines,
        "full_output_path": spill.path if spill and spill.path else None,
        "lossy": output.kept.lossy(),
        "remainder": ending.remainder,
    }
    return text_output("\n".join(lines), details=details, is_error=ending.timed_out or code != 0)


def _exit_code(ending: Ending) -> int | None:
    """As a shell counts: 128 and the signal's number for one that a signal ended. None after a timeout."""
    if ending.timed_out or ending.returncode is None:
        return None
    return ending.returncode if ending.returncode >= 0 else 128 - ending.returncode


def _last_line(ending: Ending, timeout: int) -> str:
    if ending.timed_out:
        return f"[timed out after {timeout} seconds]"
    if ending.returncode is not None and ending.returncode < 0:
        return f"[exit {128 - ending.returncode}] ({describe_exit(ending.returncode)})"
    return f"[exit {ending.returncode}]"


def _not_started(error: OSError | ValueError, shell: str, command: str, cwd: Path) -> ToolError:
    if isinstance(error, ValueError):
        return ToolError("bash: the command holds a NUL or half a character, which no program can get; leave it out")
    if error.errno == errno.E2BIG:
        return ToolError(
            f"bash: the command has {len(command)} characters, more than the system takes; "
            "write it to a file first and run that"
        )
    if not cwd.is_dir():
        return ToolError(f"bash: the working directory {readable(cwd)} does not exist any more; make it again")
    return ToolError(f"bash: cannot start {shell} in {readable(cwd)}: {error.strerror}")
