"""Final answers that must fit a JSON Schema. The validator is loaded with the first schema, and fetches nothing."""

import json
import re
from typing import Any, Final

_FENCE: Final = re.compile(r"\A\s*```[a-zA-Z]*\s*\n(.*)\n\s*```\s*\Z", re.DOTALL)
_MOST_ERRORS: Final = 5


class SchemaError(Exception):
    """The schema itself cannot be used; the text says why."""


class OutputSchema:
    """A schema that the final answer of a prompt must fit."""

    def __init__(self, schema: Any) -> None:
        """Compile ``schema``. Raises :class:`SchemaError`, also for references to other documents."""
        import jsonschema_rs

        if not isinstance(schema, (dict, bool)):
            raise SchemaError("an output schema is a JSON object")
        try:
            self._validator = jsonschema_rs.validator_for(schema, retriever=_refuse)
        except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as exc:
            raise SchemaError(f"the output schema cannot be used: {str(exc).splitlines()[0][:500]}") from None
        self._text = json.dumps(schema, ensure_ascii=False)

    @property
    def instruction(self) -> str:
        """What the model is told beside the conversation."""
        return (
            "Your final answer must be one JSON value that fits this JSON Schema, and nothing else: no prose, no code "
            f"fence.\n{self._text}"
        )

    def problems(self, answer: str) -> str:
        """What keeps an answer from fitting; empty when it fits."""
        try:
            value = json.loads(plain(answer))
        except ValueError as exc:
            return f"it is not JSON: {exc}"
        found = [f"{error.message} at ${_path(error.instance_path)}" for error in self._validator.iter_errors(value)]
        return "; ".join(found[:_MOST_ERRORS])

    def repair(self, problems: str) -> str:
        """What the model is told when its answer does not fit."""
        return f"Your final answer does not fit the schema: {problems}. Give it again, as one JSON value that does."


def plain(answer: str) -> str:
    """The answer without a code fence around it."""
    fenced = _FENCE.match(answer)
    return fenced[1] if fenced else answer


def _path(path: list[str | int]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)


def _refuse(uri: str) -> Any:
    raise ValueError(f"the reference {uri!r} leads out of the schema; nothing is fetched")
