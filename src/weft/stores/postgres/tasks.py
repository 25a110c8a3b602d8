"""The task queue in Postgres."""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from weft.core.ids import HostId, Millis, RunUid
from weft.ports.store import NEVER, Mail
from weft.ports.tasks import (
    RUN_TASK,
    STANDING_RUNS,
    Exchanged,
    KeyLimit,
    LimitedKey,
    QueueLimits,
    QueueRow,
    TaskOffer,
    TaskStanding,
)
from weft.stores.postgres.call_group import CallGroup
from weft.stores.postgres.hints import Hints
from weft.stores.postgres.pool import Pool, fetch, fetch_row, fetch_value
from weft.stores.postgres.rows import mail_values
from weft.stores.postgres.session import Record

_COLUMNS = (
    "t.num, t.host, t.task, t.attempt, t.delivery, t.step, t.queue, t.body, t.epoch, t.not_before, t.limit_name, "
    "t.limit_key, t.unwanted <> 0 OR is_over(r.status) AS unwanted, r.uid"
)
_OFFER = f"SELECT offer_tasks({', '.join(f'${n}' for n in range(1, 12))})"
_TAKE = f"SELECT {_COLUMNS} FROM take_tasks($1, $2, $3, $4, $5) t JOIN runs r ON r.num = t.run ORDER BY t.num"
_TAKEN_BY = (
    f"SELECT {_COLUMNS} FROM tasks t JOIN runs r ON r.num = t.run WHERE t.host = ANY ($1::text[]) "
    "ORDER BY t.num LIMIT $2"
)
_TAKEN_BY_BARE = _TAKEN_BY.replace(", t.body, ", ", '' AS body, ")
_OF_RUN = (
    f"SELECT {_COLUMNS} FROM tasks t JOIN runs r ON r.num = t.run "
    f"WHERE r.uid = $1 AND t.task > {RUN_TASK} AND t.unwanted = 0 ORDER BY t.num"
)
_SETTLE = f"SELECT settle_tasks({', '.join(f'${n}' for n in range(1, 13))})"
_LIMIT = (
    "INSERT INTO queues (queue, priority, concurrency, rate, per_ms, stream) VALUES ($1, $2, $3, $4, $5, $6) "
    "ON CONFLICT (queue) DO UPDATE SET priority = $2, concurrency = $3, rate = $4, per_ms = $5, stream = $6"
)
_LIMITS = "SELECT queue, priority, concurrency, rate, per_ms, stream FROM queues ORDER BY queue"
_QUEUES = (
    "SELECT coalesce(t.queue, q.queue) AS queue, coalesce(t.waiting, 0) AS waiting, coalesce(t.running, 0) AS running, "
    "t.since, "
    "coalesce(q.priority, 0) AS priority, q.concurrency, q.rate, coalesce(q.per_ms, 1000) AS per_ms, "
    "coalesce(q.stream, false) AS stream FROM queues q "
    "FULL JOIN (SELECT queue, count(*) FILTER (WHERE host IS NULL) AS waiting, "
    "count(*) FILTER (WHERE host IS NOT NULL) AS running, "
    "min(greatest(offered_at, not_before)) FILTER (WHERE host IS NULL) AS since "
    f"FROM tasks WHERE task > {RUN_TASK} GROUP BY queue) t ON t.queue = q.queue "
    'ORDER BY coalesce(t.queue, q.queue) COLLATE "C"'
)
_WITHDRAW = "SELECT withdraw_tasks($1, $2)"
_OWN = (
    "SELECT t.num, coalesce(t.limit_name, '') AS limit_name, coalesce(t.limit_key, '') AS limit_key, t.queue "
    "FROM tasks t JOIN runs r ON r.num = t.run "
    "WHERE r.uid = $1 AND t.task = $2 AND t.host IS NULL ORDER BY t.num LIMIT 1"
)
_OF_ITS_KEY = "t.limit_name = $2 AND t.limit_key = $3"
_OF_ITS_QUEUE = f"t.limit_name IS NULL AND t.queue = $2 || $3 AND t.task > {RUN_TASK}"
_COUNT_BEFORE = "SELECT count(t.host), count(*) FILTER (WHERE t.host IS NULL AND t.num < $1) FROM tasks t WHERE "
_RUNS_BEFORE = (
    "SELECT r.id FROM tasks t JOIN runs r ON r.num = t.run WHERE {} AND (t.host IS NOT NULL OR t.num < $1) "
    f"ORDER BY t.host IS NULL, t.num LIMIT {STANDING_RUNS}"
)
_EXCHANGE = f"SELECT * FROM exchange_tasks({', '.join(f'${n}' for n in range(1, 21))})"
_KEYS = (
    "SELECT limit_name, limit_key, count(*) FILTER (WHERE host IS NULL) AS waiting, count(host) AS running, "
    "min(greatest(offered_at, not_before)) FILTER (WHERE host IS NULL) AS since FROM tasks "
    "WHERE limit_name IS NOT NULL GROUP BY limit_name, limit_key "
    "ORDER BY waiting DESC, running DESC, limit_name, limit_key LIMIT $1"
)
_decode_limit = msgspec.json.Decoder(KeyLimit).decode


