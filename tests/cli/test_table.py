"""Tables: aligned everywhere, coloured on a terminal that wants it, and harmless whatever is in them."""

import io
import sys

import pytest

from zutd.cli.table import coloured, harmless, table


class Terminal(io.StringIO):
    """A stdout that is a terminal."""

    def isatty(self) -> bool:
        """It is."""
        return True


def show() -> str:
    """A table with one coloured cell."""
    return table(("NAME", "STATE"), [("weather", "ok"), ("x", "")], lambda column, _: "green" if column == 1 else "")


def test_in_a_pipe_it_is_aligned_and_plain() -> None:
    """Columns have the width of their widest cell, lines have no spaces at their end, empty cells are dashes."""
    assert show() == "NAME     STATE\nweather  ok\nx        -"


def test_on_a_terminal_it_is_coloured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Colour does not change the alignment."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert show().splitlines()[1] == "weather  \x1b[32mok\x1b[0m"
    assert show().splitlines()[0].startswith("\x1b[1mNAME   \x1b[0m  ")


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR with any value but an empty one means none."""
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    assert coloured("x", "red") == "x"
    monkeypatch.setenv("NO_COLOR", "")
    assert coloured("x", "red") == "\x1b[31mx\x1b[0m"


def test_a_cell_cannot_steer_the_terminal() -> None:
    """Escapes, line ends, directions and halves of characters in somebody's manifest are replaced."""
    assert harmless("a\x1b[2Jb\nc\u202ed\ud800é漢") == "a�[2Jb�c�d�é漢"
    assert table(("A",), [("\x1b]0;title\x07",)]) == "A\n�]0;title�"
