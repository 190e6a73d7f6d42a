"""The body of a chat-completions request                                                      (pure).

Everything stays on the oldest common path, for most servers of this wire are not the one that defined it: roles
are ``system``, ``user``, ``assistant`` and ``tool``, content is a plain string unless there is a picture, and fields
that only some servers know stand in :class:`zutd.models.providers.Quirks`. The hidden context is a last user message.
"""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from zutd.frames.blocks import Block, Image, Message, Text, Thinking, ToolCall, ToolResult, calls_of, text_of
from zutd.frames.define import evolve
from zutd.models import reasoning, shape
from zutd.models.base import ModelInfo, Request, ToolSpec
from zutd.models.output import Form, tell, with_words
from zutd.models.output_forms import chat_form
from zutd.models.prefix import Prefix, Start
from zutd.models.providers import Quirks

IDS = shape.IdRule(pattern=r"[A-Za-z0-9_-]+", length=40)
SHORT_IDS = shape.IdRule(pattern=r"[A-Za-z0-9]+", length=9, exact=True)

EXTRA = "extra_content"
"""The field of a :class:`Thinking` block that carries what a provider attached to a call and wants back with it:
``signature`` is the call's id, ``redacted`` the JSON."""

_FAILED = "\n[the tool reported an error]"
_PICTURE_FOLLOWS = "(the picture is in the next message)"
_SCHEMA_EXTRAS = frozenset({"$schema", "additionalProperties"})

Json = dict[str, Any]
NO_TOOLS: Mapping[str, ToolSpec] = MappingProxyType({})


def request_body(request: Request, quirks: Quirks, prefix: Prefix | None = None) -> Json:
    """Make the whole body; ``prefix`` is what was made before of the beginning of this conversation."""
    told = tell(request, chat_form)
    messages, size = _place_late(with_words(request, told), quirks, prefix or Prefix())
    body: Json = {"model": request.model.id, "messages": messages, "stream": True}
    if quirks.usage_option:
        body["stream_options"] = {"include_usage": True}
    late = _late_tools(request)
    tools = tuple(tool for tool in request.tools if tool.name not in late)
    if tools:
        body |= _tools(evolve(request, tools=tools), quirks)
    body |= _cap(request, quirks, size)
    body |= _effort(request, quirks)
    if request.temperature is not None and _takes_temperature(request.model, quirks):
        body["temperature"] = request.temperature
    if told.form is not None:
        body["response_format"] = _response_format(told.form, quirks)
    if quirks.cache_key and request.session:
        body["prompt_cache_key"] = request.session[:64]
    return body


def _response_format(form: Form, quirks: Quirks) -> Json:
    schema = _without_extras(form.schema) if quirks.plain_schemas else form.schema
    title = re.sub(r"[^A-Za-z0-9_-]+", "_", str(form.schema.get("title", "")))[:64]
    return {"type": "json_schema", "json_schema": {"name": title or "answer", "strict": form.whole, "schema": schema}}


def places_tools(model_id: str) -> bool:
    """Whether the model takes the definition of a deferred tool at the place where it became active (Kimi K3)."""
    name = model_id.lower()
    return name == "kimi-k3" or name.endswith("/kimi-k3")


def _late_tools(request: Request) -> dict[str, ToolSpec]:
    """The tools that are not told of at the top, by name: there the list stays as it was, and so does the cache."""
    if not places_tools(request.model.id):
        return {}
    return {tool.name: tool for tool in request.tools if tool.deferred}


def _place_late(request: Request, quirks: Quirks, prefix: Prefix) -> tuple[list[Json], int]:
    """The messages; late tools follow the results that activated them, in every request at the same place.

    Those whose results were compacted away follow the summary.
    """
    late = _late_tools(request)
    if not late:
        return _messages(request, quirks, prefix)
    placed = {name for message in request.messages for name in message.activated_tools}
    lost = [tool for name, tool in sorted(late.items()) if name not in placed]
    return _messages(request, quirks, Prefix(), late, lost)


def _takes_temperature(model: ModelInfo, quirks: Quirks) -> bool:
    return model.sampling and not (model.reasoning and quirks.completion_cap)


def _cap(request: Request, quirks: Quirks, size: int) -> Json:
    """Cap the answer; not for a model that nobody knows, for a guess may be more than its server allows."""
    if request.model.assumed and request.max_output is None:
        return {}
    field = "max_completion_tokens" if quirks.completion_cap and request.model.reasoning else "max_tokens"
    return {field: shape.output_cap(request.model, request.max_output, size)}


def _effort(request: Request, quirks: Quirks) -> Json:
    model = request.model
    known = bool(model.levels) or (quirks.effort and model.reasoning)
    word = reasoning.effort(model, reasoning.wanted(request)) if known else ""
    return {"reasoning_effort": word} if word else {}


def _tools(request: Request, quirks: Quirks) -> Json:
    tools = request.tools
    chosen = next((tool for tool in tools if tool.name == request.tool_choice), None)
    if chosen is None or not request.model.forced_tools:
        return {"tools": [_tool(tool, quirks) for tool in tools], "tool_choice": "auto"}
    if not quirks.named_choice:  # offering nothing else says the same
        return {"tools": [_tool(chosen, quirks)], "tool_choice": "required"}
    choice = {"type": "function", "function": {"name": chosen.name}}
    return {"tools": [_tool(tool, quirks) for tool in tools], "tool_choice": choice}


def _tool(tool: ToolSpec, quirks: Quirks) -> Json:
    schema = _without_extras(tool.schema) if quirks.plain_schemas else tool.schema
    function = {"name": tool.name, "description": tool.description, "parameters": schema}
    return {"type": "function", "function": function}


