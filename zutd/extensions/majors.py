"""The majors of the extension protocol that are served: 2, and zot's 1 as a compatibility mode. Pure.

An extension of major 1 sees exactly what zot would send, and what it cannot know of does not work for it: sessions
and state, hidden context, status, widgets, alerts, tools that wait for a person.
"""

from typing import Any, Final

import attrs

from zutd.frames.define import ABSENT, evolve
from zutd.frames.extension import (
    EVENTS,
    Alert,
    EventFrame,
    HelloAck,
    InterceptResponse,
    RegisterTool,
    Status,
    ToolCancel,
    ToolResultFrame,
    Widget,
    WidgetClear,
)
from zutd.frames.extension_v1 import HelloAckV1

EVENTS_V1: Final = frozenset({"session_start", "turn_start", "turn_end", "tool_call", "assistant_message"})


@attrs.frozen(kw_only=True)
class Major:
    """One major: its number, the events it knows, and the frames it does not know."""

    number: int
    events: frozenset[str]
    unknown: frozenset[type] = frozenset()

    def accepts(self, version: int) -> bool:
        """Whether ``hello`` may say this version; major 1 has none and never checked it."""
        return version == self.number or (self.number == 1 and version == 0)

    def outgoing(self, frame: Any) -> Any:
        """A frame as this major knows it; None when it has no such frame."""
        if self.number != 1:
            return frame
        if isinstance(frame, HelloAck):
            return HelloAckV1(
                protocol_version=1,
                zot_version=frame.zut_version,
                provider=frame.provider,
                model=frame.model,
                cwd=frame.cwd,
                extension_dir=frame.extension_dir,
                data_dir=frame.data_dir,
            )
        if isinstance(frame, EventFrame):
            return evolve(frame, session=None, state=ABSENT)
        return None if isinstance(frame, ToolCancel) else frame

    def incoming(self, frame: Any) -> Any:
        """What a frame means in this major; None when it has no such frame."""
        if type(frame) in self.unknown:
            return None
        if self.number == 1 and isinstance(frame, ToolResultFrame):
            return evolve(frame, details=ABSENT)
        if self.number == 1 and isinstance(frame, InterceptResponse):
            return evolve(frame, context="")
        if self.number == 1 and isinstance(frame, RegisterTool):
            return evolve(frame, interactive=False)
        return frame

    def verdict(self, tool: str, args: Any, answer: InterceptResponse) -> InterceptResponse:
        """What an answer about a call means. zot's bash knows no ``timeout``: a rewrite without one keeps the model's,
        or every command that such a guard rewrites would fail.
        """
        changed = answer.modified_args
        if self.number != 1 or tool != "bash" or not isinstance(changed, dict) or not isinstance(args, dict):
            return answer
        kept = {name: args[name] for name in ("timeout",) if name in args and name not in changed}
        return evolve(answer, modified_args={**changed, **kept}) if kept else answer


MAJOR_2: Final = Major(number=2, events=EVENTS)
MAJOR_1: Final = Major(number=1, events=EVENTS_V1, unknown=frozenset({Status, Widget, WidgetClear, Alert}))


def major_of(protocol: int) -> Major:
    """The major that a manifest asks for; 0 is the current one."""
    return MAJOR_1 if protocol == 1 else MAJOR_2
