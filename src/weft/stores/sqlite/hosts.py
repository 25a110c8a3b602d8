"""Hosts in SQLite. Each has a row with a heartbeat counter, and a lock that the system frees when its process ends."""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import apsw
import msgspec

from weft.core.ids import HostId
from weft.ports.hosts import HeartbeatSender, HostRow
from weft.ports.tasks import ADMITTED, STREAM
from weft.stores.heartbeat_sender import SharedHeartbeatSender
from weft.stores.rows import json_text
from weft.stores.silent_hosts import SilentHosts
from weft.stores.sqlite.lockfile import LockFiles
from weft.stores.sqlite.reader import SqliteReader
from weft.stores.sqlite.writer import Writer

_BEAT = "UPDATE hosts SET beats = beats + 1, lease_ms = ?, beat_at = ? WHERE host = ?"
_BEAT_REMOTE = "UPDATE hosts SET beats = beats + 1, beat_at = ? WHERE host = ?"
_JOIN = "INSERT INTO hosts (host, beats, lease_ms, about, beat_at) VALUES (?, 0, ?, ?, ?)"
_DESCRIBE = "UPDATE hosts SET about = ? WHERE host = ?"
_LIST_ALL = (
    "SELECT host, about, lease_ms, beat_at, (SELECT count(*) FROM runs WHERE owner = hosts.host), "
    "(SELECT count(*) FROM tasks WHERE tasks.host = hosts.host) FROM hosts ORDER BY host"
)
# Selects the hosts that own runs or have taken tasks, including hosts that have left and have no row. The query jumps
# from name to name in the index, because a host may own a hundred thousand runs.
_BUSY = f"""
    WITH RECURSIVE owners (name) AS (
        SELECT min(owner) FROM runs WHERE owner IS NOT NULL
        UNION ALL
        SELECT (SELECT min(owner) FROM runs WHERE owner > name) FROM owners WHERE name IS NOT NULL
    )
    SELECT name FROM owners WHERE name IS NOT NULL UNION
    SELECT host FROM tasks WHERE host > '{ADMITTED}' AND host <> '{STREAM}'
"""


class SqliteHosts:
    """The hosts of a SQLite store, as this process sees them."""

    def __init__(self, writer: Writer, reader: SqliteReader, locks: LockFiles) -> None:
        self._writer = writer
        self._reader = reader
        self._locks = locks
        self._silent = SilentHosts()
        self._leases: dict[HostId, tuple[int, str]] = {}
        self._living: Sequence[HostId] = ()

    async def join(self, host: HostId, *, lease_ms: int, about: Mapping[str, Any] | None = None) -> None:
        # Lock before the row is written, because a row without a lock means a dead host.
        self._locks.take(host)
        self._leases[host] = (lease_ms, json_text(dict(about or {})))
        await self.beat(host)

    async def describe(self, host: HostId, about: Mapping[str, Any]) -> None:
        if host not in self._leases:
            return
        lease_ms, known = self._leases[host]
        text = json_text({**msgspec.json.decode(known), **about})
        self._leases[host] = (lease_ms, text)
        await self._writer.small(lambda connection: connection.execute(_DESCRIBE, (text, host)))

    async def beat(self, host: HostId) -> None:
        """Record a heartbeat. Inserts the row again if the host joined here and others removed it as dead."""
        now = time.time_ns() // 1_000_000
        joined = self._leases.get(host)
        if joined is None:
            await self._writer.small(lambda connection: connection.execute(_BEAT_REMOTE, (now, host)))
            return
        lease_ms, about = joined

        def work(connection: apsw.Connection) -> None:
            connection.execute(_BEAT, (lease_ms, now, host))
            if not connection.changes():
                connection.execute(_JOIN, (host, lease_ms, about, now))

        await self._writer.small(work)

    def heartbeat_sender(self) -> HeartbeatSender:
        return SharedHeartbeatSender(self.beat)

    async def find_dead(self, *, monotonic: float) -> Sequence[HostId]:
        joined, busy = await self._reader.read_in_thread(_joined_and_busy)
        gone = {host for host in joined if self._locks.is_gone(host)}
        await self._remove_idle({host: joined[host][0] for host in gone - busy})
        gone |= busy - joined.keys()
        for host, (beats, lease_ms) in joined.items():
            if self._silent.is_silent(host, beats=beats, lease_ms=lease_ms, monotonic=monotonic):
                gone.add(host)
        self._living = [host for host in joined if host not in gone]
        return sorted(gone)

    async def list_living(self) -> Sequence[HostId]:
        return self._living

    async def list_all(self) -> Sequence[HostRow]:
        now = time.time_ns() // 1_000_000
        rows: list[Any] = await self._reader.read_in_thread(lambda connection: connection.execute(_LIST_ALL).fetchall())
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
        self._silent.forget(host)
        self._leases.pop(host, None)
        self._locks.drop(host)

    async def _remove_idle(self, idle: Mapping[HostId, int]) -> None:
        """Remove the rows and lock files of dead hosts that have nothing for others to take over."""
        if not idle:
            return

        def work(connection: apsw.Connection) -> None:
            # The counter is compared, because a host may have come back under the same name.
            connection.executemany("DELETE FROM hosts WHERE host = ? AND beats = ?", idle.items())

        await self._writer.small(work)
        for host in idle:
            self._silent.forget(host)
            self._locks.discard(host)


def _joined_and_busy(connection: apsw.Connection) -> tuple[dict[HostId, tuple[int, int]], set[HostId]]:
    joined = {
        HostId(host): (beats, lease_ms)
        for host, beats, lease_ms in connection.execute("SELECT host, beats, lease_ms FROM hosts")
    }
    return joined, {HostId(host) for (host,) in connection.execute(_BUSY)}
