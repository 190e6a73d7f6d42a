"""The tool grep, with every searcher this machine has."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import trio

from tests.tools.calls import call, context, refusal, text_of
from zutd.tools.grep import LONGEST_LINE, Engine, GrepTool, Matches, _grep, _rg, _walk, find_engine
from zutd.tools.text import MAX_BYTES, MAX_LINES

ENGINES = [
    Engine(name, program, "some", arguments)
    for name, program, arguments in (
        ("rg", shutil.which("rg"), _rg),
        ("grep", shutil.which("grep"), _grep),
        ("python", sys.executable, _walk),
    )
    if program
]


@pytest.fixture(params=ENGINES, ids=lambda engine: engine.name)
def grep(request: pytest.FixtureRequest) -> GrepTool:
    """The tool with one searcher."""
    engine: Engine = request.param
    return GrepTool(engine=engine)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A few files."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.py").write_text("import os\ndef main():\n    pass\n")
    (tmp_path / "src/b.py").write_text("def other(): pass\n-dash\n")
    (tmp_path / "src/data.bin").write_bytes(b"def \0binary\n")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text("def hidden\n")
    return tmp_path


def test_matches_are_path_line_and_text(grep: GrepTool, tree: Path) -> None:
    """Below the directory; binaries and .git are left out."""
    output = call(grep, tree, pattern="def [a-z]+", path="src")
    assert sorted(text_of(output).splitlines()) == ["src/a.py:2:def main():", "src/b.py:1:def other(): pass"]
    assert output.details["matched"] == 2
    assert output.details["engine"] == grep.engine.name
    assert output.details["path"] == str(tree / "src")
    everywhere = text_of(call(grep, tree, pattern="def"))
    assert "hidden" not in everywhere
    assert everywhere.count("\n") == 1


def test_a_single_file_and_an_absolute_path_can_be_searched(grep: GrepTool, tree: Path) -> None:
    """The path is always in front of the line."""
    assert text_of(call(grep, tree, pattern="os$", path="src/a.py")) == "src/a.py:1:import os"
    assert text_of(call(grep, tree, pattern="^import", path=str(tree / "src"))) == f"{tree}/src/a.py:1:import os"


def test_no_match_is_not_an_error(grep: GrepTool, tree: Path) -> None:
    """It is an answer."""
    output = call(grep, tree, pattern="nowhere")
    assert text_of(output) == "No matches found."
    assert not output.is_error
    assert output.details["exit_code"] == 1


def test_an_invalid_pattern_is_an_error_with_the_searchers_words(grep: GrepTool, tree: Path) -> None:
    """So the pattern can be mended."""
    said = refusal(grep, tree, pattern="(")
    assert said.startswith("grep: ")
    assert len(said) > 15


def test_a_pattern_or_path_that_looks_like_an_option_is_none(grep: GrepTool, tree: Path) -> None:
    """Nobody can smuggle in a flag."""
    (tree / "-r").mkdir()
    (tree / "-r/x").write_text("--version\n")
    assert text_of(call(grep, tree, pattern="-dash", path="src")) == "src/b.py:2:-dash"
    assert text_of(call(grep, tree, pattern="--version", path="-r")) == "-r/x:1:--version"


def test_a_missing_path_is_told_before_anything_runs(tree: Path) -> None:
    """With names like it; a pipe is refused."""
    grep = GrepTool(engine=Engine("none", "/no/such/program", "some", _grep))
    os.mkfifo(tree / "fifo")
    assert f"Did you mean {tree}/src?" in refusal(grep, tree, pattern="x", path="srcs")
    assert "it is a named pipe" in refusal(grep, tree, pattern="x", path="fifo")
    assert "cannot start /no/such/program" in refusal(grep, tree, pattern="x")


def test_too_many_lines_are_cut_and_told(grep: GrepTool, tree: Path) -> None:
    """The searcher is stopped, and it is still a success."""
    (tree / "many").write_text("match\n" * 300_000)
    output = call(grep, tree, pattern="match", path="many")
    assert text_of(output).endswith(f"[cut after {MAX_LINES} lines; use a narrower pattern or path]")
    assert text_of(output).count("many:") == MAX_LINES
    assert output.details["truncated"] is True
    assert not output.is_error


def test_fifty_kib_are_enough(grep: GrepTool, tree: Path) -> None:
    """Whole lines, within the limit."""
    (tree / "wide").write_text(("match" + "x" * 200 + "\n") * 1000)
    text = text_of(call(grep, tree, pattern="match", path="wide"))
    assert MAX_BYTES - 300 < len(text.encode()) < MAX_BYTES + 100
    assert "[cut after" in text


def test_long_lines_are_cut(grep: GrepTool, tree: Path) -> None:
    """A minified file shows where it matches, not all of itself."""
    (tree / "min.js").write_text("match" + "\u00e4" * 500_000 + "\nmatch\n")
    text = text_of(call(grep, tree, pattern="match", path="min.js"))
    first, second, note = text.splitlines()
    assert first.startswith("min.js:1:match\u00e4")
    assert first.endswith("\u00e4 [...]")
    assert len(first.encode()) <= LONGEST_LINE + 6
    assert second == "min.js:2:match"
    assert note == f"[lines longer than {LONGEST_LINE} bytes are cut: 1]"


def test_exactly_the_limit_is_not_cut(grep: GrepTool, tree: Path) -> None:
    """Only what was left out is told."""
    (tree / "f").write_text("m\n" * MAX_LINES)
    output = call(grep, tree, pattern="m", path="f")
    assert output.details["truncated"] is False
    assert output.details["matched"] == MAX_LINES


def test_other_encodings_are_found_and_shown_as_text(grep: GrepTool, tree: Path) -> None:
    """Bytes that are no UTF-8 do not break the result."""
    (tree / "latin").write_bytes(b"match caf\xe9\n")
    text = text_of(call(grep, tree, pattern="match", path="latin"))
    text.encode()
    assert "match caf" in text or text == "No matches found."  # in a UTF-8 locale, grep -I takes it for binary


def test_links_are_not_followed_below_the_root(grep: GrepTool, tree: Path) -> None:
    """A loop does not catch the search."""
    (tree / "src/loop").symlink_to(tree)
    assert text_of(call(grep, tree, pattern="import", path="src")) == "src/a.py:1:import os"


def scripted(script: str) -> Engine:
    """A searcher that does what a shell script says."""
    return Engine("odd", "/bin/sh", "some", lambda pattern, root: ("-c", script))


SLOW = scripted("echo a:1:found; sleep 100")


def test_a_search_that_takes_too_long_is_an_error_with_what_it_found(tmp_path: Path) -> None:
    """And the advice to search less."""
    started = time.monotonic()
    output = call(GrepTool(engine=SLOW, timeout=0.3), tmp_path, pattern="x")
    assert time.monotonic() - started < 3
    assert output.is_error
    assert text_of(output) == "a:1:found\n[timed out after 0.3 seconds; search a narrower path]"


def test_the_default_timeout_is_half_a_minute() -> None:
    """Nobody waits longer for a search."""
    assert GrepTool().timeout == 30


def test_cancelling_ends_the_searcher(tmp_path: Path) -> None:
    """At once."""

    async def main() -> None:
        with trio.move_on_after(0.2) as scope:
            await GrepTool(engine=SLOW).run({"pattern": "x"}, context(tmp_path))
        assert scope.cancelled_caught

    started = time.monotonic()
    trio.run(main)
    assert time.monotonic() - started < 3


def test_a_pattern_that_never_ends_can_be_stopped(tmp_path: Path) -> None:
    """Our own walk is a program of its own: a bad pattern keeps it busy, not the daemon."""
    (tmp_path / "f").write_text("a" * 60 + "b\n")
    grep = GrepTool(engine=Engine("python", sys.executable, "Python", _walk), timeout=0.5)
    assert call(grep, tmp_path, pattern="(a+)+$").is_error


def test_a_broken_searcher_is_told(tmp_path: Path) -> None:
    """By its own words, or by how it ended."""
    for script, says in (("echo broken >&2; exit 2", "grep: broken"), ("kill -9 $$", "signal: SIGKILL")):
        assert says in refusal(GrepTool(engine=scripted(script)), tmp_path, pattern="x")


def test_trouble_with_single_files_is_a_note(tmp_path: Path) -> None:
    """What was found counts."""
    for script, text in (
        ("echo a:1:x; exit 2", "a:1:x\n[some files could not be read]"),
        ("exit 2", "No matches found.\n[some files could not be read]"),
    ):
        assert text_of(call(GrepTool(engine=scripted(script)), tmp_path, pattern="x")) == text


def test_pieces_do_not_matter() -> None:
    """Lines may be cut anywhere on their way; a last one needs no newline."""
    data = b"one\n" + b"x" * 2000 + b"\n\nlast"

    async def fed(piece: int) -> bytes:
        matches = Matches()
        for start in range(0, len(data), piece):
            assert await matches.feed(data[start : start + piece])
        matches.end()
        return bytes(matches.text)

    results = {trio.run(fed, piece) for piece in (1, 3, 499, 501, 10**6)}
    assert results == {b"one\n" + b"x" * LONGEST_LINE + b" [...]\n\nlast\n"}


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({}, '"pattern" is missing'),
        ({"pattern": "x", "glob": "*.py"}, 'unknown argument "glob"; known: pattern, path'),
        ({"pattern": ""}, "a string of 1 to 16384 characters"),
        ({"pattern": "x" * 20_000}, "a string of 1 to 16384 characters"),
        ({"pattern": "a\0b"}, "holds a NUL"),
    ],
)
def test_wrong_arguments_are_one_readable_error(args: dict[str, str], says: str, tmp_path: Path) -> None:
    """Keys are strict."""
    assert says in refusal(GrepTool(), tmp_path, **args)


def test_the_best_searcher_is_chosen_and_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """First rg, then grep, then our own."""
    for name in ("rg", "grep"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_engine().name == "rg"
    assert "ripgrep regular expression" in GrepTool().description
    (tmp_path / "rg").unlink()
    assert find_engine().name == "grep"
    assert "grep -E" in GrepTool().description
    (tmp_path / "grep").unlink()
    assert find_engine().name == "python"


def test_our_own_walk_needs_nothing_but_python(tree: Path) -> None:
    """It imports no package, ours included, and tells an unreadable root."""
    script = Path(__file__).parents[2] / "zutd/tools/walkgrep.py"
    done = subprocess.run(
        [sys.executable, "-I", "-S", script, "x", "absent"], cwd=tree, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (2, b"")
