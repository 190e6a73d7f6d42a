"""What every wire does to a conversation: text that can be sent, ids that the wire takes, arguments, caps and cost.

These are the rules that do not depend on a provider's format. The wires use them so that one conversation
reads the same everywhere, and so that a rule (a lone surrogate, an id used twice) is written once.
"""

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from zutd.frames.blocks import Block, Image, Message, Text, ToolCall, ToolResult, Usage
from zutd.frames.define import frame
from zutd.models.base import ErrorKind, ModelError, ModelInfo

NO_OUTPUT = "(no output)"
_SMALLEST_ANSWER = 1024
_BYTES_PER_TOKEN = 3  # careful: English text has four, code and other scripts fewer


@frame
class IdRule:
    """What a wire accepts as a call's id: whole ids match ``pattern`` and have at most ``length`` characters.

    ``exact`` means that they must have just that length.
    """

    pattern: str = r"[A-Za-z0-9_-]+"
    length: int = 64
    exact: bool = False

    def fit(self, id: str, variant: int = 0) -> str:
        """Give an id that the wire takes: the same one if it can be, else one made from it and ``variant``."""
        size_fits = len(id) == self.length if self.exact else len(id) <= self.length
        if not variant and size_fits and re.fullmatch(self.pattern, id):
            return id
        import hashlib

        digest = hashlib.sha256(f"{variant} {id}".encode("utf-8", "surrogatepass")).hexdigest()
        if self.exact:
            return digest[: self.length]
        kept = re.sub(r"[^A-Za-z0-9_-]", "_", id)[: self.length - 9]
        return f"{kept}_{digest[:8]}"


class CallIds:
    """The ids of one request. Calls get unique ids; a result gets the id of the latest call that had its own.

    Providers use ids again in later turns, and then refuse a request where two calls share one.
    """

    def __init__(self, rule: IdRule) -> None:
        self._rule = rule
        self._latest: dict[str, str] = {}
        self._used: set[str] = set()

    def copy(self) -> "CallIds":
        """The same ids so far; what is added to one is not in the other."""
        twin = CallIds(self._rule)
        twin._latest, twin._used = dict(self._latest), set(self._used)
        return twin

    def call(self, id: str) -> str:
        """Give the wire's id for a call."""
        variant = 0
        while (fitted := self._rule.fit(id, variant)) in self._used:
            variant += 1
        self._used.add(fitted)
        self._latest[id] = fitted
        return fitted

    def result(self, id: str) -> str:
        """Give the wire's id for a result."""
        return self._latest.get(id) or self._rule.fit(id)


_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def call_name(name: str) -> str:
    """Give a call's name as every wire takes it: the same one if it can be.

    Models make names up (``functions.bash``, ``bash<|channel|>json``). The call was answered, but a provider that
    refuses the name in the history would refuse the conversation for ever.
    """
    return name if _NAME.fullmatch(name) else re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "_"


def has_text(text: str) -> bool:
    """Say whether a block of this text may be sent: providers refuse blocks of white space."""
    return bool(text) and not text.isspace()


def image_note(image: Image) -> Text:
    """Make what a model that reads no images gets instead of one."""
    return Text(text=f"[an image ({image.mime_type}) is left out here: this model reads no images]")


def readable(content: tuple[Any, ...], model: ModelInfo) -> tuple[Any, ...]:
    """Replace the images that the model cannot read."""
    if model.images:
        return content
    return tuple(image_note(block) if isinstance(block, Image) else block for block in content)


def same_origin(message: Message, model: ModelInfo) -> bool:
    """Say whether this model said it. Reasoning and signatures go back to nobody else."""
    return message.provider == model.provider and message.model == model.id


def parse_args(text: str) -> tuple[dict[str, Any], str]:
    """Read a call's arguments: the object and an empty string, or ``{}`` and the text that is no object.

    No text at all is a call without arguments. Raw control characters inside strings are let through: models
    write them, and their meaning is plain.
    """
    if not text.strip():
        return {}, ""
    try:
        args = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        args = _lenient(text)
    return (args, "") if isinstance(args, dict) else ({}, scrub_text(text))


