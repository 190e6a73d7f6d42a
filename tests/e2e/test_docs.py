"""What the documents show is what happens: their programs, consoles and conversations are run as they stand.

A fenced block is taken at its word when an HTML comment stands right above it, which no reader sees:

* ``<!-- file: PATH -->``: the block is saved there;
* ``<!-- run -->``: lines with ``$`` are run by bash, the lines below each are what it must print (``...`` is anything,
  within a line or, alone, any lines);
* ``<!-- talk: COMMAND -->``: lines with ``>`` are sent to the command, lines with ``<`` must come, in this order, with
  at least these fields (``…`` is any value);
* ``<!-- not run: REASON -->``: the reason why not.

The blocks of one page share a directory and a home, in their order on the page.
"""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.e2e.harness import ROOT, Daemon, environment
from tests.test_layers import ARROWS

PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("*/*.md")]
)
RUNNABLE = frozenset({"console", "jsonl"})
"""Languages that must be run, or say why they are not."""

FENCE = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*?) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)
END = "\x1e"

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


class Block(NamedTuple):
    """A fenced block. ``mark`` is what the comment above it says, empty for none."""

    mark: str
    language: str
    text: str
    line: int


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page."""
    source = (ROOT / page).read_text(encoding="utf-8")
    return [
        Block(found["mark"] or "", found["language"], found["text"], source.count("\n", 0, found.start()) + 1)
        for found in FENCE.finditer(source)
    ]


def is_run(block: Block) -> bool:
    """Whether a block is taken at its word."""
    return block.mark == "run" or block.mark.startswith(("file: ", "talk: "))


def is_excused(block: Block) -> bool:
    """Whether a block says why it is not."""
    return block.mark.startswith("not run: ")


# --- the ways to run a block ----------------------------------------------------------------------------------------


class Place:
    """Where the blocks of one page run: a directory, a home, and ``zutd`` on the path."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "here"
        self.home = directory / "home"
        programs = directory / "bin"
        for made in (self.directory, self.home, programs):
            made.mkdir()
        self._script(programs / "zutd", f'exec {shlex.quote(sys.executable)} -m zutd "$@"')
        self._script(programs / "python3", f'exec {shlex.quote(sys.executable)} "$@"')
        self._script(programs / "ssh", 'shift; exec sh -c "$*"')  # "over there" is here
        (self.directory / "docs").symlink_to(ROOT / "docs")
        inherited = environment(self.home)
        self.environment = {**inherited, "PATH": f"{programs}:{inherited['PATH']}"}

    @staticmethod
    def _script(path: Path, command: str) -> None:
        path.write_text(f"#!/bin/sh\n{command}\n")
        path.chmod(0o755)

    def run(self, block: Block) -> None:
        """Do what the block's mark says."""
        kind, _, rest = block.mark.partition(": ")
        if kind == "file":
            self._save(rest, block.text)
        elif kind == "talk":
            self._talk(shlex.split(rest), block)
        else:
            self._console(block)

    def _save(self, name: str, text: str) -> None:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def _console(self, block: Block) -> None:
        wanted = list(commands(block.text))
        script = "".join(f"{command}\n__s=$?; printf '\\036'; (exit $__s)\n" for command, _ in wanted)
        done = subprocess.run(
            ["bash", "-c", script],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.directory,
            env=self.environment,
            timeout=60,
            check=False,
        )
        printed = done.stdout.split(END)[:-1]
        assert len(printed) == len(wanted), done.stdout
        for (command, expected), text in zip(wanted, printed, strict=True):
            shown = text.strip()
            assert re.fullmatch(pattern(expected), f"\n{shown}" if shown else ""), (
                f"{command!r} (block at line {block.line}) printed:\n{text}\n--- and not:\n{expected}"
            )

    def _talk(self, command: list[str], block: Block) -> None:
        with Daemon(self.home, command=command, cwd=self.directory, env=self.environment) as daemon:
            for line in block.text.splitlines():
                said = line[2:]
                if line.startswith("> "):
                    daemon.send_bytes(said.encode() + b"\n")
                elif line.startswith("< "):
                    expected = json.loads(said)
                    daemon.wait_for(lambda frame, expected=expected: fits(frame, expected))  # type: ignore[misc] # mypy cannot infer a lambda with a default
            assert daemon.finish() == 0, daemon.tail()


