"""What an extension's permissions come to on this machine: which files and directories, where they lie just now.

Paths are resolved each time it starts. What the extension could have bent by a link is refused: a path that is written
as one inside its directory, or inside the project, must lie there. Beside what it asks for, a program needs what it is
made of: the system's libraries, its interpreter, its own directory.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import attrs

from zutd.extensions.manifest import MANIFEST, ManifestError
from zutd.extensions.permissions import WORKSPACE, Permissions, anchor
from zutd.processes.sandbox import Confinement, Place, is_below

SYSTEM: Final = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"),
    *("/nix/store", "/gnu/store", "/run/current-system"),
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/ld-musl-x86_64.path"),
    *("/etc/localtime", "/etc/timezone", "/etc/locale.alias", "/etc/locale.conf", "/etc/alternatives"),
    *("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/os-release", "/etc/mime.types", "/etc/terminfo"),
    *("/etc/gitconfig", "/etc/bash.bashrc", "/etc/profile", "/etc/inputrc", "/etc/perl", "/etc/python3"),
    *(f"/etc/python3.{minor}" for minor in range(9, 16)),
    *("/etc/ssl/openssl.cnf", "/etc/pki/tls/openssl.cnf", "/etc/crypto-policies"),
    *("/sys/devices/system", "/sys/kernel/mm/transparent_hugepage"),
)
"""What every program may read, where it is there. Of /etc only what libraries, languages and tools trip over when they
see it and may not read it; nothing that is secret to some: for root nothing is.
"""

NETWORK: Final = (
    *("/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/gai.conf", "/etc/services", "/etc/protocols"),
    *("/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/ca-bundle.pem", "/etc/ca-certificates"),
    *("/etc/pki/tls/certs", "/etc/pki/tls/cert.pem", "/etc/pki/ca-trust/extracted"),
)
"""What it may read besides if it may use the network."""

_CERTIFICATES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS")


@attrs.frozen(kw_only=True)
class Setting:
    """Whose permissions they are, and where: real or not, ``directory``, ``workspace`` and ``home`` (zutd's) are
    absolute, ``user_home`` too unless it is not known. ``environ`` is what the extension will get, ``program`` the
    files that it is made of, as it asks for them.
    """

    directory: str
    workspace: str
    home: str
    user_home: str
    environ: Mapping[str, str]
    program: tuple[str, ...]


def confinement(permissions: Permissions, setting: Setting) -> tuple[Confinement, tuple[str, ...]]:
    """What the permissions come to, and what there is to say about the paths. Raises :class:`ManifestError`.

    A directory inside the extension's own that it may write to is made if it is missing.
    """
    asked_write = [_resolve("write", path, setting) for path in permissions.write]
    asked_read = [_resolve("read", path, setting) for path in permissions.read]
    for path, place in zip(permissions.write, asked_write, strict=True):
        _check_writable(path, place, setting)
    write = [place for place in asked_write if os.path.exists(place.real)]
    read = [place for place in asked_read if os.path.exists(place.real)]
    return (
        Confinement(
            read=(*_needed(permissions, setting), *_not_planted(read, write)),
            write=tuple(_not_planted(write, write)),
            execute=tuple(_place(path) for path in setting.program),
            net=permissions.net,
            run=permissions.run,
        ),
        tuple(_remarks((*asked_read, *asked_write), setting)),
    )


def _remarks(places: Iterable[Place], setting: Setting) -> Iterator[str]:
    user_home = os.path.realpath(setting.user_home or setting.home)
    for place in places:
        if not os.path.exists(place.real):
            yield f"{place.name} is not there, so it can neither be read nor written"
        elif is_below(user_home, place.real):
            yield f"{place.name} takes in your home directory, with your keys and passwords: it may read them"


def _place(path: str) -> Place:
    return Place(name=os.path.abspath(path), real=os.path.realpath(path))


def _resolve(kind: str, path: str, setting: Setting) -> Place:
    start, rest = anchor(path)
    roots = {"": setting.directory, WORKSPACE: setting.workspace, "~": setting.user_home, "/": "/"}
    root = roots[start]
    if not root:
        raise ManifestError(f"permissions.{kind}: {path!r} needs a home directory, and HOME is not set")
    place = _place(os.path.join(root, rest))
    if start in ("", WORKSPACE) and not is_below(place.real, os.path.realpath(root)):
        where = "the project" if start else "the extension's directory"
        raise ManifestError(f"permissions.{kind}: {path!r} is a link that leaves {where}, to {place.real}")
    if kind == "write" and not start:
        _make(path, place)
    return place


def _make(path: str, place: Place) -> None:
    try:
        if not os.path.exists(place.real):
            os.makedirs(place.real, mode=0o700)
    except OSError as exc:
        raise ManifestError(f"permissions.write: cannot make {path!r} ({exc.strerror})") from None


def _check_writable(path: str, place: Place, setting: Setting) -> None:
    """Whoever may write to where zutd keeps things could give itself every permission."""
    home, own = os.path.realpath(setting.home), os.path.realpath(setting.directory)
    if place.real != own and is_below(place.real, own):
        manifest = os.path.join(own, MANIFEST)
        # The manifest may be a link to below; the repository's settings can run programs at the next update.
        refused = _touch(place.real, os.path.realpath(manifest)) or _touch(place.real, os.path.join(own, ".git"))
        refused = refused or os.stat(manifest).st_nlink > 1
    else:
        # Around it may lie the project that it came with: consent covers the manifest, and notices a change.
        refused = place.real == own or _touch(place.real, home)
    if refused:
        raise ManifestError(
            f"permissions.write: {path!r} ({place.real}) takes in what zutd keeps for itself, where it could change "
            "its permissions; name narrower paths"
        )


def _touch(one: str, other: str) -> bool:
    return is_below(one, other) or is_below(other, one)


def _not_planted(places: Iterable[Place], writable: list[Place]) -> Iterator[Place]:
    """The places that are not named by a path inside a writable one: there, the extension itself may have made a link.

    Nothing is lost: what really lies there may be written to already.
    """
    for place in places:
        parent = os.path.realpath(os.path.dirname(place.name))
        if not any(is_below(parent, other.real) for other in writable):
            yield place


def _needed(permissions: Permissions, setting: Setting) -> Iterator[Place]:
    """What it may read without asking."""
    yield _place(setting.directory)
    paths = [*SYSTEM, *_around(setting.program, {"/", os.path.realpath(setting.user_home)})]
    if permissions.net:
        paths += [*NETWORK, *_resolver()]
        paths += [path for name in _CERTIFICATES if (path := setting.environ.get(name))]
    for path in paths:
        if os.path.exists(path):
            yield _place(path)


def _around(program: tuple[str, ...], not_in: set[str]) -> Iterator[str]:
    """What belongs to an interpreter outside the system's directories: its libraries, its virtual environment."""
    for path in {path for file in program for path in (file, os.path.realpath(file))}:
        directory, _ = os.path.split(path)
        prefix, name = os.path.split(directory)
        if name == "bin" and os.path.realpath(prefix) not in not_in:
            yield from (os.path.join(prefix, inner) for inner in ("lib", "lib64", "libexec", "pyvenv.cfg"))


def _resolver() -> Iterator[str]:
    """Where the names of hosts come from is replaced at every change of network: then its directory is what counts."""
    target = os.path.realpath("/etc/resolv.conf")
    if is_below(target, "/run"):
        yield os.path.dirname(target)
