"""Make the shells' completion files from the definitions of the command line; ``--check``: are they current?

What can be completed is read once into *places* (``zutd``, ``zutd ext install``, ...), each with its options and with
what its other words are; then it is written down for each shell.
"""

import argparse
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from zutd.cli.arguments import make_parser  # noqa: E402 - after the path
from zutd.cli.completion import FILES  # noqa: E402
from zutd.cli.ext_options import COMMANDS  # noqa: E402
from zutd.cli.main import SUBCOMMANDS  # noqa: E402
from zutd.cli.session_options import COMMANDS as SESSION_COMMANDS  # noqa: E402
from zutd.cli.subcommands import Option as TableOption  # noqa: E402

FOLDER: Final = ROOT / "zutd" / "cli" / "completion"
NOTICE: Final = "Made by scripts/gen_completion.py; do not edit."
_SUMMARIES: Final = {
    "completion": "print what completes these words in a shell",
    "ext": "see, install, begin and test extensions",
    "rpc": "serve a frontend over stdio",
    "session": "see, fork, export and import sessions",
    "trust": "let a project's instructions and skills count",
}
WORDS: Final = {name: _SUMMARIES.get(name, "") for name in SUBCOMMANDS}
"""The words that may come first, and what they are for."""

TABLES: Final = {
    "ext": [(c.name, c.operands, c.summary, c.options) for c in COMMANDS],
    "session": [(c.name, c.operands, c.summary, c.options) for c in SESSION_COMMANDS],
}
"""Words that have commands of their own: each with its operand, its summary and its options."""

_KINDS: Final = {"DIR": "directory", "PATH": "file", "FILE": "file"}
_OPERANDS: Final = {
    "ext": {"NAME": "extension", "PATH": "directory", "SOURCE": "directory"},
    "session": {"ID": "session", "PATH": "file"},
}
_LISTS: Final = {
    "extension": r"zutd ext list 2>/dev/null | awk '$1 ~ /^[A-Za-z0-9][A-Za-z0-9._-]*$/ && NR > 1 { print $1 }'",
    "session": r"zutd session list 2>/dev/null | awk '$1 ~ /^[0-9a-f-]+$/ && NR > 1 { print $1 }'",
}
"""How to list what there is. Names and nothing else: bash evaluates the words that it is given, and a directory may
be called anything."""


class Option(NamedTuple):
    """An option. ``kind`` is what its value is: empty for a switch, ``directory``, ``file``, ``words`` or ``text``."""

    names: tuple[str, ...]
    summary: str
    kind: str
    words: tuple[str, ...] = ()
    many: bool = False
    value: str = ""


class Place(NamedTuple):
    """Where one can be on the command line: the words before, the options there, and what other words are.

    ``operand``: empty, ``extension``, ``session``, ``file``, ``directory`` or ``words``: (word, summary) pairs.
    """

    path: tuple[str, ...]
    options: tuple[Option, ...]
    operand: str = ""
    words: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """The words, as one."""
        return " ".join(self.path)


# --- what there is ---------------------------------------------------------------------------------------------------


def places() -> list[Place]:
    """Every place, the shortest first."""
    helps = Option(("-h", "--help"), "show the help", "")
    found = [
        Place((), tuple(main_options()), "words", tuple(WORDS.items())),
        Place(("completion",), (helps,), "words", tuple((shell, f"for {shell}") for shell in FILES)),
        Place(("rpc",), tuple(main_options())),
        Place(("trust",), (helps, *TRUST_OPTIONS), "directory"),
    ]
    for word, table in TABLES.items():
        found.append(Place((word,), (helps,), "words", tuple((name, summary) for name, _, summary, _ in table)))
        for name, operand, _, options in table:
            kind = next((_OPERANDS[word].get(one.strip("[]."), "") for one in operand.split()), "")
            found.append(Place((word, name), (*table_options(options), helps), kind))
    return found


TRUST_OPTIONS: Final = (
    Option(("--remove",), "take the trust back", ""),
    Option(("--list",), "list what is trusted", ""),
)


def main_options() -> Iterator[Option]:
    """The options of zutd itself, from its parser."""
    for action in make_parser()._actions:  # noqa: SLF001 - argparse has no list of them
        if not action.option_strings or action.help == argparse.SUPPRESS:
            continue
        words = tuple(str(choice) for choice in action.choices or () if choice)
        value = action.metavar if isinstance(action.metavar, str) else "VALUE"
        kind = "" if action.nargs == 0 else "words" if words else _KINDS.get(value, "text")
        many = type(action).__name__ == "_AppendAction"
        yield Option(tuple(action.option_strings), action.help or "", kind, words, many, value)