def commands(text: str) -> Iterator[tuple[str, str]]:
    """The commands of a console, each with what it must print. A line that ends in a backslash is continued."""
    command = ""
    printed: list[str] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, "\n".join(printed)
            command, printed = line[2:], []
        elif command.endswith("\\") and not printed:
            command += "\n" + line.removeprefix("> ")
        else:
            printed.append(line)
    if command:
        yield command, "\n".join(printed)


def pattern(expected: str) -> str:
    """A regular expression for what a console shows, behind a line end."""
    made = ""
    for line in expected.strip().splitlines():
        made += r"(?:\n.*)?" if line.strip() == "..." else r"\n" + re.escape(line).replace(r"\.\.\.", ".*")
    return f"(?s:{made})"


def fits(found: Any, expected: Any) -> bool:
    """Whether a frame has at least what is expected of it."""
    if expected == "…":
        return True
    if isinstance(expected, dict):
        return isinstance(found, dict) and all(key in found and fits(found[key], expected[key]) for key in expected)
    if isinstance(expected, list):
        same = isinstance(found, list) and len(found) == len(expected)
        return same and all(fits(one, other) for one, other in zip(found, expected, strict=True))
    return type(found) is type(expected) and found == expected


# --- the tests -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [page for page in PAGES if any(is_run(block) for block in blocks(page))])
def test_a_page_is_true(page: str, tmp_path: Path) -> None:
    """Every program, console and conversation of the page does what the page shows."""
    place = Place(tmp_path)
    for block in blocks(page):
        if is_run(block):
            place.run(block)


@pytest.mark.parametrize("page", [page for page in PAGES if not page.startswith("docs/reference/")])
def test_what_is_not_run_says_why(page: str) -> None:
    """A console or conversation that nobody runs goes stale: it is run, or gives a reason."""
    silent = [
        f"{page}:{block.line}"
        for block in blocks(page)
        if block.language in RUNNABLE and not is_run(block) and not is_excused(block)
    ]
    assert not silent


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    """Every relative link of a page points to a file or directory that is there."""
    source = FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", source) if "://" not in link]
    missing = [link for link in links if link and not ((ROOT / page).parent / link).exists()]
    assert not missing


@pytest.mark.parametrize("page", PAGES)
def test_files_that_are_named_are_there(page: str) -> None:
    """A page that names a file of ours names one that exists."""
    source = (ROOT / page).read_text(encoding="utf-8")
    named = re.findall(r"`((?:zutd|tests|scripts|docs|protocol)/[\w./-]*)`", source)
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_architecture_shows_the_arrows_that_hold() -> None:
    """The table of docs/architecture.md is the one that test_layers.py enforces, small helpers left out."""
    table = (ROOT / "docs/architecture.md").read_text(encoding="utf-8").partition("<!-- arrows -->")[2]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", table.partition("\n\n")[0], re.MULTILINE)
    shown = {layer: set(re.findall(r"`(\w+)`", allowed)) for layer, allowed in rows}
    helpers = {"log", "paths", "signals", "settings", "sdk", "__main__"}
    assert shown == {layer: allowed for layer, allowed in ARROWS.items() if layer not in helpers}


def test_every_decision_is_listed() -> None:
    """docs/adr/README.md lists every page beside it, by number and title."""
    listed = (ROOT / "docs/adr/README.md").read_text(encoding="utf-8")
    pages = sorted((ROOT / "docs/adr").glob("[0-9]*.md"))
    heads = [f"[{page.read_text(encoding='utf-8').splitlines()[0].removeprefix('# ')}]({page.name})" for page in pages]
    assert [head for head in heads if head not in listed] == []
    assert [int(page.name[:4]) for page in pages] == list(range(1, len(pages) + 1))


def test_a_wrong_page_is_found_out(tmp_path: Path) -> None:
    """The runner itself fails when a console prints something else, and when a frame lacks a field."""
    place = Place(tmp_path)
    place.run(Block("run", "console", "$ echo a b\na ...\n$ (exit 3)\n$ echo $?\n3\n", 1))
    with pytest.raises(AssertionError, match="printed"):
        place.run(Block("run", "console", "$ echo a\nb\n", 1))
    assert fits({"a": [1, {"b": "x"}], "c": 1}, {"a": [1, {"b": "…"}]})
    assert not fits({"a": 1}, {"a": True})
    assert not fits({}, {"a": "…"})
