"""What a machine's facts come to, as a table; and the words for bubblewrap."""

import itertools
import os
import sys
from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from tests.extensions.rig import NoWatcher
from zutd.processes.sandbox import (
    SCOPES,
    Confinement,
    Facts,
    Place,
    failure,
    gaps,
    is_below,
    look,
    not_enforced,
    wrapper,
)

ALL = Facts(landlock=7, seccomp=True, bwrap="/usr/bin/bwrap")
NOTHING = Confinement()
EVERYTHING = Confinement(net=True, run=True)


def place(path: str) -> Place:
    """A place that no link leads to."""
    return Place(name=path, real=path)


@pytest.mark.parametrize(
    ("landlock", "seccomp", "bwrap", "lost"),
    [
        (7, True, True, ""),
        (7, True, False, ""),
        (3, True, False, ""),
        (1, True, False, ""),  # truncating is refused by seccomp then
        (0, True, True, ""),
        (7, False, True, "run"),
        (0, False, True, "run"),
        (7, False, False, "net run"),
        (2, False, False, "write net run"),
        (0, True, False, "read write"),
        (0, False, False, "read write net run"),
    ],
)
def test_what_is_not_enforced(landlock: int, seccomp: bool, bwrap: bool, lost: str) -> None:
    """By what there is; a scope that was granted cannot be broken."""
    facts = Facts(landlock=landlock, seccomp=seccomp, bwrap="/usr/bin/bwrap" if bwrap else "")
    assert not_enforced(NOTHING, facts) == tuple(lost.split())
    assert not_enforced(EVERYTHING, facts) == tuple(name for name in lost.split() if name in ("read", "write"))


def test_less_is_never_said_to_be_more() -> None:
    """Taking something away from a machine never makes it enforce more, nor have fewer gaps of the same kind."""
    machines = [
        Facts(landlock=version, seccomp=seccomp, bwrap=bwrap)
        for version, seccomp, bwrap in itertools.product((0, 1, 2, 3, 5, 6, 7), (False, True), ("", "/b"))
    ]
    for strong, weak in itertools.product(machines, machines):
        if weak.landlock <= strong.landlock and weak.seccomp <= strong.seccomp and weak.bwrap <= strong.bwrap:
            assert set(not_enforced(NOTHING, strong)) <= set(not_enforced(NOTHING, weak))


def test_gaps_are_told() -> None:
    """Without bubblewrap some things remain possible; which, depends on Landlock's version and on what is granted."""
    alone = Facts(landlock=7, seccomp=True)
    writes = Confinement(write=(place("/w"),))
    assert gaps(NOTHING, ALL) == ()
    assert len(gaps(NOTHING, alone)) == 1
    assert len(gaps(writes, alone)) == 2
    assert gaps(writes, ALL) == ()
    old = " ".join(gaps(NOTHING, Facts(landlock=1, seccomp=True)))
    assert "signals" in old
    assert "empty files" in old


def test_words_are_least() -> None:
    """What lies in another place is not said again; what may be written is not said to be readable too."""
    confinement = Confinement(
        read=tuple(map(place, ("/a", "/a/b", "/ab", "/w/x"))), write=tuple(map(place, ("/w", "/w/y")))
    )
    words = wrapper(confinement, Facts(landlock=7, seccomp=True))
    files = [word for word in words if word.startswith(("read=/a", "read=/w", "write="))]
    assert files == ["read=/a", "read=/ab", "write=/w"]
    assert words[-1] == "--"


def test_the_box_holds_places_and_links(tmp_path: Path) -> None:
    """Outer places come before inner ones, and a path that leads to a place by a link is a link there too."""
    (tmp_path / "real/inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    real, inner, link = (str(tmp_path / name) for name in ("real", "real/inner", "link"))
    confinement = Confinement(read=(Place(name=link, real=real),), write=(place(inner),))
    words = list(wrapper(confinement, ALL))
    box = words[: words.index("-c")]
    assert words[0] == "/usr/bin/bwrap"
    assert "--unshare-net" in box
    assert box.index(real) < box.index(inner) < box.index(link)
    assert box[box.index(real) - 1] == "--ro-bind"
    assert box[box.index(inner) - 1] == "--bind"
    assert box[box.index(link) - 2 : box.index(link) + 1] == ["--symlink", real, link]
    assert "--unshare-net" not in wrapper(EVERYTHING, ALL)


PATHS = st.lists(st.sampled_from(["a", "ab", "b"]), max_size=3).map(lambda parts: "/" + "/".join(parts))


@given(PATHS, PATHS)
def test_below_is_by_whole_names(path: str, directory: str) -> None:
    """``/ab`` is not below ``/a``; everything is below the root."""
    parts, outer = ([p for p in text.split("/") if p] for text in (path, directory))
    assert is_below(path, directory) == (parts[: len(outer)] == outer)


def test_a_look_says_what_is_missing(tmp_path: Path) -> None:
    """A bubblewrap that is not there, or does not work, is a sentence; one that says it works is used."""
    for name, script in (("true", "exit 0"), ("bwrap", "echo no namespaces >&2; exit 1")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    if sys.platform != "linux":
        assert trio.run(look, str(tmp_path), NoWatcher()).names == ()
        return
    broken = trio.run(look, str(tmp_path), NoWatcher())
    assert broken.bwrap == ""
    assert broken.missing[-1] == "bubblewrap does not work here (no namespaces)"
    assert "not installed" in trio.run(look, "/nowhere", NoWatcher()).missing[-1]
    (tmp_path / "bwrap").write_text("#!/bin/sh\nexit 0\n")
    assert trio.run(look, str(tmp_path), NoWatcher()).bwrap == str(tmp_path / "bwrap")


def test_another_system_has_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no Linux nothing is enforced, and the system is named."""
    monkeypatch.setattr(sys, "platform", "darwin")
    facts = trio.run(look, os.defpath, NoWatcher())
    assert facts.names == ()
    assert not_enforced(NOTHING, facts) == SCOPES
    assert facts.missing == ("there is nothing on darwin that zutd can use",)


def test_a_failure_is_told_from_what_the_program_says() -> None:
    """Only lines of the wrapping itself count."""
    assert failure(("x", "sandbox: /x: Permission denied")).endswith("permissions: /x: Permission denied")
    assert failure(("bwrap: no room",)).endswith("no room")
    assert failure(("Traceback",)) == ""
    assert failure(()) == ""
