"""Hosts in Postgres. Each has a row with a heartbeat counter, which observers time with their own clocks."""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from weft.core.ids import HostId
from weft.ports.hosts import HeartbeatSender, HostRow
from weft.ports.tasks import ADMITTED, STREAM
from weft.stores.postgres.connection import Connection
from weft.stores.postgres.hints import Hints
from weft.stores.postgres.pool import fetch, fetch_value
from weft.stores.postgres.session import Record
from weft.stores.rows import json_text
from weft.stores.silent_hosts import SilentHosts

# Selects the hosts that own runs, have taken tasks or have a WAL that is not drained, including hosts that have left
# and have no row. The query jumps from name to name in the index, because a host may own a hundred thousand runs.
_BUSY = f"""
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
    SELECT name FROM owners WHERE name IS NOT NULL UNION
    SELECT name FROM workers WHERE name NOT IN ('{ADMITTED}', '{STREAM}')
    UNION SELECT host FROM wals WHERE drained_at IS NULL
"""
# The counter starts at the time of day, so that a host that comes back under its name never repeats an old value.
_BEAT = """
    INSERT INTO hosts AS h (host, beats, lease_ms, about, session)
    VALUES ($1, extract(epoch FROM clock_timestamp()), $2, $3, CASE WHEN $4 THEN pg_backend_pid() END)
    ON CONFLICT (host) DO UPDATE SET
        beats = h.beats + 1, lease_ms = excluded.lease_ms, beat_at = clock_timestamp(), stood_ms = 0,
        session = coalesce(excluded.session, h.session)
    RETURNING extract(epoch FROM clock_timestamp()) * 1000
"""
_BEAT_REMOTE = "UPDATE hosts SET beats = beats + 1, beat_at = clock_timestamp(), stood_ms = 0 WHERE host = $1"
_DESCRIBE = "UPDATE hosts SET about = $2 WHERE host = $1"
# silent_ms is measured by the clock of the server. It decides when silence is recorded, never who is dead.
_COUNTERS = """
    SELECT host, beats, lease_ms, stood_ms, extract(epoch FROM clock_timestamp() - beat_at) * 1000 AS silent_ms
    FROM hosts
"""
# A session ends with its process, and the server knows at once. If another session already has its pid, the host seems
# alive for a little longer, which is harmless.
_SESSION_ENDED = """
    SELECT EXISTS (
        SELECT FROM hosts h WHERE h.host = $1 AND h.beats = $2 AND h.session IS NOT NULL
        AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.pid = h.session)
    )
"""
_RECORD_SILENCE = "UPDATE hosts SET stood_ms = greatest(stood_ms, $3) WHERE host = $1 AND beats = $2"
_LIST_ALL = """
    SELECT h.host, h.about, h.lease_ms,
        greatest(0, extract(epoch FROM clock_timestamp() - h.beat_at) * 1000)::bigint AS silent_ms,
        (SELECT count(*) FROM runs r WHERE r.owner = h.host) AS runs,
        (SELECT count(*) FROM tasks t WHERE t.host = h.host) AS tasks
    FROM hosts h ORDER BY h.host
"""

DELETE_LEASES = 10
"""The row of a host without work is deleted after this many leases without a heartbeat."""

RECORDED_SHARE = 0.4
"""A silence is recorded from this share of the lease on. A healthy host sends three heartbeats per lease."""
SESSION_ENDED_SHARE = 0.6
"""A host whose session has ended counts as dead after this share of its lease without a heartbeat."""

ROUND_TRIP_GROWTH = 1.05
"""The fastest known round trip counts as slower with every heartbeat, so that a newer reading replaces it."""
READING_SECONDS_MAX = 60.0
"""How long a reading of the server's clock is used. The readings come from the fastest of recent heartbeats."""


