"""Everything a user can decide, in one frozen value: flags over environment over ``config.json``, read once.

Nothing here ever writes: a start-up must not change a user's files.
"""

import json
import os
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import attrs

from zutd.frames.sandbox import SANDBOX_MODES, SandboxMode

CONFIG: Final = "config.json"


class SettingsError(Exception):
    """A setting is wrong; the text names it and the way out. A mistake of usage."""


@attrs.frozen(kw_only=True)
class Settings:
    """One run of zutd.

    ``home`` and ``cwd`` are absolute. ``environ`` is the host's environment, tokens and keys included: what children
    get of it is decided where they are started. ``token`` is what a frontend must say first, empty for none.
    """

    home: str
    cwd: str
    environ: Mapping[str, str] = attrs.field(repr=False)
    # the model
    provider: str = ""
    model: str = ""
    base_url: str = ""
    wire: str = ""
    api_key: str = attrs.field(default="", repr=False)
    insecure: bool = False
    reasoning: str = "off"
    keep_model: bool = False  # the command line names a model: a session's own does not count
    keep_reasoning: bool = False
    temperature: float | None = None
    idle_timeout: float = 300.0
    # the agent
    max_steps: int = 0
    max_cost_usd: float = 0.0
    max_tokens_total: int = 0
    system_prompt: str = ""
    append_system_prompt: tuple[str, ...] = ()
    output_schema: Any = None
    output_mode: Literal["auto", "native", "words"] = "auto"
    stats_path: str = ""
    context_files: bool = True
    skills: bool = True
    confirm: bool = False
    tools: tuple[str, ...] | None = None
    bash_max_timeout: int = 600
    # extensions
    explicit_extensions: tuple[str, ...] = ()
    search_extensions: bool = True
    trust_project: bool = False
    watch: bool = False
    ext_sandbox: SandboxMode = "auto"
    zot_home: str = ""
    hello_deadline: float = 10.0
    # the session
    continue_newest: bool = False
    resume: str = ""
    session_path: str = ""
    persist: bool = True
    read_only: bool = False
    # the wire
    token: str = attrs.field(default="", repr=False)
    on_eof: str = "finish"
    max_line: int = 16 * 1024 * 1024
    stall_timeout: float = 60.0
    stall_bytes: int = 64 * 1024 * 1024
    log_level: str = "warning"

    @property
    def names_a_model(self) -> bool:
        """Whether someone other than the scripted model is, or may be, to answer."""
        return any((self.provider, self.model, self.base_url, self.environ.get("ZUTD_SCRIPT")))

    @property
    def needs_a_look(self) -> bool:
        """Whether a session or a choice of tools is wished for, which only the loaded daemon can tell to be there."""
        return any((self.continue_newest, self.resume, self.session_path)) or self.tools is not None


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _number(low: float, high: float = float("inf")) -> Callable[[Any], bool]:
    """Above ``low``, at most ``high``, and finite."""
    return lambda value: type(value) in (int, float) and low < value <= high and value != float("inf")


def _count(low: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and value >= low


_CONFIG_FIELDS: Final = {
    "provider": ("provider", _is_text, "a string"),
    "model": ("model", _is_text, "a string"),
    "base_url": ("base_url", _is_text, "a string"),
    "reasoning": ("reasoning", _is_text, "a string"),
    "temperature": ("temperature", lambda value: _number(-1, 2)(value) and value >= 0, "a number from 0 to 2"),
    "insecure": ("insecure", lambda value: isinstance(value, bool), "true or false"),
    "max_steps": ("max_steps", _count(0), "a whole number, 0 for no limit"),
    "bash_max_timeout": ("bash_max_timeout", _count(1), "a whole number of seconds from 1"),
    "ext_sandbox": ("ext_sandbox", lambda value: value in SANDBOX_MODES, " or ".join(SANDBOX_MODES)),
    "model_idle_timeout": ("idle_timeout", _number(0), "a number of seconds above 0"),
    "rpc_max_line": ("max_line", _count(1024), "a whole number of bytes from 1024"),
    "rpc_stall_timeout": ("stall_timeout", _number(0), "a number of seconds above 0"),
}
"""Keys of ``config.json`` that zutd knows, and the setting each stands for. All others are other programs' business."""


def read_config(home: str) -> tuple[dict[str, Any], str]:
    """The known settings in ``home``'s ``config.json``, and a warning (empty for none). A missing file is no settings.

    An unreadable file is a warning and no settings. A known key with a value of the wrong kind raises
    :class:`SettingsError`: running with another model than the one that was meant is worse than not running.
    """
    path = os.path.join(home, CONFIG)
    try:
        with open(path, "rb") as file:
            value = json.loads(file.read().decode("utf-8-sig"))
    except FileNotFoundError:
        return {}, ""
    except (OSError, ValueError, RecursionError) as exc:
        return {}, f"{path} cannot be read and is ignored: {exc}"
    if not isinstance(value, dict):
        return {}, f"{path} does not hold a JSON object and is ignored"
    found: dict[str, Any] = {}
    for key, (name, check, wanted) in _CONFIG_FIELDS.items():
        if value.get(key) is None:
            continue
        if not check(value[key]):
            raise SettingsError(f"{path}: {key} must be {wanted}")
        found[name] = value[key]
    return found, ""


def rpc_token(environ: Mapping[str, str]) -> str:
    """The token that a frontend must show, under our name or zut's; empty for none."""
    return environ.get("ZUTD_RPC_TOKEN") or environ.get("ZUTCORE_RPC_TOKEN") or ""
