"""Group commit: everything decided while one commit is under way goes into the next. No timers, no delay at low load.

One batch is under way at a time, with at most one append per run. After an exception from the store nobody knows
whether an append of the batch is in the log: each run claims itself again and reloads. If the store names a value in
the batch as the reason, appends are written one by one and the guilty run is set aside.

Rules: docs/internals/engine.md#rule-1.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Protocol

from weft.core.ids import HostId, RunUid
from weft.errors import StoreError, Unavailable, UsageError
from weft.ports.boundary import boundary
from weft.ports.store import Blobs, NewRun, Outcome, RunLog
from weft.runtime.background import BackgroundLoop, Failed
from weft.runtime.complaints import Complaints
from weft.runtime.run.draft import Draft
from weft.runtime.turns import SHARE_SECONDS

log = logging.getLogger("weft")

APPENDS_PER_BATCH_MAX = 1_000
TOLD_PER_LOOK = 8
"""After so many runs were told, look at the clock."""
SOLO_ROUNDS = 50
PAUSE_SECONDS_FIRST = 0.05
PAUSE_SECONDS_MAX = 2.0
FAILURES_COUNTED = 10
FAILURES_PASSING = 3
"""So many in a row are more than a connection that was cut."""
TROUBLE_SECONDS = 5.0
"""A failure that is older says nothing of the store as it is now."""
NAMING_DATA = (UsageError, TypeError, ValueError, OverflowError)
"""What a store raises when it cannot hold a value. Everything else may pass, and makes nobody guilty."""


RUNS_PER_BATCH_MAX = 500
_Waiting = tuple[NewRun, "asyncio.Future[Outcome]"]


class CommittingRun(Protocol):
    """A run that has something to commit."""

    uid: RunUid

    def take_draft(self) -> Draft | None:
        """What to write now; None if it has nothing after all."""
        ...

    def mail_count(self) -> int: ...

    def committed(self, draft: Draft, outcome: Outcome) -> None:
        """How its draft was judged."""
        ...

    def unknown(self, draft: Draft, error: Exception, *, guilty: bool) -> None:
        """Nobody knows whether its draft is in the log.

        ``guilty``: it failed all by itself, and the store named its data as the reason.
        """
        ...


class GroupWriter:
    """Writes the appends of all runs of a host, in groups."""

    def __init__(
        self,
        runs: RunLog,
        blobs: Blobs,
        host: HostId,
        failed: Failed = lambda *_: None,
        complaints: Complaints | None = None,
    ) -> None:
        """``failed`` is told when committing ends again and again."""
        self._runs = runs
        self._blobs = blobs
        self._host = host
        self._dirty: dict[RunUid, CommittingRun] = {}
        self._wake: asyncio.Future[None] | None = None
        self._solo = 0
        self._loop = BackgroundLoop("committing", self._run, failed)
        self.measured: Callable[[Sequence[Draft], float], None] | None = None
        """Told of every commit: what was in it, and how many seconds it took."""
        self._complaints = complaints or Complaints()
        self.answered_at = 0.0
        """When a commit last went through, by the loop's clock."""
        self._now: Callable[[], float] = time.monotonic
        self._failures = 0
        self._failed: tuple[StoreError, float] | None = None
        """Why the last commit did not go through, if none has since, and when that was."""
        self.batches = 0
        self.appends = 0

    def start(self) -> None:
        self._loop.start()

    def trouble(self) -> StoreError | None:
        """Why nothing can be written now: the store has refused several commits, and the last one not long ago."""
        if self._failures < FAILURES_PASSING or self._failed is None:
            return None
        error, at = self._failed
        if asyncio.get_running_loop().time() - at > TROUBLE_SECONDS:
            return None
        return type(error)(error.message, hint=error.hint, code=error.code)

    @property
    def waiting(self) -> int:
        """The number of runs that have something for the next commit."""
        return len(self._dirty)

    def submit(self, writer: CommittingRun) -> None:
        """This run has something to commit."""
        self._dirty[writer.uid] = writer
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def stop(self) -> None:
        """No commit after this; what is under way is waited for."""
        await self._loop.stop()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        self._now = loop.time
        while True:
            if not self._dirty:
                self._wake = loop.create_future()
                await self._wake
                self._wake = None
            if self._failures > 1:
                # A store that says no at once would be asked as fast as it can. Whatever is decided meanwhile waits.
                await asyncio.sleep(min(PAUSE_SECONDS_MAX, PAUSE_SECONDS_FIRST * 2.0 ** (self._failures - 2)))
            await self._commit(self._next_batch())

    def _next_batch(self) -> list[tuple[CommittingRun, Draft]]:
        most = 1 if self._solo else APPENDS_PER_BATCH_MAX
        self._solo = max(0, self._solo - 1)
        batch: list[tuple[CommittingRun, Draft]] = []
        # Whoever has waited longest is in it, whatever its name.
        for uid in sorted(islice(self._dirty, most)):
            writer = self._dirty.pop(uid)
            draft = writer.take_draft()
            if draft is not None:
                batch.append((writer, draft))
        return batch

    async def _commit(self, batch: Sequence[tuple[CommittingRun, Draft]]) -> None:
        if not batch:
            return
        try:
            for _, draft in batch:
                for data in draft.puts.values():
                    await self._blobs.put(data)
                    boundary("blob.put")
            boundary("commit.before")
            appends = [draft.append(writer.mail_count()) for writer, draft in batch]
            began = time.perf_counter()
            outcomes = await self._runs.commit(appends, self._host)
        except Exception as error:  # noqa: BLE001 - any error out of a commit is "unknown"
            self._lost(batch, error)
            return
        except BaseException:
            if self._loop.wanted:  # user code cancelled what is not its own, or this loop dies and is started again
                self._lost(batch, Unavailable("the commit was interrupted"))
            raise
        boundary("commit.after")
        self._failures, self._failed = 0, None
        self.answered_at = self._now()
        if self.measured is not None:
            self.measured([draft for _, draft in batch], time.perf_counter() - began)
        self.batches += 1
        self.appends += len(batch)
        await self._tell(batch, outcomes)

    async def _tell(self, batch: Sequence[tuple[CommittingRun, Draft]], outcomes: Sequence[Outcome]) -> None:
        """Tell each run how its draft was judged; others have their turn in between."""
        cancelled: asyncio.CancelledError | None = None
        since = self._now()
        for number, ((writer, draft), outcome) in enumerate(zip(batch, outcomes, strict=True), 1):
            writer.committed(draft, outcome)
            if not number % TOLD_PER_LOOK and cancelled is None and self._now() - since > SHARE_SECONDS:
                try:
                    await asyncio.sleep(0)
                except asyncio.CancelledError as error:
                    cancelled = error  # all of them are committed, and must know
                since = self._now()
        if cancelled is not None:
            raise cancelled

    def _lost(self, batch: Sequence[tuple[CommittingRun, Draft]], error: Exception) -> None:
        passing = not isinstance(error, NAMING_DATA)
        if not passing and len(batch) > 1:
            self._solo = SOLO_ROUNDS + len(batch)
        if passing:
            self._failures = min(self._failures + 1, FAILURES_COUNTED)
            failure = error if isinstance(error, StoreError) else Unavailable(f"A commit failed: {error}.")
            self._failed = (failure, asyncio.get_running_loop().time())
        self._complaints.say("weft: a commit of %d runs did not answer (%s); they are read again", len(batch), error)
        for writer, draft in batch:
            writer.unknown(draft, error, guilty=not passing and len(batch) == 1)


