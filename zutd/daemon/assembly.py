"""Put the daemon together: the session opened, the model chosen, the runtime around them.

Apart from :mod:`zutd.daemon.server` because everything heavy is imported here, after the frontend has been greeted.
"""

from datetime import datetime
from pathlib import Path

from zutd.daemon.choice import chosen_models
from zutd.daemon.hub import Hub
from zutd.daemon.models import ModelSwitch
from zutd.daemon.runtime import Runtime, Shared
from zutd.daemon.start import SESSION, USAGE, CannotStartError
from zutd.log import Log
from zutd.processes.guardian import Guardian
from zutd.sessions.errors import SessionError, SessionUnreadable
from zutd.sessions.session import Session
from zutd.sessions.store import Store
from zutd.settings import Settings
from zutd.tools.registry import UnknownToolError


def assemble(
    settings: Settings,
    log: Log,
    hub: Hub,
    capabilities: set[str],
    planned: tuple[str, datetime],
    models: ModelSwitch | None,
) -> Runtime:
    """Make the runtime. ``planned`` is the id and start of a new session, ``models`` what has been chosen already.

    Raises :class:`CannotStartError`.
    """
    store = Store(Path(settings.home))
    try:
        session = open_session(settings, store, planned)
        models = models or chosen_models(settings, log)
        runtime = Runtime(settings, session, store, Shared(Guardian(warn=log.warning), log, hub, capabilities, models))
        runtime.adopt_choice()
    except UnknownToolError as exc:
        raise CannotStartError(str(exc), USAGE) from None
    except SessionError as exc:
        raise CannotStartError(str(exc), SESSION) from None
    return runtime


def open_session(settings: Settings, store: Store, planned: tuple[str, datetime]) -> Session:
    """The session that the settings ask for. Raises SessionError."""
    cwd = Path(settings.cwd)
    if settings.session_path:
        path = Path(settings.cwd, settings.session_path)
        if path.exists():
            return Session.open(store, path, cwd=cwd, read_only=settings.read_only)
        if not path.parent.is_dir():
            raise SessionUnreadable(str(path), "its directory does not exist")
        return Session.new(store, cwd, path=path)
    if settings.resume:
        found = store.find(settings.resume)
        return Session.open(store, found.path, found.branch, read_only=settings.read_only)
    if settings.continue_newest and (newest := store.newest(cwd)) is not None:
        return Session.open(store, newest, read_only=settings.read_only)
    return Session.new(store, cwd, persist=settings.persist, planned=planned)
