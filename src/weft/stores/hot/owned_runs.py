"""The runs of this host as the hot store knows them: their epoch, their last acknowledged event, and their WAL. Pure.

What is known here came with an answer of the durable store. A run that is not known, or not exactly as an append
expects it, is no reason to refuse the append: it goes to the durable store, which judges it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec
from msgspec import UNSET

from weft.core.ids import Epoch, HostId, RunUid, Seq
from weft.ports.store import OVER_STATUSES, Append, RunRow


class OwnedRun(msgspec.Struct, eq=False):
    """A run of this host."""

    epoch: Epoch
    seq: Seq
    """The number of its last acknowledged event."""
    wal: int | None
    """The WAL that its row names, as far as the durable store has said."""
    refused: int | None = None
    """The WAL to which it could not be attached, because it was another host's by then."""


class OwnedRuns:
    """The runs of this host."""

    def __init__(self) -> None:
        self.host: HostId | None = None
        """The host of this process; None before it has joined."""
        self._runs: dict[RunUid, OwnedRun] = {}
        self._held = Counter[RunUid]()

    def __contains__(self, uid: RunUid) -> bool:
        return uid in self._runs

    def find(self, append: Append) -> OwnedRun | None:
        """Return the run of an append, if it is exactly where the append begins."""
        run = self._runs.get(append.uid)
        if run is None or run.epoch != append.epoch or run.seq != append.seq or append.uid in self._held:
            return None
        return run

    def find_each(self, batch: Sequence[Append]) -> list[OwnedRun] | None:
        """Return the run of each append; None if one of them is not exactly where its append begins."""
        known, held = self._runs, self._held
        found = []
        for append in batch:
            uid = append.uid
            run = known.get(uid)
            if run is None or run.epoch != append.epoch or run.seq != append.seq or uid in held:
                return None
            found.append(run)
        return found

    def hold(self, uids: Sequence[RunUid]) -> None:
        """Let no append find these runs until they are let go: something else than a hop is under way."""
        self._held.update(uids)

    def let_go(self, uids: Sequence[RunUid]) -> None:
        """Take back one ``hold``."""
        for uid in uids:
            if self._held[uid] > 1:
                self._held[uid] -= 1
            else:
                del self._held[uid]

    def learn(self, row: RunRow) -> None:
        """Take over what the durable store says of a run. Its tail must be empty."""
        if row.owner is None or row.owner != self.host or row.ended_at is not None:
            self.forget(row.uid)
        else:
            self._runs[row.uid] = OwnedRun(row.epoch, row.seq, row.wal)

    def learn_accepted(self, append: Append, host: HostId, wal_of_new: int | None) -> None:
        """Take over that the durable store has accepted an append. ``wal_of_new``: what the row of a new run names."""
        run = self._runs.get(append.uid)
        if run is not None and run.epoch > append.epoch:
            return  # it was claimed since
        if host != self.host or append.reopen is not None or append.status in OVER_STATUSES:
            self.forget(append.uid)
        elif append.create is None or append.create.owner == host:
            wal = wal_of_new if append.create is not None else run.wal if run is not None else None
            self._runs[append.uid] = OwnedRun(append.epoch, Seq(append.seq + len(append.events)), wal)

    def forget(self, uid: RunUid) -> None:
        self._runs.pop(uid, None)

    def clear(self) -> None:
        self._runs.clear()

    def unattached(self, wal: int) -> Iterator[tuple[RunUid, OwnedRun]]:
        """Return the runs whose rows do not name this WAL, and may do so."""
        return (
            (uid, run) for uid, run in self._runs.items() if wal not in {run.wal, run.refused} and uid not in self._held
        )

    def attach(self, wal: int, asked: Sequence[tuple[RunUid, OwnedRun]], attached: Sequence[RunUid]) -> None:
        """Take over that the rows of these runs name a WAL, except those that were not attached."""
        named = set(attached)
        for uid, run in asked:
            if uid in named:
                run.wal = wal
            else:
                run.refused = wal


def is_plain(append: Append) -> bool:
    """Return whether an append is a plain hop: events, and at most references to blobs. Work stays in flight."""
    return (
        bool(append.events)
        and not append.through
        and append.status is None
        and append.create is None
        and not (append.taken or append.keys or append.mail or append.children or append.ledger)
        and append.attributes is None
        and append.reopen is None
        and append.resolved is None
        and append.snapshot is None
        and (append.idle_until is UNSET or append.idle_until is None)
    )
