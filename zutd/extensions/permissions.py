"""What an extension says it needs: ``permissions`` in its manifest, read, checked and put into words     (pure).

Imports only what listing commands can afford. What the words come to on this machine is decided when the extension
starts (:mod:`zutd.extensions.scopes`).
"""

import posixpath
from typing import Any, Final, NamedTuple

WORKSPACE: Final = "$WORKSPACE"
"""What stands for the project directory at the beginning of a path."""

_EVERYTHING: Final = frozenset({"~", "/", "/home", "/root", "/Users"})


class PermissionsError(Exception):
    """What stands under ``permissions`` is wrong. The text says what, without the file's name."""


class Permissions(NamedTuple):
    """What an extension may do beside running and reading its own directory. Paths are as written."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    net: bool = False
    run: bool = False
    env: tuple[str, ...] = ()

    @property
    def is_at_home(self) -> bool:
        """Whether it has to do with the user's home directory, and so must know where that is."""
        return "HOME" in self.env or any(anchor(path)[0] == "~" for path in (*self.read, *self.write))


def check_permissions(value: Any) -> Permissions:
    """Make :class:`Permissions` of parsed JSON. Raises :class:`PermissionsError`."""
    if not isinstance(value, dict):
        raise PermissionsError("'permissions' must be an object with read, write, net, run and env")
    for key, item in value.items():
        if key not in _FIELDS:
            raise PermissionsError(f"'permissions' has no {key!r}{_near(key)}; it has {', '.join(_FIELDS)}")
        check = _FIELDS[key]
        if item is not None:
            check(f"permissions.{key}", item)
    return Permissions(
        read=tuple(value.get("read") or ()),
        write=tuple(value.get("write") or ()),
        net=bool(value.get("net")),
        run=bool(value.get("run")),
        env=tuple(value.get("env") or ()),
    )


def _near(key: str) -> str:
    import difflib

    near = difflib.get_close_matches(key, _FIELDS, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _flag(field: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise PermissionsError(f"{field!r} must be true or false")


def _names(field: str, value: Any) -> None:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise PermissionsError(f"{field!r} must be an array of names of variables")
    for name in value:
        if not name or set(name) & set("=\0"):
            raise PermissionsError(f"{field!r}: {name!r} is no name of a variable")


def _paths(field: str, value: Any) -> None:
    if not isinstance(value, list) or not all(isinstance(path, str) for path in value):
        raise PermissionsError(f"{field!r} must be an array of paths")
    for path in value:
        if problem := _what_is_wrong(path):
            raise PermissionsError(f"{field!r}: {path!r} {problem}")


def _writable(field: str, value: Any) -> None:
    _paths(field, value)
    for path in value:
        if anchor(path)[0] == "" and posixpath.normpath(path) == ".":
            raise PermissionsError(
                f"{field!r}: {path!r} is the extension's own directory, where it could change its permissions; "
                "name a directory in it, such as 'data'"
            )


_FIELDS: Final = {"read": _paths, "write": _writable, "net": _flag, "run": _flag, "env": _names}


def anchor(path: str) -> tuple[str, str]:
    """Where a path begins (``/``, ``~``, :data:`WORKSPACE`, empty for the extension's directory), and the rest."""
    first, _, rest = path.partition("/")
    if first in ("~", WORKSPACE):
        return first, rest
    return ("/", path) if path.startswith("/") else ("", path)


def _what_is_wrong(path: str) -> str:
    start, rest = anchor(path)
    if not path or "\0" in path:
        return "is no path"
    if path[0] in "~$" and start not in ("~", WORKSPACE):
        return f"begins with a name that is not known; there are ~ (the home directory) and {WORKSPACE} (the project)"
    if "*" in path:
        return "has a *, and patterns are not understood; name the directory"
    if start != "/" and posixpath.normpath(f"./{rest}").startswith(".."):
        where = {"": "the extension's directory", "~": "the home directory"}.get(start, "the project")
        return f"leaves {where}; write an absolute path, or one that begins with ~ or {WORKSPACE}"
    return ""


# --- in words --------------------------------------------------------------------------------------------------------


def in_words(permissions: Permissions | None) -> tuple[str, ...]:
    """What a user should know before it runs: sentences that begin with "it"."""
    if permissions is None:
        return ("declares no permissions: it may do all that you may",)
    said = [
        f"may read {_listed(permissions.read)}" if permissions.read else "",
        f"may write {_listed(permissions.write)}" if permissions.write else "",
        "may use the network" if permissions.net else "",
        "may run other programs" if permissions.run else "",
        f"is given {', '.join(permissions.env)} of your environment" if permissions.env else "",
    ]
    return tuple(text for text in said if text) or ("may read its own directory, and no more",)


def _listed(paths: tuple[str, ...]) -> str:
    return ", ".join(f"{path} ({_BROAD})" if _is_broad(path) else path for path in paths)


_BROAD: Final = "with your keys and passwords, and zutd's own"


def _is_broad(path: str) -> bool:
    return (posixpath.normpath(path) if path != "//" else "/") in _EVERYTHING


def in_short(permissions: Permissions | None) -> str:
    """The same in a word or two, for a table: ``all`` where nothing is declared."""
    if permissions is None:
        return "all"
    return ",".join(name for name, value in permissions._asdict().items() if value) or "none"


def as_json(permissions: Permissions | None) -> dict[str, Any] | None:
    """The same for programs; None where nothing is declared."""
    if permissions is None:
        return None
    return {key: list(value) if isinstance(value, tuple) else value for key, value in permissions._asdict().items()}
