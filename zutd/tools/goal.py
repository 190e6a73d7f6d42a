"""The tool ``update_goal``: the model says what it is after, that it is done, or what blocks it.

A goal is a note. It is kept, shown, and repeated to the model after a compaction; nothing goes on by itself because
of it, so there is nothing to bound.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Final

import attrs

from zutd.frames.plan import Goal
from zutd.tools.arguments import check_arguments
from zutd.tools.base import BuiltinTool, ToolContext, ToolError, ToolOutput, kept_output

SCHEMA: Final = {
    "type": "object",
    "properties": {
        "status": {"type": "string", "enum": ["active", "complete", "blocked"]},
        "objective": {"type": "string", "minLength": 1, "description": "What is to be reached; with status active"},
        "reason": {"type": "string", "minLength": 1, "description": "What blocks it (required then), or how it went"},
    },
    "required": ["status"],
    "additionalProperties": False,
}


@attrs.frozen(kw_only=True, eq=False, repr=False)
class UpdateGoalTool(BuiltinTool):
    """Sets the session's goal or says how it stands; ``current`` gives the goal there is."""

    current: Callable[[], Goal | None]
    name: ClassVar[str] = "update_goal"
    description: ClassVar[str] = (
        "Set the goal of a long task (status active, with an objective), and say when it is complete or blocked "
        "(with a reason). The goal is shown to the user and reminds you when the conversation was summarised."
    )
    schema: ClassVar[dict[str, Any]] = SCHEMA
    rewritable: ClassVar[bool] = False

    async def run(self, args: dict[str, Any], context: ToolContext) -> ToolOutput:  # noqa: ARG002 - a Tool's shape
        """Give the goal to be kept. Raises ToolError when it makes no sense as things stand."""
        check_arguments(self.name, self.schema, args)
        status, objective, reason = args["status"], args.get("objective", ""), args.get("reason", "")
        if status == "active":
            if not objective.strip():
                raise ToolError('update_goal: status "active" needs an "objective"')
            return kept_output("Goal set", Goal(objective=objective, status="active", reason=reason))
        now = self.current()
        if now is None or now.status == "complete":
            raise ToolError(f'update_goal: there is no goal that could be {status}; set one with status "active"')
        if objective and objective != now.objective:
            raise ToolError(f'update_goal: the goal is "{now.objective}"; another one is set with status "active"')
        if status == "blocked" and not reason.strip():
            raise ToolError('update_goal: status "blocked" needs a "reason"')
        return kept_output(f"Goal {status}", Goal(objective=now.objective, status=status, reason=reason))
