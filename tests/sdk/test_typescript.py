"""The TypeScript package: its own tests under Node, its types under tsc, and how its types are made."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from scripts import gen_protocol, protocol_typescript

PACKAGE = Path(__file__).resolve().parents[2] / "protocol" / "typescript"
NODE = shutil.which("node")
TSC = shutil.which("tsc") or shutil.which("tsc", path=str(PACKAGE / "node_modules" / ".bin"))


def node_version() -> int:
    """The major of the Node that is here, 0 for none."""
    if NODE is None:
        return 0
    done = subprocess.run([NODE, "--version"], capture_output=True, text=True, check=False)
    return int(done.stdout.lstrip("v").partition(".")[0] or 0)


@pytest.mark.slow
@pytest.mark.skipif(node_version() < 20, reason="there is no node of version 20 or newer here")
def test_the_package_passes_its_own_tests() -> None:
    """``node --test`` is green, offline and without anything installed."""
    assert NODE is not None
    done = subprocess.run(
        [NODE, "--test"],
        cwd=PACKAGE,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, "\n".join(re.findall(r"^not ok.*?^  \.\.\.$", done.stdout, re.DOTALL | re.MULTILINE))


@pytest.mark.slow
@pytest.mark.skipif(
    TSC is None, reason="there is no tsc here (npm install --no-save typescript in protocol/typescript)"
)
def test_the_types_hold() -> None:
    """The compiler accepts the declarations and the sample of their use, in which each mistake is expected."""
    assert TSC is not None
    done = subprocess.run(
        [TSC, "-p", "."],
        cwd=PACKAGE,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.skipif(
    TSC is None, reason="there is no tsc here (npm install --no-save typescript in protocol/typescript)"
)
def test_the_example_is_typed() -> None:
    """The scratchpad, which is JavaScript with types in comments, holds against the copies beside it."""
    assert TSC is not None
    options = ["--noEmit", "--strict", "--checkJs", "--target", "es2022", "--module", "nodenext"]
    example = PACKAGE.parents[1] / "docs" / "examples" / "extensions" / "scratchpad"
    done = subprocess.run(
        [TSC, *options, "--lib", "es2023,dom", "scratchpad.mjs"],
        cwd=example, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=110, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_the_package_depends_on_nothing() -> None:
    """It can be used by copying its directory; everything that it exports is there."""
    package = json.loads((PACKAGE / "package.json").read_text())
    assert not [key for key in package if "ependencies" in key]
    targets = [
        one for entry in package["exports"].values() for one in (entry.values() if type(entry) is dict else [entry])
    ]
    assert all((PACKAGE / target).is_file() for target in targets)


def test_every_definition_of_the_schemas_is_a_type() -> None:
    """No definition is left out, and every type that is mentioned exists."""
    derived = gen_protocol.generate()
    for schema, types in (("client", "client"), ("extension", "frames"), ("session", "session")):
        text = derived[f"protocol/typescript/src/{types}.d.mts"]
        defined = re.findall(r"^export (?:interface|type) (\w+)", text, re.MULTILINE)
        assert defined == list(json.loads(derived[f"protocol/{schema}.schema.json"])["$defs"])
        code = re.sub(r"/\*\*.*?\*/|//.*|\"[^\"]*\"", "", text)
        mentioned = set(re.findall(r"\b[A-Z]\w+", code)) - {"Record"}
        assert mentioned <= set(defined)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, "unknown"),
        ({"description": "d", "default": 1}, "unknown"),
        ({"type": "integer"}, "number"),
        ({"type": ["string", "null"]}, "string | null"),
        ({"type": "object"}, "Record<string, unknown>"),
        ({"const": "x"}, '"x"'),
        ({"enum": ["a", 1]}, '"a" | 1'),
        ({"$ref": "#/$defs/Panel", "default": None}, "Panel"),
        ({"type": "array", "items": {"$ref": "#/$defs/Panel"}}, "Panel[]"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, '("a" | "b")[]'),
        ({"oneOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]}, "A | null"),
        ({"type": "object", "properties": {}}, "{}"),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "string", "description": "an a"}, "b": {}},
                "required": ["a"],
            },
            "{\n  /** an a */\n  a: string;\n  b?: unknown;\n}",
        ),
        (
            {"type": "object", "properties": {"id": {"type": "string"}}, "oneOf": [{"$ref": "#/$defs/A"}]},
            "{\n  id?: string;\n} & (A)",
        ),
        (
            {"oneOf": [{"type": "object", "properties": {"a": {}}}, {"type": "null"}]},
            "\n  | {\n      a?: unknown;\n    }\n  | null",
        ),
    ],
)
def test_schemas_become_types(schema: protocol_typescript.Schema, expected: str) -> None:
    """Each word that our schemas use has its TypeScript."""
    assert protocol_typescript.type_of(schema, "") == expected


def test_an_unknown_word_is_refused() -> None:
    """A schema with a word that the generator does not know would become a wrong type, so it stops there."""
    with pytest.raises(SystemExit, match="no TypeScript for"):
        protocol_typescript.type_of({"allOf": []}, "")
