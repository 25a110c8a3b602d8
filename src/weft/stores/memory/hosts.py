"""Hosts in memory. A host is dead if it left or if its counter stands still."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from weft.core.ids import HostId
from weft.ports.hosts import HeartbeatSender, HostRow
from weft.stores.heartbeat import SharedHeartbeatSender
from weft.stores.memory.content import JoinedHost, MemoryContent
from weft.stores.rules import plain
from weft.stores.suspicion import Suspicion


class MemoryHosts:
    """The hosts of a memory store, as one observer sees them."""

    def __init__(self, content: MemoryContent) -> None:
        self._content = content
        self._suspicion = Suspicion()
        self._living: Sequence[HostId] = ()

    async def join(self, host: HostId, *, lease_ms: int, about: Mapping[str, Any] | None = None) -> None:
        self._content.hosts[host] = JoinedHost(lease_ms, about=plain(about or {}))

    async def beat(self, host: HostId) -> None:
        known = self._content.hosts.get(host)
        if known is not None:
            known.beats += 1
            known.beat_at = time.monotonic()

    def heartbeat_sender(self) -> HeartbeatSender:
        return SharedHeartbeatSender(self.beat)

    async def dead(self, *, monotonic: float) -> Sequence[HostId]:
        listed = self._content.hosts
        busy = {run.owner for run in self._content.open.values()} | {task.host for task in self._content.tasks.values()}
        gone = {host for host in busy if host is not None and host not in listed}
        for host, row in listed.items():
            if self._suspicion.is_due(host, beats=row.beats, lease_ms=row.lease_ms, monotonic=monotonic):
                gone.add(host)
        self._living = [host for host in listed if host not in gone]
        return sorted(gone)

    async def living(self) -> Sequence[HostId]:
        return self._living

    async def listed(self) -> Sequence[HostRow]:
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
        self._suspicion.forget(host)

    async def changed(self) -> bool:
        """Return True: the store cannot tell which of several simulated processes asks."""
        return True
