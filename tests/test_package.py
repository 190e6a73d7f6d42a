"""The package keeps what its metadata promises."""

import tomllib
from importlib.resources import files
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_it_is_typed_as_it_says() -> None:
    """``Typing :: Typed`` is true for type checkers too: without the marker they ignore every annotation of ours."""
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "Typing :: Typed" in metadata["classifiers"]
    assert files("zutd").joinpath("py.typed").is_file()
