"""The tool ``skill``: gives the model the text of a skill by its name."""

import difflib
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol

import attrs

from zutd.tools.arguments import check_arguments
from zutd.tools.base import BuiltinTool, ToolContext, ToolError, ToolOutput, text_output


class Readable(Protocol):
    """What the tool needs of a skill."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def description(self) -> str:
        """What it is for."""
        ...

    @property
    def directory(self) -> str:
        """Where its files are."""
        ...

    @property
    def limits(self) -> str:
        """What its author says it may use, a line each; empty for nothing."""
        ...

    @property
    def body(self) -> str:
        """Its text."""
        ...


@attrs.frozen(kw_only=True)
class SkillTool(BuiltinTool):
    """Looks skills up in ``skills``, which is asked at each call: extensions bring theirs late."""

    skills: Callable[[], Mapping[str, Readable]]
    name: ClassVar[str] = "skill"
    description: ClassVar[str] = "Read a skill: instructions for a kind of work, with the directory of its files."
    side_effects: ClassVar[bool] = False

    @property
    def schema(self) -> dict[str, Any]:
        """One argument: the name."""
        return {
            "type": "object",
            "properties": {"name": {"type": "string", "description": "the skill's name"}},
            "required": ["name"],
            "additionalProperties": False,
        }

    async def run(self, args: dict[str, Any], context: ToolContext) -> ToolOutput:  # noqa: ARG002 - a Tool's shape
        """Give the skill's text. Raises ToolError for a name that there is not."""
        check_arguments(self.name, self.schema, args)
        wanted = args["name"]
        skills = self.skills()
        skill = skills.get(wanted)
        if skill is None:
            near = difflib.get_close_matches(wanted, skills, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; there are: {', '.join(skills) or 'none'}"
            raise ToolError(f"there is no skill {wanted!r}{hint}")
        lines = (f"Skill {skill.name}: {skill.description}", f"Directory: {skill.directory}", skill.limits)
        text = "\n".join(line for line in lines if line) + f"\n\n{skill.body}"
        return text_output(text, details={"name": skill.name, "directory": skill.directory})
