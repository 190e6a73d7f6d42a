"""Text to HTML that can do nothing: everything is escaped first, and only tags of our own are put around it.

The Markdown that models write (headings, lists, tables, fenced code, emphasis, links) is shown as what it means. HTML
inside of it is shown as text; a link leads to the web, to a mail address, or nowhere; a picture from elsewhere is a
link. Every step is bounded, so that no text can make a page cost more than its length. (No trio, no I/O.)
"""

import html
import re
from collections.abc import Callable, Sequence
from typing import Final

_DEPTH: Final = 6
"""How deep lists, quotations and emphasis may stand in each other; what is deeper is shown as it was written."""

_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_REORDERING: Final = re.compile("[\u202a-\u202e\u2066-\u2069]")
_ANSI: Final = re.compile(r"\x1b(?:\[[0-?]{0,64}[ -/]{0,16}[@-~]|\][^\x07\x1b]{0,512}(?:\x07|\x1b\\)|[()][0-9A-Za-z])")


def escape(text: str) -> str:
    """Text for any place between tags or in a quoted attribute.

    Control characters are no part of HTML; characters that only reorder others could make code read as what it is not.
    """
    clean = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n").replace("\r", "\n"))
    return html.escape(_REORDERING.sub(lambda found: f"[U+{ord(found[0]):04X}]", clean))


def plain(text: str) -> str:
    """What a program printed: without the codes that colour a terminal."""
    return escape(without_colours(text))


def without_colours(text: str) -> str:
    """A text without the codes that colour a terminal."""
    return _ANSI.sub("", text)


def is_diff(text: str) -> bool:
    """Whether a text is a unified diff."""
    return text.startswith("@@ -") or "\n@@ -" in text[:4000]


def diff(text: str) -> str:
    """A unified diff, line by line."""
    return f'<pre class="diff">{"".join(map(_diff_line, text.split(chr(10))))}</pre>'


def _diff_line(line: str) -> str:
    kind = "f" if line.startswith(("+++", "---", "diff ", "index ")) else _DIFF_KINDS.get(line[:1], "c")
    return f'<span class="{kind}">{plain(line) or " "}</span>'


_DIFF_KINDS: Final = {"+": "a", "-": "d", "@": "h", "\\": "n"}


def code(text: str, language: str = "") -> str:
    """A block of code."""
    if language == "diff" or (not language and is_diff(text)):
        return diff(text)
    return f"<pre><code>{plain(text)}</code></pre>"


