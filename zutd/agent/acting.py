"""Run the tool calls of an answer, keep their results, and tell of them: one part of a turn.

Results are written as soon as they are there, in the order of the calls, and told of when they are on record. Whether
the model goes round in circles is seen here too, for here calls meet their results.
"""

from collections.abc import Callable

import trio

from zutd.agent.calls import CallRunner, Ready
from zutd.agent.guardrails import REPEATED, Repetition
from zutd.agent.moment import now
from zutd.agent.ports import JournalError, LoopSettings, Ports
from zutd.agent.turn import SKIPPED, Turn
from zutd.agent.views import view_result_content
from zutd.frames.blocks import Message, ToolCall, ToolResult
from zutd.frames.define import ABSENT
from zutd.frames.events import ToolResultEvent


class Acting:
    """The tools of one turn. ``note`` takes what the model should be told with the next request."""

    def __init__(self, ports: Ports, settings: LoopSettings, turn: Turn, note: Callable[[str], None]) -> None:
        self._ports = ports
        self._turn = turn
        self._note = note
        self._calls = CallRunner(ports, settings)
        self._repetition = Repetition()
        self._asked: tuple[ToolCall, ...] = ()
        self._kept = 0
        self.runaway = False
        """Whether the model repeats the same call with the same result, although it has been told."""

    def begin(self, calls: tuple[ToolCall, ...]) -> None:
        """An answer asked for these calls; they run with :meth:`run`."""
        self._asked = calls
        self._kept = 0

    def owner(self, name: str) -> str:
        """The extension that runs a tool; empty for a built-in one, or none."""
        return self._calls.owner(name)

    async def run(self) -> None:
        """Run the answer's calls: one after another, or together when all of them just look."""
        self.keep_results()  # a cut-off answer has them already
        rest = self._turn.open_calls
        if len(rest) > 1 and all(map(self._calls.just_looks, rest)):
            await self._act_together()
        else:
            await self._act_in_turn()
        self._turn.collect()

    async def _act_in_turn(self) -> None:
        while (call := self._turn.next_call()) is not None:
            if self._ports.around.has_steering():
                self._turn.fill(SKIPPED)
            else:
                self._turn.give(await self._calls.run(call))
            self.keep_results()

    async def _act_together(self) -> None:
        """Guards and approvals are asked in order, then all that may run runs at once; one failure stops no other."""
        prepared = [(place, await self._calls.prepare(call)) for place, call in self._turn.begin_rest()]

        failures: list[JournalError] = []

        async def finish(place: int, ready: Ready) -> None:
            try:
                self._turn.give(await self._calls.execute(ready), place)
                self.keep_results()
            except JournalError as exc:
                failures.append(exc)

        async with trio.open_nursery() as nursery:
            for place, ready in prepared:
                if isinstance(ready, ToolResult):
                    self._turn.give(ready, place)
                else:
                    nursery.start_soon(finish, place, ready)
        if failures:
            raise failures[0]
        self.keep_results()

    def keep_results(self) -> None:
        """Write results as soon as they are there, then tell of them."""
        fresh = self._turn.results[self._kept :]
        if not fresh:
            return
        message = Message(role="tool", content=fresh, time=now(), activated_tools=self._calls.take_activated())
        self._ports.journal.add_message(message)
        for call, result in zip(self._asked[self._kept :], fresh, strict=False):
            self._watch(call, result)
        self._kept += len(fresh)
        for result in fresh:
            self._tell_result(result)

    def _watch(self, call: ToolCall, result: ToolResult) -> None:
        found = self._repetition.note(call, result)
        if found == "warn":
            self._note(REPEATED)
        self.runaway = self.runaway or found == "stop"

    def _tell_result(self, result: ToolResult) -> None:
        self._ports.emit(
            ToolResultEvent(
                id=result.call_id,
                is_error=result.is_error,
                content=view_result_content(result.content),
                extension=result.extension,
                details=ABSENT if result.extension else result.details,
            )
        )
