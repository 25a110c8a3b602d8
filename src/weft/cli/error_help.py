"""Explain error codes on the terminal."""

from __future__ import annotations

import difflib

from weft.errors import UsageError
from weft.observe.error_pages import PAGES, page


def print_page(code: str | None) -> None:
    """Print the page of an error code, or list all codes. Raises UsageError for an unknown code."""
    if code is None:
        width = max(map(len, PAGES)) + 2
        print("\n".join(f"{known:{width}}{found.what}" for known, found in PAGES.items()))
        return
    text = page(code)
    if text is None:
        raise UsageError(f'No error has the code "{code}".{_suggestion(code)}', hint="weft help lists all codes.")
    print(text, end="")


def _suggestion(code: str) -> str:
    close = difflib.get_close_matches(code, PAGES, n=1)
    if not close:
        # A part of a code is enough: "id_taken" matches "run.id_taken".
        close = [known for known in PAGES if code in known][:1]
    return f' Did you mean "{close[0]}"?' if close else ""
