"""Who waits for the next commit of a run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from weft.core.ids import RunUid


class Changes:
    """Wakes those who wait for a run to change. It knows of commits of this host only."""

    def __init__(self) -> None:
        self.waiting: dict[RunUid, list[asyncio.Event]] = {}

    @contextmanager
    def of(self, uid: RunUid) -> Iterator[asyncio.Event]:
        """An event that is set whenever a commit of this run is seen."""
        changed = asyncio.Event()
        self.waiting.setdefault(uid, []).append(changed)
        try:
            yield changed
        finally:
            waiting = self.waiting[uid]
            waiting.remove(changed)
            if not waiting:
                del self.waiting[uid]

    def notify(self, uid: RunUid) -> None:
        for changed in self.waiting.get(uid, ()):
            changed.set()
