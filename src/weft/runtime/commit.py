"""Group commit: everything decided while one commit is under way goes into the next. No timers, no delay at low load.

One batch is under way at a time, with at most one append per run. After an exception from the store nobody knows
whether an append of the batch is in the log: each run claims itself again and reloads. If the store names a value in
the batch as the reason, appends are written one by one and the guilty run is set aside.

Runs that have something to decide take their turns in one callback, which commits a lone append itself: a callback for
every run and a task that wakes up for every commit would cost more than most decisions do.

Rules: docs/internals/engine.md#rule-1.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Sequence
from itertools import islice
from typing import Any, Protocol

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
ROUNDS_MAX = 4
"""A run whose step ends at once is ready again in the next round: others have their turn after so many."""
TURNS_MAX = 200
"""As many runs take their turn in one round."""
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
        *,
        in_place: bool = True,
    ) -> None:
        """``failed`` is told when committing ends again and again. ``in_place``: if the store can, too."""
        self._in_place = in_place and runs.commits_in_place
        self._runs = runs
        self._blobs = blobs
        self._host = host
        self._dirty: dict[RunUid, CommittingRun] = {}
        self._wake: asyncio.Future[None] | None = None
        """What the writer's task waits for while it has nothing to do."""
        self._begun: Coroutine[Any, Any, None] | None = None
        """A commit that was begun in place and waits for something: the task finishes it."""
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

    def add(self, run: CommittingRun) -> None:
        """Note that this run has something to commit. Whoever adds runs calls ``flush`` after the last one."""
        self._dirty[run.uid] = run

    def submit(self, run: CommittingRun) -> None:
        """Commit what this run has, together with what others have by then."""
        self._dirty[run.uid] = run
        self.wake()

    def wake(self) -> None:
        """Let the writer's task commit what was added."""
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def flush(self) -> bool:
        """Commit what was added: a lone append here and now, if the store can; everything else in the writer's task.

        Returns whether there is more to commit here and now.
        """
        if not self._dirty or self._wake is None or self._wake.done():
            return False  # a commit is under way, and the next one follows by itself
        if len(self._dirty) > 1 or self._failures or self._solo or not self._in_place:
            self.wake()
            return False
        _, run = self._dirty.popitem()
        draft = run.take_draft()
        if draft is not None:
            self._commit_in_place(run, draft)
        return bool(self._dirty)

    def _commit_in_place(self, run: CommittingRun, draft: Draft) -> None:
        """Begin a commit in this callback, where it usually ends too. The task finishes one that has to wait."""
        commit = self._commit([(run, draft)])
        if draft.puts:
            self._begun = commit  # blobs may be anywhere
        else:
            try:
                self._begun = _resume(commit, commit.send(None))
            except StopIteration:
                return
            except Exception as error:  # noqa: BLE001 - a defect of ours, which ends the task and not a callback
                self._begun = _fail(error)
        self.wake()

    async def stop(self) -> None:
        """No commit after this; what is under way is waited for."""
        await self._loop.stop()
        if self._begun is not None:
            self._begun.close()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        self._now = loop.time
        while True:
            if not self._dirty and self._begun is None:
                self._wake = loop.create_future()
                await self._wake
                self._wake = None
            if self._begun is not None:
                commit, self._begun = self._begun, None
                await commit
                continue
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
        except GeneratorExit:
            raise  # thrown away with its host: nobody is left to be told
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
        if len(batch) == 1:
            batch[0][0].committed(batch[0][1], outcomes[0])
        else:
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


async def _fail(error: Exception) -> None:
    raise error


@types.coroutine
def _resume(begun: Coroutine[Any, Any, None], waits_for: Any) -> Generator[Any, Any, None]:
    """Await a coroutine that was begun outside of a task and now waits for this."""
    try:
        while True:
            try:
                value = yield waits_for
            except BaseException as error:  # noqa: BLE001 - it is the coroutine's to handle
                waits_for = begun.throw(error)
            else:
                waits_for = begun.send(value)
    except StopIteration:
        return


class ReadyRun(Protocol):
    """A run that has something to decide."""

    def turn(self) -> None:
        """Take in what waits in the mailbox."""
        ...


class RunQueue:
    """Turns runs in the order in which they became ready."""

    def __init__(self, commits: GroupWriter, turns_max: int = TURNS_MAX) -> None:
        self._commits = commits
        self._turns_max = turns_max
        self._ready: deque[ReadyRun] = deque()
        self._scheduled = False
        self._turning = False
        self._loop: asyncio.AbstractEventLoop
        self._context: contextvars.Context

    def start(self) -> None:
        """Use the running loop. Turns have a context of their own, whoever makes a run ready."""
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()

    def add(self, run: ReadyRun) -> None:
        """Let this run have its turn."""
        self._ready.append(run)
        if not self._scheduled:
            self._schedule()

    def submit(self, run: CommittingRun) -> None:
        """Commit what this run has decided: at the end of the round, or at once if there is none."""
        if self._turning:
            self._commits.add(run)
        else:
            self._commits.submit(run)

    def _schedule(self) -> None:
        self._scheduled = True
        self._loop.call_soon(self._turn, context=self._context)

    def _turn(self) -> None:
        ready, commits = self._ready, self._commits
        self._turning = more = True
        rounds = 0
        try:
            while (ready or more) and rounds < ROUNDS_MAX:
                rounds += 1
                for _ in range(min(len(ready), self._turns_max)):
                    ready.popleft().turn()
                more = commits.flush()
        finally:
            self._turning = self._scheduled = False
            if ready:
                self._schedule()
            if more:
                commits.wake()


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
