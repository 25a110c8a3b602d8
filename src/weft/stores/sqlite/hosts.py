"""Hosts in SQLite: a row with a counter, and a lock that the operating system takes back when the process is gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import apsw

from weft.core.ids import HostId
from weft.stores.sqlite.lockfile import LockFiles
from weft.stores.sqlite.reader import Reader
from weft.stores.sqlite.writer import Writer
from weft.stores.suspicion import Suspicion

# Who works on something: owners of runs, and those who took tasks. A host that left has no row, and may be among them.
_BUSY = "SELECT owner FROM runs WHERE owner IS NOT NULL UNION SELECT host FROM tasks WHERE host IS NOT NULL"


class SqliteHosts:
    """The hosts of a SQLite store, as this process sees them."""

    def __init__(self, writer: Writer, reader: Reader, locks: LockFiles) -> None:
        self._writer = writer
        self._reader = reader
        self._locks = locks
        self._suspicion = Suspicion()
        self._leases: dict[HostId, int] = {}
        self._version: int | None = None

    async def join(self, host: HostId, *, lease_ms: int) -> None:
        # Locked before it is listed: a row without a lock is a dead host.
        self._locks.take(host)
        self._leases[host] = lease_ms
        await self.beat(host)

    async def beat(self, host: HostId) -> None:
        """Also lists a host again that joined here and was taken for dead."""
        lease_ms = self._leases.get(host)

        def work(connection: apsw.Connection) -> None:
            connection.execute("UPDATE hosts SET beats = beats + 1, lease_ms = ? WHERE host = ?", (lease_ms, host))
            if not connection.changes():
                connection.execute("INSERT INTO hosts (host, beats, lease_ms) VALUES (?, 0, ?)", (host, lease_ms))

        if lease_ms is not None:
            await self._writer.small(work)

    async def dead(self, *, monotonic: float) -> Sequence[HostId]:
        listed, busy = await self._reader.aside(_listed_and_busy)
        gone = {host for host in listed if self._locks.is_gone(host)}
        await self._tidy({host: listed[host][0] for host in gone - busy})
        gone |= busy - listed.keys()
        for host, (beats, lease_ms) in listed.items():
            if self._suspicion.is_due(host, beats=beats, lease_ms=lease_ms, monotonic=monotonic):
                gone.add(host)
        return sorted(gone)

    async def leave(self, host: HostId) -> None:
        await self._writer.small(lambda connection: connection.execute("DELETE FROM hosts WHERE host = ?", (host,)))
        self._suspicion.forget(host)
        self._leases.pop(host, None)
        self._locks.drop(host)

    async def changed(self) -> bool:
        version = await self._writer.look(lambda connection: int(connection.pragma("data_version")))
        before, self._version = self._version, version
        return version != before

    async def _tidy(self, idle: Mapping[HostId, int]) -> None:
        """Remove what is left of hosts that are gone and have nothing that others could take over."""
        if not idle:
            return

        def work(connection: apsw.Connection) -> None:
            # Unless it came back under its name and beats again.
            connection.executemany("DELETE FROM hosts WHERE host = ? AND beats = ?", idle.items())

        await self._writer.small(work)
        for host in idle:
            self._suspicion.forget(host)
            self._locks.discard(host)


def _listed_and_busy(connection: apsw.Connection) -> tuple[dict[HostId, tuple[int, int]], set[HostId]]:
    listed = {HostId(host): (beats, lease_ms) for host, beats, lease_ms in connection.execute("SELECT * FROM hosts")}
    return listed, {HostId(host) for (host,) in connection.execute(_BUSY)}
