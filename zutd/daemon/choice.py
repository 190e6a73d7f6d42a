"""Who will answer, asked before the rest of the daemon is loaded."""

from zutd.daemon.models import ModelSwitch
from zutd.daemon.start import USAGE, CannotStartError
from zutd.log import Log
from zutd.models.select import ModelChoiceError
from zutd.settings import Settings


def first_choice(settings: Settings, log: Log) -> tuple[str, str]:
    """Provider and model that the settings name. Raises :class:`CannotStartError` when there is no such one."""
    try:
        return ModelSwitch(settings, log.warning).names()
    except ModelChoiceError as exc:
        raise CannotStartError(str(exc), USAGE) from None
