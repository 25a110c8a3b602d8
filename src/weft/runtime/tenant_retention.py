"""Deleting and keeping the runs of one tenant. Ids are those that the tenant uses, without the prefix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from weft.core.ids import RunId, RunUid
from weft.ports.retention import NEWEST, AuditEntry, Cleared, DoomOutcome, DoomResult, DoomRule, Holds, Retention
from weft.ports.store import Directory


class TenantRetention:
    """Deletes runs of one tenant; any other run does not exist."""

    def __init__(self, retention: Retention, directory: Directory, prefix: str) -> None:
        """``directory`` finds only the runs of the tenant."""
        self._retention = retention
        self._directory = directory
        self._prefix = prefix

    async def doom(self, uid: RunUid, rule: DoomRule, entry: AuditEntry | None = None) -> DoomResult:
        if await self._directory.row(uid) is None:
            return DoomResult(outcome=DoomOutcome.UNKNOWN_RUN)
        result = await self._retention.doom(uid, rule, None if entry is None else with_tenant(entry, self._prefix))
        return msgspec.structs.replace(result, run=without_tenant(result.run, self._prefix))

    async def clear(self, *, limit: int) -> Cleared:
        return await self._retention.clear(limit=limit)

    async def is_doomed(self, id: RunId) -> bool:
        return await self._retention.is_doomed(full_id(self._prefix, id))


class TenantHolds:
    """Keeps runs of one tenant, and shows the audit entries about them."""

    def __init__(self, holds: Holds, directory: Directory, prefix: str) -> None:
        """``directory`` finds only the runs of the tenant."""
        self._holds = holds
        self._directory = directory
        self._prefix = prefix

    async def add(self, uid: RunUid, entry: AuditEntry) -> bool:
        return await self._is_visible(uid) and await self._holds.add(uid, with_tenant(entry, self._prefix))

    async def end(self, uid: RunUid, entry: AuditEntry) -> bool:
        return await self._is_visible(uid) and await self._holds.end(uid, with_tenant(entry, self._prefix))

    async def record(self, entry: AuditEntry) -> None:
        await self._holds.record(with_tenant(entry, self._prefix))

    async def find(self, uids: Sequence[RunUid]) -> Mapping[RunUid, AuditEntry]:
        return await self._holds.find([uid for uid in uids if await self._is_visible(uid)])

    async def audit(self, *, run: RunId | None = None, before: int = NEWEST, limit: int = 100) -> Sequence[AuditEntry]:
        if run is None:
            return ()  # only the operator lists all entries
        found = await self._holds.audit(run=full_id(self._prefix, run), before=before, limit=limit)
        return [msgspec.structs.replace(entry, run=run) for entry in found]

    async def _is_visible(self, uid: RunUid) -> bool:
        return await self._directory.row(uid) is not None


def full_id(prefix: str, run_id: str) -> RunId:
    """Return the id with the prefix of the tenant. An id that already has it is unchanged."""
    return RunId(run_id if run_id.startswith(prefix) else f"{prefix}{run_id}")


def with_tenant(entry: AuditEntry, prefix: str) -> AuditEntry:
    """Return the entry with the full id."""
    return msgspec.structs.replace(entry, run=full_id(prefix, entry.run))


def without_tenant(run_id: RunId | None, prefix: str) -> RunId | None:
    """Return the id as the tenant knows it."""
    return None if run_id is None else RunId(run_id.removeprefix(prefix))
