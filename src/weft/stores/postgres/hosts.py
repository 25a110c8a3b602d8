"""Hosts in Postgres: a row with a counter. Whoever looks on judges it by a clock of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from weft.core.ids import HostId
from weft.stores.postgres.hints import Hints
from weft.stores.postgres.lines import Line, fetch, fetch_value
from weft.stores.suspicion import Suspicion

# Who works on something: owners of runs, and those who took tasks. A host that left has no row, and may be among them.
# Looked up name by name in the index, because a host may own a hundred thousand runs.
_BUSY = """
    WITH RECURSIVE owners AS (
        (SELECT owner AS name FROM runs WHERE owner IS NOT NULL ORDER BY owner LIMIT 1)
        UNION ALL
        SELECT (SELECT r.owner FROM runs r WHERE r.owner > o.name ORDER BY r.owner LIMIT 1)
        FROM owners o WHERE o.name IS NOT NULL
    ),
    workers AS (
        (SELECT host AS name FROM tasks WHERE host IS NOT NULL ORDER BY host LIMIT 1)
        UNION ALL
        SELECT (SELECT t.host FROM tasks t WHERE t.host > w.name ORDER BY t.host LIMIT 1)
        FROM workers w WHERE w.name IS NOT NULL
    )
    SELECT name FROM owners WHERE name IS NOT NULL UNION SELECT name FROM workers WHERE name IS NOT NULL
"""
# A name that comes back counts on from the time of day: nobody takes its new life for the standstill of an old one.
_BEAT = """
    INSERT INTO hosts (host, beats, lease_ms) VALUES ($1, extract(epoch FROM clock_timestamp()), $2)
    ON CONFLICT (host) DO UPDATE SET beats = hosts.beats + 1, lease_ms = excluded.lease_ms
    RETURNING extract(epoch FROM clock_timestamp()) * 1000
"""


FORGOTTEN_LEASES = 10
"""A host that stood still for so many leases and has nothing is struck off the list."""


class PostgresHosts:
    """The hosts of a Postgres store, as this process sees them."""

    def __init__(self, line: Line, hints: Hints, limit: Callable[[int], None]) -> None:
        self._line = line
        self._hints = hints
        self._limit = limit
        self._suspicion = Suspicion()
        self._leases: dict[HostId, int] = {}
        self.offset_ms = 0
        """How far the server's clock is ahead of this machine's, as of the last beat."""

    async def join(self, host: HostId, *, lease_ms: int) -> None:
        self._leases[host] = lease_ms
        self._limit(min(self._leases.values()))
        await self.beat(host)

    async def beat(self, host: HostId) -> None:
        """Also lists a host again that joined here and was taken for dead."""
        lease_ms = self._leases.get(host)
        if lease_ms is None:
            return
        before = time.time()
        there_ms = await fetch_value(self._line, _BEAT, host, lease_ms)
        # Read somewhere between the two; the middle is wrong by half the way at most.
        self.offset_ms = round(float(there_ms) - (before + time.time()) * 500)

    async def dead(self, *, monotonic: float) -> Sequence[HostId]:
        # Owners first: one that joins and claims between the two looks is then listed.
        busy = {HostId(name) for (name,) in await fetch(self._line, _BUSY)}
        rows = await fetch(self._line, "SELECT host, beats, lease_ms FROM hosts")
        listed = {HostId(host): (beats, lease_ms) for host, beats, lease_ms in rows}
        gone = busy - listed.keys()
        for host, (beats, lease_ms) in listed.items():
            if not self._suspicion.is_due(host, beats=beats, lease_ms=lease_ms, monotonic=monotonic):
                continue
            gone.add(host)
            long_ms = FORGOTTEN_LEASES * lease_ms
            if host not in busy and self._suspicion.is_due(host, beats=beats, lease_ms=long_ms, monotonic=monotonic):
                # Unless it came back under its name and beats again.
                await fetch(self._line, "DELETE FROM hosts WHERE host = $1 AND beats = $2", host, beats)
                self._suspicion.forget(host)
        return sorted(gone)

    async def leave(self, host: HostId) -> None:
        await fetch(self._line, "DELETE FROM hosts WHERE host = $1", host)
        self._suspicion.forget(host)
        self._leases.pop(host, None)
        self._hints.give()

    async def changed(self) -> bool:
        return await self._hints.heard()
