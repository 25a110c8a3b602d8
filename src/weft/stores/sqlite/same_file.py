"""Check that the path still names the file that was opened.

Writes to a file that was deleted or replaced still succeed, but nobody will ever read them.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from weft.errors import Unavailable

LOOK_S = 0.05
"""How often to check when commits are not synced: a check costs a tenth of such a commit."""


class SameFile:
    """Checks that the path still names the file that was opened."""

    def __init__(self, path: Path, *, each_time: bool) -> None:
        """Remember the file. With ``each_time``, check it at every commit, before the commit is acknowledged."""
        self._path = str(path)
        self._pause_s = 0.0 if each_time else LOOK_S
        self._looked_at = 0.0
        self._identity = self._found()
        self.gone = False
        """The last check found another file, or none."""

    def check(self) -> None:
        """Raise Unavailable if the file has gone."""
        if self._pause_s and not self.gone:
            now = time.monotonic()
            if now - self._looked_at < self._pause_s:
                return
            self._looked_at = now
        self.gone = self._found() != self._identity
        if self.gone:
            raise Unavailable(
                f"{self._path} was deleted or replaced while this process had it open; nothing more is written to it.",
                hint="Put the right file in its place and restart.",
                code="store.file_gone",
            )

    def _found(self) -> tuple[int, int] | None:
        """Return the identity of the file at the path. None: there is none."""
        try:
            found = os.stat(self._path)  # noqa: PTH116  # half the time of Path.stat
        except OSError:
            return None
        return found.st_dev, found.st_ino