def table_options(options: Iterable[TableOption]) -> Iterator[Option]:
    """The options of one command of a table."""
    for option in options:
        kind = "words" if option.choices else _KINDS.get(option.value, "text") if option.value else ""
        yield Option(option.names, option.summary, kind, option.choices, option.many, option.value)


# --- bash ------------------------------------------------------------------------------------------------------------


def bash() -> str:
    """For bash: the place is found from the first words, then the word before the cursor says what is wanted."""
    lines = [
        f"# Completion of zutd for bash. {NOTICE}",
        "_zutd_words() {",
        "    local IFS=$'\\n'",
        '    COMPREPLY=($(compgen -W "$(tr \' \' \'\\n\' <<<"$1")" -- "$cur"))',
        "}",
        "_zutd_paths() {",
        "    compopt -o filenames 2>/dev/null",
        "    local IFS=$'\\n'",
        '    COMPREPLY=($(compgen "$1" -- "$cur"))',
        "}",
        "_zutd() {",
        "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} place=''",
        "    COMPREPLY=()",
        "    if ((COMP_CWORD > 1)); then",
        "        case ${COMP_WORDS[1]} in",
        f"        {'|'.join(WORDS)}) place=${{COMP_WORDS[1]}} ;;",
        "        esac",
        "    fi",
        "    if ((COMP_CWORD > 2)); then",
        "        case $place in",
        f'        {"|".join(TABLES)}) place="$place ${{COMP_WORDS[2]}}" ;;',
        "        esac",
        "    fi",
        "    case $place:$prev in",
    ]
    for place in places():
        for option in place.options:
            if option.kind:
                pattern = "|".join(shlex.quote(f"{place.name}:{name}") for name in option.names)
                lines.append(f"    {pattern}) {_bash_value(option)}; return ;;")
    lines += ["    esac", "    case $place in"]
    for place in places():
        lines.append(f"    {shlex.quote(place.name)})")
        names = " ".join(name for option in place.options for name in option.names)
        lines.append(f"        if [[ $cur == -* ]]; then _zutd_words {shlex.quote(names)}")
        lines.append(f"        else {_bash_operand(place)}; fi ;;")
    lines += ["    esac", "}", "complete -F _zutd zutd", ""]
    return "\n".join(lines)


def _bash_value(option: Option) -> str:
    if option.kind == "words":
        return f"_zutd_words {shlex.quote(' '.join(option.words))}"
    return {"directory": "_zutd_paths -d", "file": "_zutd_paths -f"}.get(option.kind, ":")


def _bash_operand(place: Place) -> str:
    if place.operand == "words":
        return f"_zutd_words {shlex.quote(' '.join(word for word, _ in place.words))}"
    if place.operand in _LISTS:
        return f'_zutd_words "$({_LISTS[place.operand]})"'
    return {"directory": "_zutd_paths -d", "file": "_zutd_paths -f"}.get(place.operand, ":")


# --- zsh -------------------------------------------------------------------------------------------------------------


def zsh() -> str:
    """For zsh: one function a place, each around ``_arguments``."""
    lines = [
        "#compdef zutd",
        f"# Completion of zutd for zsh. {NOTICE}",
        *(
            f'_zutd_list_{kind}() {{\n    local -a names\n    names=(${{(f)"$({command})"}})\n    compadd -a names\n}}'
            for kind, command in _LISTS.items()
        ),
    ]
    for place in places():
        if place.path:
            lines += _zsh_function(place)
    main = places()[0]
    lines += [
        "_zutd() {",
        "    local word=$words[2]",
        f"    if ((CURRENT > 2)) && [[ $word == ({'|'.join(WORDS)}) ]]; then",
        "        shift words; ((CURRENT--))",
        "        _zutd_$word",
        "        return",
        "    fi",
        "    _arguments -s -S \\",
        *(f"        {spec} \\" for spec in _zsh_options(main)),
        "        '1: :->first' '*:prompt: '",
        "    if [[ $state == first ]]; then",
        f"        {_zsh_describe(main)}",
        "    fi",
        "}",
        # Loaded from a file of the function path, this is its body; from eval, it is registered.
        'if [[ $funcstack[1] == _zutd ]]; then _zutd "$@"; else compdef _zutd zutd; fi',
        "",
    ]
    return "\n".join(lines)


