"""Give keys their turns: hand out tasks and admit runs within the limits per key. Pure; Postgres has it in SQL.

A key is *ready* while somebody waits for it and it may have room. Ready keys are in a line: a key that had its turn
goes to the end if it is still ready. So a key with ten thousand tasks gets one turn for each turn of a key with one
task. A key leaves the line when nobody waits, or when its concurrency is used up; it comes back when a task is offered
or when a taken row is removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from weft.core.ids import Millis
from weft.ports.tasks import KeyLimit

COUNTED_MAX = 64
"""Up to this rate, every start is counted by its own time; above, starts are counted in this many parts of the period.

A start counts until the end of its part, so no more than the rate begin in any period.
"""

UNLIMITED_ROOM = 2**31
"""The room of a key that no limit holds back."""


class Key(NamedTuple):
    """A key of a limit."""

    limit: str
    key: str


class Started(NamedTuple):
    """The starts of a key that still count."""

    starts: int
    ends: Millis
    """When the first of them stops counting."""


class KeyTable(Protocol):
    """What a store knows about keys, inside one transaction."""

    def ready(self, most: int) -> Sequence[Key]:
        """Return the keys at the beginning of the line that the caller may serve now.

        Those whose turn ``is_too_late`` are among them.
        """
        ...

    def limit_of(self, key: Key) -> KeyLimit | None: ...

    def running(self, key: Key) -> int:
        """Return how many rows of a key are taken."""
        ...

    def started(self, key: Key) -> Started:
        """Return the starts of a key that still count. Those that ``is_too_late`` count for one period from now on."""
        ...

    def take(self, key: Key, most: int) -> int:
        """Take rows of a key, oldest first. Returns how many."""
        ...

    def count_start(self, key: Key, count: int, until: Millis) -> None:
        """Record that rows of a key were taken, which counts until this time."""
        ...

    def is_waiting(self, key: Key) -> bool:
        """Return whether any row of a key waits, whoever may take it."""
        ...

    def queue_up(self, key: Key, not_before: Millis) -> None:
        """Put a key at the end of the line. Its turn does not come before this time."""
        ...

    def leave_line(self, key: Key) -> None: ...


def give_turns(table: KeyTable, most: int, now: Millis) -> int:
    """Give the keys at the beginning of the line a turn each. Returns how many rows were taken."""
    keys = table.ready(most) if most > 0 else ()
    taken = 0
    for key in keys:
        taken += give_turn(table, key, max(1, most // len(keys)), now)
    return taken


def give_turn(table: KeyTable, key: Key, share: int, now: Millis) -> int:
    """Take up to ``share`` rows of a key within its limit. Returns how many."""
    limit = table.limit_of(key) or KeyLimit()
    running = table.running(key) if limit.concurrency is not None else 0
    room = share if limit.concurrency is None else min(share, limit.concurrency - running)
    if limit.rate is not None:
        room = min(room, limit.rate - table.started(key).starts)
    taken = table.take(key, room) if room > 0 else 0
    if taken and limit.rate is not None:
        table.count_start(key, taken, count_until(limit, now))
    is_full = limit.concurrency is not None and running + taken >= limit.concurrency
    if is_full or not table.is_waiting(key):
        table.leave_line(key)
        return taken
    started = table.started(key) if limit.rate is not None else Started(0, now)
    table.queue_up(key, started.ends if limit.rate is not None and started.starts >= limit.rate else Millis(0))
    return taken


class KeyAdmission:
    """Lets new rows begin without a turn, if their key has room and nobody waits for it. For one transaction.

    It is made before the rows are inserted.
    """

    def __init__(self, table: KeyTable, now: Millis) -> None:
        self._table = table
        self._now = now
        self._room: dict[Key, int] = {}
        self._running: dict[Key, int] = {}
        self._begun: dict[Key, int] = {}

    def admit(self, key: Key, *, may_begin: bool) -> bool:
        """Return whether a row of a key may begin. Otherwise it waits, and all later ones of the key wait too."""
        if key not in self._room:
            self._room[key] = self._find_room(key)
        if not may_begin or self._room[key] <= 0:
            self._room[key] = 0
            return False
        self._room[key] -= 1
        self._begun[key] = self._begun.get(key, 0) + 1
        return True

    def end(self) -> None:
        """Count the rows that began against the rates of their keys. A key that is used up leaves the line.

        Called after the rows were inserted.
        """
        for key in self._room:
            limit, begun = self._table.limit_of(key) or KeyLimit(), self._begun.get(key, 0)
            if begun and limit.rate is not None:
                self._table.count_start(key, begun, count_until(limit, self._now))
            if limit.concurrency is not None and self._running[key] + begun >= limit.concurrency:
                self._table.leave_line(key)

    def _find_room(self, key: Key) -> int:
        limit = self._table.limit_of(key) or KeyLimit()
        rooms = [UNLIMITED_ROOM]
        if limit.concurrency is not None:
            self._running[key] = self._table.running(key)
            rooms.append(limit.concurrency - self._running[key])
        if limit.rate is not None:
            rooms.append(limit.rate - self._table.started(key).starts)
        return 0 if self._table.is_waiting(key) else min(rooms)


def is_too_late(limit: KeyLimit | None, at: int, now: Millis) -> bool:
    """Return whether a time is so far away that the clock must have gone back since it was worked out."""
    return at > now + 2 * (limit or KeyLimit()).per_ms


def count_until(limit: KeyLimit, now: Millis) -> Millis:
    """Return until when a start at this time counts: at least for the period of the rate."""
    if limit.rate is None or limit.rate <= COUNTED_MAX:
        return Millis(now + limit.per_ms)
    part = max(1, limit.per_ms // COUNTED_MAX)
    return Millis((now // part + 1) * part + limit.per_ms)
