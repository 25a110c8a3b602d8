"""WALs in Postgres: what the durable store knows of them.

Runs are created and claimed with the number of the WAL that their host uses. This process knows it without a query, and
a process without Redis does not even ask.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence

import msgspec

from weft.core.ids import Epoch, HostId, RunId, RunUid
from weft.ports.wal_server import WalServer
from weft.ports.wals import ATTACHED_PER_CALL, KEPT_MS, Loss, Wal
from weft.stores.postgres.hints import Hints
from weft.stores.postgres.pool import Pool, fetch, fetch_value
from weft.stores.postgres.session import Session

_NOW = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
_OPEN = f"INSERT INTO wals (host, redis, opened_at) VALUES ($1, $2, {_NOW}) RETURNING id"  # noqa: S608
_NOTE = "UPDATE wals SET last = greatest(last, $2) WHERE id = $1 AND drained_at IS NULL RETURNING true"
# Everybody locks runs in this order.
_ATTACH = """
    WITH mine AS (
        SELECT r.num FROM unnest($3::text[], $4::bigint[]) AS a (uid, epoch)
        JOIN runs r ON r.uid = a.uid AND r.epoch = a.epoch AND r.owner = $2
        WHERE EXISTS (SELECT 1 FROM wals l WHERE l.id = $1 AND l.host = $2 AND l.drained_at IS NULL)
        ORDER BY r.uid FOR NO KEY UPDATE OF r
    )
    UPDATE runs r SET wal = $1 FROM mine WHERE r.num = mine.num RETURNING r.uid
"""
_ATTACHED = (
    "SELECT r.id FROM wals l JOIN runs r ON r.owner = l.host AND r.wal = l.id WHERE l.id = $1 ORDER BY r.id LIMIT $2"
)
_UNDRAINED = """
    SELECT id, host, redis, opened_at, last FROM wals
    WHERE host = ANY ($1::text[]) AND drained_at IS NULL ORDER BY id
"""
_MARK_DRAINED = f"""
    WITH marked AS (
        UPDATE wals SET drained_at = {_NOW}, forced = $2 WHERE id = $1 AND drained_at IS NULL RETURNING id
    ),
    lost AS (INSERT INTO losses (wal, body) SELECT id, $3::text FROM marked WHERE $3::text IS NOT NULL)
    SELECT true FROM marked
"""  # noqa: S608
# A run that names a WAL belongs to its host.
_OLD = f"""
    SELECT l.id FROM wals l WHERE l.drained_at <= {_NOW} - $1
    AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.owner = l.host AND r.wal = l.id) ORDER BY l.id LIMIT $2
"""  # noqa: S608
_REMOVE = "DELETE FROM wals WHERE id = ANY ($1::bigint[]) AND drained_at IS NOT NULL"
_LOSSES = "SELECT body FROM losses WHERE acknowledged_at IS NULL ORDER BY wal"
_ACKNOWLEDGE = f"""
    WITH known AS (UPDATE losses SET acknowledged_at = {_NOW} WHERE acknowledged_at IS NULL RETURNING 1)
    SELECT count(*) FROM known
"""  # noqa: S608
_READ = "SELECT value FROM deployment WHERE name = $1"
_ADD = "INSERT INTO deployment (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING"
_REPLACE = "UPDATE deployment SET value = $3 WHERE name = $1 AND value = $2"
_NAMESPACE, _REDIS = "namespace", "redis"


class PostgresWals:
    """The WALs of a Postgres store."""

    def __init__(self, pool: Pool, hints: Hints) -> None:
        self._pool = pool
        self._hints = hints
        self.server: WalServer | None = None
        self.on_asked: Callable[[RunUid], None] = lambda _: None
        hints.on_asked = lambda uid: self.on_asked(RunUid(uid))
        self.in_use: dict[HostId, int] = {}
        """The WALs that the hosts of this process use."""

    def ask_to_drain(self, uid: RunUid) -> None:
        self._hints.ask_to_drain(uid)

    async def namespace(self) -> str:
        async def work(session: Session) -> str:
            found = await session.fetchval(_READ, _NAMESPACE)
            if found is None:
                await session.execute(_ADD, _NAMESPACE, secrets.token_hex(8))
                found = await session.fetchval(_READ, _NAMESPACE)
            return str(found)

        return await self._pool.run(work)

    async def redis_id(self) -> str | None:
        found: str | None = await fetch_value(self._pool, _READ, _REDIS)
        return found

    async def agree_redis_id(self, expected: str | None, new: str) -> str:
        async def work(session: Session) -> str:
            if expected is None:
                await session.execute(_ADD, _REDIS, new)
            else:
                await session.execute(_REPLACE, _REDIS, expected, new)
            return str(await session.fetchval(_READ, _REDIS))

        return await self._pool.run(work)

    async def see_redis_id(self, host: HostId, seen: str | None) -> None:
        await fetch(self._pool, "UPDATE hosts SET redis = $2 WHERE host = $1", host, seen)

    async def seen_redis_ids(self) -> Mapping[HostId, str | None]:
        return {HostId(host): redis for host, redis in await fetch(self._pool, "SELECT host, redis FROM hosts")}

    async def open(self, host: HostId, redis: str) -> int:
        number = int(await fetch_value(self._pool, _OPEN, host, redis))
        self.in_use[host] = number
        return number

    async def note(self, wal: int, last: int) -> bool:
        return bool(await fetch_value(self._pool, _NOTE, wal, last))

    async def attach(self, wal: int, host: HostId, runs: Mapping[RunUid, Epoch]) -> Sequence[RunUid]:
        wanted = list(runs)
        attached: list[RunUid] = []
        for start in range(0, len(wanted), ATTACHED_PER_CALL):
            group = wanted[start : start + ATTACHED_PER_CALL]
            rows = await fetch(self._pool, _ATTACH, wal, host, group, [runs[uid] for uid in group])
            attached += [RunUid(uid) for (uid,) in rows]
        return attached

    async def attached(self, wal: int, *, limit: int) -> Sequence[RunId]:
        return [RunId(name) for (name,) in await fetch(self._pool, _ATTACHED, wal, limit)]

    async def undrained(self, hosts: Sequence[HostId]) -> Sequence[Wal]:
        rows = await fetch(self._pool, _UNDRAINED, list(hosts))
        return [Wal(id=row[0], host=row[1], redis=row[2], opened_at=row[3], last=row[4]) for row in rows]

    async def mark_drained(self, wal: int, *, forced: bool = False, loss: Loss | None = None) -> bool:
        body = None if loss is None else msgspec.json.encode(loss).decode()
        marked = bool(await fetch_value(self._pool, _MARK_DRAINED, wal, forced, body))
        for host in [host for host, number in self.in_use.items() if number == wal]:
            del self.in_use[host]
        return marked

    async def old(self, *, limit: int) -> Sequence[int]:
        return [int(number) for (number,) in await fetch(self._pool, _OLD, KEPT_MS, limit)]

    async def remove(self, wals: Sequence[int]) -> None:
        await fetch(self._pool, _REMOVE, list(wals))

    async def losses(self) -> Sequence[Loss]:
        return [msgspec.json.decode(body, type=Loss) for (body,) in await fetch(self._pool, _LOSSES)]

    async def acknowledge_losses(self) -> int:
        return int(await fetch_value(self._pool, _ACKNOWLEDGE))