class RunCreator:
    """Writes the rows of new runs that no host here begins yet, in groups.

    One that comes alone is written at once; those that come while a transaction is under way share the next one.
    """

    def __init__(self, runs: RunLog) -> None:
        self._runs = runs
        self._waiting: list[_Waiting] = []
        self._busy = False
        self.answered_at = 0.0
        """When rows were last written, by the loop's clock."""
        self._task: asyncio.Task[None] | None = None

    async def create(self, new: NewRun) -> Outcome:
        """Write the row. After an error of the store nobody knows whether it is there."""
        if self._busy:
            future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
            self._waiting.append((new, future))
            return await future
        self._busy = True
        try:
            (outcome,) = await self._runs.create([new])
            self.answered_at = asyncio.get_running_loop().time()
            return outcome
        finally:
            if self._waiting:
                self._task = asyncio.get_running_loop().create_task(self._drain())
            else:
                self._busy = False

    async def _drain(self) -> None:
        try:
            while self._waiting:
                batch = self._waiting[:RUNS_PER_BATCH_MAX]
                del self._waiting[:RUNS_PER_BATCH_MAX]
                await self._make(batch)
        finally:
            self._busy = False
            # Only if this was cancelled: whoever asked must look whether the row is there.
            for _, future in self._waiting:
                future.cancel()
            self._waiting.clear()

    async def _make(self, batch: Sequence[_Waiting]) -> None:
        try:
            outcomes = await self._runs.create([new for new, _ in batch])
        except Exception as error:  # noqa: BLE001 - every caller must get it
            if isinstance(error, StoreError) or len(batch) == 1:
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
                return
            # One of them cannot be written: write them one by one.
            for one in batch:
                await self._make([one])
            return
        self.answered_at = asyncio.get_running_loop().time()
        for (_, future), outcome in zip(batch, outcomes, strict=True):
            if not future.done():
                future.set_result(outcome)
