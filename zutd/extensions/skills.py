"""Skills: texts that tell the agent how to do a kind of work, found in directories and bundled with extensions.

A skill is a ``SKILL.md`` with a front matter of ``key: value`` lines. Front matter is read line by line: real files
hold colons, quotes and words such as ``on`` that YAML takes for something else. The first of a name wins: the
user's and the project's roots in order, then those of extensions by name.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import attrs

SKILL: Final = "SKILL.md"
FILE_LIMIT: Final = 256 * 1024
DEPTH: Final = 6
"""How deep below a root skills are looked for."""


class SkillError(Exception):
    """A skill cannot be used; the text says which and why."""


@attrs.frozen(kw_only=True)
class Skill:
    """One skill. ``directory`` is absolute; the model is not told of a hidden one, but may ask for it.

    What it may use (``allowed_tools``, ``permissions``) is its author's word: it is shown, and not enforced.
    """

    name: str
    description: str
    directory: str
    body: str
    source: str
    hidden: bool = False
    allowed_tools: str = ""
    permissions: str = ""

    @property
    def limits(self) -> str:
        """What the author says it may use, a line each; empty when nothing is said."""
        said = (("Allowed tools", self.allowed_tools), ("Permissions", self.permissions))
        return "\n".join(f"{label}: {value}" for label, value in said if value)


@attrs.frozen(kw_only=True)
class Skills:
    """Everything that was found: skills by name, and a sentence for each that was not usable."""

    by_name: Mapping[str, Skill]
    problems: tuple[str, ...] = ()


def user_roots(cwd: str, home: str, environ: Mapping[str, str], *, trusted: bool) -> tuple[tuple[str, str], ...]:
    """(source, directory) of all roots, the first wins. A project's own count only when it is trusted."""
    person = os.path.expanduser("~")
    roots = [("environment", path) for path in environ.get("ZUT_AGENT_SKILLS", "").split(os.pathsep) if path]
    places = (
        ("project", os.path.join(cwd, ".zut", "skills")),
        ("user", os.path.join(home, "skills")),
        ("project", os.path.join(cwd, ".claude", "skills")),
        ("user", os.path.join(person, ".claude", "skills")),
        ("project", os.path.join(cwd, ".agents", "skills")),
        ("user", os.path.join(person, ".agents", "skills")),
    )
    roots.extend(place for place in places if trusted or place[0] != "project")
    return tuple(roots)


def find_skills(roots: Iterable[tuple[str, str]], bundles: Iterable[tuple[str, str, tuple[str, ...]]] = ()) -> Skills:
    """Look into ``roots``, then into ``bundles``: (extension's name, its directory, its manifest's ``skills``)."""
    found: dict[str, Skill] = {}
    problems: list[str] = []
    for source, root in roots:
        for directory in _walk(root):
            _add(directory, source, found, problems)
    for extension, directory, entries in sorted(bundles):
        for entry in entries:
            try:
                places = list(_bundled(directory, entry))
            except SkillError as exc:
                problems.append(f"skill: extension {extension}: {exc}")
                continue
            for place in places:
                _add(place, f"extension {extension}", found, problems, inside=directory)
    return Skills(by_name=dict(sorted(found.items())), problems=tuple(problems))


def _add(directory: str, source: str, found: dict[str, Skill], problems: list[str], *, inside: str = "") -> None:
    try:
        if inside:
            _check_inside(os.path.join(directory, SKILL), inside)
        skill = read_skill(directory, source)
    except SkillError as exc:
        problems.append(f"skill: {exc}")
        return
    found.setdefault(skill.name, skill)


def _walk(root: str) -> Iterator[str]:
    """Directories with a SKILL.md below a root, by name; below a skill nothing is looked at."""
    pending = [(os.path.abspath(root), 0)]
    while pending:
        directory, depth = pending.pop()
        if os.path.isfile(os.path.join(directory, SKILL)):
            yield directory
            continue
        if depth == DEPTH:
            continue
        try:
            with os.scandir(directory) as entries:
                names = sorted((e.name for e in entries if not e.name.startswith(".") and e.is_dir()), reverse=True)
        except OSError:
            continue
        pending.extend((os.path.join(directory, name), depth + 1) for name in names)


def _bundled(directory: str, entry: str) -> Iterator[str]:
    """Skill directories that a manifest's entry names: itself, or those of its direct children that have a SKILL.md."""
    entry = entry.strip()
    clean = os.path.normpath(entry) if entry else ""
    if not clean or os.path.isabs(entry) or clean in (".", "..") or clean.startswith(".." + os.sep):
        raise SkillError(f"the path {entry!r} must be a directory inside the extension")
    place = os.path.join(directory, clean)
    _check_inside(place, directory)
    if os.path.isfile(os.path.join(place, SKILL)):
        yield place
        return
    try:
        names = sorted(os.listdir(place))
    except OSError:
        return
    children = (os.path.join(place, name) for name in names)
    yield from (child for child in children if os.path.isfile(os.path.join(child, SKILL)))


