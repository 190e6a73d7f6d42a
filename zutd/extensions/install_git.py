"""Extensions that come from a git repository: clone one, bring one up to date.

git never asks (no terminal, no prompt), speaks English (its words are read), and gets nothing that could be taken for
an option. An update only ever moves forward: what was changed by hand stays, or the update fails and says so.
"""

import json
import os
import sys
from typing import Any, Final, Literal, NamedTuple

from zutd.extensions.edit_manifest import KEY, write_enabled
from zutd.extensions.install_copy import check_links
from zutd.extensions.install_run import Echo, Ended, our_environment, quiet, run_program
from zutd.extensions.install_stage import InstallError
from zutd.extensions.manifest import MANIFEST, Found, ManifestError, check_manifest, read_manifest, resolve_exec
from zutd.extensions.trust import is_trusted

PREFIXES: Final = ("https://", "ssh://", "git@", "file://")
SUFFIX: Final = ".git"

_NOT_OURS: Final = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
)
"""Set when a git hook called us; they would point git at the wrong repository."""

_NO_HOOKS: Final = ("-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0", "-c", "maintenance.auto=false")

UpdateState = Literal["updated", "up to date", "skipped", "failed"]


class Updated(NamedTuple):
    """What came of an update. ``detail`` is a sentence; ``before`` and ``after`` are short commit ids."""

    name: str
    directory: str
    state: UpdateState
    detail: str = ""
    before: str = ""
    after: str = ""


def is_git_source(source: str) -> bool:
    """Whether a source is cloned and not copied."""
    return source.startswith(PREFIXES) or source.endswith(SUFFIX)


def clone(source: str, target: str, echo: Echo) -> None:
    """Clone the newest commit of ``source`` to ``target``. Raises :class:`InstallError`."""
    progress = ["--progress"] if sys.stderr.isatty() else []
    ended = _git(["clone", "--depth", "1", *progress, "--", source, target], cwd=os.getcwd(), echo=echo)
    if ended.code != 0:
        raise InstallError(f"git cannot clone {source}: {reason(ended)}")
    check_links(target)


def reason(ended: Ended) -> str:
    """The line in which git says why it failed: ``fatal:`` or ``error:`` before any hint."""
    said = (ended.errors or ended.output).replace("\r", "\n")
    lines = [line.strip() for line in said.split("\n") if line.strip()]
    for prefix in ("fatal:", "error:"):
        for line in lines:
            if line.startswith(prefix):
                return line
    plain = [line for line in lines if not line.startswith(("hint:", "warning:"))]
    return plain[-1] if plain else f"git ended with {ended.code} and said nothing"


def _git(words: list[str], *, cwd: str, echo: Echo = quiet) -> Ended:
    environ = our_environment(*_NOT_OURS, GIT_TERMINAL_PROMPT="0", LC_ALL="C", LANGUAGE="C")
    return run_program(["git", *words], cwd=cwd, environ=environ, echo=echo)


# --- updates ---------------------------------------------------------------------------------------------------------


class _FailedError(Exception):
    """An update cannot be done; the extension is as it was."""


def update(found: Found, consents: dict[str, str]) -> Updated:
    """Bring an extension that was installed from git up to date, if that is a step forward from what is there.

    ``consents`` as in :mod:`zutd.extensions.trust`: a repository's own settings can run programs, so one that came
    with a project is not touched before it is trusted.
    """
    if skip := _why_skip(found, consents):
        return Updated(found.name, found.directory, "skipped", skip)
    repository = _Repository(found.directory)
    try:
        before = repository.commit("HEAD")
        repository.must("fetch", "--quiet", "--no-recurse-submodules")
        after = repository.commit("@{upstream}")
        if repository.is_ancestor(after, before):
            return Updated(found.name, found.directory, "up to date", before=before, after=before)
        _check_next(found, repository)
        _move(found, repository, before)
    except _FailedError as exc:
        return Updated(found.name, found.directory, "failed", str(exc))
    return Updated(found.name, found.directory, "updated", before=before, after=after)


def _why_skip(found: Found, consents: dict[str, str]) -> str:
    if found.manifest is None:
        return found.problem
    if not found.manifest.enabled:
        return "it is disabled"
    if not os.path.isdir(os.path.join(found.directory, ".git")):
        return "it was not installed from git"
    if not is_trusted(found, consents):
        return f"it came with this project and is not trusted; look at it, then: zutd ext trust {found.name}"
    return ""


class _Repository:
    def __init__(self, directory: str) -> None:
        self._directory = directory

    def run(self, *words: str) -> Ended:
        return _git([*_NO_HOOKS, *words], cwd=self._directory)

    def must(self, *words: str) -> str:
        ended = self.run(*words)
        if ended.code != 0:
            raise _FailedError(reason(ended))
        return ended.output.strip()

    def commit(self, name: str) -> str:
        return self.must("rev-parse", "--short=12", "--verify", f"{name}^{{commit}}")

    def is_ancestor(self, old: str, new: str) -> bool:
        return self.run("merge-base", "--is-ancestor", old, new).code == 0

    def text(self, commit: str, path: str) -> str:
        return self.must("show", f"{commit}:{path}")


def _check_next(found: Found, repository: _Repository) -> None:
    """What is to come must still be this extension: better found out while nothing has changed."""
    try:
        manifest = check_manifest(_parse(repository.text("@{upstream}", MANIFEST)), found.directory)
    except ManifestError as exc:
        raise _FailedError(f"the new version is broken: {exc}") from None
    if manifest.name != found.name:
        raise _FailedError(f"the new version calls itself {manifest.name!r}; install that one beside it")


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise ManifestError(f"parse manifest: {exc}") from None


def _move(found: Found, repository: _Repository, before: str) -> None:
    """Go forward; back again when what came cannot run. ``zutd ext enable`` and ``disable`` do not count as changes."""
    switched = _only_switched(found, repository)
    if switched:
        repository.must("checkout", "--quiet", "--", MANIFEST)
    try:
        repository.must("merge", "--quiet", "--ff-only", "@{upstream}")
        try:
            _check_tree(found.directory)
        except (ManifestError, InstallError) as exc:
            repository.must("reset", "--quiet", "--keep", before)
            raise _FailedError(f"the new version cannot run, the old one stays: {exc}") from None
    finally:
        if switched:
            write_enabled(found.directory, enabled=True)


def _only_switched(found: Found, repository: _Repository) -> bool:
    """Whether the manifest differs from the commit's in nothing but ``enabled``."""
    if repository.run("diff", "--quiet", "HEAD", "--", MANIFEST).code == 0:
        return False
    try:
        committed = _parse(repository.text("HEAD", MANIFEST))
        with open(os.path.join(found.directory, MANIFEST), encoding="utf-8-sig") as file:
            ours = _parse(file.read())
    except (ManifestError, OSError):
        return False
    both = (committed, ours)
    return all(isinstance(one, dict) for one in both) and _without_switch(committed) == _without_switch(ours)


def _without_switch(manifest: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in manifest.items() if key != KEY}


def _check_tree(directory: str) -> None:
    manifest = read_manifest(directory)
    check_links(directory)
    if os.sep in manifest.exec and not os.path.isabs(manifest.exec):
        resolve_exec(manifest, directory, "")
