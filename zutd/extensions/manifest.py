"""``extension.json``: read it, check it, find all of them, decide which one a name means.

Imports only what listing commands can afford (no attrs, no pathlib). Nothing is started here: everything is decided
from the files before the first process runs, so that two directories can never fight over a name.
"""

import errno
import json
import os
import re
import stat
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from zutd.extensions.permissions import Permissions, PermissionsError, check_permissions

NAME_RULE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
MANIFEST: Final = "extension.json"
THEMES: Final = ("theme.json", os.path.join("themes", "theme.json"))
ZOT_PROJECT: Final = (".zot", "extensions")
MANIFEST_LIMIT: Final = 1024 * 1024


class ManifestError(Exception):
    """A manifest, or what it names, is wrong. The text says what, for the person who wrote it."""


class Manifest(NamedTuple):
    """What an extension says of itself. ``exec`` is as written; ``protocol`` 0 means the current major.

    ``permissions`` None means that none are declared: it may do all that the user may. Their ``env`` holds the names
    in ``host_env`` too.
    """

    name: str
    version: str = ""
    exec: str = ""
    args: tuple[str, ...] = ()
    language: str = ""
    description: str = ""
    skills: tuple[str, ...] = ()
    enabled: bool = True
    host_env: tuple[str, ...] = ()
    on_timeout: str = "allow"
    restart: bool = True
    protocol: int = 0
    permissions: Permissions | None = None
    warnings: tuple[str, ...] = ()


class Found(NamedTuple):
    """An extension directory. ``source``: explicit, project, global.

    ``state``: ok, disabled, shadowed, error, and untrusted where :func:`discover` was told who may run.

    ``manifest`` is None when it could not be read; ``problem`` says why, or which directory shadows this one.
    """

    directory: str
    source: str
    state: str
    manifest: Manifest | None
    problem: str = ""

    @property
    def name(self) -> str:
        """The manifest's name, or the directory's where there is none."""
        return self.manifest.name if self.manifest else os.path.basename(self.directory)

    @property
    def in_zots_project(self) -> bool:
        """Whether it lies where zot keeps a project's extensions."""
        return os.path.dirname(self.directory).endswith(os.path.join(os.sep, *ZOT_PROJECT))

    @property
    def theme_only(self) -> bool:
        """Whether it has themes and no program."""
        return self.manifest is not None and not self.manifest.exec

    @property
    def harmless(self) -> bool:
        """Whether nothing of it runs, and nothing of it is told to the model: then nobody need consent to it."""
        return self.theme_only and self.manifest is not None and not self.manifest.skills


def _string(value: Any) -> bool:
    return isinstance(value, str)


def _strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


_FIELDS: Final = {
    "name": (_string, "a string"),
    "version": (_string, "a string"),
    "exec": (_string, "a string"),
    "args": (_strings, "an array of strings"),
    "language": (_string, "a string"),
    "description": (_string, "a string"),
    "skills": (_strings, "an array of strings"),
    "enabled": (lambda value: isinstance(value, bool), "true or false"),
    "host_env": (_strings, "an array of names"),
    "on_timeout": (lambda value: value in ("allow", "deny"), '"allow" or "deny"'),
    "restart": (lambda value: isinstance(value, bool), "true or false"),
    "protocol": (lambda value: type(value) is int and value in (0, 1, 2), "1 or 2"),
}

MISSPELT: Final = "did you mean"
"""What the warning about a field says when it is probably misspelt: then something was meant, and is not done."""

_IGNORED: Final = frozenset({"$schema", "author", "license", "homepage", "repository"})
_PERMISSIONS: Final = "permissions"


def read_manifest(directory: str) -> Manifest:
    """Read and check ``directory``'s manifest. Raises :class:`ManifestError`."""
    path = os.path.join(directory, MANIFEST)
    try:
        with open(path, "rb", opener=open_at_once) as file:
            raw = file.read(MANIFEST_LIMIT + 1)
    except FileNotFoundError:
        raise ManifestError(f"missing {MANIFEST} in {directory}") from None
    except OSError as exc:
        raise ManifestError(f"cannot read {path}: {exc.strerror}") from None
    if len(raw) > MANIFEST_LIMIT:
        raise ManifestError(f"parse manifest: {path} is larger than {MANIFEST_LIMIT} bytes")
    try:
        value = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError) as exc:
        raise ManifestError(f"parse manifest: {path}: {exc}") from None
    return check_manifest(value, directory)


def open_at_once(path: str, flags: int) -> int:
    """Open a file that a stranger may have put there: never wait for it (a FIFO), and take no device."""
    fd = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise OSError(errno.EINVAL, "not a file", path)


def check_manifest(value: Any, directory: str) -> Manifest:
    """Make a :class:`Manifest` of parsed JSON. Order of checks: shape, name, exec or theme."""
    if not isinstance(value, dict):
        raise ManifestError(f"parse manifest: {MANIFEST} in {directory} must hold a JSON object")
    known = {key: item for key, item in value.items() if key in _FIELDS and item is not None}
    for key, item in known.items():
        check, wanted = _FIELDS[key]
        if not check(item):
            raise ManifestError(f"parse manifest: {key!r} must be {wanted} ({directory})")
    name = known.get("name", "")
    if not name:
        raise ManifestError(f"manifest has no name ({directory})")
    if not NAME_RULE.fullmatch(name):
        raise ManifestError(
            f"manifest name {name!r} is not allowed: use 1 to 64 letters, digits, '.', '_' or '-', "
            f"the first a letter or digit ({directory})"
        )
    if not known.get("exec") and not any(os.path.isfile(os.path.join(directory, theme)) for theme in THEMES):
        raise ManifestError(f"manifest has no exec, and there is no theme.json either ({directory})")
    shaped: dict[str, Any] = {key: tuple(item) if isinstance(item, list) else item for key, item in known.items()}
    unknown = [key for key in value if key not in _FIELDS and key not in _IGNORED and key != _PERMISSIONS]
    return Manifest(
        **shaped,
        permissions=_permissions(value.get(_PERMISSIONS), known.get("host_env", ()), directory),
        warnings=tuple(_unknown_field(key) for key in unknown),
    )