class PostgresTasks:
    """The task queue of a Postgres store."""

    def __init__(self, pool: Pool, hints: Hints) -> None:
        self._pool = pool
        self._hints = hints
        self._settles = CallGroup(self._settle_rows)

    async def offer(self, tasks: Sequence[TaskOffer]) -> None:
        if tasks:
            columns = zip(*(_values_of_task(task) for task in tasks), strict=True)
            await fetch_value(self._pool, _OFFER, *map(list, columns))
            self._hints.send()

    async def take(
        self, host: HostId, *, queues: Sequence[str] | None, steps: Sequence[str] | None, now: Millis, limit: int
    ) -> Sequence[TaskOffer]:
        names = list(queues) if queues is not None else None
        known = list(steps) if steps is not None else None
        rows = await fetch(self._pool, _TAKE, host, names, known, now, limit)
        return [_offer_of_row(row) for row in rows]

    async def taken_by(
        self, hosts: Sequence[HostId], *, limit: int, with_body: bool = True
    ) -> Sequence[tuple[HostId, TaskOffer]]:
        rows = await fetch(self._pool, _TAKEN_BY if with_body else _TAKEN_BY_BARE, list(hosts), limit)
        return [(HostId(row["host"]), _offer_of_row(row)) for row in rows]

    async def rows(self, uid: RunUid) -> Sequence[TaskOffer]:
        return [_offer_of_row(row) for row in await fetch(self._pool, _OF_RUN, uid)]

    async def settle(self, host: HostId, task: TaskOffer, report: Mail) -> bool:
        return await self._settles.add((host, task.uid, task.task, task.attempt, task.delivery, *mail_values(report)))

    async def _settle_rows(self, rows: Sequence[tuple[Any, ...]]) -> list[bool]:
        columns = map(list, zip(*rows, strict=True))
        settled = set(await fetch_value(self._pool, _SETTLE, *columns))
        if settled:
            self._hints.send()
        return [place in settled for place in range(1, len(rows) + 1)]

    async def withdraw(self, uid: RunUid, tasks: Sequence[int]) -> None:
        await fetch(self._pool, _WITHDRAW, uid, list(tasks))
        # Others may be waiting for a slot that this has freed in a queue.
        self._hints.send()

    async def finish(self, host: HostId, tasks: Sequence[TaskOffer]) -> None:
        await self.exchange(host, tasks, (), now=Millis(0), most=0)
        self._hints.send()

    async def exchange(
        self, host: HostId, finished: Sequence[TaskOffer], offered: Sequence[TaskOffer], *, now: Millis, most: int
    ) -> Exchanged:
        row = await fetch_row(self._pool, _EXCHANGE, *exchange_arguments(host, finished, offered, now, most))
        assert row is not None, "the function returns one row"
        if row["is_ready"]:
            self._hints.send()
        return Exchanged([offered[place - 1] for place in sorted(row["taken"])], row["is_ready"])

    async def limit(self, queue: str, limits: QueueLimits | None) -> None:
        if limits is None:
            await fetch(self._pool, "DELETE FROM queues WHERE queue = $1", queue)
        else:
            values = (limits.priority, limits.concurrency, limits.rate, limits.per_ms, limits.stream)
            await fetch(self._pool, _LIMIT, queue, *values)
        self._hints.send()

    async def limits(self) -> Mapping[str, QueueLimits]:
        return {str(row["queue"]): _limits_of_row(row) for row in await fetch(self._pool, _LIMITS)}

    async def queues(self) -> Sequence[QueueRow]:
        return [
            QueueRow(
                queue=row["queue"],
                waiting=row["waiting"],
                running=row["running"],
                limits=_limits_of_row(row),
                since=row["since"],
            )
            for row in await fetch(self._pool, _QUEUES)
        ]

    async def declare(self, limits: Mapping[str, KeyLimit | None]) -> None:
        for name, limit in sorted(limits.items()):
            values: tuple[Any, ...] = (None, None, None, None)
            if limit is not None:
                values = (limit.concurrency, limit.rate, limit.per_ms, msgspec.json.encode(limit).decode())
            await fetch_value(self._pool, "SELECT declare_limit($1, $2, $3, $4, $5)", name, *values)
        self._hints.send()

    async def declared(self) -> Mapping[str, KeyLimit]:
        rows = await fetch(self._pool, "SELECT name, body FROM key_limits")
        return {str(name): _decode_limit(body) for name, body in rows}

    async def admit(self, host: HostId, run: TaskOffer, now: Millis) -> bool:
        text = "SELECT admit_run($1, $2, $3, $4, $5, $6, $7, $8)"
        values = (host, run.uid, run.epoch, run.step, run.limit, run.key, now, NEVER)
        return bool(await fetch_value(self._pool, text, *values))

    async def admit_waiting(self, now: Millis, *, limit: int) -> int:
        admitted = int(await fetch_value(self._pool, "SELECT admit_runs($1, $2)", now, limit))
        if admitted:
            self._hints.send()
        return admitted

    async def next_turn(self, now: Millis) -> Millis | None:
        # By the clock of the caller, which may differ from that of the server.
        text = "SELECT min(not_before) - rate_time($1) + $1 FROM ready_keys WHERE not_before > rate_time($1)"
        found = await fetch_value(self._pool, text, now)
        return None if found is None else Millis(found)

    async def standing(self, uid: RunUid, task: int) -> TaskStanding | None:
        own = await fetch_row(self._pool, _OWN, uid, task)
        if own is None:
            return None
        which, values = _OF_ITS_KEY, (own["num"], own["limit_name"], own["limit_key"])
        if not own["limit_name"]:
            which, values = _OF_ITS_QUEUE, (own["num"], own["queue"], "")
        counts = await fetch_row(self._pool, _COUNT_BEFORE + which, *values)
        runs = await fetch(self._pool, _RUNS_BEFORE.format(which), *values)
        running, ahead = counts if counts is not None else (0, 0)
        return TaskStanding(running=running, ahead=ahead, runs=[row["id"] for row in runs])

    async def limited_keys(self, *, limit: int) -> Sequence[LimitedKey]:
        return [
            LimitedKey(
                limit=row["limit_name"],
                key=row["limit_key"],
                waiting=row["waiting"],
                running=row["running"],
                since=row["since"],
            )
            for row in await fetch(self._pool, _KEYS, limit)
        ]


