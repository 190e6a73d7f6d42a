"""What print, stream and JSON mode share: one prompt, run to its end, and an exit code that says how it went."""

import json
import re
import time
from typing import Final

import trio

from zutd.daemon.errors import CommandError
from zutd.daemon.hub import Stamped
from zutd.daemon.server import Server
from zutd.daemon.start import USAGE
from zutd.frames.client import NO_USAGE_VIEW
from zutd.frames.commands import Prompt
from zutd.frames.define import ABSENT
from zutd.frames.events import DoneEvent, ErrorEvent
from zutd.wire.codec import unstructure
from zutd.wire.link import LinkClosedError, Writer
from zutd.wire.stdio import Stdio

_STEERING: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""All controls but tabs and newlines."""

EXIT_CODES: Final = {"ok": 0, "error": 1, "aborted": 1, "blocked": 3, "limit": 4, "schema": 6}


class OnceFrontend:
    """Runs one prompt; subclasses say what of it goes where."""

    lasting = False

    def __init__(self, stdio: Stdio, prompt: str) -> None:
        self._stdio = stdio
        self._prompt = prompt
        self._writer = Writer(stdio.stdout)
        self._written = trio.Event()
        self._done = trio.Event()
        self._prompt_id = ""
        self._outcome = "error"
        self._turn_usage = self._session_usage = NO_USAGE_VIEW
        self._began = time.monotonic()

    async def run(self, server: Server) -> None:
        """Submit the prompt, wait for its ``done``, stop the daemon."""
        runtime = server.runtime
        runtime.hub.subscribe(self._on_event, lambda: self._writer.pending_bytes)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write, server)
            try:
                schema = server.settings.output_schema
                wanted = Prompt(
                    message=self._prompt,
                    output_schema=ABSENT if schema is None else schema,
                    output_mode=server.settings.output_mode,
                )
                self._prompt_id = runtime.turns.accept(wanted).prompt_id
            except CommandError as exc:
                for event in refused(exc.message, "internal"):
                    runtime.hub.emit(event)
                server.stop(USAGE if exc.kind == "invalid_params" else 1, abort=True)
            else:
                await self._done.wait()
                self._write_stats(server)
                server.stop(EXIT_CODES[self._outcome], abort=False)
            await trio.sleep_forever()

    def _write_stats(self, server: Server) -> None:
        """Write what the prompt used, where that was asked for; a file that cannot be written is only complained of."""
        path = server.settings.stats_path
        if not path:
            return
        provider, model = server.names()
        usage = self._turn_usage
        stats = {
            "provider": provider,
            "model": model,
            "outcome": self._outcome,
            "prompt_tokens": usage.cache_measured_prompt,
            "cached_tokens": usage.cache_read,
            "reasoning_tokens": usage.reasoning,
            "generated_output_tokens": usage.output,
            "cost_usd": usage.cost_usd,
            "elapsed_ms": round((time.monotonic() - self._began) * 1000),
            "session": server.session_info().path,
            "turn_usage": unstructure(usage),
            "session_usage": unstructure(self._session_usage),
        }
        try:
            with open(path, "w", encoding="utf-8") as file:
                json.dump(stats, file, indent=2)
                file.write("\n")
        except OSError as exc:
            server.log.warning("the statistics were not written", path=path, problem=str(exc))

    async def _write(self, server: Server) -> None:
        try:
            await self._writer.run()
        except LinkClosedError:
            server.lose_stdout(self._writer.problem)
        finally:
            self._written.set()

    async def drain(self) -> None:
        """Write what is queued."""
        self._writer.finish()
        await self._written.wait()

    def put(self, text: str) -> None:
        """Write to stdout. A terminal is shown what would steer it: models repeat what they have read anywhere."""
        if self._stdio.terminal:
            text = _STEERING.sub("\N{REPLACEMENT CHARACTER}", text)
        self.put_bytes(text.encode("utf-8", "replace"))

    def put_bytes(self, data: bytes) -> None:
        """Write to stdout; when nobody reads it any more, the writing task ends the run."""
        try:
            self._writer.put(data)
        except LinkClosedError:
            return

    def _on_event(self, stamped: Stamped) -> None:
        self.show(stamped)
        event = stamped.event
        if isinstance(event, DoneEvent) and event.prompt_id == self._prompt_id:
            self._outcome = event.outcome
            self._turn_usage, self._session_usage = event.turn_usage, event.session_usage
            self._done.set()

    def show(self, stamped: Stamped) -> None:
        """Deal with an event."""
        raise NotImplementedError


def refused(message: str, code: str) -> tuple[ErrorEvent, DoneEvent]:
    """What is told of a prompt that was not even accepted: it ends as every prompt does."""
    nothing = NO_USAGE_VIEW
    done = DoneEvent(prompt_id="", outcome="error", usage=nothing, turn_usage=nothing, session_usage=nothing)
    return ErrorEvent(message=message, code=code), done