def _permissions(value: Any, host_env: Iterable[str], directory: str) -> Permissions | None:
    if value is None:
        return None
    try:
        permissions = check_permissions(value)
    except PermissionsError as exc:
        raise ManifestError(f"parse manifest: {exc} ({directory})") from None
    return permissions._replace(env=tuple(dict.fromkeys((*permissions.env, *host_env))))


def _unknown_field(key: str) -> str:
    import difflib

    near = difflib.get_close_matches(key, (*_FIELDS, _PERMISSIONS), n=1)
    hint = f"; {MISSPELT} {near[0]!r}?" if near else ""
    return f"{MANIFEST}: unknown field {key!r} is ignored{hint}"


def resolve_exec(manifest: Manifest, directory: str, search_path: str) -> str:
    """The absolute path of the program. Raises :class:`ManifestError` when it cannot be run.

    Absolute: as it is. With a separator: below the directory, links followed. A bare name: from ``search_path``.
    """
    written = manifest.exec
    if os.path.isabs(written):
        return _runnable(written, written)
    if os.sep not in written and written not in (".", ".."):
        for folder in search_path.split(os.pathsep):
            candidate = os.path.join(folder or ".", written)
            if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
                return os.path.abspath(candidate)
        hint = f"; did you mean './{written}'?" if os.path.isfile(os.path.join(directory, written)) else ""
        raise ManifestError(f"exec {written!r} was not found in PATH{hint}")
    joined = os.path.normpath(os.path.join(directory, written))
    root = os.path.realpath(directory)
    if os.path.commonpath([root, os.path.realpath(joined)]) != root:
        raise ManifestError(f"exec {written!r} leaves the extension's directory; use an absolute path if that is meant")
    return _runnable(joined, written)


def _runnable(path: str, written: str) -> str:
    if not os.path.exists(path):
        raise ManifestError(f"exec {written!r} does not exist")
    if not os.path.isfile(path):
        raise ManifestError(f"exec {written!r} is not a file")
    if not os.access(path, os.X_OK):
        raise ManifestError(f"exec {written!r} is not executable; try: chmod +x {path}")
    return path


def _look(directory: str, source: str) -> Found:
    try:
        manifest = read_manifest(directory)
    except ManifestError as exc:
        return Found(directory, source, "error", None, str(exc))
    return Found(directory, source, "ok" if manifest.enabled else "disabled", manifest)


def _directories(root: str) -> list[str]:
    """The extension directories in a search directory: by name, no links, no dot names; none if it is not there."""
    try:
        with os.scandir(root) as entries:
            names = [e.name for e in entries if not e.name.startswith(".") and e.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return [os.path.join(root, name) for name in sorted(names)]


def search_directories(cwd: str, home: str, zot: str = "") -> tuple[tuple[str, str], ...]:
    """(source, directory) of the places that are searched, the first wins; with ``zot``'s home its places come last."""
    ours = (
        ("project", os.path.join(cwd, ".zut", "extensions")),
        ("global", os.path.join(home, "extensions")),
    )
    if not zot:
        return ours
    return (
        *ours,
        ("project", os.path.join(cwd, *ZOT_PROJECT)),
        ("global", os.path.join(zot, "extensions")),
    )


def _as_zot(found: Found, zot: str) -> Found:
    is_zots = os.path.dirname(found.directory) == os.path.join(zot, "extensions") or found.in_zots_project
    if found.manifest is None or found.manifest.protocol or found.source == "explicit" or not is_zots:
        return found
    return found._replace(manifest=found.manifest._replace(protocol=1))


def discover(
    explicit: Iterable[str],
    search: Iterable[tuple[str, str]],
    *,
    with_empty: bool = False,
    may_run: Callable[[Found], bool] = lambda _: True,
    zot: str = "",
) -> tuple[Found, ...]:
    """Everything that was found, in order of precedence, each with its fate.

    One name runs once: the first that is well, enabled and may run. A disabled project copy hides the global one (that
    is how a project switches it off); a broken one does not, nor one that may not run (a checkout must not take the
    user's own away), nor a disabled explicit one. Directories without a manifest are left out unless ``with_empty``.
    What is found in the places of ``zot`` (its home) speaks protocol 1 unless its manifest says otherwise.
    """
    looked = [_look(os.path.abspath(path), "explicit") for path in explicit]
    for source, root in search:
        looked.extend(
            _look(directory, source)
            for directory in _directories(root)
            if with_empty or os.path.lexists(os.path.join(directory, MANIFEST))
        )
    if zot:
        looked = [_as_zot(found, zot) for found in looked]
    owners: dict[str, Found] = {}
    settled: list[Found] = []
    for found in looked:
        owner = owners.get(found.name) if found.manifest else None
        if owner is not None and found.directory == owner.directory:
            continue
        if owner is not None:
            settled.append(found._replace(state="shadowed", problem=f"{owner.directory} has the same name and wins"))
            continue
        if found.state == "ok" and not found.harmless and not may_run(found):
            settled.append(found._replace(state="untrusted"))
            continue
        if found.state == "ok" or (found.state == "disabled" and found.source != "explicit"):
            owners[found.name] = found
        settled.append(found)
    return tuple(settled)
