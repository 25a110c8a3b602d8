"""The keys of limits in SQLite."""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import apsw
import msgspec

from weft.core.ids import HostId, Millis
from weft.ports.store import NEVER
from weft.ports.tasks import ADMITTED, RUN_TASK, STEP_LIMIT, WORKFLOW_LIMIT, KeyLimit, LimitedKey, TaskOffer
from weft.stores.key_turns import Key, Started, count_until, give_turn, give_turns, is_too_late

STILL_COUNTS = f"limit_name IS NOT NULL AND coalesce(host, '{ADMITTED}') <> '{ADMITTED}'"
"""Selects, among rows that nobody needs, those that count until their host has stopped the task."""
FORGET_TASKS = "UPDATE tasks SET unwanted = num WHERE run = ? AND NOT unwanted"
"""For a run that was over and is reopened: tasks that still run do not belong to what it does next."""
_PRUNED = 100

IS_DUE = (
    "(not_before <= ?1 OR not_before > ?1 + 2 * coalesce((SELECT json_extract(l.body, '$.per_ms') FROM key_limits l "
    f"WHERE l.name = limit_name), {KeyLimit().per_ms}))"
)
"""Selects the keys in the line whose turn has come, or ``is_too_late``."""
_READY = (
    f"SELECT limit_name, limit_key FROM ready_keys WHERE {IS_DUE} "
    "AND limit_name IN (SELECT value FROM json_each(?)) ORDER BY turn LIMIT ?"
)
_READY_OF_KIND = (
    f"SELECT limit_name, limit_key FROM ready_keys WHERE {IS_DUE} AND limit_name LIKE ? || '%' ORDER BY turn LIMIT ?"
)
ALL_STEPS, ALL_WORKFLOWS = STEP_LIMIT, WORKFLOW_LIMIT
"""Stand for the limits of all steps, and of all workflows."""
_OF_KEY = "limit_name = ? AND limit_key = ?"
_RUNNING = f"SELECT count(*) FROM tasks WHERE {_OF_KEY} AND host IS NOT NULL AND limit_name IS NOT NULL"
_STARTED = f"SELECT coalesce(sum(tasks), 0), min(until), max(until) FROM key_starts WHERE {_OF_KEY} AND until > ?"
_TAKE_LATE = f"DELETE FROM key_starts WHERE {_OF_KEY} AND until > ? RETURNING tasks"
_COUNT = (
    "INSERT INTO key_starts (limit_name, limit_key, until, tasks) VALUES (?, ?, ?, ?) "
    "ON CONFLICT DO UPDATE SET tasks = tasks + excluded.tasks"
)
_PRUNE = (
    "DELETE FROM key_starts WHERE (limit_name, limit_key, until) IN "
    "(SELECT limit_name, limit_key, until FROM key_starts WHERE until <= ? ORDER BY until LIMIT ?)"
)
_IS_WAITING = f"SELECT 1 FROM tasks WHERE {_OF_KEY} AND host IS NULL AND limit_name IS NOT NULL LIMIT 1"
_LEAVE = f"DELETE FROM ready_keys WHERE {_OF_KEY}"
_QUEUE_UP = "INSERT INTO ready_keys (limit_name, limit_key, not_before) VALUES (?, ?, ?)"
_DECLARE = "INSERT OR REPLACE INTO key_limits (name, body) VALUES (?, ?)"
_LOOK_AGAIN = (
    "INSERT INTO ready_keys (limit_name, limit_key) SELECT DISTINCT limit_name, limit_key FROM tasks "
    "WHERE host IS NULL AND limit_name = ? ON CONFLICT DO UPDATE SET not_before = 0"
)
_RUN = "SELECT num FROM runs WHERE uid = ? AND epoch = ? AND owner = ? AND seq = 0"
_RUN_ROW = f"SELECT num, host FROM tasks WHERE run = ? AND task = {RUN_TASK}"
_ADD_RUN = (
    "INSERT INTO tasks (run, task, attempt, delivery, step, queue, body, epoch, not_before, offered_at, "
    f"limit_name, limit_key) VALUES (?, {RUN_TASK}, 0, 0, ?, '', '', ?, 0, ?, ?, ?) RETURNING num"
)
_ADMIT = f"UPDATE tasks SET host = '{ADMITTED}' WHERE num = ?"
_LET_WAIT = f"UPDATE runs SET owner = NULL, wake_at = {NEVER} WHERE num = ?"
_LET_BEGIN = "UPDATE runs SET wake_at = NULL WHERE num = (SELECT run FROM tasks WHERE num = ?)"
_WAITING_RUNS = f"SELECT num FROM tasks WHERE {_OF_KEY} AND host IS NULL ORDER BY num LIMIT ?"
_KEYS = (
    "SELECT limit_name, limit_key, count(*) - count(host) AS waiting, count(host) AS running, "
    "min(CASE WHEN host IS NULL THEN max(offered_at, not_before) END) FROM tasks WHERE limit_name IS NOT NULL "
    "GROUP BY limit_name, limit_key ORDER BY waiting DESC, running DESC, limit_name, limit_key LIMIT ?"
)
_decode = msgspec.json.Decoder(KeyLimit).decode

