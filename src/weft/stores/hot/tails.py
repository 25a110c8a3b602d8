"""The tails of runs: what the WAL has acknowledged, and the durable store is not known to have. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from copy import copy
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from weft.core.ids import Epoch, RunUid, Seq
from weft.ports.store import BYTES_PER_APPEND_MAX, EVENTS_PER_APPEND_MAX, Append, StoredEvent

EVENT_BYTES: Final = 100
"""What an event in memory takes besides its body."""


class AckedHop(msgspec.Struct, gc=False):
    """One append in a tail."""

    entry: int
    """The number of the entry of the WAL that has it."""
    since: float
    last: Seq
    """The number of its last event."""
    size_bytes: int


class Tail(msgspec.Struct, eq=False):
    """The tail of one run: consecutive appends of one epoch, merged."""

    uid: RunUid
    epoch: Epoch
    seq: Seq
    """The number of the last event before the tail."""
    events: list[StoredEvent] = []
    hops: deque[AckedHop] = msgspec.field(default_factory=deque)
    refs: list[str] = []
    idle_until: UnsetType | None = UNSET
    size_bytes: int = 0
    """What its hops take in memory."""

    @property
    def end(self) -> Seq:
        """Return the number of the last event."""
        return Seq(self.seq + len(self.events))

    @property
    def since(self) -> float:
        """Return when its oldest hop was acknowledged."""
        return self.hops[0].since

    @property
    def entry(self) -> int:
        """Return the oldest entry of the WAL that has a part of it."""
        return self.hops[0].entry

    def piece(self) -> Append:
        """Return as much of the tail as one append can hold, from its beginning."""
        return Append(
            uid=self.uid,
            epoch=self.epoch,
            seq=self.seq,
            events=self.events[: self._count_for_append()],
            refs=tuple(self.refs),
            idle_until=self.idle_until,
        )

    def is_continued_by(self, append: Append) -> bool:
        """Return whether an append goes on where the tail ends."""
        return append.epoch == self.epoch and append.seq == self.seq + len(self.events)

    def fits_with(self, append: Append) -> bool:
        """Return whether the tail and an append that goes on with it fit into one append."""
        size = self.size_bytes
        for event in append.events:
            size += len(event.body)
        return len(self.events) + len(append.events) <= EVENTS_PER_APPEND_MAX and size <= BYTES_PER_APPEND_MAX

    def joined_with(self, append: Append) -> Append:
        """Return the tail and an append that goes on with it, as one append."""
        whole = copy(append)
        whole.seq = self.seq
        whole.events = [*self.events, *append.events]
        if self.refs:
            whole.refs = (*self.refs, *append.refs)
        if append.idle_until is UNSET:
            whole.idle_until = self.idle_until
        return whole

    def _count_for_append(self) -> int:
        """Return how many of the first events one append can hold. At least one."""
        most = min(len(self.events), EVENTS_PER_APPEND_MAX)
        if self.size_bytes <= BYTES_PER_APPEND_MAX:
            return most
        total = 0
        for count, event in enumerate(self.events[:most]):
            total += len(event.body)
            if total > BYTES_PER_APPEND_MAX and count:
                return count
        return most


class Tails:
    """The tails of all runs of this process."""

    def __init__(self) -> None:
        self._tails: dict[RunUid, Tail] = {}
        """Those with the oldest hops come first. Those that were drained in part are placed to within a drain."""
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._tails)

    def __contains__(self, uid: RunUid) -> bool:
        return uid in self._tails

    def __iter__(self) -> Iterator[Tail]:
        return iter(self._tails.values())

    def get(self, uid: RunUid) -> Tail | None:
        return self._tails.get(uid)

    def add(self, append: Append, entry: int, now: float) -> None:
        """Add an append that the WAL has in this entry. It goes on where the tail of its run ends."""
        tail = self._tails.get(append.uid)
        if tail is None:
            tail = self._tails[append.uid] = Tail(append.uid, append.epoch, append.seq)
        assert tail.is_continued_by(append), "a hop was acknowledged that does not follow the one before it"
        events = append.events
        size = EVENT_BYTES * len(events)
        for event in events:
            size += len(event.body)
        tail.events.extend(events)
        tail.hops.append(AckedHop(entry, now, Seq(append.seq + len(events)), size))
        if append.refs:
            tail.refs.extend(append.refs)
        if append.idle_until is None:
            tail.idle_until = None
        tail.size_bytes += size
        self.size_bytes += size

    def drained(self, uid: RunUid, upto: Seq) -> None:
        """Forget the events of a tail up to this number: the durable store has them."""
        tail = self._tails.get(uid)
        if tail is None or upto <= tail.seq:
            return
        del self._tails[uid]
        if upto == tail.end:
            self.size_bytes -= tail.size_bytes
            return
        before = tail.size_bytes
        while tail.hops and tail.hops[0].last <= upto:
            tail.size_bytes -= tail.hops.popleft().size_bytes
        self.size_bytes -= before - tail.size_bytes
        if tail.hops:
            del tail.events[: upto - tail.seq]
            tail.seq = upto
            self._tails[uid] = tail  # what is left came while the rest was drained, like the tails at the end

    def drop(self, uid: RunUid) -> None:
        """Forget the tail of a run that is another host's now."""
        tail = self._tails.pop(uid, None)
        if tail is not None:
            self.size_bytes -= tail.size_bytes

    def oldest(self) -> float | None:
        """Return when the oldest hop was acknowledged, to within the duration of a drain; None without tails."""
        for tail in self._tails.values():
            return tail.hops[0].since
        return None

    def first_entry(self) -> int | None:
        """Return the oldest entry of the WAL that is needed, exactly; None if none is."""
        return min([tail.hops[0].entry for tail in self._tails.values()], default=None)
