"""Start an extension with no more than its permissions: what it is made of, and what this machine can enforce."""

import os
import re
from collections.abc import Mapping
from typing import Final

import trio

from zutd.extensions.manifest import Manifest, ManifestError, resolve_exec
from zutd.extensions.permissions import Permissions
from zutd.extensions.program import Program, made_of
from zutd.extensions.sandbox import Start, own_variables
from zutd.extensions.scopes import Setting, confinement
from zutd.frames.client import SandboxView
from zutd.processes.answer import answer_of
from zutd.processes.environment import child_environment, confined_environment
from zutd.processes.group import Watcher
from zutd.processes.sandbox import Facts, gaps, is_below, look, not_enforced, wrapper

ASK_LIMIT: Final = 5.0
"""Seconds that an interpreter may take to say where it is."""

_QUESTIONS: Final = (
    (r"python[0-9.]*", ("-I", "-S", "-c", "import sys; print(sys.executable)")),
    (r"node(js)?", ("-p", "process.execPath")),
)
"""How to ask the interpreters that people often have behind a shim (pyenv, asdf and their like) where they are."""


class Confiner:
    """What all confined extensions share: the machine's facts (found out once, when the first one starts), where
    interpreters are, and what has been said already.
    """

    def __init__(self, *, required: bool, workspace: str, home: str, watcher: Watcher) -> None:
        self._required = required
        self._workspace = workspace
        self._home = home
        self._watcher = watcher
        self._facts: Facts | None = None
        self._looking = trio.Lock()
        self._real: dict[str, str] = {}
        self._told: set[str] = set()

    async def start(
        self, manifest: Manifest, permissions: Permissions, directory: str, host: Mapping[str, str]
    ) -> Start:
        """How to start it as things are now. Raises :class:`ManifestError`."""
        own = own_variables(directory, self._home)
        plain = child_environment(host, hand_over=permissions.env) | own
        program, parts, search_path = await self._find_program(manifest, directory, plain)
        env = confined_environment(host, hand_over=permissions.env, net=permissions.net) | own | {"PATH": search_path}
        if not permissions.is_at_home:
            env["HOME"] = directory  # programs trip over files there that they can see and may not read
        setting = Setting(
            directory=directory,
            workspace=self._workspace,
            home=self._home,
            user_home=plain.get("HOME", ""),
            environ=env,
            program=parts.files,
        )
        box, remarks = confinement(permissions, setting)
        facts = await self._look(search_path)
        view = SandboxView(
            mode="require" if self._required else "auto",
            by=facts.names,
            not_enforced=not_enforced(box, facts),
            gaps=gaps(box, facts),
        )
        complaint = self._judge(manifest.name, view.not_enforced, facts)
        words = wrapper(box, facts) if facts.names else ()
        return Start(program, env, words, view, (*remarks, *_shim(parts)), complaint)

    def _judge(self, name: str, lost: tuple[str, ...], facts: Facts) -> str:
        """What to say, once, about scopes that are not enforced. Raises :class:`ManifestError` where all must be."""
        if not lost:
            return ""
        what = f"its permissions cannot be enforced here ({', '.join(lost)}): {'; '.join(facts.missing)}"
        if self._required:
            raise ManifestError(f"{what}; --ext-sandbox require does not start it then, auto does")
        if name in self._told:
            return ""
        self._told.add(name)
        return f"{what}. It runs all the same; with --ext-sandbox require it would not"

    async def _look(self, search_path: str) -> Facts:
        async with self._looking:
            if self._facts is None:
                self._facts = await look(search_path, self._watcher)
            return self._facts

    async def _find_program(
        self, manifest: Manifest, directory: str, environ: dict[str, str]
    ) -> tuple[str, Program, str]:
        """The program, what it is made of, and the PATH with which that is so.

        A shim starts programs of its own to find the interpreter; it is asked beforehand where that is, and its
        directory is put in front.
        """
        search_path = environ.get("PATH", os.defpath)
        program, parts = _look_at(manifest, directory, search_path)
        real = await self._ask(parts.shim, environ) if self._may_be_asked(parts.shim, directory) else ""
        if real:
            search_path = os.pathsep.join((os.path.dirname(real), search_path))
            program, parts = _look_at(manifest, directory, search_path)
        return program, parts, search_path

    def _may_be_asked(self, shim: str, directory: str) -> bool:
        """Asking runs it as the user: nothing that came with the extension or the project, or that it can write."""
        places = (os.path.realpath(path) for path in (directory, self._workspace, self._home))
        return bool(shim) and not any(is_below(os.path.realpath(shim), place) for place in places)

    async def _ask(self, shim: str, environ: dict[str, str]) -> str:
        """Where the interpreter behind a shim is; empty when it cannot be asked.

        It is asked in the root directory: what a project or an extension says of versions is not for us to follow.
        """
        question = next((words for name, words in _QUESTIONS if re.fullmatch(name, os.path.basename(shim))), None)
        if question is None:
            return ""
        if shim not in self._real:
            self._real[shim] = await self._answer((shim, *question), environ | {"PWD": "/"})
        return self._real[shim]

    async def _answer(self, words: tuple[str, ...], environ: dict[str, str]) -> str:
        try:
            with trio.fail_after(ASK_LIMIT):
                answer = await answer_of(words, cwd="/", env=environ, watcher=self._watcher)
        except (OSError, trio.TooSlowError):
            return ""
        return _existing(answer.output.strip())


def _look_at(manifest: Manifest, directory: str, search_path: str) -> tuple[str, Program]:
    program = resolve_exec(manifest, directory, search_path)
    return program, made_of(program, directory, search_path, by_name=os.sep not in manifest.exec)


def _existing(path: str) -> str:
    return path if os.path.isabs(path) and os.path.isfile(path) else ""


def _shim(parts: Program) -> tuple[str, ...]:
    if not parts.shim:
        return ()
    why = "is a script that looks for the real program when it runs, which the permissions may not allow"
    return (f"{parts.shim} {why}; name the real one, or put its directory first in PATH",)
