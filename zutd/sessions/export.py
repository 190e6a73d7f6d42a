"""A branch of a session into a file of another form: zutd's own, zut's, Markdown, or a page to read.

The file is made under another name, forced to disk and renamed; one that is there already is never replaced. Blocking:
call it in a thread.
"""

import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal, get_args

import attrs

from zutd.sessions.errors import SessionNotFound, SessionWriteError
from zutd.sessions.file import write_whole
from zutd.sessions.listing import stamp
from zutd.sessions.repair import make_header
from zutd.sessions.rewrite import extract
from zutd.sessions.tree import Tree
from zutd.wire.codec import encode_frame

Format = Literal["zutd", "zut", "markdown", "html"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)

PORTABLE: Final = ".zutsession"
"""How a file of zut's ends that is made to be given away."""

_ENDINGS: Final[dict[str, Format]] = {
    ".html": "html",
    ".htm": "html",
    ".md": "markdown",
    ".markdown": "markdown",
    PORTABLE: "zut",
    ".jsonl": "zutd",
}
_ENDING_OF: Final[dict[Format, str]] = {"zutd": ".jsonl", "zut": PORTABLE, "markdown": ".md", "html": ".html"}
_LONGEST_SLUG: Final = 40


@attrs.frozen(kw_only=True)
class Exported:
    """Where the file is, and what is not in it."""

    path: Path
    notes: tuple[str, ...]


@attrs.frozen
class Rendered:
    """A branch in another form, and what is not in it."""

    data: bytes
    notes: tuple[str, ...]


def format_by_name(path: str) -> Format | None:
    """The form that a file's name asks for, if it asks for one."""
    return _ENDINGS.get(os.path.splitext(path)[1].lower())


def export(tree: Tree, row: int, form: Format, path: Path) -> Exported:
    """Write the path of a row into a file; in a directory, under a name made of its day, id and title.

    Raises :class:`SessionWriteError`, also when the file is there already, and :class:`SessionNotFound` for a branch
    on which nothing was said.
    """
    target = path / suggest_name(tree, row, form) if os.path.isdir(path) else path
    if not os.path.isdir(target.parent):
        raise SessionWriteError(str(target), f"there is no directory {target.parent}")
    rendered = render(tree, row, form, portable=target.suffix.lower() == PORTABLE)
    write_whole(target, rendered.data)
    return Exported(path=target, notes=rendered.notes)


def render(tree: Tree, row: int, form: Format, *, portable: bool = True) -> Rendered:
    """The path of a row in another form. ``portable`` files of zut's tell no working directory.

    Raises :class:`SessionNotFound` for a branch on which nothing was said.
    """
    if not tree.message_count(row):
        raise SessionNotFound("there is nothing to export: nothing was said on this branch")
    data, notes = _RENDERERS[form](tree, row, portable)
    others = tree.branch_count - 1
    more = (f"{others} other branches are not in the file; export them one by one",) if others else ()
    return Rendered(data, (*more, *notes))


def suggest_name(tree: Tree, row: int, form: Format) -> str:
    """A name for the file: when it began, which branch, and what it is about."""
    day = re.sub(r"[^0-9]", "", tree.header.started[:10])
    words = tree.title(row)
    slug = re.sub(r"[^\w]+", "-", words.lower()).strip("-_")[:_LONGEST_SLUG].strip("-_")
    return "-".join(part for part in (day, tree.branch_of(row)[:8], slug) if part) + _ENDING_OF[form]


Made = tuple[bytes, tuple[str, ...]]


def _zutd(tree: Tree, row: int, _: bool) -> Made:
    now = datetime.now(UTC)
    header = make_header(tree.header.cwd, started=now)
    copy = extract(tree, row, header, time=stamp(now))
    return b"\n".join([encode_frame(header), *copy.lines(), b""]), ()


def _zut(tree: Tree, row: int, portable: bool) -> Made:
    from zutd.sessions.export_zut import to_zut

    made = to_zut(tree, row, portable=portable)
    return made.data, made.notes


def _markdown(tree: Tree, row: int, _: bool) -> Made:
    from zutd.sessions.export_markdown import PICTURES_LEFT_OUT, has_pictures, to_markdown
    from zutd.sessions.export_transcript import transcribe

    transcript = transcribe(tree, row)
    notes = (PICTURES_LEFT_OUT,) if has_pictures(transcript) else ()
    return to_markdown(transcript).encode("utf-8", "replace"), notes


def _html(tree: Tree, row: int, _: bool) -> Made:
    from zutd.sessions.export_html import to_html
    from zutd.sessions.export_transcript import transcribe

    return to_html(transcribe(tree, row)).encode("utf-8", "replace"), ()


_RENDERERS: Final[dict[Format, Callable[[Tree, int, bool], Made]]] = {
    "zutd": _zutd,
    "zut": _zut,
    "markdown": _markdown,
    "html": _html,
}
