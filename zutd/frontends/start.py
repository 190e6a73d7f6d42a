"""Start a daemon with the frontend that was asked for, and see it through to its exit code."""

import contextlib
import os

from zutd.daemon.clock import Clock
from zutd.daemon.server import Frontend, Server
from zutd.daemon.start import SESSION, CannotStartError
from zutd.log import make_log
from zutd.settings import Settings
from zutd.wire.stdio import Stdio, claim, release

__all__ = ["CannotStartError", "serve"]


def serve(mode: str, prompt: str, settings: Settings) -> int:
    """Run ``mode`` (rpc, print, stream, json) to its end. Raises :class:`CannotStartError`."""
    import trio

    try:
        server = Server.make(settings, make_log(settings.log_level))
    except CannotStartError as exc:
        if mode == "json" and exc.exit_code == SESSION:
            _refuse(str(exc))
        raise
    return trio.run(_run, mode, prompt, server, clock=Clock())


def _refuse(message: str) -> None:
    """JSON mode ends in ``done``, also when its session cannot be opened."""
    from zutd.frontends.json import refusal

    with contextlib.suppress(OSError):
        os.write(1, refusal(message, "no_session"))


async def _run(mode: str, prompt: str, server: Server) -> int:
    stdio = claim()
    try:
        return await server.run(_frontend(mode, prompt, stdio))
    finally:
        release(stdio)


def _frontend(mode: str, prompt: str, stdio: Stdio) -> Frontend:
    if mode == "rpc":
        from zutd.frontends.rpc import RpcFrontend

        return RpcFrontend(stdio)
    if mode == "json":
        from zutd.frontends.json import JsonFrontend

        return JsonFrontend(stdio, prompt)
    from zutd.frontends.print import PrintFrontend, StreamFrontend

    return PrintFrontend(stdio, prompt) if mode == "print" else StreamFrontend(stdio, prompt)
