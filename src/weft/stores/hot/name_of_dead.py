"""Commit what a dead host had acknowledged, in its name: under its host id, and the epochs in the entries.

The durable store judges everything by epoch and number. So this may be done again, by several processes at once, and
while the host is still alive.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto

import msgspec

from weft.core.ids import Epoch, HostId, RunUid, Seq
from weft.errors import BadValue
from weft.ports.store import BYTES_PER_APPEND_MAX, EVENTS_PER_APPEND_MAX, Append, Outcome, Store, StoredEvent

RUNS_PER_COMMIT = 1_000
BYTES_PER_COMMIT = 16 * 1024 * 1024

Entries = Sequence[tuple[int, Sequence[Append]]]
"""Entries of a WAL: their numbers and their appends."""


class LostEntries(msgspec.Struct):
    """The entries of a WAL that the durable store does not have in full, and the runs whose events are missing."""

    entries: set[int] = msgspec.field(default_factory=set)
    runs: set[RunUid] = msgspec.field(default_factory=set)


async def commit_in_the_name_of(store: Store, host: HostId, entries: Entries) -> LostEntries:
    """Commit the entries of a WAL in order. Returns what is neither accepted nor known already.

    Raises what the durable store raises. Then it is unknown what was written, and all of it must be done again.
    """
    lost = LostEntries()
    left = _pieces_by_run(entries)
    while left:
        group = _next_group(left)
        for piece, outcome in zip(group, await _commit_pieces(store, host, group), strict=True):
            match await _judge_piece(store, piece, outcome):
                case _Piece() as rest:
                    left[piece.uid][0] = rest
                    continue
                case _Verdict.LOST:
                    lost.entries |= piece.entries
                    lost.runs.add(piece.uid)
                case _Verdict.KNOWN:
                    pass
            del left[piece.uid][0]
            if not left[piece.uid]:
                del left[piece.uid]
    return lost


class _Verdict(Enum):
    KNOWN = auto()
    LOST = auto()


class _Piece(msgspec.Struct):
    """Consecutive appends of one run in one epoch, merged."""

    uid: RunUid
    epoch: Epoch
    seq: Seq
    events: list[StoredEvent] = []
    refs: list[str] = []
    entries: set[int] = set()
    """The numbers of the entries that have them."""
    size_bytes: int = 0

    @property
    def end(self) -> Seq:
        return Seq(self.seq + len(self.events))

    def append(self) -> Append:
        """Return the append to commit. The run has work in flight, so that a host claims it."""
        return Append(uid=self.uid, epoch=self.epoch, seq=self.seq, events=self.events, refs=self.refs, idle_until=None)

    def has_room(self, append: Append, size_bytes: int) -> bool:
        """Return whether an append follows this piece, and fits into it."""
        return (
            append.epoch == self.epoch
            and append.seq == self.end
            and len(self.events) + len(append.events) <= EVENTS_PER_APPEND_MAX
            and self.size_bytes + size_bytes <= BYTES_PER_APPEND_MAX
        )

    def add(self, append: Append, entry: int, size_bytes: int) -> None:
        self.events.extend(append.events)
        self.refs.extend(append.refs)
        self.entries.add(entry)
        self.size_bytes += size_bytes

    def after(self, seq: Seq) -> _Piece:
        """Return the part of the piece after this event number."""
        return msgspec.structs.replace(self, seq=seq, events=self.events[seq - self.seq :])


def _pieces_by_run(entries: Entries) -> dict[RunUid, list[_Piece]]:
    runs: dict[RunUid, list[_Piece]] = {}
    for number, appends in entries:
        for append in appends:
            pieces = runs.setdefault(append.uid, [])
            size_bytes = sum(len(event.body) for event in append.events)
            if not pieces or not pieces[-1].has_room(append, size_bytes):
                pieces.append(_Piece(append.uid, append.epoch, append.seq))
            pieces[-1].add(append, number, size_bytes)
    return runs


def _next_group(left: dict[RunUid, list[_Piece]]) -> list[_Piece]:
    """Return the next piece of as many runs as fit into one commit."""
    group: list[_Piece] = []
    size_bytes = 0
    for pieces in left.values():
        size_bytes += pieces[0].size_bytes
        if group and (len(group) == RUNS_PER_COMMIT or size_bytes > BYTES_PER_COMMIT):
            break
        group.append(pieces[0])
    return group


async def _commit_pieces(store: Store, host: HostId, group: Sequence[_Piece]) -> Sequence[Outcome | None]:
    """Commit one piece of each run. The outcome is None if the store cannot keep the piece at all."""
    try:
        return await store.log.commit([piece.append() for piece in group], host)
    except BadValue:
        if len(group) == 1:
            return [None]
        return [outcome for piece in group for outcome in await _commit_pieces(store, host, [piece])]


async def _judge_piece(store: Store, piece: _Piece, outcome: Outcome | None) -> _Piece | _Verdict:
    """Return whether the store has the piece or never will. If it has a part of it, return the rest."""
    if outcome is Outcome.ACCEPTED:
        return _Verdict.KNOWN
    row = await store.directory.row(piece.uid)
    if row is None:
        return _Verdict.KNOWN  # the run was deleted, and nothing of it is missing
    if row.epoch == piece.epoch and piece.seq < row.seq < piece.end:
        return piece.after(row.seq)  # an epoch has one history
    if row.seq >= piece.end and (row.epoch == piece.epoch or await _is_in_log(store, piece)):
        return _Verdict.KNOWN
    return _Verdict.LOST


async def _is_in_log(store: Store, piece: _Piece) -> bool:
    """Return whether the log has exactly these events, so that they were written in their epoch.

    Events at the beginning of a log that was shortened count as the same.
    """
    stored = await store.log.events(piece.uid, after=piece.seq, limit=len(piece.events))
    known = {event.seq: event for event in stored}
    return all(known.get(event.seq, event) == event for event in piece.events)
