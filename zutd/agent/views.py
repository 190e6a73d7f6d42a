"""What frontends see of messages and usage. Pure."""

from collections.abc import Sequence
from typing import Literal

from zutd.frames.blocks import Block, Image, Message, Text, Thinking, ToolResult, Usage
from zutd.frames.client import ImageSize, MessageView, ToolResultView, UsageView, ViewBlock
from zutd.frames.events import GoalUpdate, PlanUpdate, UsageEvent
from zutd.frames.plan import Goal, Plan


def image_size(image: Image) -> ImageSize:
    """A picture's type and size, without its data."""
    padding = len(image.data) - len(image.data.rstrip("="))
    return ImageSize(mime_type=image.mime_type, bytes=max(len(image.data) * 3 // 4 - padding, 0))


def view_result_content(content: Sequence[Text | Image]) -> tuple[Text | ImageSize, ...]:
    """A tool result's blocks."""
    return tuple(image_size(block) if isinstance(block, Image) else block for block in content)


def view_content(content: Sequence[Block]) -> tuple[ViewBlock, ...]:
    """A message's blocks; reasoning is left out."""
    return tuple(_view_block(block) for block in content if not isinstance(block, Thinking))


def _view_block(block: Block) -> ViewBlock:
    if isinstance(block, Image):
        return image_size(block)
    if isinstance(block, ToolResult):
        return ToolResultView(
            call_id=block.call_id,
            is_error=block.is_error,
            content=view_result_content(block.content),
            name=block.name,
            extension=block.extension,
        )
    assert not isinstance(block, Thinking)
    return block


def row_id(n: int) -> str:
    """A row's id on frontends' wires."""
    return f"r{n}"


def view_message(n: int, message: Message) -> MessageView:
    """A message of the transcript, with its row."""
    return MessageView(
        role=message.role,
        content=view_content(message.content),
        time=message.time,
        id=row_id(n),
        stop=message.stop,
        partial=message.partial,
    )


def view_usage(usage: Usage) -> UsageView:
    """Usage in the names of the frontends' protocol."""
    return UsageView(
        input=usage.input,
        output=usage.output,
        reasoning=usage.reasoning,
        cache_read=usage.cache_read,
        cache_write=usage.cache_write,
        cache_measured_prompt=usage.input + usage.cache_read + usage.cache_write,
        cache_measured_read=usage.cache_read,
        cost_usd=usage.cost_usd,
    )


def usage_event(
    step: Usage, turn: Usage, session: Usage, *, attempt: Literal["", "failed", "aborted"] = ""
) -> UsageEvent:
    """The event that tells of one attempt's usage, and what turn and session come to with it."""
    view, total = view_usage(step), view_usage(session)
    return UsageEvent(
        input=view.input,
        output=view.output,
        reasoning=view.reasoning,
        cache_read=view.cache_read,
        cache_write=view.cache_write,
        cache_measured_prompt=view.cache_measured_prompt,
        cache_measured_read=view.cache_measured_read,
        cost_usd=view.cost_usd,
        cumulative=total,
        turn_usage=view_usage(turn),
        session_usage=total,
        attempt=attempt,
    )


def kept_event(kept: Plan | Goal, call_id: str) -> PlanUpdate | GoalUpdate:
    """The event that tells of what a call wants to be held."""
    if isinstance(kept, Plan):
        return PlanUpdate(plan=kept.plan, explanation=kept.explanation, id=call_id)
    return GoalUpdate(objective=kept.objective, status=kept.status, reason=kept.reason, id=call_id)
