"""The login name of the user. Starts and answers are recorded with it, unless another name is given."""

from __future__ import annotations

import getpass


def login() -> str:
    """Return the login name of the user; empty if the system does not know it."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""
