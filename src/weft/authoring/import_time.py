"""Refuse runs that a file would start while a weft command imports it."""

from __future__ import annotations

import os

from weft.errors import RunAtImport


def refuse_import_time(call: str) -> None:
    """Raise RunAtImport if a weft command is importing the program."""
    importing = os.environ.get("WEFT_IMPORTING")
    if importing:
        raise RunAtImport(
            f"{importing} calls {call} while it is being imported.",
            hint='Put it under: if __name__ == "__main__":',
            called=call,
        )
