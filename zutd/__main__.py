"""``python -m zutd`` and the command ``zutd``."""

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    try:
        from zutd.cli.main import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(run())


if __name__ == "__main__":
    main()
