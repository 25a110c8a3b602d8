"""The task queue in SQLite."""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import apsw

from weft.core.ids import HostId, Millis, RunUid
from weft.ports.store import OVER_STATUSES, Mail
from weft.ports.tasks import (
    RUN_TASK,
    STANDING_RUNS,
    STEP_LIMIT,
    STREAM,
    Exchanged,
    KeyLimit,
    LimitedKey,
    QueueLimits,
    QueueRow,
    TaskOffer,
    TaskStanding,
)
from weft.stores.key_turns import Key, KeyAdmission, give_turns
from weft.stores.queues import UNLIMITED, RankedTask, WantedTasks, take_tasks
from weft.stores.rows import json_text
from weft.stores.sqlite.keys import (
    ALL_STEPS,
    IS_DUE,
    STILL_COUNTS,
    SqliteKeys,
    admit_run,
    admit_runs,
    declare_limits,
    limited_keys,
    read_declared,
)
from weft.stores.sqlite.mail import deliver_mail
from weft.stores.sqlite.queues import read_queue_limits, read_queues, read_room, record_handed_out, set_limits
from weft.stores.sqlite.reader import SqliteReader
from weft.stores.sqlite.writer import Writer

_OVER = ", ".join(f"'{status}'" for status in OVER_STATUSES)
_OFFER = (
    "INSERT INTO tasks "
    "(run, task, attempt, delivery, step, queue, body, epoch, not_before, offered_at, limit_name, limit_key, host, "
    "priority) SELECT num, ?, ?, ?, ?, ?, ?, epoch, ?, ?, ?, ?, ?, priority FROM runs "
    f"WHERE uid = ? AND epoch = ? AND owner IS NOT NULL AND status NOT IN ({_OVER}) ON CONFLICT DO NOTHING"
)
_COLUMNS = (
    "task, attempt, delivery, step, queue, body, tasks.epoch, not_before, coalesce(limit_name, ''), "
    "coalesce(limit_key, ''), unwanted <> 0 OR EXISTS "
    f"(SELECT 1 FROM runs WHERE num = run AND status IN ({_OVER})), (SELECT uid FROM runs WHERE num = run)"
)


def _may_take(first: int) -> str:
    """Return the condition for rows that may be taken. Its values are the steps, null for all, and the time."""
    return (
        f"host IS NULL AND (?{first} IS NULL OR step IN (SELECT value FROM json_each(?{first}))) "
        f"AND not_before <= ?{first + 1} "
        f"AND EXISTS (SELECT 1 FROM runs WHERE runs.num = run AND status NOT IN ({_OVER}))"
    )


