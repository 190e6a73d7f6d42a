"""Writes what is derived: from the frame classes the JSON Schemas in protocol/ and the tables of its README, from
the schemas the TypeScript types, and from the SDKs the copies that stand beside examples.

python scripts/gen_protocol.py           write them
python scripts/gen_protocol.py --check   exit 1 and name the files that differ
"""

import argparse
import sys
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # run as a file, Python knows only scripts/

from scripts import protocol_schemas, protocol_tables, protocol_typescript

ROOT: Final = Path(__file__).resolve().parent.parent
COMMAND: Final = "python scripts/gen_protocol.py"

EXAMPLES: Final = "docs/examples/extensions"
COPIES: Final = {
    f"{EXAMPLES}/todo/zutd_extension.py": "zutd/sdk/extension.py",
    f"{EXAMPLES}/weather/zutd_extension.py": "zutd/sdk/extension.py",
    f"{EXAMPLES}/scratchpad/zutd-extension.mjs": "protocol/typescript/src/extension.mjs",
    f"{EXAMPLES}/scratchpad/zutd-extension.d.mts": "protocol/typescript/src/extension.d.mts",
}
"""What stands beside an example, so that it needs nothing installed, and what it is a copy of."""


def generate(root: Path = ROOT) -> dict[str, str]:
    """Every derived file, by its path below ``root``, with the text that it should have."""
    readme = root / "protocol" / "README.md"
    client, extension = protocol_schemas.client_schema(), protocol_schemas.extension_schema()
    session = protocol_schemas.session_schema()
    return {
        "protocol/client.schema.json": client,
        "protocol/extension.schema.json": extension,
        "protocol/session.schema.json": session,
        "protocol/README.md": protocol_tables.fill(readme.read_text(encoding="utf-8")),
        "protocol/typescript/src/client.d.mts": protocol_typescript.types(client),
        "protocol/typescript/src/frames.d.mts": protocol_typescript.types(extension),
        "protocol/typescript/src/session.d.mts": protocol_typescript.types(session),
        **{copy: (root / original).read_text(encoding="utf-8") for copy, original in COPIES.items()},
    }


def differing(root: Path = ROOT) -> list[str]:
    """The derived files that are missing or are not what the frames say."""

    def has(path: Path, text: str) -> bool:
        return path.is_file() and path.read_text(encoding="utf-8") == text

    return [name for name, text in generate(root).items() if not has(root / name, text)]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog=COMMAND, description="Derive protocol/ from the frame classes, and copy the SDKs."
    )
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when a file differs")
    check = parser.parse_args(arguments).check
    names = differing()
    for name in names:
        if check:
            print(f"{name} is not what the frames say; mend it with: {COMMAND}", file=sys.stderr)
        else:
            (ROOT / name).write_text(generate()[name], encoding="utf-8")
            print(f"wrote {name}")
    return 1 if check and names else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
