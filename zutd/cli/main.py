"""From the command line to an exit code: find out what is wanted, build the settings, run a frontend."""

import errno
import gc
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from zutd import __version__
from zutd.cli.errors import UsageError
from zutd.paths import zot_home, zut_home

if TYPE_CHECKING:
    import argparse

    from zutd.settings import Settings

USAGE: Final = 2
STDIN_LIMIT: Final = 16 * 1024 * 1024

STDIN_NOTE: Final = 2.0
"""Seconds of silence after which a person is told what zutd waits for."""

NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def main(argv: list[str] | None = None) -> int:
    """Run the command line; its exit code."""
    words = sys.argv[1:] if argv is None else argv
    _fill_closed()
    try:
        try:
            return _dispatch(words)
        finally:
            sys.stdout.flush()  # here, where what goes wrong can still be told
    except UsageError as exc:
        complain(f"{exc}")
        return USAGE
    except BrokenPipeError:  # the reader of our stdout has gone (`| head`): quietly
        _abandon_stdout()
        return 141
    except OSError as exc:
        if exc.errno not in NO_ROOM:
            raise
        _abandon_stdout()
        complain(f"cannot write: {exc.strerror}")
        return 1
    except KeyboardInterrupt:
        return 130


def _dispatch(words: list[str]) -> int:
    if words in (["--version"], ["-v"]):
        print(f"zutd {__version__}")
        return 0
    from zutd.signals import settle

    settle()
    command = SUBCOMMANDS.get(words[0]) if words else None
    return _run(words) if command is None else command(words[1:])


def _abandon_stdout() -> None:
    """What could not be written must not fail once more at interpreter exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _fill_closed() -> None:
    """Give the place of a standard stream that the caller closed to /dev/null, and not to a file of ours.

    In the place of stdout it cannot be written to: an answer that nobody can read must fail.
    """
    for fd, (name, flags) in enumerate((("stdin", os.O_RDONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY))):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, flags)
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), "r+"))


def _ext(words: list[str]) -> int:
    from zutd.cli.ext import run_ext

    return run_ext(words)


def _session(words: list[str]) -> int:
    from zutd.cli.session import run_session

    return run_session(words)


def _trust(words: list[str]) -> int:
    from zutd.cli.trust import run_trust

    return run_trust(words)


def _completion(words: list[str]) -> int:
    from zutd.cli.completion import run_completion

    return run_completion(words)


SUBCOMMANDS: Final[dict[str, Callable[[list[str]], int]]] = {
    "completion": _completion,
    "ext": _ext,
    "session": _session,
    "trust": _trust,
    "rpc": lambda words: _run(["--rpc", *words]),
}


def complain(text: str) -> None:
    """One line on stderr for the person who called."""
    print(f"zutd: {text}", file=sys.stderr)


def _run(words: list[str]) -> int:
    from zutd.cli.arguments import parse
    from zutd.signals import end_at_interrupt

    end_at_interrupt()
    args = parse(words)
    if args.list_models:
        from zutd.cli.models import list_models

        return list_models(args.provider, zut_home(os.environ))
    piped = _read_stdin() if args.mode != "rpc" else ""
    prompt = "\n".join(part for part in (piped.strip(), " ".join(map(_proper, args.prompt)).strip()) if part)
    mode = args.mode or ("print" if prompt else "")
    _check_mode(mode, prompt, args)
    settings = make_settings(args)
    return _serve(mode, prompt, settings)


def _check_mode(mode: str, prompt: str, args: "argparse.Namespace") -> None:
    if not mode:
        raise UsageError(
            'nothing to do; give a prompt (zutd -p "...") or serve a frontend (zutd --mode rpc); see --help'
        )
    if mode == "rpc" and args.prompt:
        raise UsageError("--mode rpc takes its prompts over stdin, not from the command line")
    if mode == "rpc" and os.isatty(0):
        raise UsageError("--mode rpc speaks JSON over stdin, and stdin is a terminal; connect a program, or use -p")
    if mode == "rpc" and (args.output_schema or args.stats):
        raise UsageError("--output-schema and --stats are for a single prompt; over rpc, prompt takes an output_schema")
    if args.output_mode != "auto" and not args.output_schema:
        raise UsageError("--output-mode says how to use an --output-schema: give one")
    if mode != "rpc" and not prompt:
        raise UsageError(f"--mode {mode} needs a prompt, as an argument or piped into stdin")


def _read_stdin() -> str:
    """What is piped in; nothing from a terminal, or when there is no stdin."""
    try:
        if os.isatty(0):
            return ""
        chunks, size = [], 0
        _tell_of_silence()
        while chunk := os.read(0, 1 << 20):
            chunks.append(chunk)
            size += len(chunk)
            if size > STDIN_LIMIT:
                raise UsageError(f"more than {STDIN_LIMIT} bytes were piped into stdin")
    except OSError:
        return ""
    return b"".join(chunks).decode("utf-8", "replace")


def _tell_of_silence() -> None:
    """Whoever starts us with a pipe that nobody writes to, and nobody closes, should see why nothing happens."""
    import select

    if not select.select([0], [], [], STDIN_NOTE)[0]:
        complain("reading stdin to its end before the prompt is sent; if nothing comes from there, use </dev/null")


def _proper(word: str) -> str:
    """An argument that is no path, as text: bytes that the locale cannot read are UTF-8 all the same, or replaced."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return os.fsencode(word).decode("utf-8", "replace")
    return word