_IN_QUEUES = "AND queue IN (SELECT value FROM json_each(?))"
_FREE = (
    f"SELECT 0, num FROM tasks WHERE limit_name IS NULL AND {_may_take(1)} {_IN_QUEUES} "
    "AND priority = 0 ORDER BY num LIMIT ?"
)
# Tasks of runs with a priority have an index of their own, so that a long line of others does not hide them.
_FREE_RANKED = (
    f"SELECT -priority, num FROM tasks INDEXED BY tasks_ranked WHERE limit_name IS NULL AND {_may_take(1)} "
    f"{_IN_QUEUES} AND priority <> 0 ORDER BY priority DESC, num LIMIT ?"
)
_FREE_OF_KEY = (
    f"SELECT num FROM tasks WHERE limit_name = ? AND limit_key = ? AND {_may_take(3)} "
    "AND (? OR queue IN (SELECT value FROM json_each(?))) AND queue NOT IN (SELECT value FROM json_each(?)) "
    "ORDER BY num LIMIT ?"
)
_WAITING = "SELECT DISTINCT queue FROM tasks WHERE host IS NULL AND limit_name IS NULL"
_ANY_READY = (
    f"SELECT 1 FROM ready_keys WHERE {IS_DUE} "
    "AND (?2 IS NULL OR limit_name IN (SELECT value FROM json_each(?2))) LIMIT 1"
)
_OWN = (
    "SELECT num, coalesce(limit_name, ''), coalesce(limit_key, ''), queue FROM tasks "
    "WHERE run = (SELECT num FROM runs WHERE uid = ?) AND task = ? AND host IS NULL ORDER BY num LIMIT 1"
)
_OF_ITS_KEY = "limit_name = ?1 AND limit_key = ?2 AND ?3 = ?3"
_OF_ITS_QUEUE = f"limit_name IS NULL AND queue = ?3 AND task > {RUN_TASK} AND ?1 || ?2 = ''"
_COUNT_BEFORE = "SELECT count(host), count(*) FILTER (WHERE host IS NULL AND num < ?4) FROM tasks WHERE "
_RUNS_BEFORE = (
    "SELECT (SELECT id FROM runs WHERE runs.num = tasks.run) FROM tasks WHERE {} AND (host IS NOT NULL OR num < ?4) "
    f"ORDER BY host IS NULL, num LIMIT {STANDING_RUNS}"
)
_IN_LINE = "SELECT 1 FROM ready_keys WHERE limit_name = ? AND limit_key = ? AND not_before <= ?"
_TAKEN_BY = f"SELECT host, {_COLUMNS} FROM tasks WHERE host IN (SELECT value FROM json_each(?)) ORDER BY num LIMIT ?"
_TAKEN_BY_BARE = _TAKEN_BY.replace(", body, ", ", '', ")
_OF_RUN = (
    f"SELECT {_COLUMNS} FROM tasks WHERE run = (SELECT num FROM runs WHERE uid = ?) AND task > {RUN_TASK} "
    "AND NOT unwanted ORDER BY num"
)
_TAKEN_TASK = "run = (SELECT num FROM runs WHERE uid = ?) AND task = ? AND attempt = ? AND delivery = ? AND host = ?"
_WITHDRAW = (
    f"DELETE FROM tasks WHERE run = (SELECT num FROM runs WHERE uid = ?) AND task = ? AND NOT ({STILL_COUNTS})",
    "UPDATE tasks SET unwanted = num WHERE run = (SELECT num FROM runs WHERE uid = ?) AND task = ? AND NOT unwanted",
)


