"""The task queue in Postgres."""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.core.ids import HostId, Millis, RunUid
from weft.ports.store import OVER_STATUSES, Mail, TaskOffer
from weft.stores.postgres.connection import Record
from weft.stores.postgres.hints import Hints
from weft.stores.postgres.lines import Lines, fetch, fetch_value
from weft.stores.postgres.rows import mail_values

_OVER = ", ".join(f"'{status}'" for status in OVER_STATUSES)
_COLUMNS = "t.num, t.host, t.task, t.attempt, t.delivery, t.step, t.queue, t.body, t.epoch, t.not_before, r.uid"
_OFFER = "SELECT offer_tasks($1, $2, $3, $4, $5, $6, $7, $8, $9)"
FREE = (
    "SELECT t.num FROM tasks t WHERE t.host IS NULL AND t.queue = ANY ($2::text[]) AND t.step = ANY ($3::text[]) "
    "AND t.not_before <= $4 "
    f"AND EXISTS (SELECT 1 FROM runs r WHERE r.num = t.run AND r.status NOT IN ({_OVER})) "
    "ORDER BY t.num LIMIT $5 FOR UPDATE OF t SKIP LOCKED"
)
# As a subquery of its own, because inside the UPDATE the planner may take more rows than LIMIT says.
_TAKE = (
    f"WITH free AS MATERIALIZED ({FREE}) UPDATE tasks t SET host = $1 FROM free, runs r "
    f"WHERE t.num = free.num AND r.num = t.run RETURNING {_COLUMNS}"
)
_HELD = (
    f"SELECT {_COLUMNS} FROM tasks t JOIN runs r ON r.num = t.run WHERE t.host = ANY ($1::text[]) "
    "ORDER BY t.num LIMIT $2"
)
_OF_RUN = f"SELECT {_COLUMNS} FROM tasks t JOIN runs r ON r.num = t.run WHERE r.uid = $1 ORDER BY t.num"
_SETTLE = f"SELECT settle_task({', '.join(f'${n}' for n in range(1, 12))})"
_WITHDRAW = "DELETE FROM tasks t USING runs r WHERE r.uid = $1 AND t.run = r.num AND t.task = ANY ($2::bigint[])"


class PostgresTasks:
    """The task queue of a Postgres store."""

    def __init__(self, lines: Lines, hints: Hints) -> None:
        self._lines = lines
        self._hints = hints

    async def offer(self, tasks: Sequence[TaskOffer]) -> None:
        if tasks:
            columns = zip(*(_values(task) for task in tasks), strict=True)
            await fetch_value(self._lines, _OFFER, *map(list, columns))
            self._hints.give()

    async def take(
        self, host: HostId, *, queues: Sequence[str], steps: Sequence[str], now: Millis, limit: int
    ) -> Sequence[TaskOffer]:
        rows = await fetch(self._lines, _TAKE, host, list(queues), list(steps), now, limit)
        return [_offer(row) for row in sorted(rows, key=lambda row: int(row["num"]))]

    async def held(self, hosts: Sequence[HostId], *, limit: int) -> Sequence[tuple[HostId, TaskOffer]]:
        rows = await fetch(self._lines, _HELD, list(hosts), limit)
        return [(HostId(row["host"]), _offer(row)) for row in rows]

    async def rows(self, uid: RunUid) -> Sequence[TaskOffer]:
        return [_offer(row) for row in await fetch(self._lines, _OF_RUN, uid)]

    async def settle(self, host: HostId, task: TaskOffer, report: Mail) -> bool:
        identity = (host, task.uid, task.task, task.attempt, task.delivery)
        settled = bool(await fetch_value(self._lines, _SETTLE, *identity, *mail_values(report)))
        if settled:
            self._hints.give()
        return settled

    async def withdraw(self, uid: RunUid, tasks: Sequence[int]) -> None:
        await fetch(self._lines, _WITHDRAW, uid, list(tasks))


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
