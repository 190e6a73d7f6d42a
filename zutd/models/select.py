"""Which model to talk to: what the user wished for, made into a model object and its catalogue entry.

Nothing is guessed that could send a prompt, or a key, to the wrong place: a name that is not known is an error with
suggestions, and a key of the environment goes only to a provider that was named. No file is ever written. The wires
are imported when one is chosen, so that asking for the scripted model costs nothing.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from zutd.models.base import Model, ModelInfo

if TYPE_CHECKING:
    from zutd.models.catalog import Catalog

SCRIPTED = "scripted"
SCRIPT_VARIABLE = "ZUTD_SCRIPT"


class ModelChoiceError(Exception):
    """The wish cannot be fulfilled. The text says why and what to do; it is a mistake of usage."""


@attrs.frozen(kw_only=True)
class Wish:
    """What the user asked for; empty means not said. ``wire`` is ``openai`` or ``anthropic``, for a base URL.

    ``idle`` is seconds of silence after which a server is given up, ``insecure`` accepts any certificate.
    """

    provider: str = ""
    model: str = ""
    base_url: str = ""
    api_key: str = attrs.field(default="", repr=False)
    wire: str = ""
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    insecure: bool = False
    idle: float = 300.0


def choose(
    wish: Wish, *, zut_home: Path | None, env: Mapping[str, str], catalog: "Catalog | None" = None
) -> tuple[Model, ModelInfo]:
    """Make the model that was wished for; without a wish the scripted one. Raises :class:`ModelChoiceError`.

    ``catalog`` may be passed to share it, and to see its warnings.
    """
    if _wants_script(wish):
        return _scripted(wish, env)
    from zutd.models import route

    try:
        return route.connect(wish, zut_home=zut_home, env=env, catalog=catalog)
    except LookupError as exc:
        raise ModelChoiceError(str(exc)) from None


def _wants_script(wish: Wish) -> bool:
    if wish.provider:
        return wish.provider.strip().lower() == SCRIPTED
    return not wish.base_url and wish.model in {"", SCRIPTED}


def _scripted(wish: Wish, env: Mapping[str, str]) -> tuple[Model, ModelInfo]:
    from zutd.models import script, scripted

    path = wish.model if wish.model not in {"", SCRIPTED} else env.get(SCRIPT_VARIABLE, "")
    try:
        model = scripted.ScriptedModel(script.load(Path(path)) if path else ())
    except script.ScriptError as exc:
        raise ModelChoiceError(str(exc)) from None
    return model, scripted.INFO
