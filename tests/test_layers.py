"""The architecture is in the imports: arrows point down, pure modules are pure, the start stays cheap.

Everything is read from the source by ``ast``, imports inside functions included, so a breach is found even in code that
no test runs. Modules that do not exist yet breach nothing.
"""

import ast
import functools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "zutd"

EVERYONE = frozenset({"log", "paths", "signals"})
"""May be imported from anywhere but the closed layers."""

CLOSED = frozenset({"frames", "sdk"})
"""Import nothing of ours at all."""

_BELOW_DAEMON = {"frames", "wire", "sessions", "models", "processes", "tools", "extensions", "agent"}

ARROWS: dict[str, set[str]] = {
    "frames": set(),
    "wire": {"frames"},
    "sessions": {"frames", "wire"},
    "models": {"frames", "wire"},
    "processes": set(),
    "tools": {"frames", "processes"},
    "extensions": {"frames", "wire", "tools", "processes"},
    "agent": {"frames", "models", "tools"},
    "daemon": _BELOW_DAEMON | {"settings"},
    "frontends": {"frames", "wire", "daemon", "settings"},
    "cli": {"settings", "frontends", "daemon", "extensions", "frames"},  # it shows what others say
    "sdk": set(),
    "log": set(),
    "paths": set(),
    "signals": set(),
    "settings": {"frames"},
    "__main__": {"cli"},
}
"""What each layer may import besides itself. A layer that is not here must be added with a reason."""

PURE = (
    "zutd.wire.lines",
    "zutd.wire.codec",
    "zutd.wire.jsonrpc",
    "zutd.wire.typed",
    "zutd.wire.envelope",
    "zutd.sessions.tree",
    "zutd.models.retry",
    "zutd.models.sse",
    "zutd.models.rechunk",
    "zutd.agent.turn",
    "zutd.agent.context",
    "zutd.extensions.lines",
    "zutd.extensions.registrations",
    "zutd.extensions.registry",
    "zutd.extensions.manifest",
    "zutd.extensions.permissions",
    "zutd.processes.environment",
)
"""Rules without a world: they take values and give values."""

WORLD = frozenset(
    {"trio", "httpx", "subprocess", "time", "os", "asyncio", "socket", "threading", "signal", "select", "structlog"}
)
MAY_READ_FILES = frozenset({"zutd.extensions.manifest"})

SLOW = ("trio", "structlog", "httpx", "attrs")
"""Too dear for ``--version``."""


@attrs.frozen
class Import:
    """One imported name, where, and whether importing the module runs it."""

    target: str
    line: int
    at_start: bool


# --- reading ---------------------------------------------------------------------------------------------------------


def name_of(path: Path, package: Path = PACKAGE) -> str:
    """The dotted name of a source file."""
    parts = [package.name, *path.relative_to(package).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def sources() -> dict[str, Path]:
    """Every module of ours, by name."""
    return {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def is_type_checking(node: ast.AST) -> bool:
    """Whether a statement is ``if TYPE_CHECKING:``."""
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def walk(node: ast.AST, *, at_start: bool = True) -> Iterator[tuple[ast.AST, bool]]:
    """Every node below one, and whether it runs when the module is imported."""
    for child in ast.iter_child_nodes(node):
        later = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or is_type_checking(child)
        yield child, at_start
        yield from walk(child, at_start=at_start and not later)


def targets(node: ast.AST, module: str, *, is_package: bool) -> list[str]:
    """The dotted names that a statement or call imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            parents = module.split(".")[: len(module.split(".")) - node.level + is_package]
            base = ".".join([*parents, *([base] if base else [])])
        return [f"{base}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Call) and ast.unparse(node.func) in (
        "__import__",
        "import_module",
        "importlib.import_module",
    ):
        return [arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    return []


def imports(source: str, module: str, *, is_package: bool = False) -> list[Import]:
    """What a module's text imports."""
    return [
        Import(target, getattr(node, "lineno", 0), at_start)
        for node, at_start in walk(ast.parse(source))
        for target in targets(node, module, is_package=is_package)
    ]


@functools.cache
def imports_of(name: str, path: Path) -> list[Import]:
    """What a file imports."""
    return imports(path.read_text(encoding="utf-8"), name, is_package=path.stem == "__init__")


# --- the arrows ------------------------------------------------------------------------------------------------------


def layer_of(dotted: str) -> str:
    """The layer of a module of ours; empty for the package itself (its version) and for what is not ours."""
    parts = dotted.split(".")
    return parts[1] if parts[0] == "zutd" and len(parts) > 1 and not parts[1].startswith("__version") else ""


def breaches(module: str, found: list[Import]) -> list[str]:
    """The imports of a module that point the wrong way."""
    layer = layer_of(module)
    if not layer:
        return [f"{module}:{one.line} imports {one.target}" for one in found if layer_of(one.target)]
    if layer not in ARROWS:
        return [f"{module}: the layer {layer} has no arrows; add it to ARROWS with a reason"]
    allowed = ARROWS[layer] | {layer, ""} | (set() if layer in CLOSED else EVERYONE)
    return [
        f"{module}:{one.line} imports {one.target}; {layer} may import {', '.join(sorted(allowed - {''}))}"
        for one in found
        if layer_of(one.target) not in allowed
    ]


def test_arrows_point_down() -> None:
    """No module imports a layer that the architecture does not let it see."""
    found = [breach for name, path in sources().items() for breach in breaches(name, imports_of(name, path))]
    assert not found, "\n".join(found)


def test_arrows_have_no_circle() -> None:
    """The table itself is layered: whoever is below never sees who is above."""
    below: set[str] = set()
    left = dict(ARROWS)
    while left:
        ready = {layer for layer, seen in left.items() if seen <= below}
        assert ready, f"a circle among {', '.join(left)}"
        below |= ready
        left = {layer: seen for layer, seen in left.items() if layer not in ready}


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("zutd.frames.new", "from zutd.wire import codec"),
        ("zutd.frames.new", "from zutd import log"),
        ("zutd.sdk.new", "from zutd.frames.ui import Panel"),
        ("zutd.wire.new", "def f():\n    import zutd.sessions.tree"),
        ("zutd.wire.new", "from ..daemon import server"),
        ("zutd.wire.new", "from .. import settings"),
        ("zutd.tools.new", "from zutd.wire.codec import encode"),
        ("zutd.agent.new", "from zutd.sessions import tree"),
        ("zutd.models.new", "import importlib\nimportlib.import_module('zutd.agent.turn')"),
        ("zutd.processes.new", "from zutd.frames import blocks"),
        ("zutd.cli.new", "from zutd.agent import loop"),
        ("zutd.extensions.new", "if TYPE_CHECKING:\n    from zutd.settings import Settings"),
        ("zutd.novel.new", "import json"),
        ("zutd", "from zutd.cli import main"),
    ],
)
def test_a_breach_is_seen(module: str, source: str) -> None:
    """The test of the arrows is itself tested: each of these imports is reported."""
    assert breaches(module, imports(source, module, is_package=module == "zutd"))


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("zutd.wire.new", "from zutd.frames import define\nfrom . import codec\nfrom zutd import __version__, log"),
        ("zutd.processes.new", "from zutd.paths import extension_log\nimport trio"),
        ("zutd.daemon.new", "from zutd.settings import Settings\nfrom zutd.agent.turn import Turn"),
        ("zutd.__main__", "from zutd.cli.main import run"),
    ],
)
def test_what_is_allowed_is_not_reported(module: str, source: str) -> None:
    """Arrows down, siblings, the log, the paths and the version are fine."""
    assert not breaches(module, imports(source, module))


