"""Which built-in tools there are, and whose names they are."""

import subprocess
import sys
from typing import Any

import pytest

from zutd.tools.base import Tool
from zutd.tools.registry import (
    BUILTIN_NAMES,
    PROTECTED,
    RESERVED,
    UnknownToolError,
    builtin_tools,
    taken_names,
)


def names(tools: tuple[Tool, ...]) -> list[str]:
    """The tools' names, in order."""
    return [tool.name for tool in tools]


def test_all_are_there_sorted_by_name() -> None:
    """Another order would cost the provider's cache."""
    assert names(builtin_tools()) == list(BUILTIN_NAMES) == sorted(BUILTIN_NAMES)


def test_a_list_chooses_and_an_empty_one_chooses_none() -> None:
    """The order of the list does not matter."""
    assert names(builtin_tools(allowed=["write", "read"])) == ["read", "write"]
    assert builtin_tools(allowed=()) == ()


def test_an_unknown_name_is_an_error_with_a_suggestion() -> None:
    """All of them at once, and what there is."""
    with pytest.raises(UnknownToolError) as caught:
        builtin_tools(allowed=["read", "Wirte", "zzz"])
    assert str(caught.value) == (
        'unknown tool "Wirte" (did you mean "write"?); unknown tool "zzz". '
        "There are: bash, edit, grep, read, update_goal, update_plan, write"
    )


def test_the_settings_reach_the_tools() -> None:
    """The maximum timeout is in the schema of bash."""
    (bash,) = builtin_tools(allowed=["bash"], bash_max_timeout=7)
    assert bash.schema["properties"]["timeout"]["maximum"] == 7


def strict(schema: dict[str, Any]) -> bool:
    """Whether every object in a schema says that it takes nothing else."""
    inner = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
    return (schema["type"] != "object" or schema["additionalProperties"] is False) and all(map(strict, inner))


@pytest.mark.parametrize("tool", builtin_tools(), ids=lambda tool: tool.name)
def test_every_tool_describes_itself(tool: Tool) -> None:
    """A strict object schema, a description, nobody's extension; only looking has no side effects."""
    assert strict(tool.schema)
    assert set(tool.schema["required"]) <= set(tool.schema["properties"])
    assert tool.description
    assert tool.extension == ""
    assert tool.deferred is False
    assert tool.side_effects is (tool.name not in {"read", "grep"})


def test_reserved_names_stay_reserved_and_protected_ones_while_active() -> None:
    """An opt-out cannot be undone by an extension; a tool that zutd does not run may come from one."""
    assert taken_names([]) == RESERVED
    assert taken_names(["read", "bash"]) == RESERVED | {"read", "bash"}
    assert "lsp" not in taken_names(["read"])
    assert not RESERVED & PROTECTED
    assert set(BUILTIN_NAMES) <= RESERVED | PROTECTED


def test_loading_the_tools_loads_nothing_heavy() -> None:
    """The daemon answers its first line before anyone needs a diff, a temporary file or a picture."""
    heavy = "structlog httpx difflib tempfile base64 cattrs zutd.tools.replace zutd.tools.diff"
    code = (
        "import sys, trio; before = set(sys.modules); import zutd.tools.registry as r; r.builtin_tools();"
        f"print(sorted(set('{heavy}'.split()) & (set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