def make_settings(args: "argparse.Namespace") -> "Settings":
    """Flags over ``config.json`` over defaults. Raises :class:`UsageError`."""
    from zutd.settings import Settings, SettingsError, read_config, rpc_token

    home = zut_home(os.environ)
    cwd = os.path.realpath(args.cwd or _current())
    if not os.path.isdir(cwd):
        raise UsageError(f"--cwd {args.cwd} is not a directory")
    if sum(bool(x) for x in (args.continue_newest, args.resume, args.session, args.no_session)) > 1:
        raise UsageError("give one of --continue, --resume, --session and --no-session")
    if args.read_only and not (args.continue_newest or args.resume or args.session):
        raise UsageError("--read-only needs a session to read: give --continue, --resume or --session")
    try:
        config, warning = read_config(home)
    except SettingsError as exc:
        raise UsageError(str(exc)) from None
    if warning:
        complain(warning)
    if args.provider or args.base_url:
        config.pop("model", None)
    flags = {
        "provider": args.provider,
        "model": args.model,
        "base_url": args.base_url,
        "wire": args.wire,
        "api_key": args.api_key,
        "insecure": args.insecure,
        "reasoning": args.reasoning,
        "temperature": args.temperature,
        "max_steps": args.max_steps,
        "max_cost_usd": args.max_cost_usd,
        "max_tokens_total": args.max_tokens_total,
        "ext_sandbox": args.ext_sandbox,
        "log_level": args.log_level,
    }
    chosen = {**config, **{name: value for name, value in flags.items() if value not in ("", None)}}
    return Settings(
        home=home,
        cwd=cwd,
        environ=dict(os.environ),
        tools=_tools(args),
        system_prompt=_proper(args.system_prompt),
        append_system_prompt=tuple(map(_proper, args.append_system_prompt)),
        output_schema=_read_schema(args.output_schema),
        output_mode=args.output_mode,
        stats_path=os.path.abspath(args.stats) if args.stats else "",
        context_files=not args.no_context_files,
        skills=not args.no_skills,
        confirm=args.no_yolo,
        explicit_extensions=tuple(os.path.abspath(path) for path in args.ext),
        search_extensions=not args.no_ext,
        trust_project=args.trust_project,
        watch=args.watch,
        zot_home=zot_home(os.environ) if args.zot else "",
        continue_newest=args.continue_newest,
        resume=args.resume,
        session_path=args.session,
        persist=not args.no_session,
        read_only=args.read_only,
        token=rpc_token(os.environ) if args.mode == "rpc" else "",
        on_eof=args.on_eof,
        keep_model=bool(args.provider or args.model or args.base_url),
        keep_reasoning=args.reasoning is not None,
        **chosen,
    )


def _current() -> str:
    try:
        return os.getcwd()
    except OSError as exc:
        raise UsageError(f"the current directory cannot be used ({exc.strerror}); name one with --cwd") from None


def _read_schema(path: str) -> Any:
    """The JSON in a file, None without a file. Raises :class:`UsageError`."""
    if not path:
        return None
    import json

    try:
        with open(path, "rb") as file:
            return json.loads(file.read())
    except (OSError, ValueError, RecursionError) as exc:
        raise UsageError(f"--output-schema {path}: {exc}") from None


def _tools(args: "argparse.Namespace") -> tuple[str, ...] | None:
    if args.no_tools:
        return ()
    if args.tools is None:
        return None
    return tuple(name.strip() for name in args.tools.split(",") if name.strip())


def _serve(mode: str, prompt: str, settings: "Settings") -> int:
    """Everything heavy is imported from here on, and stays: looking for garbage in it time and again is dear."""
    gc.set_threshold(10_000)  # the server sets its own when it has loaded everything
    from zutd.frontends.start import CannotStartError, serve

    try:
        return serve(mode, prompt, settings)
    except CannotStartError as exc:
        complain(str(exc))
        return exc.exit_code