def _limits_of_row(row: Record) -> QueueLimits:
    return QueueLimits(
        priority=row["priority"],
        concurrency=row["concurrency"],
        rate=row["rate"],
        per_ms=row["per_ms"],
        stream=row["stream"],
    )


def _values_of_task(task: TaskOffer) -> tuple[Any, ...]:
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
        task.limit or None,
        task.key if task.limit else None,
    )


def _finished_values(task: TaskOffer) -> tuple[Any, ...]:
    return (task.uid, task.task, task.attempt, task.delivery, task.limit or None, task.key if task.limit else None)


def exchange_arguments(
    host: HostId, finished: Sequence[TaskOffer], offered: Sequence[TaskOffer], now: Millis, most: int
) -> tuple[Any, ...]:
    """Return the arguments of the function ``exchange_tasks``."""
    return (
        host,
        now,
        most,
        *_columns_of_tasks(finished, _finished_values, 6),
        *_columns_of_tasks(offered, _values_of_task, 11),
    )


def _columns_of_tasks(
    tasks: Sequence[TaskOffer], values: Callable[[TaskOffer], tuple[Any, ...]], count: int
) -> list[list[Any]]:
    """Return the values of tasks as so many arrays."""
    if not tasks:
        return [[] for _ in range(count)]
    return [list(column) for column in zip(*map(values, tasks), strict=True)]


def _offer_of_row(row: Record) -> TaskOffer:
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
        limit=row["limit_name"] or "",
        key=row["limit_key"] or "",
        unwanted=row["unwanted"],
    )
