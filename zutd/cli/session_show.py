"""How ``zutd session show`` and ``explain`` look on a terminal."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from zutd.cli.session import local
from zutd.cli.table import harmless, table

_DIGEST: Final = 12
_SHORT_ID: Final = 8
_COLOURS: Final = {"block": "red", "timeout": "red", "gone": "red", "invalid": "red", "rewrite": "yellow"}


def print_session(shown: Mapping[str, Any]) -> None:
    """What is in a session, and its branches."""
    print(harmless(shown["title"]) or "(no title)")
    for label, text in _facts(shown):
        print(f"  {label:<10} {harmless(text)}")
    rows = [
        (
            branch["id"][:_SHORT_ID],
            branch["parent_id"][:_SHORT_ID],
            str(branch["fork_point"]),
            str(branch["messages"]),
            "active" if branch["active"] else "",
            branch["title"],
        )
        for branch in shown["branches"]
    ]
    print()
    print(table(("BRANCH", "FROM", "AFTER", "MESSAGES", "STATE", "TITLE"), rows))


def _facts(shown: Mapping[str, Any]) -> list[tuple[str, str]]:
    origin = shown["imported"]
    facts = [
        ("id", shown["id"]),
        ("file", shown["path"] + (" (in use)" if shown["in_use"] else "")),
        ("directory", shown["cwd"]),
        ("started", local(shown["started"])),
        ("modified", local(shown["modified"])),
        ("model", "/".join(part for part in (shown["provider"], shown["model"]) if part)),
        ("reasoning", shown["reasoning"]),
        ("messages", str(shown["messages"])),
        ("used", _usage(shown["usage"])),
        ("states", ", ".join(f"{name} ({size:,} bytes)" for name, size in shown["states"].items())),
        ("imported", f"from {origin['format']}, {origin['file']}, where it was {origin['id']}" if origin else ""),
        *(("problem", problem) for problem in shown["problems"]),
    ]
    return [(label, text) for label, text in facts if text]


def _usage(usage: Mapping[str, Any] | None) -> str:
    if not usage:
        return ""
    taken = usage["input"] + usage["cache_read"] + usage["cache_write"]
    return f"{taken:,} tokens in, {usage['output']:,} out, ${usage['cost_usd']:.4f}"


def print_decisions(found: Sequence[Mapping[str, Any]]) -> None:
    """Who intercepted what, one line each."""
    head = ("ROW", "TIME", "EVENT", "TOOL", "EXTENSION", "DECISION", "LATENCY", "TIMED OUT", "BEFORE", "AFTER")
    rows = [
        (
            one["row"],
            local(one["time"]),
            one["event"],
            one["tool"] or one["tool_id"],
            one["extension"],
            one["decision"],
            f"{one['latency_ms']:.1f} ms",
            "yes" if one["timed_out"] else "no",
            one["args_digest_before"][:_DIGEST],
            one["args_digest_after"][:_DIGEST],
        )
        for one in found
    ]
    print(table(head, rows, lambda column, text: _COLOURS.get(text, "") if head[column] == "DECISION" else ""))
