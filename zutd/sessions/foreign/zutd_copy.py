"""A session file of zutd's under new ids, all branches included: so that two homes, or two copies, do not clash.

Rows keep their numbers and their bytes, but for the names of session and branches. (No trio, no I/O.)
"""

from typing import Any, Final
from uuid import uuid4

from zutd.frames.rows import Header
from zutd.sessions.entries import BranchEntry, HeadEntry, read_entry
from zutd.sessions.foreign.build import IMPORT
from zutd.sessions.rewrite import Mended, patch
from zutd.sessions.tree import Tree
from zutd.wire.codec import encode, encode_frame

FORMAT: Final = "zutd"


def copy_under(mended: Mended, header: Header, *, name: str, now: str) -> Tree:
    """The whole tree as the session of ``header``; a row at the end of the active branch tells where it comes from."""
    old = mended.tree
    ids = {branch.id: str(uuid4()) for branch in old.branches()}
    ids[old.header.id] = header.id
    copy = Tree(header)
    for line in old.lines():
        copy.append(_renamed(line, ids))
    origin: dict[str, Any] = {"format": FORMAT, "id": old.header.id, "file": name, "original": {"cwd": old.header.cwd}}
    tip = copy.tip()
    time = str(copy.raw(tip).get("time", now))
    copy.append(encode({"type": IMPORT, "n": len(copy) + 1, "parent": tip, "time": now, **origin}))
    copy.append(encode_frame(copy.head_row(copy.active, time)))
    return copy


def _renamed(line: bytes, ids: dict[str, str]) -> bytes:
    entry = read_entry(line)
    if isinstance(entry, BranchEntry):
        parent = {"parent_id": ids.get(entry.parent_id, entry.parent_id)} if entry.parent_id else {}
        return patch(line, id=ids[entry.id], **parent)
    if isinstance(entry, HeadEntry):
        return patch(line, branch=ids.get(entry.branch, entry.branch))
    return line
