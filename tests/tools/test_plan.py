"""The tools with which an agent writes down what it is about: a plan, and a goal."""

from pathlib import Path
from typing import Any

import pytest

from tests.tools.calls import call, refusal, text_of
from zutd.frames.plan import Goal, Plan, PlanStep
from zutd.tools.goal import UpdateGoalTool
from zutd.tools.plan import UpdatePlanTool

PLAN = UpdatePlanTool()
ACTIVE = Goal(objective="ship it", status="active")


def goal_tool(now: Goal | None = None) -> UpdateGoalTool:
    """The tool in a session with this goal."""
    return UpdateGoalTool(current=lambda: now)


def step(text: Any, status: Any = "pending") -> dict[str, Any]:
    """A step as a model writes it."""
    return {"step": text, "status": status}


def test_a_plan_replaces_the_one_before(tmp_path: Path) -> None:
    """The whole list in order, with the reason; an empty one is a plan too, and several steps may be in progress."""
    output = call(PLAN, tmp_path, plan=[step("a", "completed"), step("b", "in_progress")], explanation="so far")
    assert text_of(output) == "Plan updated"
    steps = (PlanStep(step="a", status="completed"), PlanStep(step="b", status="in_progress"))
    assert output.kept == Plan(plan=steps, explanation="so far")
    assert call(PLAN, tmp_path, plan=[]).kept == Plan(plan=())
    assert call(PLAN, tmp_path, plan=[step("a", "in_progress")] * 2).kept is not None


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ({}, '"plan" is missing'),
        ({"plan": "a"}, '"plan" must be an array'),
        ({"plan": ["a"]}, '"plan[0]" must be an object'),
        ({"plan": [{"step": "a"}]}, '"plan[0].status" is missing'),
        ({"plan": [step("a", "done")]}, '"plan[0].status" must be one of "pending"'),
        ({"plan": [step("")]}, '"plan[0].step" must be a string of at least 1'),
        ({"plan": [{**step("a"), "due": 1}]}, 'unknown argument "plan[0].due"'),
        ({"plan": [], "title": "x"}, 'unknown argument "title"'),
        ({"plan": [], "explanation": None}, '"explanation" must be a string'),
    ],
)
def test_what_is_no_plan_is_refused(tmp_path: Path, args: dict[str, Any], named: str) -> None:
    """Unknown keys, missing and wrong values are named, down to the step."""
    assert named in refusal(PLAN, tmp_path, **args)


@pytest.mark.parametrize(
    ("now", "args", "goal"),
    [
        (None, {"status": "active", "objective": "ship it"}, ACTIVE),
        (ACTIVE, {"status": "active", "objective": "rest"}, Goal(objective="rest", status="active")),
        (ACTIVE, {"status": "complete"}, Goal(objective="ship it", status="complete")),
        (
            ACTIVE,
            {"status": "blocked", "reason": "no key"},
            Goal(objective="ship it", status="blocked", reason="no key"),
        ),
        (
            Goal(objective="ship it", status="blocked", reason="no key"),
            {"status": "complete", "objective": "ship it", "reason": "found one"},
            Goal(objective="ship it", status="complete", reason="found one"),
        ),
    ],
)
def test_a_goal_is_set_blocked_and_completed(
    tmp_path: Path, now: Goal | None, args: dict[str, Any], goal: Goal
) -> None:
    """A new objective takes the old one's place; the others are about the goal that there is."""
    output = call(goal_tool(now), tmp_path, **args)
    assert output.kept == goal
    assert text_of(output).startswith("Goal ")


@pytest.mark.parametrize(
    ("now", "args", "reason"),
    [
        (None, {"status": "active"}, 'needs an "objective"'),
        (None, {"status": "active", "objective": "  "}, 'needs an "objective"'),
        (None, {"status": "complete"}, "there is no goal that could be complete"),
        (Goal(objective="a", status="complete"), {"status": "blocked", "reason": "x"}, "there is no goal"),
        (ACTIVE, {"status": "blocked"}, 'needs a "reason"'),
        (ACTIVE, {"status": "complete", "objective": "other"}, 'the goal is "ship it"'),
        (ACTIVE, {"status": "superseded"}, "must be one of"),
        (ACTIVE, {"status": "complete", "mission_id": "m"}, 'unknown argument "mission_id"'),
        (ACTIVE, {}, '"status" is missing'),
    ],
)
def test_what_makes_no_sense_of_a_goal_is_refused(
    tmp_path: Path, now: Goal | None, args: dict[str, Any], reason: str
) -> None:
    """The error says what is missing, or what the goal is; nothing is kept."""
    assert reason in refusal(goal_tool(now), tmp_path, **args)
