#!/usr/bin/env python3
"""A to-do list for the model (the tool `todo`) and the user (the panel of /todos), with the SDK.

The list is state of the conversation: each branch has its own, a fork begins with the list of its moment, and nothing
is written to disk here. The model learns what the user changed through context of the next turn.
"""

from typing import Literal

from zutd_extension import Event, Extension, ExtensionError, Key, Panel

ext = Extension("todo", "1.0.0")
todos = ext.state([])  # of {"text": "buy milk", "done": False}
shown = {"row": 0, "open": False}
changes: list[str] = []  # what the user did since the model last heard of it


def lines() -> list[str]:
    """The list for people and models, one item a line."""
    return [f"{n}. [{'x' if item['done'] else ' '}] {item['text']}" for n, item in enumerate(todos.value, 1)]


def panel() -> Panel:
    marked = [("▸ " if n == shown["row"] else "  ") + line for n, line in enumerate(lines())]
    return Panel("todos", "Todos", marked or ["(nothing to do)"], "↑/↓ move · space tick · d delete · esc close")


def redraw() -> None:
    """Show the list wherever it can be seen."""
    shown["row"] = max(0, min(shown["row"], len(todos.value) - 1))
    left = sum(not item["done"] for item in todos.value)
    ext.status("todos", f"{left} of {len(todos.value)} to do" if todos.value else "")
    if shown["open"]:
        ext.render_panel(panel())


@ext.tool
def todo(action: Literal["list", "add", "done", "remove"], text: str = "", number: int = 0) -> str:
    """Keep a to-do list. Every answer is the whole list.

    Args:
        action: what to do
        text: the new item, for add
        number: which item, for done and remove
    """
    if action == "add":
        if not text.strip():
            raise ExtensionError("add needs a text")
        todos.value.append({"text": text.strip(), "done": False})
    elif action != "list":
        if not 1 <= number <= len(todos.value):
            raise ExtensionError(f"{action} needs the number of an item, 1 to {len(todos.value)}")
        if action == "done":
            todos.value[number - 1]["done"] = True
        else:
            del todos.value[number - 1]
    redraw()
    return "\n".join(lines()) or "(empty)"


@ext.command("todos", "show the to-do list")
def show(args: str) -> Panel:
    shown["open"] = True
    return panel()


def tick(item: dict) -> None:
    item["done"] = not item["done"]
    changes.append(f"{'ticked off' if item['done'] else 'opened again'}: {item['text']}")


def delete(item: dict) -> None:
    todos.value.remove(item)
    changes.append(f"removed: {item['text']}")


KEYS = {" ": tick, "x": tick, "d": delete}
MOVES = {"up": -1, "down": 1, "home": -1_000_000, "end": 1_000_000}


@ext.on_key("todos")
def press(key: Key) -> None:
    shown["row"] += MOVES.get(key.name, 0)
    change = KEYS.get(key.text)
    if change and todos.value:
        change(todos.value[shown["row"]])
    redraw()


@ext.on_close("todos")
def closed(panel_id: str) -> None:
    shown["open"] = False


@ext.on("session_opened", "session_switched", "session_forked")
def another_branch(event: Event) -> None:
    changes.clear()
    redraw()


@ext.intercept_turn_start
def tell(step: int) -> str | None:
    """What the user changed in the panel, told to the model once."""
    if not changes:
        return None
    told = "The user changed the to-do list. " + "; ".join(changes) + ".\nIt is now:\n" + "\n".join(lines())
    changes.clear()
    return told


ext.run()
