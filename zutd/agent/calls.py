"""One tool call: guards, approval, the tool itself, the state it leaves, and its one result."""

from typing import Any, Final

import attrs

from zutd.agent.ports import JournalError, LoopSettings, Ports, StateRefusedError
from zutd.agent.turn import error_result
from zutd.agent.views import kept_event
from zutd.frames.blocks import Text, ToolCall, ToolResult
from zutd.frames.define import ABSENT
from zutd.frames.events import ToolExecutionStarted, ToolProgress
from zutd.tools.base import Tool, ToolContext, ToolError, ToolOutput

FIXED: Final = "tool arguments cannot be rewritten"
UNCHANGED: Final = "the tool's state was not kept"


@attrs.frozen(kw_only=True)
class Ready:
    """A call that may run, with the arguments it will run with (opaque)."""

    tool: Tool
    call: ToolCall
    args: Any
    rewritten_by: tuple[str, ...]


class CallRunner:
    """Runs the calls of one turn."""

    def __init__(self, ports: Ports, settings: LoopSettings) -> None:
        self._ports = ports
        self._settings = settings
        self._activated: list[str] = []

    def just_looks(self, call: ToolCall) -> bool:
        """Whether the call changes nothing, so that others may run beside it."""
        tool = self.find(call.name)
        return tool is not None and not tool.side_effects

    async def run(self, call: ToolCall) -> ToolResult:
        """One call, from guards to its one result."""
        ready = await self.prepare(call)
        return ready if isinstance(ready, ToolResult) else await self.execute(ready)

    async def prepare(self, call: ToolCall) -> Ready | ToolResult:
        """Ask everyone who may object: what will run, or the result that says why nothing does."""
        if call.invalid:
            return error_result(call, f"the arguments of {call.name} are not a JSON object: {call.invalid[:500]}")
        tool = self.find(call.name)
        if tool is None:
            known = ", ".join(sorted(t.name for t in self._ports.around.tools())) or "none"
            return error_result(call, f'unknown tool "{call.name}"; there are: {known}')
        verdict = await self._ports.guards.guard_call(call.id, call.name, call.args)
        self._ports.journal.add_records(verdict.records)
        if verdict.blocked:
            return error_result(call, verdict.reason)
        if verdict.rewritten_by and not tool.rewritable:
            return error_result(call, FIXED)
        refusal = await self._ports.approver.refusal(tool, call.id, verdict.args, self._context(call))
        if refusal:
            return error_result(call, refusal)
        return Ready(tool=tool, call=call, args=verdict.args, rewritten_by=verdict.rewritten_by)

    async def execute(self, ready: Ready) -> ToolResult:
        """Run what was prepared; what it changes can be told after a power cut."""
        if ready.tool.side_effects:
            await self._ports.journal.sync()
        self._ports.emit(
            ToolExecutionStarted(
                id=ready.call.id,
                name=ready.call.name,
                args=ready.args if ready.rewritten_by else ABSENT,
                rewritten_by=ready.rewritten_by,
            )
        )
        output = await self._run_tool(ready.tool, ready.call, ready.args)
        return self._commit(ready.tool, ready.call, output)

    def _context(self, call: ToolCall) -> ToolContext:
        def progress(text: str) -> None:
            self._ports.emit(ToolProgress(id=call.id, text=text))

        return ToolContext(
            call_id=call.id, cwd=self._settings.cwd, progress=progress, environment=self._settings.environment
        )

    async def _run_tool(self, tool: Tool, call: ToolCall, args: Any) -> ToolOutput:
        try:
            return await tool.run(args, self._context(call))
        except ToolError as exc:
            return ToolOutput(content=(Text(text=str(exc)),), is_error=True)
        except Exception as exc:  # noqa: BLE001 - a tool's fault is the model's to read, the traceback is ours
            reference = self._ports.report(exc)
            return ToolOutput(content=(Text(text=f"tool execution failed ({reference})"),), is_error=True)

    def _commit(self, tool: Tool, call: ToolCall, output: ToolOutput) -> ToolResult:
        """Keep an extension's state, a plan or a goal before the result that tells of it."""
        if tool.extension and output.details is not ABSENT:
            try:
                self._ports.journal.add_state(tool.extension, output.details)
            except StateRefusedError as exc:
                self._ports.guards.warn(tool.extension, f"{UNCHANGED}: {exc}")
            except JournalError as exc:
                return error_result(call, f"tool result state could not be persisted: {exc}")
        if output.kept is not None:
            try:
                self._ports.journal.add_kept(output.kept)
            except JournalError as exc:
                return error_result(call, f"it could not be kept: {exc}")
            self._ports.emit(kept_event(output.kept, call.id))
        self._activate(output.activate)
        return ToolResult(
            call_id=call.id,
            name=call.name,
            content=output.content,
            is_error=output.is_error,
            extension=tool.extension,
            details=ABSENT if tool.extension else output.details,
        )

    def _activate(self, names: tuple[str, ...]) -> None:
        deferred = {tool.name for tool in self._ports.around.tools() if tool.deferred}
        self._activated.extend(name for name in names if name in deferred and name not in self._activated)

    def take_activated(self) -> tuple[str, ...]:
        """Deferred tools that results have activated since this was last asked."""
        taken, self._activated = tuple(self._activated), []
        return taken

    def find(self, name: str) -> Tool | None:
        """The tool of that name."""
        return next((tool for tool in self._ports.around.tools() if tool.name == name), None)

    def owner(self, name: str) -> str:
        """The extension that a tool belongs to, empty for none."""
        tool = self.find(name)
        return tool.extension if tool is not None else ""
