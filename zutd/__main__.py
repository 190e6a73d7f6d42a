"""``python -m zutd`` and the command ``zutd``."""

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    try:
        from zutd.cli.main import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    code = run()
    signals = sys.modules.get("zutd.signals")  # what had no use for it ends at once, and need not load it for that
    if signals is not None:
        signals.ignore_from_now_on()
    sys.exit(code)


if __name__ == "__main__":
    main()
