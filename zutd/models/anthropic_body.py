"""The body of an Anthropic Messages request                                                  (pure).

Three cache marks are set (the wire allows four): after the system text, after the tools, and after the last
user message. Text that changes with every request, the hidden context, stands behind the last mark, so that it never
invalidates what is cached before it. All results of one turn share one user message.
"""

from typing import Any

from zutd.frames.blocks import Block, Image, Message, Text, Thinking, ToolCall, ToolResult, calls_of
from zutd.frames.define import evolve
from zutd.models import reasoning, shape
from zutd.models.base import ModelInfo, Request
from zutd.models.output import tell, with_words
from zutd.models.output_forms import messages_form
from zutd.models.prefix import Prefix

IDS = shape.IdRule(pattern=r"[a-zA-Z0-9_-]+", length=64)
_MARK = {"type": "ephemeral"}
_ROOM_FOR_ANSWER = 1024

Json = dict[str, Any]


def request_body(request: Request, prefix: Prefix | None = None) -> Json:
    """Make the whole body; ``prefix`` is what was made before of the beginning of this conversation."""
    told = tell(request, messages_form)
    messages, size = _messages(with_words(request, told), prefix or Prefix())
    body: Json = {"model": request.model.id, "max_tokens": 0, "messages": messages, "stream": True}
    if shape.has_text(request.system):
        body["system"] = [_marked({"type": "text", "text": request.system})]
    if request.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.schema} for tool in request.tools
        ]
        body["tools"][-1] = _marked(body["tools"][-1])
        if _forced(request):
            body["tool_choice"] = {"type": "tool", "name": request.tool_choice}
    body |= _thinking(request, size)
    if told.form is not None:
        form = {"type": "json_schema", "schema": told.form.schema}
        body["output_config"] = {**body.get("output_config", {}), "format": form}
    if request.temperature is not None and request.model.sampling and "thinking" not in body:
        body["temperature"] = request.temperature
    return body


def _marked(block: Json) -> Json:
    return {**block, "cache_control": _MARK}


def _forced(request: Request) -> bool:
    return request.model.forced_tools and any(tool.name == request.tool_choice for tool in request.tools)


def _thinking(request: Request, size: int) -> Json:
    """Say how to reason, and with it how long the answer may be: the two share one allowance."""
    model = request.model
    cap = shape.output_cap(model, request.max_output, size)
    level = reasoning.wanted(request) if model.reasoning else "off"
    if model.thinking == "always":
        wanted = "minimum" if level == "off" else level
        return {"max_tokens": cap, "output_config": {"effort": reasoning.effort(model, wanted)}}
    if level == "off" or _forced(request):  # a forced tool and reasoning exclude each other
        off = {"thinking": {"type": "disabled"}} if model.thinking == "adaptive" else {}
        return {"max_tokens": cap, **off}
    if model.thinking == "adaptive":
        kind = {"type": "adaptive", "display": "summarized"}
        return {"max_tokens": cap, "thinking": kind, "output_config": {"effort": reasoning.effort(model, level)}}
    return _budget(request, level, size) or {"max_tokens": cap}


def _budget(request: Request, level: str, size: int) -> Json:
    if _in_a_loop_without_thinking(request):
        return {}
    wanted = request.max_output and request.max_output + reasoning.BUDGETS[level]
    cap = shape.output_cap(request.model, wanted, size)
    budget = reasoning.budget(level, cap - _ROOM_FOR_ANSWER)
    return {"max_tokens": cap, "thinking": {"type": "enabled", "budget_tokens": budget}} if budget else {}


def _in_a_loop_without_thinking(request: Request) -> bool:
    """Say whether the open tool loop began without reasoning: then it cannot be turned on before the loop ends."""
    for message in reversed(request.messages):
        if message.role == "user":
            return False
        if message.role == "assistant":
            return bool(calls_of(message)) and not any(_replayed(message, request.model))
    return False


