"""Rules of trio that no run shows reliably when they are broken, held on every line of ours."""

import ast
from collections.abc import Iterator

import pytest

from tests.e2e.harness import ROOT

FILES = [path for path in sorted((ROOT / "zutd").rglob("*.py")) if "sdk" not in path.parts]
SCOPES = {"open_nursery", "CancelScope", "move_on_after", "move_on_at", "fail_after", "fail_at"}
FOREIGN = {"asyncio", "anyio", "threading.Timer", "concurrent.futures", "gevent"}


def breaches(source: str) -> Iterator[str]:
    """What breaks a rule: scopes that a generator may leave half way, another loop's primitives."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.AsyncFunctionDef) and _yields(node) and not _is_context_manager(node):
            for call in _calls(node):
                if call in SCOPES:
                    yield f"line {node.lineno}: the generator {node.name} holds {call}: a reader may leave it half way"
        if isinstance(node, ast.Import):
            yield from (f"line {node.lineno}: {alias.name}" for alias in node.names if alias.name in FOREIGN)
        if isinstance(node, ast.ImportFrom) and node.module in FOREIGN:
            yield f"line {node.lineno}: {node.module}"


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, those of functions inside it left out."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from _own(child)


def _yields(function: ast.AST) -> bool:
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in _own(function))


def _is_context_manager(function: ast.AsyncFunctionDef) -> bool:
    return any("asynccontextmanager" in ast.dump(decorator) for decorator in function.decorator_list)


def _calls(function: ast.AST) -> Iterator[str]:
    for node in _own(function):
        if isinstance(node, ast.Call):
            yield node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def test_no_file_breaks_them() -> None:
    """No nursery or cancel scope inside an async generator; nothing of asyncio beside trio."""
    assert len(FILES) > 100
    found = {str(path): list(breaches(path.read_text("utf-8"))) for path in FILES}
    assert {path: told for path, told in found.items() if told} == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("async def f():\n    async with trio.open_nursery():\n        yield 1", 1),
        ("async def f():\n    with trio.move_on_after(1):\n        yield 1", 1),
        ("@asynccontextmanager\nasync def f():\n    async with trio.open_nursery():\n        yield 1", 0),
        ("async def f():\n    with trio.move_on_after(1):\n        await g()", 0),
        (
            "async def f():\n    yield 1\n    async def g():\n        with trio.fail_after(1):\n            pass",
            0,
        ),
        ("import asyncio", 1),
        ("from asyncio import Lock", 1),
    ],
)
def test_a_breach_is_seen(source: str, found: int) -> None:
    """The rules themselves are tested."""
    assert len(list(breaches(source))) == found
