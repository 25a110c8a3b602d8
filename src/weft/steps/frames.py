"""Check whether the file of a stack frame belongs to the user, to a library or to Weft."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

_WEFT_DIR = f"{Path(__file__).parent.parent}{os.sep}"
_LIBRARY_DIRS = tuple(f"{sysconfig.get_path(kind)}{os.sep}" for kind in ("stdlib", "platstdlib", "purelib", "platlib"))
_INSTALLED = f"{os.sep}site-packages{os.sep}"


def is_outside(path: str) -> bool:
    """Return whether a file is not part of Weft."""
    return not path.startswith(_WEFT_DIR)


def is_users(path: str) -> bool:
    """Return whether a file is the user's own: not part of Weft or Python, and not installed."""
    return is_outside(path) and not path.startswith(("<frozen", *_LIBRARY_DIRS)) and _INSTALLED not in path
