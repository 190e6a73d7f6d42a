"""Who gets a name does not depend on who was quicker."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from zutd.extensions.registry import Claims, CommandClaim, ToolClaim, assign, check_command, check_tool

NAMES = st.sampled_from(["a", "A", "b", "bash", "web_search", "c"])


def tool(name: str) -> ToolClaim:
    """A claim for a tool."""
    return ToolClaim(name=name, description="", schema={"type": "object"}, deferred=False, interactive=False)


def claims(name: str, commands: Sequence[str], tools: Sequence[str]) -> Claims:
    """What one extension wants."""
    return Claims(
        extension=name,
        commands=tuple(CommandClaim(name=c, description="") for c in commands),
        tools=tuple(tool(t) for t in tools),
    )


@given(st.lists(st.tuples(st.lists(NAMES, max_size=4), st.lists(NAMES, max_size=4)), max_size=4))
def test_every_name_has_one_owner_and_every_loss_its_sentence(wanted: list[tuple[list[str], list[str]]]) -> None:
    """The first in order of precedence has it; commands match without case, tools with; nothing is lost silently."""
    everybody = [claims(f"e{n}", commands, tools) for n, (commands, tools) in enumerate(wanted)]
    tables = assign(everybody, reserved={"web_search"}, builtin={"bash"})

    for key, (owner, claim) in tables.commands.items():
        first = next(c for c in everybody if any(x.name.lower() == key for x in c.commands))
        assert (owner, claim) == (first.extension, next(x for x in first.commands if x.name.lower() == key))
    for name, (owner, _) in tables.tools.items():
        assert name not in ("bash", "web_search")
        assert owner == next(c.extension for c in everybody if any(x.name == name for x in c.tools))
    won = len(tables.commands) + len(tables.tools)
    assert won + sum(map(len, tables.conflicts.values())) == sum(len(c.commands) + len(c.tools) for c in everybody)
    assert list(tables.tools) == sorted(tables.tools)


def test_conflicts_name_the_winner() -> None:
    """The loser's author reads who has the name."""
    tables = assign(
        [claims("one", ["Go"], ["t"]), claims("two", ["go"], ["t", "bash"])], reserved=(), builtin=("bash",)
    )

    assert tables.conflicts["one"] == ()
    assert tables.conflicts["two"] == (
        "command /go conflicts with extension one, which keeps it",
        "tool t conflicts with extension one, which keeps it",
        "tool bash is shadowed: the name is built in",
    )


@given(st.text(max_size=80))
def test_names_that_are_accepted_can_be_typed(name: str) -> None:
    """A command's name and a tool's name are 1 to 64 letters, digits, dashes and underscores of ASCII."""
    good = 0 < len(name) <= 64 and name.isascii() and all(c.isalnum() or c in "_-" for c in name)

    assert (check_command(name) == "") == good
    assert (check_tool(name, {"type": "object"}, 17) == "") == good