# --- pure modules ----------------------------------------------------------------------------------------------------


def reached(name: str, known: dict[str, Path]) -> dict[str, list[Import]]:
    """A module and all modules of ours that it imports, directly or not, with their imports."""
    found: dict[str, list[Import]] = {}
    waiting = [name]
    while waiting:
        module = waiting.pop()
        if module in found or module not in known:
            continue
        found[module] = imports_of(module, known[module])
        for dotted in (module, *(one.target for one in found[module])):
            parts = dotted.split(".")
            waiting += [".".join(parts[:length]) for length in range(1, len(parts) + 1)]
    return found


@pytest.mark.parametrize("name", PURE)
def test_pure_modules_touch_no_world(name: str) -> None:
    """Neither a pure module nor anything of ours that it stands on imports I/O, clocks or tasks."""
    known = sources()
    if name not in known:
        pytest.skip(f"{name} is not written yet")
    forbidden = WORLD - ({"os"} if name in MAY_READ_FILES else set())
    found = [
        f"{module}:{one.line} imports {one.target}"
        for module, lines in reached(name, known).items()
        for one in lines
        if one.target.split(".")[0] in forbidden
    ]
    assert not found, f"{name} is pure, but:\n" + "\n".join(found)


def test_purity_is_seen_through_other_modules() -> None:
    """A pure module that leans on an impure one would be found."""
    known = sources()
    assert any(one.target == "trio" for lines in reached("zutd.wire.link", known).values() for one in lines)
    assert "zutd.frames.define" in reached("zutd.wire.typed", known)


# --- dear imports ----------------------------------------------------------------------------------------------------


def test_only_one_module_imports_httpx() -> None:
    """Another HTTP client can be put in by changing one file."""
    users = {
        name
        for name, path in sources().items()
        if any(one.target.split(".")[0] in ("httpx", "httpx_sse") for one in imports_of(name, path))
    }
    assert users <= {"zutd.models.http"}


@pytest.mark.parametrize("library", ["httpx", "structlog"])
def test_slow_libraries_wait_until_they_are_used(library: str) -> None:
    """No module imports them at its start, so no start of the daemon pays for them."""
    eager = [
        f"{name}:{one.line}"
        for name, path in sources().items()
        for one in imports_of(name, path)
        if one.at_start and one.target.split(".")[0] == library
    ]
    assert not eager


def test_what_runs_later_is_told_from_what_runs_at_once() -> None:
    """Functions and ``if TYPE_CHECKING`` run later; classes, ``try`` and ``with`` run at once."""
    source = """
import a
if TYPE_CHECKING:
    import b
def f():
    import c
class C:
    import d
    def m(self):
        import e
try:
    import g
except ImportError:
    pass
"""
    found = {one.target: one.at_start for one in imports(source, "zutd.x")}
    assert found == {"a": True, "b": False, "c": False, "d": True, "e": False, "g": True}


SHOW_VERSION = f"""
import runpy, sys
sys.argv = ["zutd", "--version"]
try:
    runpy.run_module("zutd", run_name="__main__")
except SystemExit as stop:
    assert not stop.code, stop.code
print(*(name for name in {SLOW!r} if name in sys.modules), file=sys.stderr)
"""


@pytest.mark.skipif(not (PACKAGE / "__main__.py").exists(), reason="zutd/__main__.py is not written yet")
def test_version_loads_nothing_slow() -> None:
    """``zutd --version`` says the version and has not loaded the libraries that it does not need."""
    command = [sys.executable, "-c", SHOW_VERSION]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert not done.stderr.strip(), f"loaded by --version: {done.stderr.strip()}"
