"""A branch as Markdown: to paste into an issue, to keep beside the code, to give to another model. (No trio, no I/O.)

What the model said is Markdown already and stands as it is. What tools got and gave stands in fences that are longer
than any fence inside, so no output can end its own.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from zutd.frames.blocks import Image, Text, Thinking, ToolResult
from zutd.sessions.export_markup import without_colours
from zutd.sessions.export_transcript import Item, Piece, Said, ToolUse, Transcript, usage_text
from zutd.sessions.foreign.values import text_at
from zutd.wire.codec import encode

PICTURES_LEFT_OUT: Final = "pictures are named, not shown; the HTML page has them"

_TICKS: Final = re.compile("`+")
_MARKS: Final = re.compile(r"([\\`*_\[\]<>#|])")


def to_markdown(transcript: Transcript) -> str:
    """The document, with one line end at its end."""
    parts = [f"# {words(transcript.name)}", "\n".join(_facts(transcript)), *map(_item, transcript.items)]
    return "\n\n".join(part for part in parts if part) + "\n"


def has_pictures(transcript: Transcript) -> bool:
    """Whether there is something that Markdown does not show."""
    return any(isinstance(part, Image) for part in _parts(transcript.items))


def _parts(items: Sequence[Item]) -> Iterator[Any]:
    for item in items:
        for piece in item.pieces if isinstance(item, Said) else ():
            yield piece
            result = piece.result if isinstance(piece, ToolUse) else piece
            yield from result.content if isinstance(result, ToolResult) else ()


def words(text: str) -> str:
    """One line of text in which nothing is a mark."""
    return _MARKS.sub(r"\\\1", " ".join(text.split()))


def fenced(text: str, language: str = "") -> str:
    """A block of code that nothing inside can end."""
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _facts(transcript: Transcript) -> Iterator[str]:
    facts = {
        "Directory": f"{words(transcript.cwd)}",
        "Time": f"{transcript.started} to {transcript.ended}",
        "Model": words(", ".join(transcript.models)),
        "Messages": str(transcript.messages),
        "Used": usage_text(transcript.usage) if transcript.usage else "",
    }
    yield from (f"- {label}: {text}" for label, text in facts.items() if text)


def _item(item: Item) -> str:
    if isinstance(item, Said):
        return _said(item)
    if item.kind == "usage":
        return ""
    return f"*{words(item.text)}*" + (f"\n\n{_quoted(item.more)}" if item.more else "")


def _said(said: Said) -> str:
    who = "You" if said.role == "user" else "Assistant"
    ending = f" ({said.stop or 'cut short'})" if said.partial else ""
    parts = [f"## {who}{ending}", *(_piece(piece) for piece in said.pieces)]
    return "\n\n".join(part for part in parts if part)


def _piece(piece: Piece) -> str:
    if isinstance(piece, Text):
        return piece.text.strip("\n")
    if isinstance(piece, Image):
        return _picture(piece)
    if isinstance(piece, Thinking):
        return _quoted(piece.text)
    if isinstance(piece, ToolUse):
        return _tool_use(piece)
    return f"### {words(piece.name or 'tool')} (result without its call)\n\n{_result(piece)}"


def _picture(image: Image) -> str:
    return f"*[picture: {words(image.mime_type)}, {len(image.data) * 3 // 4:,} bytes]*"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.strip("\n").split("\n")) if text else ""


def _tool_use(use: ToolUse) -> str:
    call, result = use.call, use.result
    blocked = next((f", blocked by {v.extension}" for v in use.verdicts if v.decision == "block"), "")
    state = " (no result)" if result is None else f" (error{words(blocked)})" if result.is_error else ""
    details = result.details if result and isinstance(result.details, dict) else {}
    change = text_at(details, "diff")
    parts = [f"### {words(call.name)}{state}"]
    if call.invalid:
        parts.append(fenced(call.invalid))
    elif call.args and not change:
        parts.append(_arguments(call.args))
    if change:
        parts.append(f"{words(text_at(details, 'path'))}\n\n{fenced(change, 'diff')}")
    elif result:
        parts.append(_result(result))
    return "\n\n".join(part for part in parts if part)


def _arguments(args: Any) -> str:
    """Texts of several lines, and a single text, stand as they are; everything else as JSON."""
    fields = args if isinstance(args, dict) else {"": args}
    long = {
        key: value for key, value in fields.items() if isinstance(value, str) and ("\n" in value or len(fields) == 1)
    }
    short = {key: value for key, value in fields.items() if key not in long}
    parts = [fenced(msgspec.json.format(encode(short), indent=2).decode(), "json")] if short else []
    for key, value in long.items():
        parts += [f"{words(key)}:"] * (len(fields) > 1) + [fenced(value)]
    return "\n\n".join(parts)


def _result(result: ToolResult) -> str:
    shown = [
        fenced(without_colours(block.text).strip("\n")) if isinstance(block, Text) else _picture(block)
        for block in result.content
    ]
    return "\n\n".join(shown)
