"""Where ``weft`` begins and ends: words in, an exit code out, and never a stack trace.

0: done. 1: refused or failed. 2: asked for wrongly. 130: stopped with Ctrl-C. ``WEFT_DEBUG=1`` shows where an error
came from.
"""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Sequence
from textwrap import indent

from weft.core.visible import visible
from weft.errors import ForeignAwait, RunFailed, UsageError, WeftError

REFUSED = 1
MISUSED = 2
INTERRUPTED = 130
COMPLETING = "_WEFT_COMPLETE"


def main(words: Sequence[str] | None = None) -> int:
    """Perform one command and say how it went."""
    _accept_any_text()
    try:
        code = _perform(sys.argv[1:] if words is None else words)
        sys.stdout.flush()
        return code
    except WeftError as error:
        _show_trace()
        complain(error)
        # A run that stopped at a foreign await was asked for rightly: it is its code that is wrong.
        return MISUSED if isinstance(error, UsageError) and not isinstance(error, ForeignAwait) else REFUSED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return 0
    except Exception as error:  # noqa: BLE001  # the last door: a bug must not look like a crash of the user's own code
        _show_trace()
        first = str(error).partition("\n")[0]
        say(f"an error in Weft itself: {type(error).__name__}: {first}", "WEFT_DEBUG=1 shows where; please report it.")
        return REFUSED


def _perform(words: Sequence[str]) -> int:
    # The parser and the commands are not paid for by whoever imports this module, as tests and embedding programs do.
    import typer

    from weft.cli.commands import command_line

    command = command_line()
    if COMPLETING in os.environ:
        command.main(list(words), prog_name="weft")  # a shell asks how a line could go on
    try:
        with command.make_context("weft", list(words)) as context:
            command.invoke(context)
    except typer.Exit as ended:
        return ended.exit_code
    except typer.TyperException as error:
        _show_usage(error)
        return error.exit_code
    return 0


def say(text: str, *more: str) -> None:
    """Tell the person, apart from what the command prints for programs."""
    # A line break in it must not begin a line that looks like one of ours.
    told = [visible(each).replace("\n", "\n      ") for each in (text, *more) if each]
    print("weft: " + "\n      ".join(told), file=sys.stderr, flush=True)


def complain(error: WeftError) -> None:
    """What happened, what to do, and where to read more."""
    from weft.observe.error_pages import PAGES

    if isinstance(error, RunFailed) and error.failure.traceback:
        print(indent(visible(error.failure.traceback), "  "), file=sys.stderr)
    say(error.message, error.hint, f"More: weft help {error.code}" if error.code in PAGES else "")


def _show_usage(error: Exception) -> None:
    """A command line that could not be read: the usage, then what is wrong with it."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError" and context is not None:
        print(context.get_help())
        return
    path = context.command_path if context is not None else "weft"
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    usage = context.get_usage() if context is not None else ""
    say(message[:1].lower() + message[1:] if message.startswith("No such") else message, usage, f"More: {path} --help")


def _show_trace() -> None:
    if os.environ.get("WEFT_DEBUG"):
        traceback.print_exc()


def _accept_any_text() -> None:
    """A terminal that lacks a character shows a question mark instead of ending the program."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _drop_output() -> None:
    """Whoever read this has gone (``weft list | head``); the interpreter must not complain of it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
