"""``zutd ext new``: a small working extension to begin with, from the templates beside this module."""

import json
import os
import shutil
from collections.abc import Iterator
from typing import Final, NamedTuple

from zutd.cli.ext_options import CommandFailedError, ExtGiven
from zutd.cli.subcommands import absolute
from zutd.extensions.manifest import MANIFEST, NAME_RULE

_TEMPLATES: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "templates")
_SUFFIX: Final = ".tmpl"
_LONGEST_WORD: Final = 58
"""Characters of a name that go into names of tools, which have 64 at most."""


class _Language(NamedTuple):
    """What is special about a language. ``exec`` may hold @NAME@; ``needs`` is what must be there to run it;
    ``permissions`` are the fewest with which its template works.
    """

    exec: str
    language: str
    needs: str
    build: str = ""
    permissions: str = "{}"


_LANGUAGES: Final = {
    "python": _Language("./main.py", "python", "python3"),
    "typescript": _Language("./main.mjs", "javascript", "node"),
    "node": _Language("./main.mjs", "javascript", "node"),
    "shell": _Language("./main.sh", "shell", "jq", permissions='{"run": true}'),
    "go": _Language("./@NAME@", "go", "go", build="go build -o @NAME@ ."),
}


def run_new(given: ExtGiven) -> int:
    """Write the extension and say what to do with it."""
    name = given.operand
    if not NAME_RULE.fullmatch(name):
        raise CommandFailedError(
            f"{name!r} cannot be the name of an extension: use 1 to 64 letters, digits, '.', '_' or '-', "
            "the first a letter or digit",
            exit_code=2,
        )
    chosen = given.value("lang") or "python"
    directory = absolute(given.value("dir") or name)
    files = dict(_files(name, chosen))
    _write(directory, files, executable=_fill(_LANGUAGES[chosen].exec, name))
    if given.as_json:
        print(json.dumps({"name": name, "language": chosen, "directory": directory, "files": sorted(files)}, indent=2))
    else:
        print(_next_steps(name, chosen, directory))
    return 0


def _fill(text: str, name: str) -> str:
    word = name.replace(".", "_")[:_LONGEST_WORD]
    return text.replace("@NAME@", name).replace("@IDENT@", word)


def _files(name: str, chosen: str) -> Iterator[tuple[str, str]]:
    """Names and texts of what an extension of this name and language begins with."""
    language = _LANGUAGES[chosen]
    manifest = {
        "name": name,
        "version": "0.1.0",
        "exec": _fill(language.exec, name),
        "language": language.language,
        "description": "notes that belong to the conversation",
    }
    yield MANIFEST, json.dumps(manifest, indent=2) + "\n"
    build = f"Build it first:\n\n    {_fill(language.build, name)}\n\n" if language.build else ""
    install = "zutd ext install --build=go ." if language.build else "zutd ext install ."
    readme = _fill(_read("README.md"), name).replace("@BUILD@", build).replace("@INSTALL@", install)
    yield "README.md", readme.replace("@PERMISSIONS@", language.permissions)
    for file in sorted(os.listdir(os.path.join(_TEMPLATES, chosen))):
        inner = file.removesuffix(_SUFFIX)
        yield inner, _fill(_read(os.path.join(chosen, inner)), name)


def _read(path: str) -> str:
    with open(os.path.join(_TEMPLATES, path + _SUFFIX), encoding="utf-8") as file:
        return file.read()


def _write(directory: str, files: dict[str, str], executable: str) -> None:
    """Write into a directory that is empty or not there yet. Raises :class:`CommandFailedError`."""
    program = os.path.normpath(executable)
    try:
        os.makedirs(directory, exist_ok=True)
        if os.listdir(directory):
            raise CommandFailedError(f"{directory} is not empty; choose another place with --dir")
        for file, text in files.items():
            path = os.path.join(directory, file)
            with open(path, "x", encoding="utf-8", newline="") as written:
                written.write(text)
            if file == program:
                os.chmod(path, 0o755)  # noqa: S103 - a program that everybody may run
    except OSError as exc:
        raise CommandFailedError(f"cannot write {exc.filename or directory}: {exc.strerror}") from None


def _next_steps(name: str, chosen: str, directory: str) -> str:
    language = _LANGUAGES[chosen]
    place = os.path.relpath(directory)
    place = place if place.startswith((".", os.sep)) else f"./{place}"
    lines = [f"made the extension {name} in {place}"]
    if shutil.which(language.needs) is None:
        lines.append(f"  it needs {language.needs}, which is not in your PATH")
    if language.build:
        lines.append(f"  build it:  (cd {place} && {_fill(language.build, name)})")
    word = _fill("@IDENT@", name)
    lines += [
        f'  try it:    zutd --ext {place} -p \'call {word}_note {{"text": "buy milk"}}\'',
        f"  check it:  zutd ext test {place}",
        f"  keep it:   zutd ext install {'--build=go ' if language.build else ''}{place}",
    ]
    return "\n".join(lines)