def _check_inside(path: str, directory: str) -> None:
    """Links followed, what an extension bundles lies inside it."""
    root = os.path.realpath(directory)
    if os.path.commonpath([os.path.realpath(path), root]) != root:
        raise SkillError(f"the path {os.path.relpath(path, directory)!r} leaves the extension's directory")


def read_skill(directory: str, source: str) -> Skill:
    """Read one skill. Raises :class:`SkillError`."""
    path = os.path.join(directory, SKILL)
    try:
        with open(path, "rb") as file:
            raw = file.read(FILE_LIMIT + 1)
    except OSError as exc:
        raise SkillError(f"{path}: {exc.strerror}") from None
    if len(raw) > FILE_LIMIT:
        raise SkillError(f"{path} is larger than {FILE_LIMIT} bytes")
    fields, body = parse(raw.decode("utf-8-sig", "replace"))
    name = fields.get("name") or os.path.basename(directory)
    if not fields.get("description"):
        raise SkillError(f"{path} has no description in its front matter")
    return Skill(
        name=name,
        description=fields["description"],
        directory=directory,
        body=body.strip(),
        source=source,
        hidden=fields.get("disable-model-invocation", "").lower() == "true",
        allowed_tools=_listed(fields.get("allowed-tools", "")),
        permissions=_listed(fields.get("permissions", "")),
    )


def parse(text: str) -> tuple[dict[str, str], str]:
    """Front matter and body of a SKILL.md; no fields when there is no closed front matter."""
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[0].strip() != "---":
        return {}, text
    for end, line in enumerate(lines[1:], 1):
        if line.strip() in ("---", "..."):
            return _fields(lines[1:end]), "\n".join(lines[end + 1 :])
    return {}, text


_FOLDED: Final = frozenset({">", "|", ">-", "|-", ">+", "|+"})
_MEMBER: Final = re.compile(r"[\w.-]+:(\s.*)?")


def _fields(lines: Iterable[str]) -> dict[str, str]:
    """``key: value`` lines; an indented line, or an item of a list, continues the value before it."""
    values: dict[str, tuple[str, list[str]]] = {}
    key = ""
    for line in lines:
        if key and line.startswith((" ", "\t", "- ")):
            values[key][1].append(line.strip())
            continue
        name, colon, value = line.partition(":")
        if colon and name.strip() and not line.startswith("#"):
            key = name.strip()
            values[key] = (value.strip(), [])
    return {name: _value(first, [line for line in more if line]) for name, (first, more) in values.items()}


def _value(first: str, more: list[str]) -> str:
    """A value of several lines as one: a list's items and a map's members with commas, a text's lines with spaces."""
    if not first and more and all(line.startswith("- ") for line in more):
        return ", ".join(_unquoted(line[2:].strip()) for line in more)
    if not first and all(_MEMBER.fullmatch(line) for line in more):
        return ", ".join(more)
    beginning = [] if first in _FOLDED or not first else [_unquoted(first)]
    return " ".join([*beginning, *more])


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1].replace('\\"', '"') if value[0] == '"' else value[1:-1].replace("''", "'")
    return value


def _listed(value: str) -> str:
    """A list in brackets without them."""
    if value.startswith("[") and value.endswith("]"):
        return ", ".join(_unquoted(item.strip()) for item in value[1:-1].split(",") if item.strip())
    return value


def manifest_text(skills: Skills) -> str:
    """What the system prompt says of skills: name, place, description; empty when there are none to tell of."""
    shown = [skill for skill in skills.by_name.values() if not skill.hidden]
    if not shown:
        return ""
    lines = [f"- {skill.name} ({_short(skill.directory)}): {skill.description}" for skill in shown]
    head = "Skills: texts that say how to do a kind of work. Read one with the tool `skill` before you do such work."
    return "\n".join([head, *lines])


def _short(directory: str) -> str:
    person = os.path.expanduser("~")
    return "~" + directory[len(person) :] if directory.startswith(person + os.sep) else directory


def expanded(skill: Skill, args: str) -> str:
    """The user message that ``/name args`` stands for."""
    head = f"Use the skill {skill.name} (its directory is {skill.directory}):"
    text = "\n\n".join(part for part in (head, skill.limits, skill.body) if part)
    return f"{text}\n\nArguments: {args.strip()}" if args.strip() else text
