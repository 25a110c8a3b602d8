"""The keys of limits in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from weft.core.ids import HostId, Millis
from weft.ports.store import NEVER
from weft.ports.tasks import ADMITTED, WORKFLOW_LIMIT, KeyLimit, LimitedKey, TaskOffer
from weft.stores.judge import is_current
from weft.stores.key_turns import Key, Started, count_until, give_turn, give_turns, is_too_late
from weft.stores.memory.content import MemoryContent, OfferedTask


class MemoryKeys:
    """The keys of a memory store, for one transaction. Implements ``KeyTable``."""

    def __init__(
        self,
        content: MemoryContent,
        rows: Sequence[OfferedTask],
        may_take: Callable[[OfferedTask], bool],
        may_serve: Callable[[str], bool],
        now: Millis,
    ) -> None:
        """``may_serve`` says whether the caller may take rows of the limit with this name."""
        self._content = content
        self._rows = rows
        self._may_take = may_take
        self._may_serve = may_serve
        self._now = now
        self._of_key: dict[Key, list[int]] = {}
        self.taken: list[int] = []
        """The numbers of rows that were taken."""
        for number, row in enumerate(rows):
            if row.offer.limit:
                self._of_key.setdefault(Key(row.offer.limit, row.offer.key), []).append(number)

    def ready(self, most: int) -> Sequence[Key]:
        line = self._content.ready_keys.items()
        return list(islice((key for key, at in line if self._is_due(key, at) and self._may_serve(key.limit)), most))

    def _is_due(self, key: Key, at: Millis) -> bool:
        return at <= self._now or is_too_late(self.limit_of(key), at, self._now)

    def limit_of(self, key: Key) -> KeyLimit | None:
        return self._content.key_limits.get(key.limit)

    def running(self, key: Key) -> int:
        return sum(1 for number in self._of_key.get(key, ()) if self._is_taken(number))

    def started(self, key: Key) -> Started:
        limit, starts = self.limit_of(key) or KeyLimit(), self._content.key_starts
        ends = [until for until in starts.get(key, ()) if until > self._now]
        if any(is_too_late(limit, until, self._now) for until in ends):
            last = count_until(limit, self._now)
            ends = starts[key] = [min(until, last) for until in ends]
        return Started(len(ends), min(ends, default=self._now))

    def take(self, key: Key, most: int) -> int:
        free = (n for n in self._of_key.get(key, ()) if not self._is_taken(n) and self._may_take(self._rows[n]))
        picked = list(islice(free, most))
        self.taken += picked
        return len(picked)

    def count_start(self, key: Key, count: int, until: Millis) -> None:
        content = self._content
        for known in [known for known, ends in content.key_starts.items() if max(ends) <= self._now]:
            del content.key_starts[known]
        kept = [end for end in content.key_starts.get(key, ()) if end > self._now]
        content.key_starts[key] = [*kept, *[until] * count]

    def is_waiting(self, key: Key) -> bool:
        return any(not self._is_taken(number) for number in self._of_key.get(key, ()))

    def queue_up(self, key: Key, not_before: Millis) -> None:
        self._content.ready_keys.pop(key, None)
        self._content.ready_keys[key] = not_before

    def leave_line(self, key: Key) -> None:
        self._content.ready_keys.pop(key, None)

    def _is_taken(self, number: int) -> bool:
        return self._rows[number].host is not None or number in self.taken


def admit_run(content: MemoryContent, host: HostId, offer: TaskOffer, now: Millis) -> bool:
    """Let a run begin, or let it wait without an owner."""
    run = content.runs.get(offer.uid)
    if run is None or run.owner != host or run.seq or not is_current(run, offer.epoch):
        return False
    place = (offer.uid, offer.task, offer.attempt, offer.delivery)
    row = content.tasks.get(place)
    key = Key(offer.limit, offer.key)
    if row is None:
        row = content.tasks[place] = OfferedTask(offer)
        rows = [*content.tasks.values(), *content.unwanted]
        if not any(other.host is None and _key_of(other) == key for other in rows if other is not row):
            table = MemoryKeys(content, rows, lambda other: other is row, key.limit.__eq__, now)
            give_turn(table, key, 1, now)
            row.host = ADMITTED if table.taken else None
        else:
            content.ready_keys.setdefault(key, Millis(0))
    if row.host is None:
        run.owner, run.wal, run.wake_at = None, None, NEVER
    return row.host is not None


def admit_runs(content: MemoryContent, now: Millis, most: int) -> int:
    """Let runs begin that wait for the limits of their workflows."""
    if not content.ready_keys:
        return 0
    rows = [*content.tasks.values(), *content.unwanted]

    def may_take(row: OfferedTask) -> bool:
        return row.host is None and row.offer.uid in content.open

    table = MemoryKeys(content, rows, may_take, lambda name: name.startswith(WORKFLOW_LIMIT), now)
    give_turns(table, most, now)
    for number in table.taken:
        rows[number].host = ADMITTED
        content.runs[rows[number].offer.uid].wake_at = None
    return len(table.taken)


def limited_keys(content: MemoryContent) -> list[LimitedKey]:
    """Return the keys that have tasks or runs, those with the most waiting first."""
    found: dict[Key, list[OfferedTask]] = {}
    for row in (*content.tasks.values(), *content.unwanted):
        if row.offer.limit:
            found.setdefault(_key_of(row), []).append(row)
    keys = [
        LimitedKey(
            limit=key.limit,
            key=key.key,
            waiting=sum(1 for row in rows if row.host is None),
            running=sum(1 for row in rows if row.host is not None),
            since=min((row.since for row in rows if row.host is None), default=None),
        )
        for key, rows in found.items()
    ]
    return sorted(keys, key=lambda one: (-one.waiting, -one.running, one.limit, one.key))


def _key_of(row: OfferedTask) -> Key:
    return Key(row.offer.limit, row.offer.key)