def _messages(request: Request, prefix: Prefix) -> tuple[list[Json], int]:
    """The wire's messages, and the estimated size of the prompt."""
    key = request.model
    start = prefix.start(key, request.messages, shape.CallIds(IDS))
    made, ids = start.made, start.ids
    settled = prefix.is_due(start, request.messages)
    joins = False
    for at, message in enumerate(request.messages[start.count :], start.count):
        if at == settled and settled:
            prefix.keep(key, request.messages[:settled], made, ids)
        blocks = _blocks(message, request.model, ids)
        if joins and message.role == "tool":
            made[-1]["content"] += blocks
        elif blocks:
            made.append({"role": "assistant" if message.role == "assistant" else "user", "content": blocks})
            joins = message.role == "tool"
    _strip_prefill(made)
    _mark_last(made)
    if shape.has_text(request.hidden):
        _append_hidden(made, request.hidden)
    return made, start.size + shape.prompt_bytes(request.system, request.messages[start.count :])


def _strip_prefill(made: list[Json]) -> None:
    """A conversation that ends with the assistant must not end in white space."""
    if made and _role(made[-1]) == "assistant" and made[-1]["content"][-1]["type"] == "text":
        made[-1]["content"][-1]["text"] = made[-1]["content"][-1]["text"].rstrip()


def _role(message: Any) -> str:
    """Who speaks; empty for a message that is kept encoded."""
    return str(message["role"]) if isinstance(message, dict) else ""


def _mark_last(made: list[Json]) -> None:
    last = next((message for message in reversed(made) if _role(message) in ("user", "")), None)
    if isinstance(last, dict):
        last["content"][-1] = _marked(last["content"][-1])


def _append_hidden(made: list[Json], hidden: str) -> None:
    block = {"type": "text", "text": hidden}
    if made and _role(made[-1]) == "user":
        made[-1]["content"].append(block)
    else:
        made.append({"role": "user", "content": [block]})


def _blocks(message: Message, model: ModelInfo, ids: shape.CallIds) -> list[Json]:
    if message.role == "tool":
        return [_result(block, model, ids) for block in message.content if isinstance(block, ToolResult)]
    made = _replayed(message, model) if message.role == "assistant" else []
    for block in shape.readable(message.content, model):
        made += _block(block, ids)
    return made


def _replayed(message: Message, model: ModelInfo) -> list[Json]:
    """Give the reasoning that goes back: signed or redacted, and only to the model that it came from."""
    if not shape.same_origin(message, model):
        return []
    return [made for block in message.content if isinstance(block, Thinking) for made in _reasoning(block)]


def _reasoning(block: Thinking) -> list[Json]:
    if block.redacted and not block.field:
        return [{"type": "redacted_thinking", "data": block.redacted}]
    if block.signature and not block.field:
        return [{"type": "thinking", "thinking": block.text, "signature": block.signature}]
    return []


def _block(block: Block, ids: shape.CallIds) -> list[Json]:
    if isinstance(block, Text):
        return [{"type": "text", "text": block.text}] if shape.has_text(block.text) else []
    if isinstance(block, Image):
        return [_image(block)]
    if isinstance(block, ToolCall):
        return [
            {"type": "tool_use", "id": ids.call(block.id), "name": shape.call_name(block.name), "input": block.args}
        ]
    return []  # reasoning has been dealt with


def _image(image: Image) -> Json:
    source = {"type": "base64", "media_type": image.mime_type, "data": image.data}
    return {"type": "image", "source": source}


def _result(result: ToolResult, model: ModelInfo, ids: shape.CallIds) -> Json:
    if result.is_error:
        model = evolve(model, images=False)  # the wire takes only text in the result of a failure
    content = [made for block in shape.readable(result.content, model) for made in _block(block, ids)]
    made: Json = {"type": "tool_result", "tool_use_id": ids.result(result.call_id)}
    if content:
        made["content"] = content
    if result.is_error:
        made["is_error"] = True
    return made
