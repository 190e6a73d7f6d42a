"""What ``zutd ext`` understands of its words (L7), and what it says of those it does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zutd.cli.errors import UsageError
from zutd.cli.ext_options import COMMANDS, EXT, ExtGiven


def read(line: str) -> ExtGiven:
    """Understand a line such as ``install --build=go x``."""
    name, *words = line.split()
    return EXT.read(EXT.find(name), words)


@pytest.mark.parametrize(
    "line", ["install --build=go x", "install x --build go", "install --build go x", "install x --build=go --json"]
)
def test_l7_the_builder_may_stand_anywhere(line: str) -> None:
    """With ``=`` or a space, before or after the source."""
    given = read(line)
    assert (given.operand, given.value("build")) == ("x", "go")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("install --build=make x", "--build 'make' is not possible; there is: go"),
        ("install x --build=", "--build needs a builder; there is: go"),
        ("install x --build", "--build needs a builder"),
        ("install --build=go --build=go x", "--build was given twice"),
        ("install --build=go", "needs a source"),
        ("install", "needs a source: zutd ext install SOURCE"),
        ("install x y", "ext install takes no 'y': zutd ext install SOURCE"),
        ("install -x y", "has no option -x"),
        ("install --buld=go y", "did you mean --build?"),
        ("remove", "needs a name: zutd ext remove NAME [options]; zutd ext list shows them"),
        ("remove it --yes=no", "--yes takes no value"),
        ("list it", "ext list takes no 'it': zutd ext list [options]"),
        ("enable it --scope here", "--scope 'here' is not possible; there is: global, project"),
        ("new x --lang ruby", "--lang 'ruby' is not possible"),
        ("instal x", "did you mean install?"),
        ("list --cwd", "--cwd needs a dir"),
    ],
)
def test_l7_what_is_wrong_is_named(line: str, words: str) -> None:
    """The error names the word and what there is instead."""
    with pytest.raises(UsageError) as caught:
        read(line)
    assert words in str(caught.value)


def test_a_double_dash_ends_the_options() -> None:
    """What follows is an operand, whatever it looks like."""
    assert read("remove --yes -- --odd").operand == "--odd"


def test_aliases_and_optional_operands() -> None:
    """``rm`` is ``remove``, ``ls`` is ``list``; ``update`` takes a name or none."""
    assert read("rm it -y").has("yes")
    assert read("ls").command.name == "list"
    assert (read("update").operand, read("update it").operand) == ("", "it")


def test_options_may_be_repeated_where_that_means_something() -> None:
    """``--ext`` adds up, in order."""
    assert [path.rsplit("/", 1)[1] for path in read("list -e a --ext=b").explicit] == ["a", "b"]


def test_help_tells_of_everything() -> None:
    """Each command is in the overview, each option in its command's help, and all can print JSON."""
    for command in COMMANDS:
        assert f"  {command.name} " in EXT.overview()
        assert any("--json" in option.names for option in command.options)
        for option in command.options:
            assert all(name in EXT.help_for(command) for name in option.names)


@given(
    st.sampled_from(COMMANDS), st.lists(st.sampled_from(["--json", "--scope", "x", "--", "-", "", "=", "--a=b", "-y"]))
)
def test_any_words_are_understood_or_refused(command: object, words: list[str]) -> None:
    """No words give anything but a reading or a usage error."""
    try:
        EXT.read(command, words)  # type: ignore[arg-type] # one of COMMANDS, which hypothesis widens
    except UsageError as exc:
        assert str(exc)
