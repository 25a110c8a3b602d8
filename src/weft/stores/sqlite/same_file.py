"""Check that the path still names the file that was opened.

Writes to a file that was deleted or replaced still succeed, but nobody will ever read them.
"""

from __future__ import annotations

import ctypes
import time
from pathlib import Path

import apsw

from weft.errors import Unavailable

CHECK_S = 0.05
"""Seconds between checks when commits are not synced. A check at each commit would cost a tenth of the commit."""


class SameFile:
    """Checks that the path still names the file that was opened."""

    def __init__(self, path: Path, *, each_time: bool) -> None:
        """With ``each_time``, check the file at every commit, before the commit is acknowledged."""
        self._path = str(path)
        self._interval_s = 0.0 if each_time else CHECK_S
        self._checked_at = 0.0
        self._moved = ctypes.c_int()
        self._address = ctypes.addressof(self._moved)
        self.gone = False
        """Whether the last check found another file, or no file."""

    def check(self, connection: apsw.Connection) -> None:
        """Raise Unavailable if the file that this connection has opened is no longer at its path."""
        if self._interval_s and not self.gone:
            now = time.monotonic()
            if now - self._checked_at < self._interval_s:
                return
            self._checked_at = now
        connection.file_control("main", apsw.SQLITE_FCNTL_HAS_MOVED, self._address)
        self.gone = self._moved.value != 0
        if self.gone:
            raise Unavailable(
                f"{self._path} was deleted or replaced while this process had it open. Weft no longer writes to it.",
                hint="Put the right file in its place and restart.",
                code="store.file_gone",
            )
