"""Hosts in Postgres: a row with a counter. Whoever looks on judges it by a clock of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from weft.core.ids import HostId
from weft.ports.hosts import Heart, HostRow
from weft.stores.postgres.connection import Record
from weft.stores.postgres.hints import Hints
from weft.stores.postgres.lines import Line, fetch, fetch_value
from weft.stores.postgres.rows import json_text
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
    INSERT INTO hosts AS h (host, beats, lease_ms, about, session)
    VALUES ($1, extract(epoch FROM clock_timestamp()), $2, $3, CASE WHEN $4 THEN pg_backend_pid() END)
    ON CONFLICT (host) DO UPDATE SET
        beats = h.beats + 1, lease_ms = excluded.lease_ms, beat_at = clock_timestamp(), stood_ms = 0,
        session = coalesce(excluded.session, h.session)
    RETURNING extract(epoch FROM clock_timestamp()) * 1000
"""
# For how long the server says that a host is silent is a hint: it says when to tell others, and never who is dead.
_COUNTERS = """
    SELECT host, beats, lease_ms, stood_ms, extract(epoch FROM clock_timestamp() - beat_at) * 1000 AS silent_ms
    FROM hosts
"""
# A session ends with its process, and the server knows at once. Its number may be another's by then: that says nothing.
_HUNG_UP = """
    SELECT EXISTS (
        SELECT FROM hosts h WHERE h.host = $1 AND h.beats = $2 AND h.session IS NOT NULL
        AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.pid = h.session)
    )
"""
_STOOD = "UPDATE hosts SET stood_ms = greatest(stood_ms, $3) WHERE host = $1 AND beats = $2"
_LISTED = """
    SELECT h.host, h.about, h.lease_ms,
        greatest(0, extract(epoch FROM clock_timestamp() - h.beat_at) * 1000)::bigint AS silent_ms,
        (SELECT count(*) FROM runs r WHERE r.owner = h.host) AS runs,
        (SELECT count(*) FROM tasks t WHERE t.host = h.host) AS tasks
    FROM hosts h ORDER BY h.host
"""

FORGOTTEN_LEASES = 10
"""A host that stood still for so many leases and has nothing is struck off the list."""

NOTABLE_OF_LEASE = 0.4
"""A host that is well beats three times per lease: its silence is worth no note before this part of it."""
HUNG_UP_OF_LEASE = 0.6
"""A host whose session has ended, and that has not opened another for this part of its lease, is as good as dead."""

FORGETTING = 1.05
NOTED_SECONDS_MAX = 60.0
"""The time of day is taken from the quickest of the last beats, and none counts for longer than this."""


class PostgresHosts:
    """The hosts of a Postgres store, as this process sees them."""

    def __init__(self, line: Line, hints: Hints, limit: Callable[[int], None], new_line: Callable[[], Line]) -> None:
        self._line = line
        self._hints = hints
        self._limit = limit
        self._new_line = new_line
        self._suspicion = Suspicion()
        self._leases: dict[HostId, tuple[int, str]] = {}
        self._living: Sequence[HostId] = ()
        self._way_ms = 0.0
        self._noted_at = 0.0
        self.offset_ms = 0
        """How far the server's clock is ahead of this machine's, as of the last beat."""

    async def join(self, host: HostId, *, lease_ms: int, about: Mapping[str, Any] | None = None) -> None:
        self._leases[host] = (lease_ms, json_text(about or {}))
        self._limit(min(lease_ms for lease_ms, _ in self._leases.values()))
        await self.beat(host)

    async def beat(self, host: HostId) -> None:
        await self.beat_on(self._line, host, lasting=False)

    def heart(self) -> Heart:
        return PostgresHeart(self, self._new_line())

    async def beat_on(self, line: Line, host: HostId, *, lasting: bool) -> None:
        """Also lists a host again that joined here and was taken for dead.

        ``lasting``: the session stays open for as long as the host lives.
        """
        joined = self._leases.get(host)
        if joined is None:
            return
        before = time.time()
        there_ms = await fetch_value(line, _BEAT, host, *joined, lasting)
        self.note_time(before, float(there_ms))

    def note_time(self, before: float, there_ms: float) -> None:
        """What the server's clock said to a question that was put at ``before`` and has just been answered."""
        after = time.time()
        way_ms = (after - before) * 1000
        # Read somewhere between the two; the middle is wrong by half the way at most. So a short way tells more than a
        # long one, but not for ever: clocks drift.
        self._way_ms *= FORGETTING
        if way_ms <= self._way_ms or not 0 <= after - self._noted_at < NOTED_SECONDS_MAX:
            self._way_ms, self._noted_at = way_ms, after
            self.offset_ms = round(there_ms - (before + after) * 500)

    async def dead(self, *, monotonic: float) -> Sequence[HostId]:
        # Owners first: one that joins and claims between the two looks is then listed.
        busy = {HostId(name) for (name,) in await fetch(self._line, _BUSY)}
        rows = await fetch(self._line, _COUNTERS)
        gone = busy - {HostId(row["host"]) for row in rows}
        living = []
        for row in rows:
            stood_ms = await self._stood_ms(row, monotonic)
            if stood_ms < row["lease_ms"] and not await self._has_hung_up(row, stood_ms):
                living.append(HostId(row["host"]))
                continue
            gone.add(row["host"])
            if row["host"] not in busy and stood_ms >= FORGOTTEN_LEASES * row["lease_ms"]:
                # Unless it came back under its name and beats again.
                await fetch(self._line, "DELETE FROM hosts WHERE host = $1 AND beats = $2", row["host"], row["beats"])
                self._suspicion.forget(row["host"])
        self._living = living
        return sorted(gone)

    async def _stood_ms(self, row: Record, monotonic: float) -> float:
        """How long a host has stood still; what others do not know of that yet, they are told."""
        host, beats, known_ms = row["host"], row["beats"], row["stood_ms"]
        stood_ms = self._suspicion.stood_ms(host, beats=beats, monotonic=monotonic, known_ms=known_ms)
        # At once, however little was seen here: where hosts come and go, none may live long enough to see all of it.
        silent = max(stood_ms, row["silent_ms"]) >= row["lease_ms"] * NOTABLE_OF_LEASE
        if silent and stood_ms > known_ms and known_ms < row["lease_ms"]:
            await fetch(self._line, _STOOD, host, beats, int(stood_ms))
        return stood_ms

    async def _has_hung_up(self, row: Record, stood_ms: float) -> bool:
        if stood_ms < row["lease_ms"] * HUNG_UP_OF_LEASE:
            return False
        return bool(await fetch_value(self._line, _HUNG_UP, row["host"], row["beats"]))

    def lost_sight(self) -> None:
        """The server was away, and with it every beat: that time does not count."""
        self._suspicion.lost_sight()

    async def living(self) -> Sequence[HostId]:
        return self._living

    async def listed(self) -> Sequence[HostRow]:
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
            for row in await fetch(self._line, _LISTED)
        ]

    async def leave(self, host: HostId) -> None:
        # Before the row goes: a beat that is under way must not list it again.
        self._leases.pop(host, None)
        await fetch(self._line, "DELETE FROM hosts WHERE host = $1", host)
        self._suspicion.forget(host)
        self._hints.give()

    async def changed(self) -> bool:
        return await self._hints.heard()


class PostgresHeart:
    """The beat on a line of its own."""

    def __init__(self, hosts: PostgresHosts, line: Line) -> None:
        self._hosts = hosts
        self._line = line

    async def beat(self, host: HostId) -> None:
        await self._hosts.beat_on(self._line, host, lasting=True)

    async def close(self) -> None:
        await self._line.close()
