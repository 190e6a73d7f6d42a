"""Install an extension: from a directory (copied, Go sources built when asked) or from a git repository (cloned).

Everything is prepared in a hidden directory beside the others and looked at there; then one rename makes it an
installed extension. Whatever fails, or is interrupted, leaves the extensions as they were.
"""

import os
from typing import Final, NamedTuple

from zutd.extensions.install_copy import Progress, copy_tree
from zutd.extensions.install_git import PREFIXES, SUFFIX, clone, is_git_source
from zutd.extensions.install_run import Echo, our_environment, run_program
from zutd.extensions.install_stage import InstallError, staging
from zutd.extensions.manifest import (
    MANIFEST,
    THEMES,
    Manifest,
    ManifestError,
    discover,
    read_manifest,
    resolve_exec,
)

BUILDERS: Final = ("go",)
_SHOWN: Final = 5


class Installed(NamedTuple):
    """What was installed, and where. ``notes`` are sentences for whoever installed it."""

    manifest: Manifest
    directory: str
    source: str
    notes: tuple[str, ...]


class Voice(NamedTuple):
    """Who is told how the work goes on: what git and go say, and how much has been copied."""

    echo: Echo
    progress: Progress


def install(source: str, root: str, *, builder: str, voice: Voice) -> Installed:
    """Install ``source`` below ``root`` under its manifest's name; ``builder`` is empty or one of :data:`BUILDERS`.

    Raises :class:`InstallError`.
    """
    if is_git_source(source):
        if builder:
            raise InstallError("--build works on local sources only; clone the repository, then install the directory")
        return _from_git(source, root, voice)
    if "://" in source:
        raise InstallError(f"{source} is no directory, and only {', '.join(PREFIXES)} and names in {SUFFIX} are cloned")
    return _from_directory(os.path.abspath(source), root, builder, voice)


def _from_directory(source: str, root: str, builder: str, voice: Voice) -> Installed:
    if not os.path.isdir(source):
        raise InstallError(f"{source} is {'not a directory' if os.path.exists(source) else 'not there'}")
    manifest = _read(source, source)
    _check_free(root, manifest.name)
    if builder:
        _check_buildable(manifest, source)
    else:
        _check_exec(manifest, source, source)
    with staging(root) as stage:
        content = os.path.join(stage, "content")
        copied = copy_tree(source, content, needed_files(manifest, source), voice.progress)
        if builder:
            _build(manifest, source, content, voice.echo)
        _check_exec(manifest, content, source)
        directory = _publish(content, root, _read(content, source))
    notes = _notes(manifest, directory)
    if copied.left_beside:
        shown = ", ".join(copied.left_beside[:_SHOWN]) + (", ..." if len(copied.left_beside) > _SHOWN else "")
        notes += (f".gitignore left out files beside one that is needed; were they needed too? {shown}",)
    return Installed(manifest, directory, source, notes)


def _from_git(source: str, root: str, voice: Voice) -> Installed:
    with staging(root) as stage:
        content = os.path.join(stage, "content")
        clone(source, content, voice.echo)
        manifest = _read(content, source)
        _check_exec(manifest, content, source)
        directory = _publish(content, root, manifest)
    notes = _notes(manifest, directory)
    if os.path.exists(os.path.join(directory, ".gitmodules")):
        notes += ("the repository has submodules, which are not fetched",)
    return Installed(manifest, directory, source, notes)


def _read(directory: str, source: str) -> Manifest:
    try:
        return read_manifest(directory)
    except ManifestError as exc:
        raise InstallError(str(exc).replace(directory, source)) from None


def _check_free(root: str, name: str) -> None:
    taken = [found.directory for found in discover((), (("", root),), with_empty=True) if found.name == name]
    target = os.path.join(root, name)
    if os.path.lexists(target) and target not in taken:
        taken.append(target)
    if taken:
        raise InstallError(
            f"{name} is installed already, in {taken[0]}; remove it first: zutd ext remove {name} "
            "(one that came from git can be brought up to date: zutd ext update)"
        )


def _publish(content: str, root: str, manifest: Manifest) -> str:
    _check_free(root, manifest.name)
    target = os.path.join(root, manifest.name)
    try:
        os.rename(content, target)
    except OSError as exc:
        raise InstallError(f"cannot put the extension to {target}: {exc.strerror}") from None
    return target


# --- the program -----------------------------------------------------------------------------------------------------


def is_inner(program: str) -> bool:
    """Whether ``exec`` names a file of the extension, and not one in PATH or an absolute one."""
    return os.sep in program and not os.path.isabs(program)


def _check_exec(manifest: Manifest, directory: str, source: str) -> None:
    if not is_inner(manifest.exec):
        return
    try:
        resolve_exec(manifest, directory, "")
    except ManifestError as exc:
        text = str(exc).replace(directory, source)
        if text.endswith("does not exist"):
            text += "; build it first, or let zutd build a local Go source: zutd ext install --build=go PATH"
        raise InstallError(text) from None


def needed_files(manifest: Manifest, source: str) -> frozenset[str]:
    """What is copied whatever ``.gitignore`` says: manifest, program, script arguments, skills, themes."""
    named = [MANIFEST, *THEMES, "themes", *(skill.strip() for skill in manifest.skills)]
    named += [word for word in (manifest.exec, *manifest.args) if os.path.isfile(os.path.join(source, word))]
    root = os.path.realpath(source)
    found: set[str] = set()
    for word in named:
        path = os.path.normpath(os.path.join(root, word))
        if word and os.path.lexists(path):
            found.update(os.path.relpath(each, root) for each in (path, os.path.realpath(path)))
    return frozenset(path for path in found if path != "." and not path.startswith(".."))


def _check_buildable(manifest: Manifest, source: str) -> None:
    if not manifest.exec:
        raise InstallError(f"{manifest.name} has themes only: there is nothing to build")
    if not is_inner(manifest.exec):
        raise InstallError(
            f"--build=go needs an exec inside the extension, such as ./{manifest.name}, "
            f"and the manifest has {manifest.exec!r}"
        )
    target = os.path.realpath(os.path.join(source, manifest.exec))
    if os.path.commonpath([os.path.realpath(source), target]) != os.path.realpath(source):
        raise InstallError(f"exec {manifest.exec!r} leaves the extension's directory")


def _build(manifest: Manifest, source: str, content: str, echo: Echo) -> None:
    """Build Go sources where they are, into the prepared copy: nothing is written to the sources."""
    target = os.path.normpath(os.path.join(content, manifest.exec))
    if os.path.lexists(target):
        os.unlink(target)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    words = ["go", "build", "-trimpath", "-o", target, "."]
    ended = run_program(words, cwd=source, environ=our_environment(PWD=source), echo=echo)
    if ended.code != 0:
        said = ended.errors.strip().splitlines() or ["it said nothing"]
        raise InstallError(f"go build failed (exit status {ended.code}): {said[-1]}")


def _notes(manifest: Manifest, directory: str) -> tuple[str, ...]:
    notes = list(manifest.warnings)
    if manifest.exec and not is_inner(manifest.exec):
        try:
            resolve_exec(manifest, directory, os.environ.get("PATH", os.defpath))
        except ManifestError as exc:
            notes.append(f"{exc}; it does not start until that is there")
    if not manifest.enabled:
        notes.append(f"it is disabled; switch it on with: zutd ext enable {manifest.name}")
    return tuple(notes)
