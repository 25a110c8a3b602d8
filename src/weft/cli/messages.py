"""Messages for people on stderr, apart from what a command prints for programs on stdout."""

from __future__ import annotations

import sys
from textwrap import indent

from weft.core.escapes import escape_controls
from weft.errors import RunFailed, WeftError


def say(text: str, *more: str) -> None:
    """Print a message; ``more`` are further lines of it."""
    # Line breaks are indented, so that a text cannot imitate a message of Weft.
    lines = [escape_controls(each).replace("\n", "\n      ") for each in (text, *more) if each]
    print("weft: " + "\n      ".join(lines), file=sys.stderr, flush=True)


def print_error(error: WeftError) -> None:
    """Print what happened, what to do, and where to read more."""
    # Most commands print no error and do not need the pages.
    from weft.observe.error_pages import PAGES

    if isinstance(error, RunFailed) and error.failure.traceback:
        print(indent(escape_controls(error.failure.traceback), "  "), file=sys.stderr)
    say(error.message, error.hint, f"More: weft help {error.code}" if error.code in PAGES else "")
