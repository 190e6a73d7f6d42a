"""How extensions that declare permissions are kept to them, and what is said where that cannot be done.

``auto`` enforces what this machine can enforce, and says once what it cannot. ``require`` does not start an extension
whose permissions cannot all be enforced. ``off`` enforces nothing. An extension that declares none is never touched;
so what it takes to confine one (:mod:`zutd.extensions.confined`) is loaded when the first one declares some.
"""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from zutd.extensions.manifest import Manifest, resolve_exec
from zutd.frames.client import SandboxView
from zutd.frames.sandbox import SandboxMode
from zutd.processes.environment import child_environment
from zutd.processes.group import Watcher

if TYPE_CHECKING:
    from zutd.extensions.confined import Confiner


class Start(NamedTuple):
    """How an extension is to be started: its program, its environment, the words before its program (none: it is not
    confined), how that looks to frontends (None: there is nothing to enforce), and what somebody should know.
    """

    program: str
    env: dict[str, str]
    wrapper: tuple[str, ...] = ()
    view: SandboxView | None = None
    warnings: tuple[str, ...] = ()
    complaint: str = ""


class Sandbox:
    """What keeps all extensions of a host to their permissions."""

    def __init__(self, mode: SandboxMode, *, workspace: str, home: str, watcher: Watcher) -> None:
        self._mode = mode
        self._workspace = workspace
        self._home = home
        self._watcher = watcher
        self._confiner: Confiner | None = None

    async def start(self, manifest: Manifest, directory: str, host: Mapping[str, str]) -> Start:
        """How to start an extension. Raises :class:`ManifestError` when it must not, or cannot, be started."""
        if manifest.permissions is None or self._mode == "off":
            return self._unconfined(manifest, directory, host)
        if self._confiner is None:
            from zutd.extensions.confined import Confiner

            self._confiner = Confiner(
                required=self._mode == "require", workspace=self._workspace, home=self._home, watcher=self._watcher
            )
        return await self._confiner.start(manifest, manifest.permissions, directory, host)

    def _unconfined(self, manifest: Manifest, directory: str, host: Mapping[str, str]) -> Start:
        permissions = manifest.permissions
        named = manifest.host_env if permissions is None else permissions.env
        env = child_environment(host, hand_over=named) | own_variables(directory, self._home)
        program = resolve_exec(manifest, directory, env.get("PATH", os.defpath))
        return Start(program, env, view=None if permissions is None else _switched_off())


def own_variables(directory: str, home: str) -> dict[str, str]:
    """What every extension finds in its environment."""
    return {"PWD": directory, "ZUT_HOME": home, "ZUTD_EXTENSION_DIR": directory}


def _switched_off() -> SandboxView:
    from zutd.processes.sandbox import SCOPES

    return SandboxView(mode="off", by=(), not_enforced=SCOPES, gaps=())
