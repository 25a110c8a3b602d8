"""Hosts in SQLite: a row with a counter, and a lock that the operating system takes back when the process is gone."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import apsw
import msgspec

from weft.core.ids import HostId
from weft.ports.hosts import HeartbeatSender, HostRow
from weft.stores.heartbeat import SharedHeartbeatSender
from weft.stores.sqlite.lockfile import LockFiles
from weft.stores.sqlite.reader import SqliteReader
from weft.stores.sqlite.rows import json_text
from weft.stores.sqlite.writer import Writer
from weft.stores.suspicion import Suspicion

_BEAT = "UPDATE hosts SET beats = beats + 1, lease_ms = ?, beat_at = ? WHERE host = ?"
_BEAT_FOREIGN = "UPDATE hosts SET beats = beats + 1, beat_at = ? WHERE host = ?"
_LIST = "INSERT INTO hosts (host, beats, lease_ms, about, beat_at) VALUES (?, 0, ?, ?, ?)"
_LISTED = (
    "SELECT host, about, lease_ms, beat_at, (SELECT count(*) FROM runs WHERE owner = hosts.host), "
    "(SELECT count(*) FROM tasks WHERE tasks.host = hosts.host) FROM hosts ORDER BY host"
)
# Hosts with work: owners of runs and of tasks, including hosts that have left and have no row. The query jumps from
# name to name in the index, because a host may own a hundred thousand runs.
_BUSY = """
    WITH RECURSIVE owners (name) AS (
        SELECT min(owner) FROM runs WHERE owner IS NOT NULL
        UNION ALL
        SELECT (SELECT min(owner) FROM runs WHERE owner > name) FROM owners WHERE name IS NOT NULL
    )
    SELECT name FROM owners WHERE name IS NOT NULL UNION SELECT host FROM tasks WHERE host IS NOT NULL
"""


class SqliteHosts:
    """The hosts of a SQLite store, as this process sees them."""

    def __init__(self, writer: Writer, reader: SqliteReader, locks: LockFiles) -> None:
        self._writer = writer
        self._reader = reader
        self._locks = locks
        self._suspicion = Suspicion()
        self._leases: dict[HostId, tuple[int, str]] = {}
        self._living: Sequence[HostId] = ()
        self._version: int | None = None

    async def join(self, host: HostId, *, lease_ms: int, about: Mapping[str, Any] | None = None) -> None:
        # Locked before it is listed: a row without a lock is a dead host.
        self._locks.take(host)
        self._leases[host] = (lease_ms, json_text(dict(about or {})))
        await self.beat(host)

    async def beat(self, host: HostId) -> None:
        """Record a heartbeat. Lists a host again that joined here and was taken for dead."""
        now = time.time_ns() // 1_000_000
        joined = self._leases.get(host)
        if joined is None:
            await self._writer.small(lambda connection: connection.execute(_BEAT_FOREIGN, (now, host)))
            return
        lease_ms, about = joined

        def work(connection: apsw.Connection) -> None:
            connection.execute(_BEAT, (lease_ms, now, host))
            if not connection.changes():
                connection.execute(_LIST, (host, lease_ms, about, now))

        await self._writer.small(work)

    def heartbeat_sender(self) -> HeartbeatSender:
        return SharedHeartbeatSender(self.beat)

    async def dead(self, *, monotonic: float) -> Sequence[HostId]:
        listed, busy = await self._reader.read_in_thread(_listed_and_busy)
        gone = {host for host in listed if self._locks.is_gone(host)}
        await self._tidy({host: listed[host][0] for host in gone - busy})
        gone |= busy - listed.keys()
        for host, (beats, lease_ms) in listed.items():
            if self._suspicion.is_due(host, beats=beats, lease_ms=lease_ms, monotonic=monotonic):
                gone.add(host)
        self._living = [host for host in listed if host not in gone]
        return sorted(gone)

    async def living(self) -> Sequence[HostId]:
        return self._living

    async def listed(self) -> Sequence[HostRow]:
        now = time.time_ns() // 1_000_000
        rows: list[Any] = await self._reader.read_in_thread(lambda connection: connection.execute(_LISTED).fetchall())
        return [
            HostRow(
                host=HostId(host),
                about=msgspec.json.decode(about),
                lease_ms=lease_ms,
                silent_ms=max(0, now - beat_at),
                gone=self._locks.is_gone(HostId(host)) or now - beat_at >= lease_ms,
                runs=runs,
                tasks=tasks,
            )
            for host, about, lease_ms, beat_at, runs, tasks in rows
        ]

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
            # Unless it came back under the same name and sends heartbeats again.
            connection.executemany("DELETE FROM hosts WHERE host = ? AND beats = ?", idle.items())

        await self._writer.small(work)
        for host in idle:
            self._suspicion.forget(host)
            self._locks.discard(host)


def _listed_and_busy(connection: apsw.Connection) -> tuple[dict[HostId, tuple[int, int]], set[HostId]]:
    listed = {
        HostId(host): (beats, lease_ms)
        for host, beats, lease_ms in connection.execute("SELECT host, beats, lease_ms FROM hosts")
    }
    return listed, {HostId(host) for (host,) in connection.execute(_BUSY)}
