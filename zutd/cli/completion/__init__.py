"""``zutd completion SHELL``: print what lets a shell complete zutd's words.

The files beside this one are made by ``scripts/gen_completion.py`` from the definitions of the command line.
"""

import os
import sys
from typing import Final

from zutd.cli.errors import UsageError

FILES: Final = {"bash": "zutd.bash", "zsh": "_zutd", "fish": "zutd.fish"}

HELP: Final = """\
usage: zutd completion SHELL

  bash   in ~/.bashrc:        eval "$(zutd completion bash)"
  zsh    in ~/.zshrc:         eval "$(zutd completion zsh)"     (after compinit)
  fish   once:                zutd completion fish > ~/.config/fish/completions/zutd.fish
"""


def run_completion(words: list[str]) -> int:
    """Run ``zutd completion WORDS``; the exit code."""
    if not words or words[0] in ("-h", "--help", "help"):
        print(HELP, end="")
        return 0
    if len(words) > 1 or words[0] not in FILES:
        raise UsageError(f"completion: {words[-1]!r} is none of {', '.join(FILES)}")
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), FILES[words[0]])
    with open(path, encoding="utf-8") as file:
        sys.stdout.write(file.read())
    return 0
