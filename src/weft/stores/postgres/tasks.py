"""The task queue in Postgres."""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.core.ids import HostId, Millis, RunUid
from weft.ports.store import Mail, QueueLimits, QueueRow, TaskOffer
from weft.stores.postgres.hints import Hints
from weft.stores.postgres.pool import Pool, fetch, fetch_value
from weft.stores.postgres.rows import mail_values
from weft.stores.postgres.session import Record

_COLUMNS = "t.num, t.host, t.task, t.attempt, t.delivery, t.step, t.queue, t.body, t.epoch, t.not_before, r.uid"
_OFFER = "SELECT offer_tasks($1, $2, $3, $4, $5, $6, $7, $8, $9)"
_WAITING_QUEUES = "(SELECT coalesce(array_agg(DISTINCT queue), '{}') FROM tasks WHERE host IS NULL)"
_TAKE = (
    f"SELECT {_COLUMNS} FROM take_tasks($1, coalesce($2::text[], {_WAITING_QUEUES}), $3, $4, $5) t "
    "JOIN runs r ON r.num = t.run ORDER BY t.num"
)
_TAKEN_BY = (
    f"SELECT {_COLUMNS} FROM tasks t JOIN runs r ON r.num = t.run WHERE t.host = ANY ($1::text[]) "
    "ORDER BY t.num LIMIT $2"
)
_OF_RUN = f"SELECT {_COLUMNS} FROM tasks t JOIN runs r ON r.num = t.run WHERE r.uid = $1 ORDER BY t.num"
_SETTLE = f"SELECT settle_task({', '.join(f'${n}' for n in range(1, 13))})"
_LIMIT = (
    "INSERT INTO queues (queue, priority, concurrency, rate, per_ms) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (queue) "
    "DO UPDATE SET priority = $2, concurrency = $3, rate = $4, per_ms = $5"
)
_LIMITS = "SELECT queue, priority, concurrency, rate, per_ms FROM queues ORDER BY queue"
_QUEUES = (
    "SELECT coalesce(t.queue, q.queue) AS queue, coalesce(t.waiting, 0) AS waiting, coalesce(t.running, 0) AS running, "
    "coalesce(q.priority, 0) AS priority, q.concurrency, q.rate, coalesce(q.per_ms, 1000) AS per_ms FROM queues q "
    "FULL JOIN (SELECT queue, count(*) FILTER (WHERE host IS NULL) AS waiting, "
    "count(*) FILTER (WHERE host IS NOT NULL) AS running FROM tasks GROUP BY queue) t ON t.queue = q.queue "
    'ORDER BY coalesce(t.queue, q.queue) COLLATE "C"'
)
_WITHDRAW = "DELETE FROM tasks t USING runs r WHERE r.uid = $1 AND t.run = r.num AND t.task = ANY ($2::bigint[])"


class PostgresTasks:
    """The task queue of a Postgres store."""

    def __init__(self, pool: Pool, hints: Hints) -> None:
        self._pool = pool
        self._hints = hints

    async def offer(self, tasks: Sequence[TaskOffer]) -> None:
        if tasks:
            columns = zip(*(_values(task) for task in tasks), strict=True)
            await fetch_value(self._pool, _OFFER, *map(list, columns))
            self._hints.send()

    async def take(
        self, host: HostId, *, queues: Sequence[str] | None, steps: Sequence[str], now: Millis, limit: int
    ) -> Sequence[TaskOffer]:
        names = list(queues) if queues is not None else None
        rows = await fetch(self._pool, _TAKE, host, names, list(steps), now, limit)
        return [_offer(row) for row in rows]

    async def taken_by(self, hosts: Sequence[HostId], *, limit: int) -> Sequence[tuple[HostId, TaskOffer]]:
        rows = await fetch(self._pool, _TAKEN_BY, list(hosts), limit)
        return [(HostId(row["host"]), _offer(row)) for row in rows]

    async def rows(self, uid: RunUid) -> Sequence[TaskOffer]:
        return [_offer(row) for row in await fetch(self._pool, _OF_RUN, uid)]

    async def settle(self, host: HostId, task: TaskOffer, report: Mail) -> bool:
        identity = (host, task.uid, task.task, task.attempt, task.delivery)
        settled = bool(await fetch_value(self._pool, _SETTLE, *identity, *mail_values(report)))
        if settled:
            self._hints.send()
        return settled

    async def withdraw(self, uid: RunUid, tasks: Sequence[int]) -> None:
        await fetch(self._pool, _WITHDRAW, uid, list(tasks))
        # Others may be waiting for a slot that this has freed in a queue.
        self._hints.send()

    async def limit(self, queue: str, limits: QueueLimits | None) -> None:
        if limits is None:
            await fetch(self._pool, "DELETE FROM queues WHERE queue = $1", queue)
        else:
            values = (limits.priority, limits.concurrency, limits.rate, limits.per_ms)
            await fetch(self._pool, _LIMIT, queue, *values)
        self._hints.send()

    async def limits(self) -> Mapping[str, QueueLimits]:
        return {str(row["queue"]): _limits(row) for row in await fetch(self._pool, _LIMITS)}

    async def queues(self) -> Sequence[QueueRow]:
        return [
            QueueRow(queue=row["queue"], waiting=row["waiting"], running=row["running"], limits=_limits(row))
            for row in await fetch(self._pool, _QUEUES)
        ]


def _limits(row: Record) -> QueueLimits:
    return QueueLimits(priority=row["priority"], concurrency=row["concurrency"], rate=row["rate"], per_ms=row["per_ms"])


def _values(task: TaskOffer) -> tuple[Any, ...]:
    return (
        task.uid,
        task.task,
        task.attempt,
        task.delivery,
        task.step,
        task.queue,
        task.body.decode(),
        task.epoch,
        task.not_before,
    )


def _offer(row: Record) -> TaskOffer:
    return TaskOffer(
        uid=row["uid"],
        task=row["task"],
        attempt=row["attempt"],
        delivery=row["delivery"],
        step=row["step"],
        queue=row["queue"],
        body=row["body"].encode(),
        epoch=row["epoch"],
        not_before=row["not_before"],
    )
