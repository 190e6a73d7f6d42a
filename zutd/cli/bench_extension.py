"""``zutd ext test``: is this extension well? The bench plays the host; what it finds is said in words, or as JSON."""

import json
import os
from collections.abc import Sequence
from typing import Final

import attrs

from zutd import __version__
from zutd.cli.ext_options import CommandFailedError, ExtGiven
from zutd.cli.subcommands import absolute
from zutd.cli.table import coloured, harmless
from zutd.extensions.conformance import CANNOT_SKIP, GROUPS, Check, Limits, look_closely
from zutd.extensions.errand import StoppedError

_WORDS: Final = {"passed": ("ok", "green"), "failed": ("FAIL", "red"), "skipped": ("--", "dim")}


def run_test(given: ExtGiven) -> int:
    """Test the extension in a directory; 1 when something is wrong with it."""
    directory = absolute(given.operand)
    if not os.path.isdir(directory):
        raise CommandFailedError(f"{given.operand} is not a directory; ext test takes an extension's", exit_code=2)
    leave_out = _leave_out(given.values("skip"))
    try:
        note = _nothing if given.as_json else _show
        checks = look_closely(directory, __version__, note, leave_out=leave_out, limits=Limits())
    except StoppedError as exc:
        return 128 + exc.number
    failed = sum(check.status == "failed" for check in checks)
    if given.as_json:
        print(_as_json(directory, checks))
    else:
        done = sum(check.status != "skipped" for check in checks)
        print(
            f"\n{done} check{'s' if done != 1 else ''}, "
            + (coloured(f"{failed} failed", "red") if failed else coloured("all good", "green"))
        )
    return 1 if failed else 0


def _leave_out(groups: Sequence[str]) -> frozenset[str]:
    possible = [group for group in GROUPS if group not in CANNOT_SKIP]
    for group in groups:
        if group not in possible:
            raise CommandFailedError(f"--skip {group!r} is not possible; there are: {', '.join(possible)}", exit_code=2)
    return frozenset(groups)


def _nothing(_: Check) -> None:
    return None


def _show(check: Check) -> None:
    word, colour = _WORDS[check.status]
    line = f"{check.group}: {check.name}" if check.name != check.group else check.name
    print(f"  {coloured(f'{word:<4}', colour)}  {harmless(line)}", end="")
    if check.status != "failed":
        print(coloured(f"  ({harmless(check.came)})", "dim"), flush=True)
        return
    print(f"\n          expected: {check.expected}\n          came:     {harmless(check.came)}")
    for line in check.stderr:
        print(f"          stderr:   {harmless(line)}")


def _as_json(directory: str, checks: Sequence[Check]) -> str:
    passed = not any(check.status == "failed" for check in checks)
    return json.dumps({"directory": directory, "passed": passed, "checks": [attrs.asdict(c) for c in checks]}, indent=2)
