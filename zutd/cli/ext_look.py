"""``zutd ext list``, ``trust`` and ``logs``: what can be said and done without starting anything."""

import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from zutd.cli.ext_options import CommandFailedError, ExtGiven
from zutd.extensions.manifest import NAME_RULE, Found, discover, search_directories
from zutd.extensions.permissions import as_json, in_short, in_words
from zutd.extensions.trust import is_trusted, trust, trusted
from zutd.paths import extension_log

_HEAD: Final = ("NAME", "VERSION", "SOURCE", "STATE", "LANGUAGE", "PERMISSIONS", "DIRECTORY", "DESCRIPTION")
_COLOURS: Final = {"ok": "green", "theme": "green", "untrusted": "yellow", "error": "red"}


def find_all(given: ExtGiven) -> tuple[Found, ...]:
    """Everything there is for the options: explicit, of the project, global; directories without a manifest too."""
    search = () if given.has("no-extensions") else search_directories(given.cwd, given.home, given.zot)
    consents = trusted(given.home)
    return discover(
        given.explicit, search, with_empty=True, may_run=lambda found: is_trusted(found, consents), zot=given.zot
    )


def fate(found: Found) -> str:
    """What would become of an extension: ok, theme, untrusted, disabled, shadowed, error."""
    return "theme" if found.state == "ok" and found.theme_only else found.state


def _list(given: ExtGiven) -> int:
    rows = [(found, fate(found)) for found in find_all(given)]
    if given.as_json:
        print(json.dumps([_as_json(found, state) for found, state in rows], indent=2))
        return 0
    if not rows:
        print("zutd: no extensions; put one into", os.path.join(given.home, "extensions"), file=sys.stderr)
        return 0
    from zutd.cli.table import table

    paint = lambda column, text: _COLOURS.get(text, "dim") if column == _HEAD.index("STATE") else ""  # noqa: E731
    print(table(_HEAD, [_row(found, state) for found, state in rows], paint))
    return 0


def _row(found: Found, state: str) -> tuple[str, ...]:
    manifest = found.manifest
    if manifest is None:
        return found.name, "", found.source, state, "", "", found.directory, ""
    permitted = in_short(manifest.permissions) if manifest.exec else ""
    says = (manifest.language, permitted, found.directory, manifest.description)
    return found.name, manifest.version, found.source, state, *says


def _as_json(found: Found, state: str) -> dict[str, Any]:
    from zutd.extensions.themes import themes_of

    manifest = found.manifest
    themes = themes_of(found.directory, found.name) if found.state == "ok" else ()
    return {
        "name": found.name,
        "version": manifest.version if manifest else "",
        "source": found.source,
        "state": state,
        "enabled": manifest.enabled if manifest else False,
        "language": manifest.language if manifest else "",
        "description": manifest.description if manifest else "",
        "themes": [theme._asdict() for theme in themes],
        "permissions": as_json(manifest.permissions) if manifest else None,
        "directory": found.directory,
        "problem": found.problem,
        "warnings": list(manifest.warnings) if manifest else [],
    }


def choose(everything: Sequence[Found], name: str) -> Found:
    """The extension that a name means. Raises :class:`CommandFailedError`."""
    from zutd.extensions.install_lookup import LookupFailedError, pick

    try:
        return pick(everything, name)
    except LookupFailedError as exc:
        raise CommandFailedError(str(exc), exit_code=2) from None


def _trust(given: ExtGiven) -> int:
    everything = find_all(given)
    named = [found for found in everything if found.name == given.operand]
    found = named[0] if named else choose(everything, given.operand)  # the first is the one that would run
    if found.manifest is None:
        raise CommandFailedError(f"{found.name} cannot run, so there is nothing to trust: {found.problem}")
    if found.source != "project":
        said = f"{found.name} did not come with a project and needs no consent"
    else:
        try:
            trust(found, given.home)
        except OSError as exc:
            raise CommandFailedError(f"cannot record the consent: {exc}") from None
        said = f"{found.name} may run from {found.directory} until its manifest or program changes"
    if given.as_json:
        print(json.dumps({"name": found.name, "directory": found.directory, "trusted": True}))
    else:
        from zutd.cli.table import harmless

        print(said)
        for words in in_words(found.manifest.permissions):
            print(f"  it {harmless(words)}")
    return 0


def _logs(given: ExtGiven) -> int:
    path = _log_path(given)
    if given.has("follow"):
        if given.as_json:
            raise CommandFailedError("--follow and --json do not go together", exit_code=2)
        _follow(path)
    try:
        with open(path, "rb") as file:
            if given.as_json:
                text = file.read().decode("utf-8", "replace")
                print(json.dumps({"path": path, "lines": text.removesuffix("\n").split("\n")}))
                return 0
            while chunk := file.read(1 << 16):
                sys.stdout.buffer.write(chunk)
    except FileNotFoundError:
        raise CommandFailedError(f"{given.operand} has no log yet ({path}); it has not been started") from None
    except OSError as exc:
        raise CommandFailedError(f"cannot read {path}: {exc.strerror}") from None
    return 0


def _follow(path: str) -> None:
    try:
        os.execvp("tail", ["tail", "-n", "+1", "-F", path])  # noqa: S606, S607 - the user's own tail, as in a shell
    except OSError as exc:
        raise CommandFailedError(f"--follow needs the program tail: {exc.strerror}") from None


def _log_path(given: ExtGiven) -> str:
    """The log of an extension, also of one that is not there any more: logs are kept."""
    name = given.operand
    path = extension_log(given.home, name)
    everything = find_all(given)
    known = any(found.name == name for found in everything)
    if not known and not (NAME_RULE.fullmatch(name) and os.path.exists(path)):
        choose(everything, name)
    return path


HANDLERS: Final[dict[str, Callable[[ExtGiven], int]]] = {"list": _list, "trust": _trust, "logs": _logs}
