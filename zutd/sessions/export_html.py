"""A branch as one page to read: no script, nothing from elsewhere, nothing in it that a conversation could make act.

All text goes through :mod:`~.export_markup`. Should that ever let something through, the page's own policy still
forbids every script, request and form; its style is allowed by its hash alone. (No trio; reads its own style sheet.)
"""

import base64
import functools
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from zutd import __version__
from zutd.frames.blocks import Image, Text, Thinking, ToolResult
from zutd.sessions.export_markup import code, diff, escape, is_diff, markdown, plain
from zutd.sessions.export_transcript import Item, Piece, Remark, Said, ToolUse, Transcript, usage_text
from zutd.sessions.foreign.values import is_base64, text_at
from zutd.sessions.index import row_id
from zutd.wire.codec import encode

PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"})
"""What a browser may show as a picture. SVG is not among them: it is a document, not a picture."""

_GIST_KEYS: Final = ("command", "path", "file_path", "pattern", "url", "query", "name", "text")
_SHORT: Final = 100
_OPEN_DIFF: Final = 40
"""Diffs of so many lines or fewer are open from the start."""


@functools.cache
def style() -> str:
    """The page's style sheet."""
    return Path(__file__).with_name("export_html.css").read_text("utf-8")


@functools.cache
def policy() -> str:
    """What the browser may do with the page: show pictures that are in it, and use this one style sheet."""
    digest = base64.b64encode(hashlib.sha256(style().encode()).digest()).decode()
    return f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def to_html(transcript: Transcript, notes: Sequence[str] = ()) -> str:
    """The page; ``notes`` stand at its end."""
    return "".join(_page(transcript, notes))


def _page(transcript: Transcript, notes: Sequence[str]) -> Iterator[str]:
    name = escape(transcript.name)
    yield (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy()}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{name}</title>\n<style>{style()}</style>\n</head>\n<body>\n"
    )
    yield f"<header>\n<h1>{name}</h1>\n{_facts(transcript)}\n{_contents(transcript.items)}</header>\n<main>\n"
    for item in transcript.items:
        yield _item(item)
    yield f"</main>\n<footer>{_notes(notes)}Made by zutd {escape(__version__)}.</footer>\n</body>\n</html>\n"


def _facts(transcript: Transcript) -> str:
    facts = {
        "Directory": transcript.cwd,
        "From": when(transcript.started),
        "To": when(transcript.ended),
        "Model": ", ".join(transcript.models),
        "Messages": f"{transcript.messages:,}",
        "Used": usage_text(transcript.usage) if transcript.usage else "",
        "Other branches": str(transcript.other_branches) if transcript.other_branches else "",
    }
    rows = (f"<div><dt>{label}</dt><dd>{escape(text)}</dd></div>" for label, text in facts.items() if text)
    return f'<dl class="facts">{"".join(rows)}</dl>'


def when(time: str) -> str:
    """A time for people: the day and the minute, UTC."""
    return f"{time[:10]} {time[11:16]}" if len(time) >= 16 and time[10] == "T" else time


def _contents(items: Iterable[Item]) -> str:
    """Links to the prompts, where there are several."""
    prompts = [(item.row, _first_line(item)) for item in items if isinstance(item, Said) and item.role == "user"]
    if len(prompts) < 2:
        return ""
    links = "".join(f'<li><a href="#{row_id(row)}">{escape(text)}</a></li>' for row, text in prompts)
    return (
        f'<nav><details class="aside"><summary>{len(prompts)} prompts</summary>'
        f'<div class="body"><ol>{links}</ol></div></details></nav>\n'
    )


def _first_line(said: Said) -> str:
    text = " ".join(piece.text for piece in said.pieces if isinstance(piece, Text))
    return _short(" ".join(text[:400].split())) or "(a picture)"


def _short(text: str) -> str:
    return text if len(text) <= _SHORT else text[: _SHORT - 1] + "…"


def _notes(notes: Sequence[str]) -> str:
    if not notes:
        return ""
    return f"Not on this page:<ul>{''.join(f'<li>{escape(note)}</li>' for note in notes)}</ul>"


# --- items -----------------------------------------------------------------------------------------------------------


def _item(item: Item) -> str:
    return _remark(item) if isinstance(item, Remark) else _said(item)


def _remark(remark: Remark) -> str:
    if remark.kind == "usage":
        return f'<div class="usage">{escape(remark.text)}</div>\n'
    if remark.more:
        return _fold(escape(remark.text), "", f'<div class="text">{markdown(remark.more)}</div>', kind="aside")
    shown = f"🏷 {remark.text}" if remark.kind == "label" else remark.text
    return f'<div class="remark" id="{row_id(remark.row)}">{escape(shown)}</div>\n'


def _said(said: Said) -> str:
    by_user = said.role == "user"
    who = "You" if by_user else "Assistant"
    cut = f'<span class="badge warn">{escape(said.stop or "cut short")}</span>' if said.partial else ""
    if said.stop == "length":
        cut = '<span class="badge warn">length</span>'
    place = row_id(said.row)
    model = f"<span>{escape(said.model)}</span>" if said.model else ""
    pieces = "".join(_piece(piece, by_user=by_user) for piece in said.pieces)
    return (
        f'<section class="said{" user" if by_user else ""}" id="{place}">'
        f'<div class="who"><b>{who}</b>{model}{cut}'
        f'<time datetime="{escape(said.time)}"><a href="#{place}">{escape(when(said.time))}</a></time></div>'
        f"{pieces}</section>\n"
    )


