"""The entry point of ``weft``. It runs one command and returns its exit code, and never prints a stack trace.

The exit code is 0 for success, 1 if the command was refused or failed, 2 for wrong usage, and 130 after Ctrl-C. With
``WEFT_DEBUG=1``, the traceback of an error is printed, too.
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import sys
import traceback
from collections.abc import Sequence

from weft.cli.messages import print_error, say
from weft.errors import ForeignAwait, UsageError, WeftError
from weft.settings import variable

REFUSED = 1
MISUSED = 2
INTERRUPTED = 130
COMPLETING = "_WEFT_COMPLETE"


def main(words: Sequence[str] | None = None) -> int:
    """Run one command. Returns its exit code."""
    _accept_any_text()
    if words is None:
        # The process is ours. At its end, Python would look through everything that was imported for garbage.
        atexit.register(gc.freeze)
    try:
        code = _perform(sys.argv[1:] if words is None else words)
        sys.stdout.flush()
        return code
    except WeftError as error:
        _show_trace()
        print_error(error)
        # A foreign await is an error in the code of the run, not in the command line.
        return MISUSED if isinstance(error, UsageError) and not isinstance(error, ForeignAwait) else REFUSED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return 0
    except Exception as error:  # noqa: BLE001  # a bug in Weft must not look like a crash of the user's code
        _show_trace()
        first = str(error).partition("\n")[0]
        say(f"an error in Weft itself: {type(error).__name__}: {first}", "WEFT_DEBUG=1 shows where; please report it.")
        return REFUSED


def _perform(words: Sequence[str]) -> int:
    # Imported here, because programs and tests that import this module may not need the parser and the commands.
    import typer

    from weft.cli.commands import command_line

    command = command_line()
    if COMPLETING in os.environ:
        command.main(list(words), prog_name="weft")  # a shell asks for completions
    try:
        with command.make_context("weft", list(words)) as context:
            command.invoke(context)
    except typer.Exit as ended:
        return ended.exit_code
    except typer.TyperException as error:
        _show_usage(error)
        return error.exit_code
    return 0


def _show_usage(error: Exception) -> None:
    """Print what is wrong with a command line, and its usage."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError" and context is not None:
        print(context.get_help())
        return
    path = context.command_path if context is not None else "weft"
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    usage = context.get_usage() if context is not None else ""
    say(message[:1].lower() + message[1:] if message.startswith("No such") else message, usage, f"More: {path} --help")


def _show_trace() -> None:
    if variable("WEFT_DEBUG"):
        traceback.print_exc()


def _accept_any_text() -> None:
    """Print a question mark for characters that the terminal cannot encode, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _drop_output() -> None:
    """Drop the rest of the output after its reader closed the pipe (``weft list | head``).

    Otherwise the interpreter reports the broken pipe when it exits.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
