"""The command line: what there is, in words for a newcomer. Imports argparse and nothing of ours that is heavy."""

import argparse
from typing import Any, Final, NoReturn

from zutd import __version__
from zutd.cli.errors import UsageError
from zutd.frames.sandbox import SANDBOX_MODES

REASONING: Final = ("off", "minimum", "low", "medium", "high", "xhigh", "max")

DESCRIPTION: Final = """\
zutd runs an LLM coding agent and its extensions without a screen of its own.

  zutd -p "explain this repository"     one prompt, the answer on stdout
  zutd --json "fix the failing test"    the same, every event as a line of JSON
  zutd --mode rpc                       serve an editor or a script over stdin and stdout
  zutd ext doctor                       see which extensions there are and what is wrong with them

Without a configured provider the built-in scripted model answers: good for trying things, no key needed.
"""

USAGE: Final = """zutd [options] [prompt ...]
       zutd rpc [options]
       zutd ext COMMAND ...
       zutd session COMMAND ...
       zutd trust [DIR]
       zutd completion bash|zsh|fish"""

EPILOG: Final = """\
exit codes: 0 finished, 1 failed, 2 usage, 3 blocked by an extension, 4 a limit was reached, 5 the session is in use
or cannot be read, 6 the answer does not fit --output-schema, 130/143 stopped by a signal, 141 stdout was closed
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def make_parser() -> argparse.ArgumentParser:
    """The parser of everything but the sub-commands."""
    parser = _Parser(
        prog="zutd",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        usage=USAGE,
    )
    parser.add_argument("prompt", nargs="*", help="the prompt; what is piped into stdin goes before it")
    parser.add_argument("-v", "--version", action="version", version=f"zutd {__version__}")
    _add_modes(parser.add_argument_group("how to talk to it"))
    _add_model(parser.add_argument_group("the model"))
    _add_agent(parser.add_argument_group("the agent"))
    _add_session(parser.add_argument_group("the session"))
    _add_extensions(parser.add_argument_group("extensions"))
    return parser


def _add_modes(group: Any) -> None:
    group.add_argument("-p", "--print", dest="mode", action="store_const", const="print", help="print the answer")
    group.add_argument("--stream", dest="mode", action="store_const", const="stream", help="print it as it comes")
    group.add_argument("--json", dest="mode", action="store_const", const="json", help="print events, one a line")
    group.add_argument("--rpc", dest="mode", action="store_const", const="rpc", help="serve a frontend over stdio")
    group.add_argument("--mode", choices=("rpc", "print", "stream", "json"), help="the same, by name")
    group.add_argument(
        "--on-eof",
        choices=("finish", "cancel"),
        default="finish",
        help="rpc: what happens to running work when stdin ends (default: finish)",
    )


def _add_model(group: Any) -> None:
    group.add_argument("--provider", default="", metavar="NAME", help="who runs the model, such as anthropic or openai")
    group.add_argument("--model", default="", metavar="ID", help="which model; with --base-url any name is accepted")
    group.add_argument("--base-url", default="", metavar="URL", help="a server that speaks a known wire")
    group.add_argument("--wire", default="", choices=("", "openai", "anthropic"), help="which wire --base-url speaks")
    group.add_argument("--api-key", default="", metavar="KEY", help="instead of the environment's; never stored")
    group.add_argument("--insecure", action="store_true", default=None, help="accept any TLS certificate")
    group.add_argument("--reasoning", choices=REASONING, help="how much the model thinks first")
    group.add_argument("--temperature", type=_temperature, metavar="0..2", help="the model's temperature")
    group.add_argument("--list-models", action="store_true", help="list the models of --provider (or of all) and exit")


def _add_agent(group: Any) -> None:
    group.add_argument("--cwd", default="", metavar="DIR", help="the project directory (default: this one)")
    group.add_argument("--max-steps", type=_count, metavar="N", help="stop after N model calls per prompt (exit 4)")
    group.add_argument(
        "--max-cost-usd", type=_money, metavar="X", help="stop when a prompt has cost that much (exit 4)"
    )
    group.add_argument("--max-tokens-total", type=_count, metavar="N", help="stop after N tokens per prompt (exit 4)")
    group.add_argument("--tools", metavar="A,B", help="only these built-in tools")
    group.add_argument("--no-tools", action="store_true", help="no built-in tools")
    group.add_argument("--system-prompt", default="", metavar="TEXT", help="instead of the built-in one")
    group.add_argument("--append-system-prompt", action="append", default=[], metavar="TEXT", help="after it; repeat")
    group.add_argument(
        "--no-yolo",
        action="store_true",
        help="ask before every tool call (a frontend that can confirm is needed, else every call is refused)",
    )
    group.add_argument("-y", "--yes", dest="no_yolo", action="store_false", help="do not ask (the default)")
    group.add_argument("-nc", "--no-context-files", action="store_true", help="do not read AGENTS.md files")
    group.add_argument("--no-skills", "--no-skill", action="store_true", help="do not look for skills")
    group.add_argument(
        "--output-schema", default="", metavar="FILE", help="the answer must be JSON that fits (else exit 6)"
    )
    group.add_argument(
        "--output-mode",
        default="auto",
        choices=("auto", "native", "words"),
        help="tell the model of it by its provider's own field, in words, or as can be (the default)",
    )
    group.add_argument("--stats", default="", metavar="FILE", help="write tokens, cost and time of the prompt as JSON")
    group.add_argument("--log-level", choices=("debug", "info", "warning", "error"), help="what stderr is told")


def _add_session(group: Any) -> None:
    group.add_argument("-c", "--continue", dest="continue_newest", action="store_true", help="go on with the newest")
    group.add_argument("-r", "--resume", default="", metavar="ID", help="go on with this one (4 characters will do)")
    group.add_argument("--session", default="", metavar="PATH", help="open or create this file")
    group.add_argument(
        "--read-only", action="store_true", help="only look at it: no lock, no prompts (with -c, -r or --session)"
    )
    group.add_argument("--no-session", action="store_true", help="keep nothing on disk")


def _add_extensions(group: Any) -> None:
    group.add_argument("-e", "--ext", action="append", default=[], metavar="DIR", help="run this extension too; repeat")
    group.add_argument("--no-ext", "--no-extensions", action="store_true", help="do not look for extensions")
    group.add_argument("--zot", action="store_true", help="run zot's extensions too (its directories, protocol 1)")
    group.add_argument("--watch", action="store_true", help="start an extension anew when its files change")
    group.add_argument(
        "--ext-sandbox",
        choices=SANDBOX_MODES,
        help="extensions that declare permissions: keep them to these where that can be done (auto, the default), "
        "start them only where it can (require), or not (off)",
    )
    group.add_argument(
        "--trust-project", action="store_true", help="run the project's own extensions (.zut/extensions)"
    )


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1, got {text!r}")
    return int(text)


def _money(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected an amount in US dollars, got {text!r}")
    return value


def _temperature(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 2:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 2, got {text!r}")
    return value


def parse(argv: list[str]) -> argparse.Namespace:
    """Parse everything but a sub-command. Raises :class:`UsageError`; exits for ``--help`` and ``--version``."""
    parser = make_parser()
    end = argv.index("--") if "--" in argv else len(argv)
    args, unknown = parser.parse_known_intermixed_args(argv[:end])
    args.prompt += argv[end + 1 :]  # argparse would look for options behind the -- all the same
    if unknown:
        raise UsageError(f"unknown option {unknown[0]}{_near(unknown[0], parser)}")
    return args


def _near(option: str, parser: argparse.ArgumentParser) -> str:
    import difflib

    known = [name for action in parser._actions for name in action.option_strings]  # noqa: SLF001 - argparse has no list
    near = difflib.get_close_matches(option.split("=", maxsplit=1)[0], known, n=1)
    return f"; did you mean {near[0]}?" if near else "; zutd --help lists them"
