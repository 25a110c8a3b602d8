"""The task queue in SQLite."""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import apsw
import msgspec

from weft.core.ids import HostId, Millis, RunUid
from weft.ports.store import OVER_STATUSES, Mail, QueueLimits, QueueRow, TaskOffer
from weft.stores.queues import pick_tasks
from weft.stores.sqlite.mail import deliver
from weft.stores.sqlite.queues import read_limits, read_queues, read_room, record_handed_out, set_limits
from weft.stores.sqlite.reader import SqliteReader
from weft.stores.sqlite.writer import Writer

_OVER = ", ".join(f"'{status}'" for status in OVER_STATUSES)
_OFFER = (
    "INSERT INTO tasks (run, task, attempt, delivery, step, queue, body, epoch, not_before) "
    "SELECT num, ?, ?, ?, ?, ?, ?, epoch, ? FROM runs "
    f"WHERE uid = ? AND epoch = ? AND owner IS NOT NULL AND status NOT IN ({_OVER}) ON CONFLICT DO NOTHING"
)
_COLUMNS = "task, attempt, delivery, step, queue, body, tasks.epoch, not_before, (SELECT uid FROM runs WHERE num = run)"
_FREE = (
    "SELECT num FROM tasks WHERE host IS NULL AND queue IN (SELECT value FROM json_each(?)) "
    "AND step IN (SELECT value FROM json_each(?)) AND not_before <= ? "
    f"AND EXISTS (SELECT 1 FROM runs WHERE runs.num = run AND status NOT IN ({_OVER})) ORDER BY num LIMIT ?"
)
_WAITING = "SELECT DISTINCT queue FROM tasks WHERE host IS NULL"
_TAKEN_BY = f"SELECT host, {_COLUMNS} FROM tasks WHERE host IN (SELECT value FROM json_each(?)) ORDER BY num LIMIT ?"
_OF_RUN = f"SELECT {_COLUMNS} FROM tasks WHERE run = (SELECT num FROM runs WHERE uid = ?) ORDER BY num"
_TAKEN_TASK = "run = (SELECT num FROM runs WHERE uid = ?) AND task = ? AND attempt = ? AND delivery = ? AND host = ?"


class SqliteTasks:
    """The task queue of a SQLite store."""

    def __init__(self, writer: Writer, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    async def offer(self, tasks: Sequence[TaskOffer]) -> None:
        def work(connection: apsw.Connection) -> None:
            connection.executemany(_OFFER, [_values(task) for task in tasks])

        await (self._writer.small(work) if len(tasks) == 1 else self._writer.large(work))

    async def take(
        self, host: HostId, *, queues: Sequence[str] | None, steps: Sequence[str], now: Millis, limit: int
    ) -> Sequence[TaskOffer]:
        if queues is None:
            queues = self._reader.read(lambda connection: [name for (name,) in connection.execute(_WAITING)])
        all_queues = queues
        wanted = (_json(all_queues), _json(steps), now, limit)
        # Workers poll often and mostly find nothing, so look first without a write transaction.
        if not self._reader.read(lambda connection: connection.execute(_FREE, wanted).fetchone()):
            return []

        def work(connection: apsw.Connection) -> list[TaskOffer]:
            limits = read_limits(connection)

            def free(names: Sequence[str], most: int) -> Sequence[int]:
                return [num for (num,) in connection.execute(_FREE, (_json(names), _json(steps), now, most))]

            def queue_room(queue: str, limits: QueueLimits) -> int:
                return read_room(connection, queue, limits, now)

            nums = pick_tasks(all_queues, limits, limit, free, queue_room)
            claim = f"UPDATE tasks SET host = ? WHERE num = ? RETURNING {_COLUMNS}"
            taken = [_offer(row) for num in sorted(nums) for row in connection.execute(claim, (host, num))]
            record_handed_out(connection, limits, [offer.queue for offer in taken], now)
            return taken

        return await self._writer.small(work)

    async def taken_by(self, hosts: Sequence[HostId], *, limit: int) -> Sequence[tuple[HostId, TaskOffer]]:
        def work(connection: apsw.Connection) -> list[tuple[HostId, TaskOffer]]:
            rows = connection.execute(_TAKEN_BY, (_json(hosts), limit))
            return [(HostId(host), _offer(row)) for host, *row in rows]

        return self._reader.read(work)

    async def rows(self, uid: RunUid) -> Sequence[TaskOffer]:
        return self._reader.read(lambda connection: [_offer(row) for row in connection.execute(_OF_RUN, (uid,))])

    async def settle(self, host: HostId, task: TaskOffer, report: Mail) -> bool:
        def work(connection: apsw.Connection) -> bool:
            connection.execute(f"DELETE FROM tasks WHERE {_TAKEN_TASK}", _identity(task, host))
            if not connection.changes():
                return False
            deliver(connection, report)
            return True

        return await self._writer.small(work)

    async def withdraw(self, uid: RunUid, tasks: Sequence[int]) -> None:
        def work(connection: apsw.Connection) -> None:
            connection.executemany(
                "DELETE FROM tasks WHERE run = (SELECT num FROM runs WHERE uid = ?) AND task = ?",
                [(uid, task) for task in tasks],
            )

        await self._writer.small(work)

    async def limit(self, queue: str, limits: QueueLimits | None) -> None:
        await self._writer.small(lambda connection: set_limits(connection, queue, limits))

    async def limits(self) -> Mapping[str, QueueLimits]:
        return self._reader.read(read_limits)

    async def queues(self) -> Sequence[QueueRow]:
        return await self._reader.read_in_thread(read_queues)


def _values(task: TaskOffer) -> tuple[Any, ...]:
    return (
        task.task,
        task.attempt,
        task.delivery,
        task.step,
        task.queue,
        task.body.decode(),
        task.not_before,
        task.uid,
        task.epoch,
    )


def _offer(row: Sequence[Any]) -> TaskOffer:
    task, attempt, delivery, step, queue, body, epoch, not_before, uid = row
    return TaskOffer(
        uid=uid,
        task=task,
        attempt=attempt,
        delivery=delivery,
        step=step,
        queue=queue,
        body=body.encode(),
        epoch=epoch,
        not_before=not_before,
    )


def _identity(task: TaskOffer, host: HostId) -> tuple[Any, ...]:
    return task.uid, task.task, task.attempt, task.delivery, host


def _json(value: Sequence[str]) -> str:
    return msgspec.json.encode(value).decode()
