"""Who will answer. A frontend may ask that before the rest of the daemon is loaded."""

from zutd.daemon.models import ModelSwitch
from zutd.daemon.start import USAGE, CannotStartError
from zutd.log import Log
from zutd.models.select import ModelChoiceError
from zutd.settings import Settings


def chosen_models(settings: Settings, log: Log) -> ModelSwitch:
    """Set to the model that the settings name. Raises :class:`CannotStartError` when there is no such one."""
    models = ModelSwitch(settings, lambda text: log.warning("model", problem=text))
    try:
        models.names()
    except ModelChoiceError as exc:
        raise CannotStartError(str(exc), USAGE) from None
    return models
