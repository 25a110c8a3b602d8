"""Print messages for people on stderr. The output of a command goes to stdout."""

from __future__ import annotations

import sys
from textwrap import indent

from weft.core.escapes import escape_controls
from weft.errors import BadPatch, NotFound, PatchRefused, RunFailed, WeftError


def say(text: str, *more: str) -> None:
    """Print a message. ``more`` are further lines."""
    # Lines after a line break are indented, so that user text cannot imitate a message of Weft.
    lines = [escape_controls(each).replace("\n", "\n      ") for each in (text, *more) if each]
    print("weft: " + "\n      ".join(lines), file=sys.stderr, flush=True)


def print_error(error: WeftError) -> None:
    """Print an error: what happened, what to do, and where to read more."""
    # Imported here, because most commands print no error.
    from weft.observe.error_pages import PAGES

    if isinstance(error, RunFailed) and error.failure.traceback:
        print(indent(escape_controls(error.failure.traceback), "  "), file=sys.stderr)
    also = [f"also: {one.message}" for one in error.findings[1:]] if isinstance(error, BadPatch | PatchRefused) else []
    store = error.context.get("store") if isinstance(error, NotFound) else None
    text = f"{error.message.removesuffix('.')} in {store}." if store else error.message
    say(text, *also, error.hint, f"More: weft help {error.code}" if error.code in PAGES else "")
