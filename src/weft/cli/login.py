"""The user's login name: who answers and starts are recorded under, unless another name is given."""

from __future__ import annotations

import getpass


def login() -> str:
    """Return the name of the user here; empty if the system has none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""