def _piece(piece: Piece, *, by_user: bool) -> str:
    if isinstance(piece, Text):
        shown = escape(piece.text) if by_user else markdown(piece.text)
        return f'<div class="text" dir="auto">{shown}</div>'
    if isinstance(piece, Image):
        return picture(piece)
    if isinstance(piece, ToolUse):
        return _tool_use(piece)
    if isinstance(piece, Thinking):
        return _thinking(piece)
    badge = '<span class="badge warn">result without its call</span>'
    return _fold(f"<b>{escape(piece.name or 'tool')}</b>", "", _result(piece), badge=badge)


def picture(image: Image) -> str:
    """A picture that is in the page, or a word in its place if it is none that a browser should show."""
    kind = image.mime_type.lower()
    if kind not in PICTURES or not is_base64(image.data):
        return f'<p class="aside">[a picture of type {escape(image.mime_type[:60])}, which is not shown]</p>'
    return f'<img alt="" src="data:{kind};base64,{escape(image.data)}">'


def _thinking(thinking: Thinking) -> str:
    if not thinking.text:
        return ""
    gist = _short(" ".join(thinking.text[:400].split()))
    return _fold("Thinking", escape(gist), f'<div class="text">{markdown(thinking.text)}</div>', kind="aside")


def _fold(head: str, gist: str, body: str, *, badge: str = "", kind: str = "", is_open: bool = False) -> str:
    """A part that opens and closes without any script. All arguments are HTML."""
    attributes = (f' class="{kind}"' if kind else "") + (" open" if is_open else "")
    return (
        f'<details{attributes}><summary>{head}<span class="gist">{gist}</span>{badge}</summary>'
        f'<div class="body">{body}</div></details>\n'
    )


# --- tools -----------------------------------------------------------------------------------------------------------


def _tool_use(use: ToolUse) -> str:
    call, result = use.call, use.result
    details = result.details if result and isinstance(result.details, dict) else {}
    change = text_at(details, "diff")
    arguments = _arguments(call.args, call.invalid, folded=bool(change))
    body = [_verdicts(use)] if change else [arguments, _verdicts(use)]
    if result:
        body.append(_result(result, without_diff=bool(change)))
    if change:
        body += [diff(change), arguments]
    body.append(_facts_of(details))
    is_open = bool(change) and change.count("\n") < _OPEN_DIFF
    extension = result.extension if result else ""
    head = f"<b>{escape(call.name)}</b>" + (f"<span>{escape(extension)}</span>" if extension else "")
    return _fold(
        head, escape(_gist(call.args, call.invalid)), "".join(body), badge=_badge(use, details), is_open=is_open
    )


def _badge(use: ToolUse, details: dict[str, Any]) -> str:
    if any(verdict.decision == "block" for verdict in use.verdicts):
        return '<span class="badge bad">blocked</span>'
    if use.result is None:
        return '<span class="badge warn">no result</span>'
    if use.result.is_error:
        exit_code = details.get("exit_code")
        return f'<span class="badge bad">{f"exit {exit_code}" if isinstance(exit_code, int) else "error"}</span>'
    added, removed = details.get("added"), details.get("removed")
    if isinstance(added, int) and isinstance(removed, int):
        return f'<span class="badge"><span class="good">+{added}</span> <span class="bad">-{removed}</span></span>'
    return '<span class="badge good">ok</span>'


def _gist(args: Any, invalid: str) -> str:
    """What the call is about, in one line."""
    if invalid:
        return _short(" ".join(invalid[:400].split()))
    fields = args if isinstance(args, dict) else {}
    first = next((fields[key] for key in _GIST_KEYS if isinstance(fields.get(key), str)), None)
    return _short(" ".join((first if first is not None else _json(args) if args else "")[:400].split()))


def _arguments(args: Any, invalid: str, *, folded: bool) -> str:
    if invalid:
        return f"<h6>Arguments (no JSON object)</h6>{code(invalid)}"
    if folded:
        return _fold("Arguments", "", code(_json(args, indent=2)), kind="aside")
    if not isinstance(args, dict):
        return code(_json(args, indent=2))
    short = {key: value for key, value in args.items() if not (isinstance(value, str) and "\n" in value)}
    rows = "".join(f"<dt>{escape(str(key))}</dt><dd><code>{plain(_plainly(v))}</code></dd>" for key, v in short.items())
    long = "".join(f"<h6>{escape(str(key))}</h6>{code(value)}" for key, value in args.items() if key not in short)
    return (f"<dl>{rows}</dl>" if rows else "") + long


def _plainly(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: Any, *, indent: int = -1) -> str:
    return msgspec.json.format(encode(value), indent=indent).decode()


def _result(result: ToolResult, *, without_diff: bool = False) -> str:
    shown: list[str] = []
    for block in result.content:
        if isinstance(block, Image):
            shown.append(picture(block))
            continue
        text = block.text.split("\n@@ -", 1)[0] if without_diff else block.text
        if text.strip():
            shown.append(diff(text) if is_diff(text) else f"<pre>{plain(text)}</pre>")
    return f"<h6>{'Error' if result.is_error else 'Result'}</h6>{''.join(shown)}" if shown else ""


def _facts_of(details: dict[str, Any]) -> str:
    """What a tool says beside its result, but for what is shown already."""
    rest = {key: value for key, value in details.items() if key not in ("diff", "diff_truncated", "added", "removed")}
    cut = "<p>The rest of the difference was left out.</p>" if details.get("diff_truncated") is True else ""
    return cut + (_fold("Details", "", code(_json(rest, indent=2)), kind="aside") if rest else "")


def _verdicts(use: ToolUse) -> str:
    told = [verdict for verdict in use.verdicts if verdict.decision != "allow" or verdict.timed_out]
    items = (f"<dt>{escape(v.extension)}</dt><dd>{escape(v.decision)} ({v.latency_ms:.1f} ms)</dd>" for v in told)
    return f"<dl>{''.join(items)}</dl>" if told else ""