def _without_extras(schema: Any) -> Any:
    """Drop the schema keywords that some servers refuse, but not arguments that have such a name."""
    if isinstance(schema, list):
        return [_without_extras(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if key not in _SCHEMA_EXTRAS}
    return {
        key: {name: _without_extras(item) for name, item in value.items()}
        if key == "properties" and isinstance(value, dict)
        else _without_extras(value)
        for key, value in kept.items()
    }


def _messages(
    request: Request,
    quirks: Quirks,
    prefix: Prefix,
    late: Mapping[str, ToolSpec] = NO_TOOLS,
    lost: Sequence[ToolSpec] = (),
) -> tuple[list[Json], int]:
    """The wire's messages, and the estimated size of the prompt."""
    key = (request.model, request.system, quirks)
    start = prefix.start(key, request.messages, shape.CallIds(SHORT_IDS if quirks.short_ids else IDS))
    writer = _Writer(request.model, start, late, quirks)
    if shape.has_text(request.system) and not start.made:
        writer.made.append({"role": "system", "content": request.system})
    settled = prefix.is_due(start, request.messages)
    for at, message in enumerate(request.messages[start.count :], start.count):
        if at == settled and settled and not writer.pictures:
            prefix.keep(key, request.messages[:settled], writer.made, writer.ids)
        writer.take(message)
        if message.role == "user" and lost:
            writer.made += _tools_message(lost, quirks)
            lost = ()
    writer.show_pictures()
    if shape.has_text(request.hidden):
        writer.made.append({"role": "user", "content": request.hidden})
    return writer.made, start.size + shape.prompt_bytes(request.system, request.messages[start.count :])


class _Writer:
    """Turns one message after another into the wire's."""

    def __init__(self, model: ModelInfo, start: Start, late: Mapping[str, ToolSpec], quirks: Quirks) -> None:
        self._model = model
        self._late = late
        self._quirks = quirks
        self.made: list[Any] = start.made
        self.ids = start.ids
        self.pictures: list[Json] = []

    def take(self, message: Message) -> None:
        """Add a message."""
        if message.role == "tool":
            self.made += _results(message, self._model, self.ids, self.pictures)
            activated = [self._late[name] for name in message.activated_tools if name in self._late]
            self.made += _tools_message(activated, self._quirks)
            return
        self.show_pictures()
        if message.role == "assistant":
            self.made += _assistant(message, self._model, self.ids)
        else:
            self.made += _user(message, self._model)

    def show_pictures(self) -> None:
        """Results on this wire are text: their pictures follow as a message of the user's."""
        if self.pictures:
            self.made.append({"role": "user", "content": self.pictures})
            self.pictures = []


def _tools_message(tools: Sequence[ToolSpec], quirks: Quirks) -> list[Json]:
    return [{"role": "system", "tools": [_tool(tool, quirks) for tool in tools]}] if tools else []


def _user(message: Message, model: ModelInfo) -> list[Json]:
    content = shape.readable(message.content, model)
    parts = [part for block in content for part in _part(block)]
    if not parts:
        return []
    if any(part["type"] != "text" for part in parts):
        return [{"role": "user", "content": parts}]
    return [{"role": "user", "content": "\n".join(part["text"] for part in parts)}]


def _part(block: Block) -> list[Json]:
    if isinstance(block, Text) and shape.has_text(block.text):
        return [{"type": "text", "text": block.text}]
    if isinstance(block, Image):
        return [{"type": "image_url", "image_url": {"url": f"data:{block.mime_type};base64,{block.data}"}}]
    return []


def _assistant(message: Message, model: ModelInfo, ids: shape.CallIds) -> list[Json]:
    text, calls = text_of(message.content, ""), calls_of(message)
    made: Json = {"role": "assistant"}
    if shape.has_text(text):
        made["content"] = text
    if calls:
        own = [b for b in message.content if isinstance(b, Thinking) and shape.same_origin(message, model)]
        extras = {block.signature: block.redacted for block in own if block.field == EXTRA}
        made.setdefault("content", None)
        made |= _reasoning(own)
        made["tool_calls"] = [_call(call, ids, extras.get(call.id)) for call in calls]
    return [made] if len(made) > 1 else []


def _reasoning(own: list[Thinking]) -> Json:
    """Send reasoning back under the name that it came with; only beside calls, where servers want it."""
    made: Json = {}
    for block in own:
        if block.text and block.field and block.field != EXTRA:
            made[block.field] = made.get(block.field, "") + block.text
    return made


def _call(call: ToolCall, ids: shape.CallIds, extra: str | None) -> Json:
    arguments = shape.encode_body(call.args).decode()
    function = {"name": shape.call_name(call.name), "arguments": arguments}
    made = {"id": ids.call(call.id), "type": "function", "function": function}
    if extra:
        made[EXTRA] = msgspec.json.decode(extra)
    return made


def _results(message: Message, model: ModelInfo, ids: shape.CallIds, pictures: list[Json]) -> list[Json]:
    """Make one tool message a result; pictures go into ``pictures``, for this wire's results are text."""
    made = []
    for result in message.content:
        if not isinstance(result, ToolResult):
            continue
        content = shape.readable(result.content, model)
        images = [part for block in content if isinstance(block, Image) for part in _part(block)]
        pictures += images
        text = text_of(content)
        if not shape.has_text(text):
            text = _PICTURE_FOLLOWS if images else shape.NO_OUTPUT
        if result.is_error:
            text += _FAILED
        made.append({"role": "tool", "tool_call_id": ids.result(result.call_id), "content": text})
    return made
