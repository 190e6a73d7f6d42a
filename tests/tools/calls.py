"""Calling a tool as the agent does."""

import os
from pathlib import Path
from typing import Any

import pytest
import trio

from zutd.frames.blocks import Text
from zutd.tools.base import Tool, ToolContext, ToolError, ToolOutput

ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}


def context(cwd: Path, shown: list[str] | None = None, environment: dict[str, str] | None = None) -> ToolContext:
    """What a call may use; ``shown`` collects the progress."""
    return ToolContext(
        call_id="call-1",
        cwd=cwd,
        progress=(lambda text: None) if shown is None else shown.append,
        environment=ENVIRONMENT if environment is None else environment,
    )


def call(tool: Tool, cwd: Path, **args: Any) -> ToolOutput:
    """Run one call to its end."""

    async def main() -> ToolOutput:
        with trio.fail_after(60):
            return await tool.run(args, context(cwd))

    return trio.run(main)


def text_of(output: ToolOutput) -> str:
    """The text of an output that is one text."""
    (block,) = output.content
    assert isinstance(block, Text)
    return block.text


def refusal(tool: Tool, cwd: Path, **args: Any) -> str:
    """The text of the error that a call ends with."""
    with pytest.raises(ToolError) as caught:
        call(tool, cwd, **args)
    return str(caught.value)
