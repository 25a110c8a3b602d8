"""The lane to the durable store: appends that must be there before they count, and the tails of runs.

There is one transaction at a time. An append goes behind the tail of its run, as one append with it, and tails of
other runs that are due go along. Everything is decided by epoch and number in the durable store, so a drain that got no
answer is simply sent again. Rules: docs/internals/hot-path.md#rule-18.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from weft.core.ids import HostId, RunUid, Seq
from weft.errors import UsageError
from weft.ports.boundary import boundary
from weft.ports.store import Append, Outcome, Store
from weft.stores.hot.drain_waits import DrainWaits
from weft.stores.hot.owned_runs import OwnedRuns
from weft.stores.hot.policy import HotPolicy
from weft.stores.hot.tails import Tail, Tails
from weft.stores.judge import is_elsewhere, is_from_other_writer
from weft.stores.redis.task_end import end_tasks

log = logging.getLogger("weft")

RUNS_PER_TRANSACTION: Final = 1_000
BYTES_PER_TRANSACTION: Final = 16 * 1024 * 1024
BYTES_DUE: Final = 32 * 1024 * 1024
"""With this much in the tails, they are drained whatever the policy."""
REST: Final = 9
"""Hops wait this many times as long as the last drain took, so that drains take about a tenth of the time.

