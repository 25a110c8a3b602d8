"""Inboxes in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from weft.core.ids import HostId, Millis, RunId, RunUid
from weft.errors import Corrupt
from weft.ports.store import Addressed, Mail, News
from weft.stores.memory.content import MemoryContent
from weft.stores.memory.directory import MemoryDirectory


class MemoryInboxes:
    """The inboxes of a memory store."""

    def __init__(self, content: MemoryContent, directory: MemoryDirectory) -> None:
        self._content = content
        self._directory = directory

    async def send_to(self, id: RunId, mail: Mail) -> Addressed:
        run = self._content.find(id)
        if run is None:
            return Addressed(None, None)
        row = run.row()
        if row.owner is None or row.fault is not None:
            return Addressed(row, None)
        return Addressed(row, self._content.deliver(msgspec.structs.replace(mail, to=row.uid, urgent=False)))

    async def waiting(self, host: HostId, *, limit: int) -> Mapping[RunUid, Sequence[Mail] | Corrupt]:
        runs = [run for run in self._content.open.values() if run.owner == host and run.inbox and run.fault is None]
        runs.sort(key=lambda run: (next(iter(run.inbox.values())).at, run.new.uid))
        return {run.new.uid: list(run.inbox.values()) for run in runs[:limit]}

    async def news(
        self, host: HostId, workflows: Sequence[tuple[str, str]], *, dead: Sequence[HostId], now: Millis, limit: int
    ) -> News | None:
        """Return the work in any case, because the store cannot tell which of several simulated processes wrote."""
        return News(
            inboxes=await self.waiting(host, limit=limit),
            claimable=bool(await self._directory.claimable(workflows, dead=dead, now=now, limit=1)),
            wake_at=await self._directory.next_wake(workflows, dead=dead),
        )