Take = Callable[[str, str, int], int]
"""Takes up to so many rows of a limit and key. Returns how many."""


class SqliteKeys:
    """The keys of a SQLite store, for one transaction. Implements ``KeyTable``."""

    def __init__(self, connection: apsw.Connection, names: Sequence[str], take: Take, now: Millis) -> None:
        """``names`` are the limits that the caller serves, or ``ALL_STEPS`` or ``ALL_WORKFLOWS``."""
        self._connection = connection
        self._names = names
        self._take = take
        self._now = now
        self._limits: dict[str, KeyLimit | None] = {}

    def ready(self, most: int) -> Sequence[Key]:
        if isinstance(self._names, str):
            rows = self._connection.execute(_READY_OF_KIND, (self._now, self._names, most))
        else:
            names = msgspec.json.encode(self._names).decode()
            rows = self._connection.execute(_READY, (self._now, names, most))
        return [Key(*row) for row in rows]

    def limit_of(self, key: Key) -> KeyLimit | None:
        if key.limit not in self._limits:
            body = self._connection.execute("SELECT body FROM key_limits WHERE name = ?", (key.limit,)).get
            self._limits[key.limit] = None if body is None else _decode(body)
        return self._limits[key.limit]

    def running(self, key: Key) -> int:
        return int(self._connection.execute(_RUNNING, key).get)

    def started(self, key: Key) -> Started:
        count, ends, last = self._connection.execute(_STARTED, (*key, self._now)).get
        limit = self.limit_of(key)
        if limit is not None and last is not None and is_too_late(limit, last, self._now):
            soonest = count_until(limit, self._now)
            late = [tasks for (tasks,) in self._connection.execute(_TAKE_LATE, (*key, soonest))]
            self._connection.execute(_COUNT, (*key, soonest, sum(late)))
            ends = min(ends, soonest)
        return Started(count, Millis(ends or self._now))

    def take(self, key: Key, most: int) -> int:
        return self._take(*key, most)

    def count_start(self, key: Key, count: int, until: Millis) -> None:
        self._connection.execute(_PRUNE, (self._now, _PRUNED))
        self._connection.execute(_COUNT, (*key, until, count))

    def is_waiting(self, key: Key) -> bool:
        return self._connection.execute(_IS_WAITING, key).fetchone() is not None

    def queue_up(self, key: Key, not_before: Millis) -> None:
        self.leave_line(key)
        self._connection.execute(_QUEUE_UP, (*key, not_before))

    def leave_line(self, key: Key) -> None:
        self._connection.execute(_LEAVE, key)


def declare_limits(connection: apsw.Connection, limits: Mapping[str, KeyLimit | None]) -> None:
    """Set limits, and look again at everything that waits for them."""
    for name, limit in limits.items():
        if limit is None:
            connection.execute("DELETE FROM key_limits WHERE name = ?", (name,))
        else:
            connection.execute(_DECLARE, (name, msgspec.json.encode(limit).decode()))
        connection.execute(_LOOK_AGAIN, (name,))


def read_declared(connection: apsw.Connection) -> Mapping[str, KeyLimit]:
    """Return all limits by name."""
    return {name: _decode(body) for name, body in connection.execute("SELECT name, body FROM key_limits")}


def admit_run(connection: apsw.Connection, host: HostId, offer: TaskOffer, now: Millis) -> bool:
    """Let a run begin, or let it wait without an owner."""
    run = connection.execute(_RUN, (offer.uid, offer.epoch, host)).get
    if run is None:
        return False
    key = Key(offer.limit, offer.key)
    found = connection.execute(_RUN_ROW, (run,)).fetchone()
    admitted = found is not None and found[1] is not None
    if found is None:
        others = connection.execute(_IS_WAITING, key).fetchone() is not None
        values = (run, offer.step, offer.epoch, time.time_ns() // 1_000_000, *key)
        num = connection.execute(_ADD_RUN, values).get
        admitted = not others and bool(give_turn(_run_keys(connection, num, now), key, 1, now))
    if not admitted:
        connection.execute(_LET_WAIT, (run,))
    return admitted


def admit_runs(connection: apsw.Connection, now: Millis, most: int) -> int:
    """Let runs begin that wait for the limits of their workflows."""
    return give_turns(_run_keys(connection, None, now), most, now)


def _run_keys(connection: apsw.Connection, only: int | None, now: Millis) -> SqliteKeys:
    """Return the keys of workflows, to admit one run that has its owner, or any that wait without one."""

    def take(limit: str, key: str, most: int) -> int:
        if only is not None:
            connection.execute(_ADMIT, (only,))
            return 1
        numbers = [(num,) for (num,) in connection.execute(_WAITING_RUNS, (limit, key, most))]
        connection.executemany(_ADMIT, numbers)
        connection.executemany(_LET_BEGIN, numbers)
        return len(numbers)

    return SqliteKeys(connection, ALL_WORKFLOWS, take, now)


def limited_keys(connection: apsw.Connection, limit: int) -> Sequence[LimitedKey]:
    """Return the keys that have tasks or runs, those with the most waiting first."""
    return [
        LimitedKey(limit=name, key=key, waiting=waiting, running=running, since=since)
        for name, key, waiting, running, since in connection.execute(_KEYS, (limit,))
    ]
