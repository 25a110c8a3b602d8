"""Temporary files of tests in memory, where the system has a folder for that.

Databases wait for the disk after every commit. A test that kills a process, or stops a server, learns nothing from it:
only a machine that loses power would, and no test does that.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

FOLDER = Path("/dev/shm")
FREE_BYTES_MIN = 4 * 1024**3


def use() -> None:
    """Make temporary files in memory, here and in child processes, unless the developer named a folder."""
    if "TMPDIR" not in os.environ and _is_usable():
        os.environ["TMPDIR"] = tempfile.tempdir = str(FOLDER)


def _is_usable() -> bool:
    """Whether there is room, and programs can be run from there: some tests write programs and run them."""
    if not os.access(FOLDER, os.W_OK) or os.statvfs(FOLDER).f_flag & os.ST_NOEXEC:
        return False
    return shutil.disk_usage(FOLDER).free >= FREE_BYTES_MIN
