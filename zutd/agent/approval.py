"""Who must be asked before a tool runs, and what an answer is remembered for. Pure.

An approval is bound to a key: the tool, and for tools that can do anything the part of the arguments that says what.
A remembered key never covers more than a person who read the question could have meant.
"""

import hashlib
import json
import re
from typing import Any, Final, Literal

import attrs
import msgspec

Decision = Literal["allow", "allow_tool", "allow_session", "deny"]

PREVIEW: Final = 120
REFUSED: Final = "tool call refused by user"
GONE: Final = "tool call refused: approval is required (--no-yolo), and whoever was asked has gone"
NOBODY: Final = (
    "tool call refused: approval is required (--no-yolo) and nobody can be asked here; "
    "use a frontend that can confirm, or run without --no-yolo"
)

_SIMPLE: Final = re.compile(r"[\w./:=@%+,-]+(?: [\w./:=@%+,-]+)*", re.ASCII)
_WITH_SUBCOMMAND: Final = frozenset(
    {"git", "npm", "pnpm", "yarn", "cargo", "go", "pip", "uv", "docker", "kubectl", "make", "systemctl", "apt", "brew"}
)
# fmt: off
_RUNS_OTHERS: Final = frozenset(
    {
        "sudo", "doas", "su", "runuser", "env", "nohup", "nice", "ionice", "setsid", "timeout", "time", "stdbuf",
        "xargs", "parallel", "watch", "find", "ssh", "chroot", "unshare", "exec", "eval", "command", "builtin",
        "source", ".", "sh", "bash", "dash", "zsh", "ksh", "fish", "busybox", "systemd-run", "strace", "python",
        "python3", "node", "deno", "bun", "ruby", "perl", "php", "lua", "awk", "gawk", "npx", "uvx", "pipx"
    }
)
# fmt: on
"""What these do is said by the words behind them, and allowing it once cannot mean all that they can do."""

_SHOWN: Final = ("command", "path", "file_path", "url", "query", "name")


@attrs.frozen(kw_only=True)
class Memory:
    """What need not be asked again: everything, or these keys. Stored in the session as JSON."""

    everything: bool = False
    keys: frozenset[str] = frozenset()

    @property
    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return {"everything": self.everything, "keys": sorted(self.keys)}

    def covers(self, key: str) -> bool:
        """Whether a key need not be asked about."""
        return self.everything or key in self.keys

    def after(self, decision: Decision, key: str) -> "Memory":
        """What is remembered after a decision."""
        if decision == "allow_session":
            return attrs.evolve(self, everything=True)
        if decision == "allow_tool":
            return attrs.evolve(self, keys=self.keys | {key})
        return self


def read_memory(value: Any) -> Memory:
    """A memory from a session row; anything unreadable remembers nothing."""
    if not isinstance(value, dict):
        return Memory()
    keys = value.get("keys")
    return Memory(
        everything=value.get("everything") is True,
        keys=frozenset(key for key in keys if isinstance(key, str)) if isinstance(keys, list) else frozenset(),
    )


def key_of(tool: str, args: Any) -> str:
    """What an approval of this call is for."""
    if tool == "bash" and isinstance(args, dict) and isinstance(args.get("command"), str):
        return f"bash:{_command_key(args['command'].strip())}"
    if tool in ("write", "edit") and isinstance(args, dict) and isinstance(args.get("path"), str):
        return f"{tool}:{args['path']}"
    return tool


def _command_key(command: str) -> str:
    """A simple command by its program (and sub-command); by its whole text what takes more than that to understand."""
    if not _SIMPLE.fullmatch(command):
        return command
    words = command.split(" ")
    if words[0].rpartition("/")[2] in _RUNS_OTHERS:
        return command
    if words[0] in _WITH_SUBCOMMAND and len(words) > 1:
        return command if words[1].startswith("-") else " ".join(words[:2])
    return words[0] if "=" not in words[0] else command


def preview(args: Any) -> str:
    """One short line that says what a call would do."""
    text = ""
    if isinstance(args, dict):
        text = next((args[name] for name in _SHOWN if isinstance(args.get(name), str) and args[name]), "")
    text = text or json.dumps(args, ensure_ascii=False, separators=(",", ":"))
    raw = text.encode("utf-8", "replace")
    return text if len(raw) <= PREVIEW else raw[: PREVIEW - 3].decode("utf-8", "ignore") + "..."


def digest(args: Any) -> str:
    """SHA-256 (hex) of the arguments as JSON with sorted keys: what an approval is bound to."""
    return hashlib.sha256(msgspec.json.encode(args, order="sorted")).hexdigest()
