"""Who types: the name that answers and starts are recorded under, where nobody says another."""

from __future__ import annotations

import getpass


def login() -> str:
    """The name of the user here; empty if the system has none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""