class PostgresHosts:
    """The hosts of a Postgres store, as this process sees them."""

    def __init__(
        self,
        connection: Connection,
        hints: Hints,
        limit: Callable[[int], None],
        new_connection: Callable[[], Connection],
    ) -> None:
        self._connection = connection
        self._hints = hints
        self._limit = limit
        self._new_connection = new_connection
        self._silent = SilentHosts()
        self._leases: dict[HostId, tuple[int, str]] = {}
        self._living: Sequence[HostId] = ()
        self._round_trip_ms = 0.0
        self._read_at = 0.0
        self.offset_ms = 0
        """How far the server's clock is ahead of this machine's."""

    async def join(self, host: HostId, *, lease_ms: int, about: Mapping[str, Any] | None = None) -> None:
        self._leases[host] = (lease_ms, json_text(about or {}))
        self._limit(min(lease_ms for lease_ms, _ in self._leases.values()))
        await self.beat(host)

    async def describe(self, host: HostId, about: Mapping[str, Any]) -> None:
        if host not in self._leases:
            return
        lease_ms, known = self._leases[host]
        text = json_text({**msgspec.json.decode(known), **about})
        self._leases[host] = (lease_ms, text)
        await fetch(self._connection, _DESCRIBE, host, text)

    async def beat(self, host: HostId) -> None:
        await self.beat_on(self._connection, host, lasting=False)

    def heartbeat_sender(self) -> HeartbeatSender:
        return PostgresHeartbeatSender(self, self._new_connection())

    async def beat_on(self, connection: Connection, host: HostId, *, lasting: bool) -> None:
        """Raise the counter of a host, and insert its row again if others have deleted it.

        ``lasting`` means that the session stays open as long as the host lives.
        """
        joined = self._leases.get(host)
        if joined is None:
            await fetch(connection, _BEAT_REMOTE, host)
            return
        before = time.time()
        server_ms = await fetch_value(connection, _BEAT, host, *joined, lasting)
        self.record_server_time(before, float(server_ms))

    def record_server_time(self, before: float, server_ms: float) -> None:
        """Update the offset of the server's clock, which read ``server_ms`` between ``before`` and now."""
        after = time.time()
        round_trip_ms = (after - before) * 1000
        # The middle of the round trip is wrong by at most half of it. A shorter round trip is more exact, but clocks
        # drift, so its reading expires.
        self._round_trip_ms *= ROUND_TRIP_GROWTH
        if round_trip_ms <= self._round_trip_ms or not 0 <= after - self._read_at < READING_SECONDS_MAX:
            self._round_trip_ms, self._read_at = round_trip_ms, after
            self.offset_ms = round(server_ms - (before + after) * 500)

    async def find_dead(self, *, monotonic: float) -> Sequence[HostId]:
        # Owners are read first, so that a host that joins and claims between the two queries has a row in the second.
        busy = {HostId(name) for (name,) in await fetch(self._connection, _BUSY)}
        rows = await fetch(self._connection, _COUNTERS)
        gone = busy - {HostId(row["host"]) for row in rows}
        living = []
        for row in rows:
            stood_ms = await self._measure_silence(row, monotonic)
            if stood_ms < row["lease_ms"] and not await self._has_session_ended(row, stood_ms):
                living.append(HostId(row["host"]))
                continue
            gone.add(row["host"])
            if row["host"] not in busy and stood_ms >= DELETE_LEASES * row["lease_ms"]:
                # The counter is compared, because the host may have come back under the same name.
                await fetch(
                    self._connection, "DELETE FROM hosts WHERE host = $1 AND beats = $2", row["host"], row["beats"]
                )
                self._silent.forget(row["host"])
        self._living = living
        return sorted(gone)

    async def _measure_silence(self, row: Record, monotonic: float) -> float:
        """Return how long a host has been silent, and record it for other observers."""
        host, beats, known_ms = row["host"], row["beats"], row["stood_ms"]
        stood_ms = self._silent.measure_silence(host, beats=beats, monotonic=monotonic, known_ms=known_ms)
        # Recorded early, because short-lived observers may never see a whole lease pass.
        is_notable = max(stood_ms, row["silent_ms"]) >= row["lease_ms"] * RECORDED_SHARE
        if is_notable and stood_ms > known_ms and known_ms < row["lease_ms"]:
            await fetch(self._connection, _RECORD_SILENCE, host, beats, int(stood_ms))
        return stood_ms

    async def _has_session_ended(self, row: Record, stood_ms: float) -> bool:
        if stood_ms < row["lease_ms"] * SESSION_ENDED_SHARE:
            return False
        return bool(await fetch_value(self._connection, _SESSION_ENDED, row["host"], row["beats"]))

    def lost_sight(self) -> None:
        """Do not count the last outage of the server as silence, because no host could send heartbeats."""
        self._silent.lost_sight()

    async def list_living(self) -> Sequence[HostId]:
        return self._living

    async def list_all(self) -> Sequence[HostRow]:
        return [
            HostRow(
                host=row["host"],
                about=msgspec.json.decode(row["about"]),
                lease_ms=row["lease_ms"],
                silent_ms=row["silent_ms"],
                gone=row["silent_ms"] >= row["lease_ms"],
                runs=row["runs"],
                tasks=row["tasks"],
            )
            for row in await fetch(self._connection, _LIST_ALL)
        ]

    async def leave(self, host: HostId) -> None:
        # Forget the lease before the row is deleted, so that a heartbeat in flight does not insert the row again.
        self._leases.pop(host, None)
        await fetch(self._connection, "DELETE FROM hosts WHERE host = $1", host)
        self._silent.forget(host)
        self._hints.send()


class PostgresHeartbeatSender:
    """Sends the heartbeat of a host on its own connection."""

    def __init__(self, hosts: PostgresHosts, connection: Connection) -> None:
        self._hosts = hosts
        self._connection = connection

    async def beat(self, host: HostId) -> None:
        await self._hosts.beat_on(self._connection, host, lasting=True)

    async def close(self) -> None:
        await self._connection.close()
