"""``zutd ext``: see which extensions there are, what is wrong with them, bring them here, take them away, write one.

This module finds out what is wanted; each command imports what it needs, so that listing stays quick.
"""

import json
import sys
from collections.abc import Callable
from typing import Final

from zutd.cli.ext_options import EXT, CommandFailedError, ExtGiven


def run_ext(words: list[str]) -> int:
    """Run ``zutd ext WORDS``; the exit code."""
    return EXT.run(words, _handle)


def _handle(given: ExtGiven) -> int:
    try:
        return _HANDLERS[given.command.name](given)
    except CommandFailedError as exc:
        return _failed(given, str(exc), exc.exit_code)


def _failed(given: ExtGiven, message: str, code: int) -> int:
    if given.as_json:
        print(json.dumps({"error": message}))
    else:
        print(f"zutd: {message}", file=sys.stderr)
    return code


def _look(given: ExtGiven) -> int:
    from zutd.cli.ext_look import HANDLERS

    return HANDLERS[given.command.name](given)


def _doctor(given: ExtGiven) -> int:
    from zutd.cli.doctor import run_doctor

    return run_doctor(given)


def _manage(given: ExtGiven) -> int:
    from zutd.cli.ext_manage import run_manage

    return run_manage(given)


def _new(given: ExtGiven) -> int:
    from zutd.cli.ext_new import run_new

    return run_new(given)


def _test(given: ExtGiven) -> int:
    from zutd.cli.bench_extension import run_test

    return run_test(given)


_HANDLERS: Final[dict[str, Callable[[ExtGiven], int]]] = {
    "list": _look,
    "trust": _look,
    "logs": _look,
    "doctor": _doctor,
    "install": _manage,
    "remove": _manage,
    "update": _manage,
    "enable": _manage,
    "disable": _manage,
    "new": _new,
    "test": _test,
}
