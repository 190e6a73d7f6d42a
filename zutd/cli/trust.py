"""``zutd trust [DIR]``: let a project's instruction files, skills and extensions count, or take that back."""

import os
import sys

from zutd.cli.errors import UsageError
from zutd.daemon.workspace import repository_root, trust_workspace, trusted_workspaces
from zutd.paths import zut_home

HELP = """\
usage: zutd trust [DIR] [--remove | --list]

  Trust a project (default: the repository that this directory is in): its AGENTS.md files and skills become part of
  what the agent is told. Its extensions are trusted one by one: zutd ext trust NAME.
"""


def run_trust(words: list[str]) -> int:
    """Run ``zutd trust WORDS``; the exit code."""
    options = [word for word in words if word.startswith("-")]
    names = [word for word in words if not word.startswith("-")]
    if "-h" in options or "--help" in options:
        print(HELP, end="")
        return 0
    unknown = [option for option in options if option not in ("--remove", "--list")]
    if unknown or len(names) > 1:
        raise UsageError(f"trust: {unknown[0] if unknown else names[1]} is not understood; see zutd trust --help")
    home = zut_home(os.environ)
    if "--list" in options:
        for path in trusted_workspaces(home):
            print(path)
        return 0
    directory = repository_root(os.path.realpath(names[0] if names else os.getcwd()))
    removing = "--remove" in options
    if not os.path.isdir(directory) and not removing:
        raise UsageError(f"trust: {directory} is not a directory")
    try:
        trust_workspace(directory, home, trusted=not removing)
    except OSError as exc:
        print(f"zutd: cannot record it: {exc}", file=sys.stderr)
        return 1
    print(f"{directory} is {'no longer ' if removing else ''}trusted")
    return 0
