"""The tool ``update_plan``: the model writes down its steps, for the user and for itself after a compaction."""

from typing import Any, ClassVar, Final

import attrs

from zutd.frames.plan import Plan, PlanStep
from zutd.tools.arguments import check_arguments
from zutd.tools.base import BuiltinTool, ToolContext, ToolOutput, kept_output

SCHEMA: Final = {
    "type": "object",
    "properties": {
        "plan": {
            "type": "array",
            "description": "All steps, in order; at most one in_progress",
            "items": {
                "type": "object",
                "properties": {
                    "step": {"type": "string", "minLength": 1, "description": "What is done"},
                    "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
                },
                "required": ["step", "status"],
                "additionalProperties": False,
            },
        },
        "explanation": {"type": "string", "description": "Why the plan changed"},
    },
    "required": ["plan"],
    "additionalProperties": False,
}


@attrs.frozen(kw_only=True, eq=False, repr=False)
class UpdatePlanTool(BuiltinTool):
    """Replaces the session's plan. Nothing happens by itself because of it."""

    name: ClassVar[str] = "update_plan"
    description: ClassVar[str] = (
        "Show the user the steps of a longer task and how far you are. Each call replaces the whole plan. "
        "Not for tasks of one or two steps."
    )
    schema: ClassVar[dict[str, Any]] = SCHEMA
    rewritable: ClassVar[bool] = False

    async def run(self, args: dict[str, Any], context: ToolContext) -> ToolOutput:  # noqa: ARG002 - a Tool's shape
        """Give the plan to be kept. Raises ToolError for anything but a plan."""
        check_arguments(self.name, self.schema, args)
        steps = tuple(PlanStep(step=entry["step"], status=entry["status"]) for entry in args["plan"])
        return kept_output("Plan updated", Plan(plan=steps, explanation=args.get("explanation", "")))
