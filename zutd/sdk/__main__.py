"""Copies the SDK beside an extension, so that it runs with any Python that has no zutd: ``python -m zutd.sdk DIR``."""

import os
import shutil
import sys

from zutd.sdk import extension

NAME = "zutd_extension.py"


def main(arguments: list[str]) -> int:
    """Copy; the exit status."""
    if len(arguments) != 1 or not os.path.isdir(arguments[0]):
        sys.stderr.write(f"usage: python -m zutd.sdk DIRECTORY    copies the SDK to DIRECTORY/{NAME}\n")
        return 2
    target = os.path.join(arguments[0], NAME)
    shutil.copyfile(extension.__file__, target)
    sys.stdout.write(f"{target}: from zutd_extension import Extension\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
