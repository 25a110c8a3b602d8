"""WALs in memory: what a durable store knows of them."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from weft.core.ids import Epoch, HostId, Millis, RunId, RunUid
from weft.ports.wal_server import WalServer
from weft.ports.wals import KEPT_MS, Loss, Wal
from weft.stores.memory.content import MemoryContent, StoredWal


def _now_ms() -> Millis:
    return Millis(time.time_ns() // 1_000_000)


class MemoryWals:
    """The WALs of a memory store."""

    def __init__(self, content: MemoryContent) -> None:
        self._content = content
        self.server: WalServer | None = None
        self.on_asked: Callable[[RunUid], None] = lambda _: None
        content.drain_askers.append(self._notify_asked)

    def ask_to_drain(self, uid: RunUid) -> None:
        for ask in self._content.drain_askers:
            ask(uid)

    def _notify_asked(self, uid: RunUid) -> None:
        self.on_asked(uid)

    async def namespace(self) -> str:
        return self._content.deployment.setdefault("namespace", secrets.token_hex(8))

    async def redis_id(self) -> str | None:
        return self._content.deployment.get("redis")

    async def agree_redis_id(self, expected: str | None, new: str) -> str:
        if self._content.deployment.get("redis") == expected:
            self._content.deployment["redis"] = new
        return self._content.deployment["redis"]

    async def see_redis_id(self, host: HostId, seen: str | None) -> None:
        joined = self._content.hosts.get(host)
        if joined is not None:
            joined.redis = seen

    async def seen_redis_ids(self) -> Mapping[HostId, str | None]:
        return {host: joined.redis for host, joined in self._content.hosts.items()}

    async def open(self, host: HostId, redis: str) -> int:
        number = self._content.last_wal = self._content.last_wal + 1
        self._content.wals[number] = StoredWal(Wal(id=number, host=host, redis=redis, opened_at=_now_ms(), last=0))
        self._content.host_wals[host] = number
        return number

    async def note(self, wal: int, last: int) -> bool:
        row = self._content.wals.get(wal)
        if row is None or row.drained:
            return False
        row.wal = msgspec.structs.replace(row.wal, last=max(last, row.wal.last))
        return True

    async def attach(self, wal: int, host: HostId, runs: Mapping[RunUid, Epoch]) -> Sequence[RunUid]:
        row = self._content.wals.get(wal)
        if row is None or row.drained or row.wal.host != host:
            return []
        attached = []
        for uid, epoch in runs.items():
            run = self._content.open.get(uid)
            if run is not None and run.owner == host and run.epoch == epoch:
                run.wal = wal
                attached.append(uid)
        return attached

    async def attached(self, wal: int, *, limit: int) -> Sequence[RunId]:
        host = self._content.wals[wal].wal.host
        found = [run.id for run in self._content.open.values() if run.wal == wal and run.owner == host]
        return sorted(found)[:limit]

    async def undrained(self, hosts: Sequence[HostId]) -> Sequence[Wal]:
        return [row.wal for row in self._content.wals.values() if not row.drained and row.wal.host in hosts]

    async def mark_drained(self, wal: int, *, forced: bool = False, loss: Loss | None = None) -> bool:
        row = self._content.wals.get(wal)
        if row is None or row.drained:
            return False
        row.drained, row.forced, row.drained_at = True, forced, _now_ms()
        if loss is not None:
            self._content.losses.append(loss)
        return True

    async def old(self, *, limit: int) -> Sequence[int]:
        before = _now_ms() - KEPT_MS
        named = {run.wal for run in self._content.open.values()}
        rows = self._content.wals.items()
        old = [number for number, row in rows if row.drained and row.drained_at <= before and number not in named]
        return old[:limit]

    async def remove(self, wals: Sequence[int]) -> None:
        for wal in wals:
            self._content.wals.pop(wal, None)

    async def losses(self) -> Sequence[Loss]:
        return list(self._content.losses)

    async def acknowledge_losses(self) -> int:
        count = len(self._content.losses)
        self._content.losses.clear()
        return count
