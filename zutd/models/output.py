"""How a model is told which JSON its final answer shall be                                       (pure).

By the provider's own field, where there is one and it can say this schema; in words otherwise. The answer is checked
against the whole schema in any case, so a form may say less than the schema does. Words are left out only when the
provider is told everything, holds the model to it, and shows it to the model.
"""

from collections.abc import Callable
from typing import Any

from zutd.frames.define import evolve, frame
from zutd.models.base import ErrorKind, ModelError, Request


@frame
class Form:
    """A schema (opaque) as a wire takes it; ``whole`` is whether the provider enforces all of it."""

    schema: Any
    whole: bool


@frame
class Told:
    """What goes into the wire's field (None: nothing), and what is said in words (empty: nothing)."""

    form: Form | None = None
    words: str = ""


NOTHING = Told()

Express = Callable[[Any], Form | str]
"""Turns a schema (opaque) into a wire's form, or says why that cannot be."""


def tell(request: Request, express: Express) -> Told:
    """Decide. Raises :class:`ModelError` when the provider's own field is insisted on and cannot be used."""
    output = request.output
    if output is None:
        return NOTHING
    if output.mode == "words":
        return Told(words=output.words)
    form = _obstacle(request) or express(output.schema)
    if isinstance(form, Form):
        told = form.whole and request.model.schemas == "beside"
        return Told(form=form, words="" if told else output.words)
    if output.mode == "native":
        raise ModelError(ErrorKind.REQUEST, f"{form}; the output mode auto asks in words where that is so")
    return Told(words=output.words)


def with_words(request: Request, told: Told) -> Request:
    """The request whose hidden text says what is said in words."""
    if not told.words:
        return request
    return evolve(request, hidden="\n\n".join(part for part in (request.hidden, told.words) if part))


def _obstacle(request: Request) -> str:
    """Why the field cannot be used, whatever the schema. A model that nobody knows is believed to have it if asked."""
    model, output = request.model, request.output
    insisted = output is not None and output.mode == "native"
    if model.schemas == "none" and not (insisted and model.assumed):
        return f"{model.provider} has no field for an output schema for {model.id} (models.json can say that it has)"
    if model.schemas == "alone" and request.tools:
        return f"{model.provider} takes an output schema for {model.id} only in a request without tools"
    return ""
