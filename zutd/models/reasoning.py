"""Reasoning levels: their names, their order, and what a level means for a model.

A user may ask for any level of any model; the nearest one that the model has is taken, and of two equally
near ones the higher.
"""

from zutd.models.base import ErrorKind, ModelError, ModelInfo, Request

LEVELS = ("off", "minimum", "low", "medium", "high", "xhigh", "max")

ALIASES = {
    "": "off",
    "none": "off",
    "no": "off",
    "false": "off",
    "disabled": "off",
    "min": "minimum",
    "minimal": "minimum",
    "med": "medium",
    "hi": "high",
    "maximum": "xhigh",
}

BUDGETS = {"minimum": 1024, "low": 2048, "medium": 8192, "high": 16_384, "xhigh": 32_768, "max": 32_768}
"""Tokens of reasoning, for models that take a budget."""

SMALLEST_BUDGET = 1024

EFFORTS = (("low", "low"), ("medium", "medium"), ("high", "high"))
"""The levels of a model about which nothing else is known, with the words of the wires."""


def level(name: str) -> str:
    """Give a level's own name. Raises :class:`ValueError` with the names there are."""
    lowered = name.strip().lower()
    found = ALIASES.get(lowered, lowered)
    if found not in LEVELS:
        raise ValueError(f"no reasoning level {name!r}; there are {', '.join(LEVELS)}")
    return found


def wanted(request: Request) -> str:
    """Give the level that a request asks for. Raises :class:`ModelError` if there is none of that name."""
    try:
        return level(request.reasoning)
    except ValueError as exc:
        raise ModelError(ErrorKind.REQUEST, str(exc)) from None


def nearest(name: str, available: tuple[str, ...]) -> str:
    """Give the level of ``available`` that is nearest to ``name``; ties go up."""
    rank = LEVELS.index(name)
    return min(available, key=lambda one: (abs(LEVELS.index(one) - rank), -LEVELS.index(one)))


def effort(model: ModelInfo, name: str) -> str:
    """Give the provider's word for a level, or an empty string when nothing should be said.

    ``off`` has a word only if the model names one.
    """
    words = dict(model.levels or EFFORTS)
    if name == "off":
        return words.get("off", "")
    usable = tuple(one for one in words if one != "off" and words[one])
    return words[nearest(name, usable)] if model.reasoning and usable else ""


def budget(name: str, most: int) -> int:
    """Give the tokens to reason with, at least :data:`SMALLEST_BUDGET`; 0 if ``most`` leaves no room for that."""
    if name == "off" or most < SMALLEST_BUDGET:
        return 0
    return min(BUDGETS[name], most)
