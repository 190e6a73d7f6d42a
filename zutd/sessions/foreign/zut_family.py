"""Several files of zut, each a branch of another, as the branches of one session. (No trio, no I/O.)

A branch of zut's is a file of its own that begins with copies of its parent's messages. Here the branch hangs where
the copies end, and the copies are not written again. What is the same is found by comparing, not by counting: what
zut counts are its messages, some of which have no row of ours.
"""

from collections.abc import Iterator, Sequence

import attrs

from zutd.sessions.foreign.build import Builder
from zutd.sessions.foreign.zut_file import ZutFile
from zutd.sessions.foreign.zut_replay import Effective, Replay

FORMAT = "zut"


def families(files: Sequence[ZutFile]) -> list[list[ZutFile]]:
    """Files by session: each family begins with its root, and every other file comes after its parent."""
    known: dict[str, ZutFile] = {}
    for file in files:
        if file.id and file.id in known:
            file.notes.add(f"it has the id of {known[file.id].name} and was left out")
        else:
            known[file.id or file.name] = file
    children: dict[str, list[ZutFile]] = {}
    roots: list[ZutFile] = []
    for file in known.values():
        if _in_circle(file, known):
            roots.append(file)
            file.notes.add("it says that it is a branch of itself; it stands alone")
        elif file.parent in known:
            children.setdefault(file.parent, []).append(file)
        else:
            roots.append(file)
            if file.parent:
                file.notes.add(f"it is a branch of the session {file.parent}, which is not among the files")
    return [list(_down(root, children)) for root in roots]


def _in_circle(file: ZutFile, known: dict[str, ZutFile]) -> bool:
    """Whether a file is its own ancestor."""
    seen = {file.id}
    above = known.get(file.parent)
    while above is not None and above.id not in seen:
        seen.add(above.id)
        above = known.get(above.parent)
    return above is not None and above.id == file.id


def _down(root: ZutFile, children: dict[str, list[ZutFile]]) -> Iterator[ZutFile]:
    waiting = [root]
    while waiting:
        file = waiting.pop()
        yield file
        waiting += sorted(children.get(file.id, ()), key=lambda child: (child.started, child.name), reverse=True)


@attrs.frozen
class _Grown:
    """A branch that is written: its first row, its last one and its eras."""

    start: int
    end: int
    eras: list[list[Effective]]


def build(builder: Builder, family: Sequence[ZutFile]) -> None:
    """Write a family; the branch that was spoken on last is the active one."""
    grown: dict[str, _Grown] = {}
    for file in family:
        parent = grown.get(file.parent)
        shared = _shared(parent.eras, file) if parent else []
        if parent and len(shared) < file.fork_point:
            file.notes.add(
                f"only {len(shared)} of the {file.fork_point} messages that it took from its parent are found there "
                "in a place where a branch can begin; the others stand on the branch itself"
            )
        start = builder.branch(
            shared[-1].end if shared else 0,
            file.started or builder.last_time,
            parent_id=builder.tree.branch_of(parent.start) if parent else "",
        )
        row = builder.origin(start, format=FORMAT, id=file.id, file=file.name, original=file.meta)
        replay = Replay(builder, file, row, shared)
        grown[file.id] = _Grown(start, replay.run(), replay.eras)
    builder.finish(_newest(family, grown))


def _newest(family: Sequence[ZutFile], grown: dict[str, _Grown]) -> int:
    return grown[max(family, key=lambda file: file.last_time).id].end


def _shared(eras: Sequence[list[Effective]], file: ZutFile) -> list[Effective]:
    """The longest beginning of a file that one of its parent's eras begins with, up to where a branch can hang."""
    marks = file.beginning()
    best: list[Effective] = []
    for era in reversed(eras):
        same = 0
        while same < min(len(marks), len(era)) and era[same].mark == marks[same]:
            same += 1
        while same and not era[same - 1].end:
            same -= 1
        if same > len(best):
            best = era[:same]
    return best