def _zsh_function(place: Place) -> list[str]:
    name = "_".join(place.path)
    if name in TABLES:
        names = "|".join(word for word, _ in place.words)
        return [
            f"_zutd_{name}() {{",
            "    local word=$words[2]",
            f"    if ((CURRENT > 2)) && [[ $word == ({names}) ]]; then",
            "        shift words; ((CURRENT--))",
            f"        _zutd_{name}_$word",
            "        return",
            "    fi",
            f"    {_zsh_describe(place)}",
            "}",
        ]
    operand = {
        "extension": "'1:extension:_zutd_list_extension'",
        "session": "'1:session:_zutd_list_session'",
        "directory": "'1:directory:_directories'",
        "file": "'*:file:_files'",
        "words": f"'1: :({' '.join(word for word, _ in place.words)})'",
    }.get(place.operand, "'*: : '")
    return [
        f"_zutd_{name}() {{",
        "    _arguments -s -S \\",
        *(f"        {spec} \\" for spec in _zsh_options(place)),
        f"        {operand}",
        "}",
    ]


def _zsh_describe(place: Place) -> str:
    pairs = " ".join(shlex.quote(f"{word}:{summary}") for word, summary in place.words)
    return f"local -a words_here; words_here=({pairs}); _describe -t commands command words_here"


def _zsh_options(place: Place) -> Iterator[str]:
    for option in place.options:
        summary = option.summary.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")
        value = f":{option.value or 'value'}:{_zsh_value(option)}" if option.kind else ""
        text = shlex.quote(f"[{summary}]{value}")
        if option.many:
            yield "".join(f"'*{name}'{text} " for name in option.names).rstrip()
        elif len(option.names) > 1:
            yield f"'({' '.join(option.names)})'{{{','.join(option.names)}}}{text}"
        else:
            yield f"{option.names[0]}{text}"


def _zsh_value(option: Option) -> str:
    if option.kind == "words":
        return f"({' '.join(option.words)})"
    return {"directory": "_directories", "file": "_files"}.get(option.kind, " ")


# --- fish ------------------------------------------------------------------------------------------------------------


def fish() -> str:
    """For fish: one line an option, under the condition that one is at its place."""
    lines = [
        f"# Completion of zutd for fish. {NOTICE}",
        "function __zutd_at",
        "    set -l words (commandline -opc)[2..]",
        f"    set -l place (string match -r -- '^({'|'.join(WORDS)})$' $words[1])[1]",
        f'    if contains -- "$place" {" ".join(TABLES)}; and test -n "$words[2]"',
        '        set place "$place $words[2]"',
        "    end",
        '    test "$place" = "$argv"',
        "end",
        "complete -c zutd -f",
    ]
    for place in places():
        at = f"-n {_fish_quote(f'__zutd_at {place.name}'.strip() if place.path else '__zutd_at')}"
        lines += [f"complete -c zutd {at} {_fish_option(option)}" for option in place.options]
        lines += [f"complete -c zutd {at} -a {word} -d {_fish_quote(summary)}" for word, summary in _fish_words(place)]
        if place.operand in _LISTS:
            lines.append(f"complete -c zutd {at} -a {_fish_quote(f'({_LISTS[place.operand]})')}")
        if place.operand == "file":
            lines.append(f"complete -c zutd {at} -F")
        if place.operand == "directory":
            lines.append(f"complete -c zutd {at} -a '(__fish_complete_directories)'")
    return "\n".join([*lines, ""])


def _fish_words(place: Place) -> tuple[tuple[str, str], ...]:
    return place.words if place.operand == "words" else ()


def _fish_quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _fish_option(option: Option) -> str:
    flags = []
    for name in option.names:
        if name.startswith("--"):
            flags.append(f"-l {name[2:]}")
        else:
            flags.append(f"-s {name[1:]}" if len(name) == 2 else f"-o {name[1:]}")
    value = {
        "": "",
        "words": f"-xa {_fish_quote(' '.join(option.words))}",
        "directory": "-xa '(__fish_complete_directories)'",
        "file": "-rF",
    }.get(option.kind, "-x")
    return " ".join(part for part in (*flags, value, f"-d {_fish_quote(option.summary)}") if part)


MAKERS: Final[dict[str, Callable[[], str]]] = {"bash": bash, "zsh": zsh, "fish": fish}


def main(words: list[str]) -> int:
    check = words == ["--check"]
    stale = []
    for shell, file in FILES.items():
        path, text = FOLDER / file, MAKERS[shell]()
        if not check:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(str(path.relative_to(ROOT)))
    if stale:
        print(f"not current: {', '.join(stale)}; make them with: python scripts/gen_completion.py", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
