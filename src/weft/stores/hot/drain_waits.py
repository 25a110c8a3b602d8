"""Callers that wait until the durable store has certain events."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from weft.core.ids import RunUid, Seq


class _DrainWait:
    """One caller, and what it still waits for."""

    def __init__(self, left: Mapping[RunUid, Seq]) -> None:
        self.left = dict(left)
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class DrainWaits:
    """Callers by the runs that they wait for."""

    def __init__(self) -> None:
        self._by_uid: dict[RunUid, list[_DrainWait]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_uid)

    def uids(self) -> Iterable[RunUid]:
        """Return the runs that somebody waits for."""
        return self._by_uid

    def add(self, wanted: Mapping[RunUid, Seq]) -> asyncio.Future[None]:
        """Return a future that is done when all these runs are drained up to these numbers, or are lost."""
        wait = _DrainWait(wanted)
        for uid in wanted:
            self._by_uid.setdefault(uid, []).append(wait)
        return wait.done

    def drained(self, uid: RunUid, upto: Seq | None) -> None:
        """Tell those who wait for a run that it is drained up to this number; None: that it never will be."""
        waits = self._by_uid.get(uid)
        if waits is None:
            return
        left = []
        for wait in waits:
            if upto is not None and wait.left[uid] > upto and not wait.done.done():
                left.append(wait)
                continue
            del wait.left[uid]
            if not wait.left and not wait.done.done():
                wait.done.set_result(None)
        if left:
            self._by_uid[uid] = left
        else:
            del self._by_uid[uid]

    def fail(self, error: Exception) -> None:
        """Tell everybody that the durable store does not answer."""
        waits = {id(wait): wait for each in self._by_uid.values() for wait in each}
        self._by_uid.clear()
        for wait in waits.values():
            if not wait.done.done():
                wait.done.set_exception(error)
