"""The providers that zutd knows by name: one row each, and what differs between servers of one wire.

Two wires reach all of them. A server that is not in the table is reached by its base URL.
"""

from collections.abc import Mapping

from zutd.frames.define import frame
from zutd.models.base import Schemas

ANTHROPIC = "anthropic"
OPENAI = "openai"
WIRES = (ANTHROPIC, OPENAI)


@frame
class Quirks:
    """Where a chat-completions server leaves the common path; the defaults suit most of them.

    ``completion_cap``: reasoning models want ``max_completion_tokens``. ``usage_option``: takes
    ``stream_options``. ``effort``: takes ``reasoning_effort`` for any reasoning model, and not just for those whose
    levels the catalogue knows. ``cache_key``: takes ``prompt_cache_key``. ``named_choice``: a tool can be forced by
    name. ``short_ids``: call ids have exactly nine letters or digits. ``plain_schemas``: refuses ``$schema`` and
    ``additionalProperties``.
    """

    completion_cap: bool = False
    usage_option: bool = True
    effort: bool = True
    cache_key: bool = False
    named_choice: bool = True
    short_ids: bool = False
    plain_schemas: bool = False


PLAIN = Quirks()


@frame
class Provider:
    """One row. ``keys`` are environment variables, the first that is set wins; ``url_from`` one that replaces ``url``.

    ``needs_key`` is whether it answers nobody without one. ``any_model`` is whether names that the catalogue does not
    have are taken as they are: local servers, and gateways with thousands of routes. ``schemas`` is what such models
    can do with an output schema (:class:`zutd.models.base.ModelInfo`).
    """

    name: str
    url: str
    wire: str = OPENAI
    keys: tuple[str, ...] = ()
    url_from: str = ""
    needs_key: bool = True
    any_model: bool = False
    schemas: Schemas = "none"
    quirks: Quirks = PLAIN


_ROWS = (
    Provider(name="anthropic", url="https://api.anthropic.com", wire=ANTHROPIC, keys=("ANTHROPIC_API_KEY",)),
    Provider(
        name="openai",
        url="https://api.openai.com/v1",
        keys=("OPENAI_API_KEY",),
        quirks=Quirks(completion_cap=True, cache_key=True),
    ),
    Provider(
        name="google",
        url="https://generativelanguage.googleapis.com/v1beta/openai",
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        quirks=Quirks(plain_schemas=True),
    ),
    Provider(name="groq", url="https://api.groq.com/openai/v1", keys=("GROQ_API_KEY",)),
    Provider(name="xai", url="https://api.x.ai/v1", keys=("XAI_API_KEY",), quirks=Quirks(effort=False)),
    Provider(
        name="mistral",
        url="https://api.mistral.ai/v1",
        keys=("MISTRAL_API_KEY",),
        quirks=Quirks(usage_option=False, effort=False, short_ids=True),
    ),
    Provider(
        name="deepseek", url="https://api.deepseek.com/v1", keys=("DEEPSEEK_API_KEY",), quirks=Quirks(effort=False)
    ),
    Provider(
        name="moonshotai",
        url="https://api.moonshot.ai/v1",
        keys=("MOONSHOT_API_KEY", "MOONSHOTAI_API_KEY"),
        quirks=Quirks(effort=False),
    ),
    Provider(
        name="together", url="https://api.together.xyz/v1", keys=("TOGETHER_API_KEY",), quirks=Quirks(effort=False)
    ),
    Provider(name="cerebras", url="https://api.cerebras.ai/v1", keys=("CEREBRAS_API_KEY",)),
    Provider(name="zai", url="https://api.z.ai/api/paas/v4", keys=("ZAI_API_KEY",), quirks=Quirks(effort=False)),
    Provider(name="openrouter", url="https://openrouter.ai/api/v1", keys=("OPENROUTER_API_KEY",), any_model=True),
    Provider(
        name="ollama",
        url="http://localhost:11434/v1",
        keys=("OLLAMA_API_KEY",),
        needs_key=False,
        any_model=True,
        schemas="alone",
    ),
    Provider(
        name="llamacpp",
        url="http://localhost:8080/v1",
        keys=("LLAMA_API_KEY",),
        url_from="LLAMA_BASE_URL",
        needs_key=False,
        any_model=True,
        schemas="alone",
        quirks=Quirks(named_choice=False),
    ),
)

PROVIDERS: Mapping[str, Provider] = {row.name: row for row in _ROWS}

ALIASES = {
    "claude": "anthropic",
    "gemini": "google",
    "grok": "xai",
    "kimi": "moonshotai",
    "llama.cpp": "llamacpp",
    "llama-cpp": "llamacpp",
    "moonshot": "moonshotai",
    "together-ai": "together",
    "together_ai": "together",
    "z.ai": "zai",
}


def canonical(name: str) -> str:
    """Give a provider's own name for the name or alias that somebody typed."""
    lowered = name.strip().lower()
    return ALIASES.get(lowered, lowered)


def key_variable(name: str) -> str:
    """Name the environment variable that holds the key of a provider of the user's own."""
    return "".join(c if c.isalnum() else "_" for c in name).upper() + "_API_KEY"