# --- blocks ----------------------------------------------------------------------------------------------------------

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})\s*([\w+#.-]{0,40})[^`]*")
_HEADING: Final = re.compile(r" {0,3}(#{1,6})(?: |$)")
_TABBED_ITEM: Final = re.compile(r"(\t{1,6})(?=(?:[-*+]|\d{1,9}[.)])\s)")
_RULE: Final = re.compile(r" {0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})")
_QUOTE: Final = re.compile(r" {0,3}> ?")
_ITEM: Final = re.compile(r"( {0,12})([-*+]|\d{1,9}[.)])( {1,4}|$)")
_TABLE_RULE: Final = re.compile(r" {0,3}\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*")
_MOST_COLUMNS: Final = 50


def markdown(text: str, depth: int = 0) -> str:
    """Markdown as HTML."""
    lines = text.replace("\r\n", "\n").split("\n")
    return _blocks([_TABBED_ITEM.sub(lambda tabs: "    " * len(tabs[1]), line, count=1) for line in lines], depth)


def _blocks(lines: Sequence[str], depth: int) -> str:
    if depth > _DEPTH:
        return _paragraph(lines, depth)
    out: list[str] = []
    waiting: list[str] = []
    at = 0
    while at < len(lines):
        for read in _READERS:
            found = read(lines, at, depth)
            if found:
                break
        else:
            waiting.append(lines[at])
            at += 1
            continue
        out += [_paragraph(waiting, depth), found[0]]
        waiting.clear()
        at = found[1]
    out.append(_paragraph(waiting, depth))
    return "".join(out)


Found = tuple[str, int] | None
"""The HTML of a block and the line behind it."""


def _blank(lines: Sequence[str], at: int, _: int) -> Found:
    return ("", at + 1) if not lines[at].strip() else None


def _paragraph(lines: Sequence[str], depth: int) -> str:
    text = "\n".join(line.strip() for line in lines)
    return f"<p>{inline(text, depth)}</p>" if text else ""


def _fence(lines: Sequence[str], at: int, _: int) -> Found:
    opened = _FENCE.fullmatch(lines[at])
    if not opened:
        return None
    mark = opened[1]
    indent = len(lines[at]) - len(lines[at].lstrip(" "))
    end = at + 1
    while end < len(lines) and not _closes(lines[end], mark):
        end += 1
    body = [line[indent:] if line[:indent].isspace() else line for line in lines[at + 1 : end]]
    return code("\n".join(body), opened[2].lower()), end + 1


def _closes(line: str, mark: str) -> bool:
    stripped = line.strip()
    return len(stripped) >= len(mark) and stripped == mark[0] * len(stripped)


def _heading(lines: Sequence[str], at: int, depth: int) -> Found:
    found = _HEADING.match(lines[at])
    if not found:
        return None
    level = min(len(found[1]) + 2, 6)
    return f"<h{level}>{inline(lines[at][found.end() :].strip().rstrip('#').rstrip(), depth)}</h{level}>", at + 1


def _rule(lines: Sequence[str], at: int, _: int) -> Found:
    return ("<hr>", at + 1) if len(lines[at]) < 200 and _RULE.fullmatch(lines[at]) else None


def _quote(lines: Sequence[str], at: int, depth: int) -> Found:
    end = at
    while end < len(lines) and _QUOTE.match(lines[end]):
        end += 1
    if end == at:
        return None
    inner = [_QUOTE.sub("", line, count=1) for line in lines[at:end]]
    return f"<blockquote>{_blocks(inner, depth + 1)}</blockquote>", end


def _list(lines: Sequence[str], at: int, depth: int) -> Found:
    first = _ITEM.match(lines[at])
    if not first:
        return None
    ordered = first[2][0].isdigit()
    items: list[str] = []
    while at < len(lines) and (mark := _same_list(lines[at], first, ordered=ordered)):
        width = mark.end()
        inner = [lines[at][width:]]
        at += 1
        while at < len(lines) and _belongs(lines, at, len(mark[1]) + 2):
            inner.append(lines[at][_indent(lines[at], width) :])
            at += 1
        items.append(f"<li>{_tight(_blocks(inner, depth + 1))}</li>")
    start = f' start="{int(first[2][:-1])}"' if ordered and first[2][:-1] != "1" else ""
    return (f"<ol{start}>" if ordered else "<ul>") + "".join(items) + ("</ol>" if ordered else "</ul>"), at


def _same_list(line: str, first: "re.Match[str]", *, ordered: bool) -> "re.Match[str] | None":
    found = _ITEM.match(line)
    fits = found and found[2][0].isdigit() == ordered and abs(len(found[1]) - len(first[1])) < 2
    return found if fits else None


def _belongs(lines: Sequence[str], at: int, width: int) -> bool:
    """Whether a line is a part of the item above it: indented, or blank with an indented one behind it."""
    if lines[at].strip():
        return lines[at][:width].isspace() or not _starts_block(lines[at])
    return at + 1 < len(lines) and lines[at + 1].strip() != "" and lines[at + 1][:width].isspace()


def _starts_block(line: str) -> bool:
    return any(pattern.match(line) for pattern in (_ITEM, _HEADING, _FENCE, _QUOTE))


def _indent(line: str, most: int) -> int:
    return min(len(line) - len(line.lstrip(" ")), most)


def _tight(text: str) -> str:
    """An item of one paragraph needs none."""
    if text.startswith("<p>") and text.count("<p>") == 1:
        return text.removeprefix("<p>").replace("</p>", "", 1)
    return text


def _table(lines: Sequence[str], at: int, depth: int) -> Found:
    if at + 1 >= len(lines) or "|" not in lines[at] or "|" not in lines[at + 1] or len(lines[at + 1]) > 2000:
        return None
    if not _TABLE_RULE.fullmatch(lines[at + 1]):
        return None
    end = at + 2
    while end < len(lines) and "|" in lines[end]:
        end += 1
    head = _cells(lines[at], "th", depth)
    body = "".join(f"<tr>{_cells(line, 'td', depth)}</tr>" for line in lines[at + 2 : end])
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>', end


def _cells(line: str, tag: str, depth: int) -> str:
    cells = re.split(r"(?<!\\)\|", line.strip().removeprefix("|").removesuffix("|"))
    shown = (cell.strip().replace("\\|", "|") for cell in cells[:_MOST_COLUMNS])
    return "".join(f"<{tag}>{inline(cell, depth)}</{tag}>" for cell in shown)


Reader = Callable[[Sequence[str], int, int], Found]
_READERS: Final[tuple[Reader, ...]] = (_blank, _fence, _heading, _rule, _quote, _list, _table)


# --- inside of lines -------------------------------------------------------------------------------------------------

_INLINE: Final = re.compile(
    r"(?P<escaped>\\[!-/:-@\[-`{-~])"
    r"|(?P<ticks>`{1,8})(?!`)(?P<code>.{1,500}?)(?<!`)(?P=ticks)(?!`)"
    r"|!?\[(?P<label>[^\[\]\n]{0,500})\]\(\s{0,9}<?(?P<target>[^\s()<>]{1,2000}(?:\([^\s()<>]{0,200}\))?)>?"
    r"(?:\s{1,9}\"[^\"\n]{0,200}\")?\s{0,9}\)"
    r"|(?P<bare><?https?://[^\s<>\"'`]{1,2000})>?"
    r"|\*\*(?=\S)(?P<loud>.{1,500}?)(?<=\S)\*\*"
    r"|(?<![\w*])(?P<em>[*_])(?=[^\s*_])(?P<soft>[^*_\n]{1,500}?)(?<=\S)(?P=em)(?![\w*])"
    r"|~~(?=\S)(?P<gone>[^~\n]{1,500})(?<=\S)~~",
    re.DOTALL,
)
_TARGET: Final = re.compile(r"(?:https?://|mailto:)[!-~\u00a1-\uffff]+", re.IGNORECASE)
_TRAILING: Final = ".,;:!?)]}*_"


def inline(text: str, depth: int = 0) -> str:
    """One paragraph's text: code, emphasis and links."""
    if depth > _DEPTH:
        return escape(text)
    out: list[str] = []
    at = 0
    for found in _INLINE.finditer(text):
        out += [escape(text[at : found.start()]), _span(found, depth + 1)]
        at = found.end()
    out.append(escape(text[at:]))
    return "".join(out)


def _span(found: "re.Match[str]", depth: int) -> str:
    if found["escaped"]:
        return escape(found["escaped"][1])
    if found["code"] is not None:
        return f"<code>{escape(found['code'].strip() or found['code'])}</code>"
    if found["target"]:
        return link(found["target"], _label(found["label"]) or escape(found["target"]))
    if found["bare"]:
        return _bare(found[0])
    for name, tag in (("loud", "strong"), ("soft", "em"), ("gone", "del")):
        if found[name]:
            return f"<{tag}>{inline(found[name], depth)}</{tag}>"
    return escape(found[0])


def _label(text: str) -> str:
    """A link's text: code or words, and no links inside."""
    if len(text) > 2 and text[0] == text[-1] == "`":
        return f"<code>{escape(text[1:-1])}</code>"
    return escape(text)


def _bare(text: str) -> str:
    """An address in the text; what ends the sentence is no part of it."""
    if text.startswith("<"):
        address = text.strip("<>")
        return link(address, escape(address))
    address = text.removesuffix(">").rstrip(_TRAILING)
    return link(address, escape(address)) + escape(text[len(address) :])


def link(target: str, shown: str) -> str:
    """A link with a text that is HTML already; only the text where it would lead anywhere but to the web or a mail."""
    if not _TARGET.fullmatch(target):
        return shown
    return f'<a href="{escape(target)}" rel="noopener noreferrer nofollow">{shown}</a>'
