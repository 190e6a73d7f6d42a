"""``python -m zutd`` and the command ``zutd``."""

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    try:
        from zutd.cli.main import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    code = run()
    _decided()
    sys.exit(code)


def _decided() -> None:
    """Nothing changes the exit code any more: while Python takes itself down, a signal would kill it instead."""
    signal = sys.modules.get("signal")
    if signal is not None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)


if __name__ == "__main__":
    main()
