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
from zutd.sessions.repair import copy_path, make_header
from zutd.sessions.tree import Tree

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


def format_by_name(path: str) -> Format | None:
    """The form that a file's name asks for, if it asks for one."""
    return _ENDINGS.get(os.path.splitext(path)[1].lower())


def export(tree: Tree, row: int, form: Format, path: Path) -> Exported:
    """Write the path of a row into a file; in a directory, under a name made of its day, id and title.

    Raises :class:`SessionWriteError`, also when the file is there already, and :class:`SessionNotFound` for a branch
    on which nothing was said.
    """
    if not tree.message_count(row):
        raise SessionNotFound("there is nothing to export: nothing was said on this branch")
    target = path / suggest_name(tree, row, form) if path.is_dir() else path
    if not target.parent.is_dir():
        raise SessionWriteError(str(target), f"there is no directory {target.parent}")
    notes = _EXPORTERS[form](tree, row, target)
    return Exported(path=target, notes=notes)


def suggest_name(tree: Tree, row: int, form: Format) -> str:
    """A name for the file: when it began, which branch, and what it is about."""
    day = re.sub(r"[^0-9]", "", tree.header.started[:10])
    words = tree.title(row)
    slug = re.sub(r"[^\w]+", "-", words.lower()).strip("-_")[:_LONGEST_SLUG].strip("-_")
    return "-".join(part for part in (day, tree.branch_of(row)[:8], slug) if part) + _ENDING_OF[form]


def _zutd(tree: Tree, row: int, path: Path) -> tuple[str, ...]:
    copy_path(tree, row, path, make_header(tree.header.cwd, started=datetime.now(UTC)))
    return _one_branch(tree)


def _zut(tree: Tree, row: int, path: Path) -> tuple[str, ...]:
    from zutd.sessions.export_zut import to_zut

    made = to_zut(tree, row, portable=path.suffix.lower() == PORTABLE)
    write_whole(path, made.data)
    return made.notes


def _markdown(tree: Tree, row: int, path: Path) -> tuple[str, ...]:
    from zutd.sessions.export_markdown import PICTURES_LEFT_OUT, has_pictures, to_markdown
    from zutd.sessions.export_transcript import transcribe

    transcript = transcribe(tree, row)
    write_whole(path, to_markdown(transcript).encode("utf-8", "replace"))
    return (*_one_branch(tree), *((PICTURES_LEFT_OUT,) if has_pictures(transcript) else ()))


def _html(tree: Tree, row: int, path: Path) -> tuple[str, ...]:
    from zutd.sessions.export_html import to_html
    from zutd.sessions.export_transcript import transcribe

    write_whole(path, to_html(transcribe(tree, row)).encode("utf-8", "replace"))
    return _one_branch(tree)


def _one_branch(tree: Tree) -> tuple[str, ...]:
    others = tree.branch_count - 1
    return (f"{others} other branches are not in the file; export them one by one",) if others else ()


_EXPORTERS: Final[dict[Format, Callable[[Tree, int, Path], tuple[str, ...]]]] = {
    "zutd": _zutd,
    "zut": _zut,
    "markdown": _markdown,
    "html": _html,
}