class SqliteTasks:
    """The task queue of a SQLite store."""

    def __init__(self, writer: Writer, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    async def offer(self, tasks: Sequence[TaskOffer]) -> None:
        def work(connection: apsw.Connection) -> None:
            connection.executemany(_OFFER, [_values_of_task(task) for task in tasks])

        await (self._writer.small(work) if len(tasks) == 1 else self._writer.large(work))

    async def take(
        self, host: HostId, *, queues: Sequence[str] | None, steps: Sequence[str] | None, now: Millis, limit: int
    ) -> Sequence[TaskOffer]:
        names = self._reader.read(lambda connection: _open_queues(connection, host, queues))
        # Workers poll often and mostly find nothing, so look first without a write transaction.
        if not self._reader.read(lambda connection: _is_any_free(connection, names, steps, now)):
            return []
        wanted = WantedTasks(names, None if queues is None else names, limit, host == STREAM)

        def work(connection: apsw.Connection) -> list[TaskOffer]:
            limits = read_queue_limits(connection)
            waiting = _SqliteWaiting(connection, host, steps, now, limits)
            take_tasks(waiting, wanted, limits, now)
            return [waiting.taken[num] for num in sorted(waiting.taken)]

        return await self._writer.small(work)

    async def taken_by(
        self, hosts: Sequence[HostId], *, limit: int, with_body: bool = True
    ) -> Sequence[tuple[HostId, TaskOffer]]:
        def work(connection: apsw.Connection) -> list[tuple[HostId, TaskOffer]]:
            rows = connection.execute(_TAKEN_BY if with_body else _TAKEN_BY_BARE, (json_text(hosts), limit))
            return [(HostId(host), _offer_of_row(row)) for host, *row in rows]

        return self._reader.read(work) if with_body else await self._reader.read_in_thread(work)

    async def rows(self, uid: RunUid) -> Sequence[TaskOffer]:
        return self._reader.read(lambda connection: [_offer_of_row(row) for row in connection.execute(_OF_RUN, (uid,))])

    async def settle(self, host: HostId, task: TaskOffer, report: Mail) -> bool:
        def work(connection: apsw.Connection) -> bool:
            connection.execute(f"DELETE FROM tasks WHERE {_TAKEN_TASK}", _identity_of(task, host))
            if not connection.changes():
                return False
            deliver_mail(connection, report)
            return True

        return await self._writer.small(work)

    async def finish(self, host: HostId, tasks: Sequence[TaskOffer]) -> None:
        def work(connection: apsw.Connection) -> None:
            identities = [_identity_of(task, host) for task in tasks]
            connection.executemany(f"DELETE FROM tasks WHERE {_TAKEN_TASK}", identities)

        await self._writer.small(work)

    async def exchange(
        self, host: HostId, finished: Sequence[TaskOffer], offered: Sequence[TaskOffer], *, now: Millis, most: int
    ) -> Exchanged:
        def work(connection: apsw.Connection) -> Exchanged:
            identities = [_identity_of(task, host) for task in finished]
            connection.executemany(f"DELETE FROM tasks WHERE {_TAKEN_TASK}", identities)
            taken, has_plain = _offer_and_take(connection, host, offered, now, most)
            touched = {(task.limit, task.key) for task in (*finished, *offered) if task.limit}
            in_line = (connection.execute(_IN_LINE, (*key, now)).fetchone() for key in touched)
            return Exchanged(taken, has_plain or any(found is not None for found in in_line))

        return await (self._writer.small(work) if len(offered) + len(finished) == 1 else self._writer.large(work))

    async def withdraw(self, uid: RunUid, tasks: Sequence[int]) -> None:
        def work(connection: apsw.Connection) -> None:
            for statement in _WITHDRAW:
                connection.executemany(statement, [(uid, task) for task in tasks])

        await self._writer.small(work)

    async def limit(self, queue: str, limits: QueueLimits | None) -> None:
        await self._writer.small(lambda connection: set_limits(connection, queue, limits))

    async def limits(self) -> Mapping[str, QueueLimits]:
        return self._reader.read(read_queue_limits)

    async def queues(self) -> Sequence[QueueRow]:
        return await self._reader.read_in_thread(read_queues)

    async def declare(self, limits: Mapping[str, KeyLimit | None]) -> None:
        await self._writer.small(lambda connection: declare_limits(connection, limits))

    async def declared(self) -> Mapping[str, KeyLimit]:
        return self._reader.read(read_declared)

    async def admit(self, host: HostId, run: TaskOffer, now: Millis) -> bool:
        return await self._writer.small(lambda connection: admit_run(connection, host, run, now))

    async def admit_waiting(self, now: Millis, *, limit: int) -> int:
        return await self._writer.small(lambda connection: admit_runs(connection, now, limit))

    async def next_turn(self, now: Millis) -> Millis | None:
        text = "SELECT min(not_before) FROM ready_keys WHERE not_before > ?"
        found = self._reader.read(lambda connection: connection.execute(text, (now,)).get)
        return None if found is None else Millis(found)

    async def standing(self, uid: RunUid, task: int) -> TaskStanding | None:
        def work(connection: apsw.Connection) -> TaskStanding | None:
            own = connection.execute(_OWN, (uid, task)).fetchone()
            if own is None:
                return None
            num, limit, key, queue = own
            which, values = _OF_ITS_KEY if limit else _OF_ITS_QUEUE, (limit, key, queue, num)
            running, ahead = connection.execute(_COUNT_BEFORE + which, values).get
            runs = [str(name) for (name,) in connection.execute(_RUNS_BEFORE.format(which), values)]
            return TaskStanding(running=running, ahead=ahead, runs=runs)

        return self._reader.read(work)

    async def limited_keys(self, *, limit: int) -> Sequence[LimitedKey]:
        return await self._reader.read_in_thread(lambda connection: limited_keys(connection, limit))


class _SqliteWaiting:
    """The tasks that wait, for one call of ``take``."""

    def __init__(
        self,
        connection: apsw.Connection,
        host: HostId,
        steps: Sequence[str] | None,
        now: Millis,
        limits: Mapping[str, QueueLimits],
    ) -> None:
        self._connection = connection
        self._host = host
        self._steps = _json_or_null(steps)
        self._names = ALL_STEPS if steps is None else [f"{STEP_LIMIT}{step}" for step in steps]
        self._now = now
        self._limits = limits
        self.taken: dict[int, TaskOffer] = {}

    def free(self, queues: Sequence[str], most: int) -> Sequence[RankedTask]:
        values = (self._steps, self._now, json_text(queues), most)
        return [row for text in (_FREE_RANKED, _FREE) for row in self._connection.execute(text, values)]

    def room(self, queue: str, limits: QueueLimits) -> int:
        return read_room(self._connection, queue, limits, self._now)

    def hand_out(self, numbers: Sequence[int]) -> None:
        claim = f"UPDATE tasks SET host = ? WHERE num = ? RETURNING {_COLUMNS}"
        taken = {
            num: _offer_of_row(row) for num in numbers for row in self._connection.execute(claim, (self._host, num))
        }
        record_handed_out(self._connection, self._limits, [offer.queue for offer in taken.values()], self._now)
        self.taken |= taken

    def hand_out_keyed(self, only: Sequence[str] | None, never: Sequence[str], most: int) -> Sequence[int]:
        before = set(self.taken)
        queues = (only is None, json_text(only or ()), json_text(never))

        def take(limit: str, key: str, most: int) -> int:
            values = (limit, key, self._steps, self._now, *queues, most)
            numbers = [num for (num,) in self._connection.execute(_FREE_OF_KEY, values)]
            self.hand_out(numbers)
            return len(numbers)

        give_turns(SqliteKeys(self._connection, self._names, take, self._now), most, self._now)
        return [num for num in self.taken if num not in before]


def _offer_and_take(
    connection: apsw.Connection, host: HostId, offered: Sequence[TaskOffer], now: Millis, most: int
) -> tuple[list[TaskOffer], bool]:
    """Insert rows. Returns those that the host has now, and whether there are any without a limit per key."""
    ruled = {queue for queue, one in read_queue_limits(connection).items() if not one.is_plain}
    admission = KeyAdmission(SqliteKeys(connection, (), lambda *_: 0, now), now)
    taken: list[TaskOffer] = []
    has_plain = False
    for place, task in enumerate(offered):
        may_begin = place < most and task.not_before <= now and task.queue not in ruled
        # Judged before the row is there, or it would wait for itself.
        begins = bool(task.limit) and admission.admit(Key(task.limit, task.key), may_begin=may_begin)
        connection.execute(_OFFER, _values_of_task(task, host if begins else None))
        if connection.changes():
            taken += [task] if begins else []
            has_plain = has_plain or not task.limit
    admission.end()
    return taken, has_plain


def _open_queues(connection: apsw.Connection, host: HostId, queues: Sequence[str] | None) -> list[str]:
    """Return those of these queues, or of all in which tasks wait, from which the host may take tasks."""
    names = [name for (name,) in connection.execute(_WAITING)] if queues is None else queues
    limits = read_queue_limits(connection)
    return [name for name in names if limits.get(name, UNLIMITED).stream == (host == STREAM)]


def _is_any_free(connection: apsw.Connection, queues: Sequence[str], steps: Sequence[str] | None, now: Millis) -> bool:
    values = (_json_or_null(steps), now, json_text(queues), 1)
    if any(connection.execute(text, values).fetchone() for text in (_FREE, _FREE_RANKED)):
        return True
    names = None if steps is None else json_text([f"{STEP_LIMIT}{step}" for step in steps])
    return connection.execute(_ANY_READY, (now, names)).fetchone() is not None


def _values_of_task(task: TaskOffer, host: HostId | None = None) -> tuple[Any, ...]:
    return (
        task.task,
        task.attempt,
        task.delivery,
        task.step,
        task.queue,
        task.body.decode(),
        task.not_before,
        time.time_ns() // 1_000_000,
        task.limit or None,
        task.key if task.limit else None,
        host,
        task.uid,
        task.epoch,
    )


def _offer_of_row(row: Sequence[Any]) -> TaskOffer:
    task, attempt, delivery, step, queue, body, epoch, not_before, limit, key, unwanted, uid = row
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
        limit=limit,
        key=key,
        unwanted=bool(unwanted),
    )


def _identity_of(task: TaskOffer, host: HostId) -> tuple[Any, ...]:
    return task.uid, task.task, task.attempt, task.delivery, host


def _json_or_null(value: Sequence[str] | None) -> str | None:
    return None if value is None else json_text(value)
