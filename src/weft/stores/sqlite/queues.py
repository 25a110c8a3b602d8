"""Read and write the limits of queues. They are checked in the transaction that hands out tasks, for all processes."""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import apsw

from weft.core.ids import Millis
from weft.ports.tasks import RUN_TASK, QueueLimits, QueueRow
from weft.stores.queues import UNLIMITED, tasks_allowed

_LIMIT = "INSERT OR REPLACE INTO queues (queue, priority, concurrency, rate, per_ms, stream) VALUES (?, ?, ?, ?, ?, ?)"
_RUNNING = "SELECT count(*) FROM tasks WHERE queue = ? AND host IS NOT NULL"
_HANDED_OUT = "SELECT coalesce(sum(tasks), 0) FROM handed_out WHERE queue = ?"
_LENGTHS = (
    "SELECT queue, count(*) - count(host), count(host), "
    "min(CASE WHEN host IS NULL THEN max(offered_at, not_before) END) FROM tasks "
    f"WHERE task > {RUN_TASK} GROUP BY queue"
)
_NO_TASKS = (0, 0, None)


def set_limits(connection: apsw.Connection, queue: str, limits: QueueLimits | None) -> None:
    """Set the limits of a queue; None removes them."""
    if limits is None:
        connection.execute("DELETE FROM queues WHERE queue = ?", (queue,))
    else:
        values = (queue, limits.priority, limits.concurrency, limits.rate, limits.per_ms, int(limits.stream))
        connection.execute(_LIMIT, values)


def read_queue_limits(connection: apsw.Connection) -> Mapping[str, QueueLimits]:
    """Return the queues that have limits or a priority, or are streams."""
    rows = connection.execute("SELECT queue, priority, concurrency, rate, per_ms, stream FROM queues")
    return {
        queue: QueueLimits(priority=priority, concurrency=concurrency, rate=rate, per_ms=per_ms, stream=bool(stream))
        for queue, priority, concurrency, rate, per_ms, stream in rows
    }


def read_queues(connection: apsw.Connection) -> Sequence[QueueRow]:
    """Return all queues that have tasks or limits, by name."""
    limits = read_queue_limits(connection)
    lengths = {queue: tuple(values) for queue, *values in connection.execute(_LENGTHS)}
    return [
        QueueRow(
            queue=queue,
            waiting=lengths.get(queue, _NO_TASKS)[0],
            running=lengths.get(queue, _NO_TASKS)[1],
            limits=limits.get(queue, UNLIMITED),
            since=lengths.get(queue, _NO_TASKS)[2],
        )
        for queue in sorted(limits.keys() | lengths.keys())
    ]


def read_room(connection: apsw.Connection, queue: str, limits: QueueLimits, now: Millis) -> int:
    """Return how many more tasks of this queue may be handed out now."""
    connection.execute("DELETE FROM handed_out WHERE queue = ? AND at <= ?", (queue, now - limits.per_ms))
    running = connection.execute(_RUNNING, (queue,)).get
    handed_out = connection.execute(_HANDED_OUT, (queue,)).get
    return tasks_allowed(limits, running=running, handed_out=handed_out)


def record_handed_out(
    connection: apsw.Connection, limits: Mapping[str, QueueLimits], queues: Sequence[str], now: Millis
) -> None:
    """Record that tasks of these queues were handed out."""
    for queue, count in Counter(queues).items():
        if limits.get(queue, UNLIMITED).rate is not None:
            connection.execute("INSERT INTO handed_out (queue, at, tasks) VALUES (?, ?, ?)", (queue, now, count))