The busier Postgres and this process are, the more hops of a run are merged into one append.
"""
REST_SECONDS_MAX: Final = 0.05
SOON_SECONDS: Final = 1e-6
"""A loop does not wait for a timer that is due so soon, so by its clock that time may not pass."""
PAUSE_SECONDS_FIRST: Final = 0.05
PAUSE_SECONDS_MAX: Final = 2.0
VALUE_ERRORS: Final = (UsageError, TypeError, ValueError, OverflowError)
"""Errors that a store raises when it cannot hold a value. Nothing was written then."""

Drained = Callable[[RunUid, Seq | None], None]
Lost = Callable[[RunUid, Exception | None], None]


class ThroughLane:
    """Writes to the durable store, one transaction at a time."""

    def __init__(self, durable: Store, tails: Tails, runs: OwnedRuns, policy: HotPolicy) -> None:
        self._durable = durable
        self._tails = tails
        self._runs = runs
        self._delay_seconds = self._delay_seconds_min = policy.delay_seconds
        """A hop that is this old is drained."""
        self._lock = asyncio.Lock()
        self._in_line = 0
        """How many commits wait for their turn. Tails that are due ride along with the next one."""
        self._waits = DrainWaits()
        self._wanted = asyncio.Event()
        """Set when tails may have to be drained earlier than the drainer expects."""
        self._drainer: asyncio.Task[None] | None = None
        self.wal_of_new: Callable[[], int | None] = lambda: None
        """Returns the WAL that the row of a run names which is created now; None if that is not certain."""
        self.on_drained: Drained = lambda *_: None
        """Called when the durable store has a run up to this number; with None if it has refused the tail."""
        self.on_lost: Lost = lambda *_: None
        """Called when a tail was refused: its run is another host's, or the store cannot hold it, with that error."""
        self.on_room: Callable[[], None] = lambda: None

    # --- appends --------------------------------------------------------------------------------------------------

    async def commit(self, batch: Sequence[Append], host: HostId) -> list[Outcome]:
        """Write appends behind the tails of their runs. Any exception means *unknown*, but tails are kept."""
        carries = host == self._runs.host
        self._in_line += carries
        try:
            await self._lock.acquire()
        finally:
            self._in_line -= carries
        uids = [append.uid for append in batch]
        self._runs.hold(uids)
        try:
            wal = self.wal_of_new()
            for append in batch:
                await self._make_way(append)
            outcomes = await self._commit_merged(batch, host)
        except BaseException:
            for uid in uids:
                self._runs.forget(uid)  # it is unknown what the durable store has
            raise
        else:
            if wal != self.wal_of_new():
                wal = None
            for append, outcome in zip(batch, outcomes, strict=True):
                if outcome is Outcome.ACCEPTED:
                    self._runs.learn_accepted(append, host, wal)
                elif is_from_other_writer(outcome) or is_elsewhere(outcome):
                    self._runs.forget(append.uid)
            return outcomes
        finally:
            self._runs.let_go(uids)
            self._lock.release()

    async def _make_way(self, append: Append) -> None:
        """Drain the tail of a run on its own as far as it does not fit into one append with what follows it."""
        while (tail := self._tails.get(append.uid)) is not None:
            if tail.is_continued_by(append) and tail.fits_with(append):
                return
            await self._drain_pieces([tail])

    async def _commit_merged(self, batch: Sequence[Append], host: HostId) -> list[Outcome]:
        tails = {append.uid: tail for append in batch if (tail := self._tails.get(append.uid)) is not None}
        merged = [tails[append.uid].joined_with(append) if append.uid in tails else append for append in batch]
        others = self._due_tails(RUNS_PER_TRANSACTION - len(batch), {append.uid for append in batch})
        riders = [tail.piece() for tail in others] if host == self._runs.host else []
        try:
            answers = await self._write_batch([*merged, *riders], host)
        except VALUE_ERRORS:
            if not riders:
                raise
            riders = []  # one of them may be the reason: nobody else may be blamed
            answers = await self._write_batch(merged, host)
        outcomes = answers[: len(batch)]
        for number, (append, whole) in enumerate(zip(batch, merged, strict=True)):
            if whole is append:
                continue
            if is_elsewhere(outcomes[number]) and await self._settle_by_row(tails[append.uid]):
                # A drain without an answer has brought a part of the tail. The rest is written again.
                await self._make_way(append)
                outcomes[number] = (await self._commit_merged([append], host))[0]
            elif outcomes[number] is Outcome.ACCEPTED:
                append.answers = whole.answers
                self._note_drained(append.uid, append.seq)
            elif is_from_other_writer(outcomes[number]):
                self._drop_tail(append.uid)
        await self._settle_each(riders, answers[len(batch) :])
        return outcomes

    async def _write_batch(self, batch: Sequence[Append], host: HostId) -> list[Outcome]:
        """Commit a batch to the durable store, ordered by run."""
        by_run = {append.uid: append for append in batch}
        uids = sorted(by_run)
        boundary("drain.before")
        answers = await self._durable.log.commit([by_run[uid] for uid in uids], host)
        boundary("drain.after")
        answer_of = dict(zip(uids, answers, strict=True))
        return [answer_of[append.uid] for append in batch]

    @asynccontextmanager
    async def quiet(self) -> AsyncIterator[None]:
        """Keep everything else out of the durable store meanwhile."""
        async with self._lock:
            yield

    # --- draining -------------------------------------------------------------------------------------------------

    def has_tail(self, uid: RunUid) -> bool:
        return uid in self._tails

    async def flush(self, uid: RunUid | None = None) -> None:
        """Bring what a run, or every run, has in its tail now into the durable store. Raises the store's error."""
        await self.flush_each([tail.uid for tail in self._tails] if uid is None else [uid])

    async def flush_each(self, uids: Sequence[RunUid]) -> None:
        """Bring what these runs have in their tails now into the durable store. Raises the store's error."""
        tails = [tail for uid in dict.fromkeys(uids) if (tail := self._tails.get(uid)) is not None]
        if tails:
            done = self._waits.add({tail.uid: tail.end for tail in tails})
            self.drain_soon()
            await done

    def drain_now(self, uid: RunUid) -> None:
        """Drain a run soon whatever the policy, because somebody in another process looks at it."""
        tail = self._tails.get(uid)
        if tail is not None:
            self._waits.add({uid: tail.end}).add_done_callback(asyncio.Future.exception)  # nobody waits for it
            self.drain_soon()

    def on_hops(self) -> None:
        """Drain the hops that were just acknowledged when they are due."""
        if self._drainer is None or self._drainer.done() or self._tails.size_bytes >= BYTES_DUE:
            self.drain_soon()

    def drain_soon(self) -> None:
        """Let the drainer look now whether there is something to drain."""
        self._wanted.set()
        if self._drainer is None or self._drainer.done():
            self._drainer = asyncio.get_running_loop().create_task(self._drain_forever())

    async def stop(self) -> None:
        """Stop draining. What is not drained is in the WAL."""
        task, self._drainer = self._drainer, None
        if task is not None:
            await end_tasks(task)

    async def _drain_forever(self) -> None:
        """Drain tails as the policy says, until there are none."""
        pause = PAUSE_SECONDS_FIRST
        while len(self._tails):
            self._wanted.clear()
            wait = self._seconds_until_due()
            if wait > 0:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._wanted.wait(), wait)
                continue
            try:
                async with self._lock:
                    if not self._in_line:
                        await self._drain_due()
            except Exception as error:  # noqa: BLE001 - whatever it was, the same request is sent again
                log.warning("weft: steps in the write-ahead log cannot be brought into the store now (%s)", error)
                self._waits.fail(error)
                await asyncio.sleep(pause)
                pause = min(2 * pause, PAUSE_SECONDS_MAX)
            else:
                pause = PAUSE_SECONDS_FIRST

    async def _drain_due(self) -> None:
        now = asyncio.get_running_loop().time
        began = now()
        await self._drain_pieces(self._due_tails(RUNS_PER_TRANSACTION))
        rest = min(REST * (now() - began), REST_SECONDS_MAX)
        self._delay_seconds = max(self._delay_seconds_min, rest)

    def _seconds_until_due(self) -> float:
        if self._waits or self._tails.size_bytes >= BYTES_DUE:
            return 0.0
        oldest = self._tails.oldest()
        now = asyncio.get_running_loop().time()
        if oldest is None or self._is_due(oldest, now):
            return 0.0
        return oldest + self._delay_seconds - now

    def _is_due(self, since: float, now: float) -> bool:
        """Return whether a hop of this age is drained. The drainer must have something to do if it need not wait."""
        return since + self._delay_seconds <= now + SOON_SECONDS

    def _due_tails(self, most: int, without: set[RunUid] | None = None) -> list[Tail]:
        """Return the tails to drain now, at most this many: those that somebody waits for, then the oldest."""
        if not len(self._tails) or most <= 0:
            return []
        without = without or set()
        due = [tail for uid in self._waits.uids() if (tail := self._tails.get(uid)) is not None and uid not in without]
        taken = without.union(tail.uid for tail in due)
        size = self._tails.size_bytes
        now = asyncio.get_running_loop().time()
        for tail in self._tails:
            if len(due) >= most or (not self._is_due(tail.since, now) and size < BYTES_DUE):
                break
            if tail.uid not in taken:
                due.append(tail)
                size -= tail.size_bytes if size >= BYTES_DUE else 0
        return _tails_that_fit(due[:most])

    async def _drain_pieces(self, tails: Sequence[Tail]) -> None:
        """Write pieces of tails to the durable store, in one transaction."""
        if not tails:
            return
        host = self._runs.host
        assert host is not None, "only a host that has joined has tails"
        pieces = [tail.piece() for tail in tails]
        try:
            outcomes = await self._write_batch(pieces, host)
        except VALUE_ERRORS as error:
            if len(tails) == 1:
                log.exception("weft: the store cannot hold what run %s did last", pieces[0].uid)
                self._drop_tail(pieces[0].uid, error)
                return
            for tail in tails:
                await self._drain_pieces([tail])
            return
        await self._settle_each(pieces, outcomes)

    async def _settle_each(self, pieces: Sequence[Append], outcomes: Sequence[Outcome]) -> None:
        """Take over the outcomes of pieces of tails."""
        for piece, outcome in zip(pieces, outcomes, strict=True):
            if outcome is Outcome.ACCEPTED:
                self._note_drained(piece.uid, Seq(piece.seq + len(piece.events)))
            else:
                await self._settle_refused(piece, outcome)

    async def _settle_refused(self, piece: Append, outcome: Outcome) -> None:
        tail = self._tails.get(piece.uid)
        if tail is not None and (not is_elsewhere(outcome) or not await self._settle_by_row(tail)):
            self._drop_tail(piece.uid)

    async def _settle_by_row(self, tail: Tail) -> bool:
        """Forget what the durable store has of a tail by the number in its row. Returns False if it is not ours."""
        row = await self._durable.directory.row(tail.uid)
        if row is None or row.epoch != tail.epoch or row.owner != self._runs.host or row.seq <= tail.seq:
            return False
        self._note_drained(tail.uid, row.seq)
        return True

    def _note_drained(self, uid: RunUid, upto: Seq) -> None:
        self._tails.drained(uid, upto)
        if self._waits:
            self._waits.drained(uid, upto)
        self.on_drained(uid, upto)
        self.on_room()

    def _drop_tail(self, uid: RunUid, error: Exception | None = None) -> None:
        """Forget a tail that the durable store has refused. ``error``: it cannot hold it."""
        if error is None:
            log.warning("weft: another host has run %s; what it did here last is not in its log", uid)
        self._tails.drop(uid)
        self._runs.forget(uid)
        self._waits.drained(uid, None)
        self.on_drained(uid, None)
        self.on_lost(uid, error)
        self.on_room()


def _tails_that_fit(tails: Sequence[Tail]) -> list[Tail]:
    """Return the first of these tails, as many as fit into one transaction. At least one."""
    total = 0
    for count, tail in enumerate(tails):
        total += tail.size_bytes
        if total > BYTES_PER_TRANSACTION and count:
            return list(tails[:count])
    return list(tails)
