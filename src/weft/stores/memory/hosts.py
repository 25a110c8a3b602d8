"""Hosts in memory. A host is dead if it left or if its heartbeat counter has stopped."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from weft.core.ids import HostId
from weft.ports.hosts import HeartbeatSender, HostRow
from weft.ports.tasks import ADMITTED, STREAM
from weft.stores.heartbeat_sender import SharedHeartbeatSender
from weft.stores.memory.content import JoinedHost, MemoryContent
from weft.stores.rows import as_json
from weft.stores.silent_hosts import SilentHosts


class MemoryHosts:
    """The hosts of a memory store, as one observer sees them."""

    def __init__(self, content: MemoryContent) -> None:
        self._content = content
        self._silent = SilentHosts()
        self._living: Sequence[HostId] = ()

    async def join(self, host: HostId, *, lease_ms: int, about: Mapping[str, Any] | None = None) -> None:
        self._content.hosts[host] = JoinedHost(lease_ms, about=as_json(about or {}))

    async def describe(self, host: HostId, about: Mapping[str, Any]) -> None:
        known = self._content.hosts.get(host)
        if known is not None:
            known.about = {**known.about, **as_json(about)}

    async def beat(self, host: HostId) -> None:
        known = self._content.hosts.get(host)
        if known is not None:
            known.beats += 1
            known.beat_at = time.monotonic()

    def heartbeat_sender(self) -> HeartbeatSender:
        return SharedHeartbeatSender(self.beat)

    async def find_dead(self, *, monotonic: float) -> Sequence[HostId]:
        joined = self._content.hosts
        busy = {run.owner for run in self._content.open.values()} | {
            task.host for task in (*self._content.tasks.values(), *self._content.unwanted)
        }
        busy.update(row.wal.host for row in self._content.wals.values() if not row.drained)
        gone = {host for host in busy if host is not None and host not in (ADMITTED, STREAM) and host not in joined}
        for host, row in joined.items():
            if self._silent.is_silent(host, beats=row.beats, lease_ms=row.lease_ms, monotonic=monotonic):
                gone.add(host)
        self._living = [host for host in joined if host not in gone]
        return sorted(gone)

    async def list_living(self) -> Sequence[HostId]:
        return self._living

    async def list_all(self) -> Sequence[HostRow]:
        owners = [run.owner for run in self._content.open.values()]
        workers = [task.host for task in self._content.tasks.values()]
        return [
            HostRow(
                host=host,
                about=row.about,
                lease_ms=row.lease_ms,
                silent_ms=int((time.monotonic() - row.beat_at) * 1000),
                gone=False,
                runs=owners.count(host),
                tasks=workers.count(host),
            )
            for host, row in sorted(self._content.hosts.items())
        ]

    async def leave(self, host: HostId) -> None:
        self._content.hosts.pop(host, None)
        self._silent.forget(host)