def _lenient(text: str) -> Any:
    import json

    try:
        return scrub(json.loads(text, strict=False, parse_constant=_no_constant, parse_float=_finite))
    except (ValueError, RecursionError):
        return None


def _finite(digits: str) -> float:
    """A number that can be said again: who judges a call and who runs it must read the same."""
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{digits[:40]} is out of range")
    return number


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def loads(data: bytes) -> Any:
    """Decode JSON that may hold halves of surrogate pairs, which the fast decoder refuses. Raises ValueError."""
    import json

    return json.loads(data, parse_constant=_no_constant)


def scrub_text(text: str) -> str:
    """Join surrogate pairs and replace lone surrogates by U+FFFD, so that the text can be encoded."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def scrub(value: Any) -> Any:
    """Do :func:`scrub_text` to every string of a JSON value, keys too."""
    if isinstance(value, str):
        return scrub_text(value)
    if isinstance(value, dict):
        return {scrub(key): scrub(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [scrub(item) for item in value]
    return value


def encode_body(body: dict[str, Any]) -> bytes:
    """Encode a request. Lone surrogates become U+FFFD; what is no JSON at all is a :class:`ModelError`."""
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:
        return msgspec.json.encode(scrub(body))
    except (TypeError, RecursionError) as exc:
        raise ModelError(ErrorKind.REQUEST, f"the conversation cannot be sent: {exc}") from exc


def output_cap(model: ModelInfo, wanted: int | None, prompt_bytes: int) -> int:
    """Say how many tokens the answer may have, so that they and the prompt fit into the window."""
    most = model.max_output or 16_384
    cap = min(wanted or most, most)
    if model.context_window:
        window = model.context_window
        cap = min(cap, window - min(window // 8, 4096))
        cap = min(cap, max(window - prompt_bytes // _BYTES_PER_TOKEN, _SMALLEST_ANSWER))
    return max(cap, 1)


def prompt_bytes(system: str, messages: tuple[Message, ...]) -> int:
    """Estimate a prompt's size; pictures count little, whatever their bytes are."""
    return len(system) + sum(size_of(message.content) for message in messages)


def size_of(content: Iterable[Block]) -> int:
    """Estimate the size of blocks in bytes."""
    return sum(_size(block) for block in content)


def _size(block: Block) -> int:
    if isinstance(block, Image):
        return 1600 * _BYTES_PER_TOKEN
    if isinstance(block, ToolResult):
        return size_of(block.content)
    if isinstance(block, ToolCall):
        return len(block.name) + len(str(block.args))
    return len(block.text)


def priced(
    model: ModelInfo, *, input: int, output: int, reasoning: int | None, cache_read: int, cache_write: int
) -> Usage:
    """Make a usage with its cost, from prices per million tokens; cached tokens without a price cost as input."""
    cost = (
        input * model.price_input
        + output * model.price_output
        + cache_read * (model.price_cache_read or model.price_input)
        + cache_write * (model.price_cache_write or model.price_input)
    )
    return Usage(
        input=input,
        output=output,
        reasoning=reasoning,
        cache_read=cache_read,
        cache_write=cache_write,
        cost_usd=cost / 1e6,
    )


def count(value: Any) -> int:
    """Read a token count that a server sent; anything but a sane number is 0."""
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12 else 0


class Halves:
    """Joins surrogate pairs that a server cut in two between two deltas of one text."""

    def __init__(self) -> None:
        self._held: dict[Any, str] = {}

    def push(self, key: Any, delta: str) -> str:
        """Give what can be shown now of text ``key``; the first half of a pair waits for the second."""
        delta = self._held.pop(key, "") + delta
        if delta and "\ud800" <= delta[-1] <= "\udbff":
            self._held[key] = delta[-1]
            delta = delta[:-1]
        return scrub_text(delta)
