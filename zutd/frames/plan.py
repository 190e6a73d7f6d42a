"""What a session is about, as its agent keeps it: a plan of steps, and the goal that they lead to."""

from typing import ClassVar, Literal

from zutd.frames.define import frame

StepStatus = Literal["pending", "in_progress", "completed"]
GoalStatus = Literal["active", "complete", "blocked"]


@frame
class PlanStep:
    """One step of a plan."""

    tag: ClassVar[None] = None
    step: str
    status: StepStatus


@frame
class Plan:
    """The whole plan, in order; each update replaces it. ``explanation`` says why it was updated."""

    tag: ClassVar[None] = None
    plan: tuple[PlanStep, ...]
    explanation: str = ""


@frame
class Goal:
    """What is to be reached, and how it stands; ``reason`` says what blocks it, or how it was completed."""

    tag: ClassVar[None] = None
    objective: str
    status: GoalStatus
    reason: str = ""
