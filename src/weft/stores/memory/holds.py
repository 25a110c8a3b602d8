"""Holds and the audit table in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.core.ids import RunId, RunUid
from weft.ports.retention import NEWEST, AuditEntry
from weft.stores.memory.content import MemoryContent


class MemoryHolds:
    """The holds of a memory store."""

    def __init__(self, content: MemoryContent) -> None:
        self._content = content

    async def add(self, uid: RunUid, entry: AuditEntry) -> bool:
        if uid not in self._content.runs or uid in self._content.holds:
            return False
        self._content.holds[uid] = self._content.write_entry(entry)
        return True

    async def end(self, uid: RunUid, entry: AuditEntry) -> bool:
        if self._content.holds.pop(uid, None) is None:
            return False
        self._content.write_entry(entry)
        return True

    async def record(self, entry: AuditEntry) -> None:
        self._content.write_entry(entry)

    async def find(self, uids: Sequence[RunUid]) -> Mapping[RunUid, AuditEntry]:
        return {uid: self._content.holds[uid] for uid in uids if uid in self._content.holds}

    async def audit(self, *, run: RunId | None = None, before: int = NEWEST, limit: int = 100) -> Sequence[AuditEntry]:
        entries = reversed(self._content.audit)
        return [entry for entry in entries if entry.number < before and (run is None or entry.run == run)][:limit]
