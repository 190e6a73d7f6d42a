"""Final answers that must fit a JSON Schema. The validator is loaded with the first schema, and fetches nothing."""

import json
import re
from typing import Any, Final

from zutd.frames.define import ABSENT
from zutd.models.base import Output, OutputMode

_FENCE: Final = re.compile(r"\A\s*```[a-zA-Z]*\s*\n(.*)\n\s*```\s*\Z", re.DOTALL)
_MOST_ERRORS: Final = 5


class SchemaError(Exception):
    """The schema itself cannot be used; the text says why."""


class OutputSchema:
    """A schema that the final answer of a prompt must fit."""

    def __init__(self, schema: Any, mode: OutputMode = "auto") -> None:
        """Compile ``schema``. ``mode`` is how models are told of it (:class:`zutd.models.base.Output`).

        Raises :class:`SchemaError`, also for references to other documents.
        """
        import jsonschema_rs

        if not isinstance(schema, (dict, bool)):
            raise SchemaError("an output schema is a JSON object")
        try:
            self._validator = jsonschema_rs.validator_for(schema, retriever=_refuse)
        except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as exc:
            raise SchemaError(f"the output schema cannot be used: {str(exc).splitlines()[0][:500]}") from None
        words = (
            "Your final answer must be one JSON value that fits this JSON Schema, and nothing else: no prose, no code "
            f"fence.\n{json.dumps(schema, ensure_ascii=False)}"
        )
        self.output = Output(schema=schema, words=words, mode=mode)
        """What a request says of it."""

    def read(self, answer: str) -> tuple[Any, str]:
        """The answer as a JSON value, and what keeps it from fitting; ABSENT where it does not fit."""
        try:
            value = json.loads(plain(answer), parse_constant=_no_constant)
        except (ValueError, RecursionError) as exc:
            return ABSENT, f"it is not JSON: {exc}"
        found = [f"{error.message} at ${_path(error.instance_path)}" for error in self._validator.iter_errors(value)]
        return (ABSENT, "; ".join(found[:_MOST_ERRORS])) if found else (value, "")

    def repair(self, problems: str) -> str:
        """What the model is told when its answer does not fit."""
        return f"Your final answer does not fit the schema: {problems}. Give it again, as one JSON value that does."


def plain(answer: str) -> str:
    """The answer without a code fence around it."""
    fenced = _FENCE.match(answer)
    return fenced[1] if fenced else answer


def _path(path: list[str | int]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")


def _refuse(uri: str) -> Any:
    raise ValueError(f"the reference {uri!r} leads out of the schema; nothing is fetched")
