"""Group commit: everything decided during one commit goes into the next. There are no timers, so no delay at low load.

There is one batch at a time, with at most one append per run. After an exception from the store, it is unknown whether
the appends in the batch are in the log: each run is claimed again and reloaded. If the store rejects a value in the
batch, appends are written one by one and the run with that value is set aside.

A store with a hot path has two lanes, each with one batch at a time: hops, and everything else. Each is a writer. A
draft that is not a hop is handed from the first lane to the second, so that no hop waits for a transaction.

Runs that have something to decide take their turns in one callback, which commits a single append itself: a callback
for every run and a task that wakes up for every commit would cost more than most decisions do.

Rules: docs/internals/engine.md#rule-1.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
import types
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from itertools import islice
from typing import Any, NoReturn, Protocol, TypeVar

from weft.core.ids import HostId, RunUid
from weft.core.plurals import pluralize
from weft.errors import StoreError, Unavailable, UsageError
from weft.ports import boundary as boundaries
from weft.ports.blobs import Blobs
from weft.ports.boundary import boundary
from weft.ports.new_run import NewRun
from weft.ports.store import OVER_STATUSES, Outcome, RunLog
from weft.ports.streams import NewChunk
from weft.runtime.background import BackgroundLoop, Failed
from weft.runtime.loop_share import SHARE_SECONDS
from weft.runtime.run.draft import Draft
from weft.runtime.throttled_log import ThrottledLog

log = logging.getLogger("weft")

T = TypeVar("T")

APPENDS_PER_BATCH_MAX = 1_000
TOLD_PER_CHECK = 8
"""How many runs are told the outcome of a commit between two checks of the clock."""
SOLO_ROUNDS = 50
PAUSE_SECONDS_FIRST = 0.05
PAUSE_SECONDS_MAX = 2.0
FAILURES_COUNTED = 10
FAILURES_PASSING = 3
"""Fewer failures in a row than this may be just a lost connection."""
TROUBLE_SECONDS = 5.0
"""An older failure says nothing about the current state of the store."""
VALUE_ERRORS = (UsageError, TypeError, ValueError, OverflowError)
"""Errors that a store raises when it cannot hold a value. All other errors may be temporary and concern no one run."""


RUNS_PER_BATCH_MAX = 500
ROUNDS_MAX = 4
"""How many rounds run in one callback. A run whose step ends at once is ready again in the next round."""
TURNS_MAX = 200
"""How many runs take their turn in one round."""
_Waiting = tuple[NewRun, "asyncio.Future[Outcome]"]

Measured = Callable[[Sequence[Draft], float], None]
"""Takes the drafts of a commit, and its duration in seconds."""

StoreOutput = Callable[[Sequence[NewChunk]], Awaitable[None]]
"""Stores chunks of output."""


class CommittingRun(Protocol):
    """A run that has something to commit."""

    uid: RunUid
    mail_taken: int
    """How much mail the run has consumed."""

    def take_draft(self) -> Draft | None:
        """Return the draft to write now; None if there is nothing to write."""
        ...

    def committed(self, draft: Draft, outcome: Outcome) -> None:
        """Receive the outcome of a draft."""
        ...

    def unknown(self, draft: Draft, error: Exception, *, guilty: bool) -> None:
        """Handle a draft whose outcome is unknown: it may be in the log or not.

        ``guilty``: the draft was written alone, and the store rejected its data.
        """
        ...


_Batch = Sequence[tuple[CommittingRun, Draft]]


def _has_last_output(draft: Draft) -> bool:
    return bool(draft.chunks) and draft.status in OVER_STATUSES


class GroupWriter:
    """Writes the appends of all runs on a host, in groups."""

    def __init__(
        self,
        runs: RunLog,
        blobs: Blobs,
        host: HostId,
        failed: Failed = lambda *_: None,
        throttled_log: ThrottledLog | None = None,
        *,
        in_place: bool = True,
        store_output: StoreOutput | None = None,
        others: GroupWriter | None = None,
    ) -> None:
        """``failed`` is called when the writer keeps ending. With ``in_place``, commits run in callbacks.

        ``store_output`` stores the last output of a run before the append that ends the run: no replay would repeat it.
        With ``others``, this is the lane of hops, and ``others`` writes everything else.
        """
        self._in_place = in_place and runs.commits_in_place
        self._store_output = store_output
        self._others = others
        self._hot = runs.hot if others is not None else None
        self._runs = runs
        self._blobs = blobs
        self._host = host
        self.dirty: dict[RunUid, CommittingRun] = {}
        """Runs that have something to commit. The caller that adds a run calls ``flush`` or ``wake`` afterwards."""
        self._given: dict[RunUid, tuple[CommittingRun, Draft]] = {}
        """Drafts that the lane of hops has handed over."""
        self._wake: asyncio.Future[None] | None = None
        """The future that the writer's task waits for while it has nothing to do."""
        self._begun: tuple[_Batch, Awaitable[Sequence[Outcome]] | None] | None = None
        """A commit that has to wait, and its rest if it began in a callback: the writer's task finishes it."""
        self._solo = 0
        self._loop = BackgroundLoop("committing", self._commit_loop, failed)
        self.measured: Measured | None = None
        """Called after every commit with its contents and its duration in seconds."""
        self._throttled_log = throttled_log or ThrottledLog()
        self.answered_at = 0.0
        """When a commit last succeeded, by the loop's clock."""
        self._now: Callable[[], float] = time.monotonic
        self._failures = 0
        self._failed: tuple[StoreError, float] | None = None
        """Why and when the last commit failed, if none has succeeded since."""
        self._began = 0.0
        """When the current commit began, by ``time.perf_counter``."""
        self.batches = 0
        self.appends = 0

    def start(self) -> None:
        self._loop.start()

    def trouble(self) -> StoreError | None:
        """Return why nothing can be written now, if the store has refused several commits, the last one recently."""
        if self._failures < FAILURES_PASSING or self._failed is None:
            return None
        error, at = self._failed
        if asyncio.get_running_loop().time() - at > TROUBLE_SECONDS:
            return None
        return type(error)(error.message, hint=error.hint, code=error.code)

    @property
    def waiting(self) -> int:
        """Return the number of runs that have something for the next commit."""
        return len(self.dirty) + len(self._given)

    def give(self, run: CommittingRun, draft: Draft) -> None:
        """Write a draft that was already taken from its run, because the lane of hops cannot."""
        self._given[run.uid] = (run, draft)
        self.wake()

    def submit(self, run: CommittingRun) -> None:
        """Commit the draft of this run, together with those of other runs that are ready by then."""
        self.dirty[run.uid] = run
        self.wake()

    def wake(self) -> None:
        """Wake the writer's task, which commits the added runs."""
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def flush(self) -> bool:
        """Commit the added runs: a single append at once, if the store can; everything else in the writer's task.

        Returns whether there is more to commit at once.
        """
        if not self.dirty or self._wake is None or self._wake.done():
            return False  # a commit is in progress, and the next one follows it
        if len(self.dirty) > 1 or self._failures or self._solo or not self._in_place:
            self.wake()
            return False
        _, run = self.dirty.popitem()
        draft = run.take_draft()
        if draft is not None:
            self._commit_in_place(run, draft)
        return bool(self.dirty)

    def _commit_in_place(self, run: CommittingRun, draft: Draft) -> None:
        """Begin a commit in this callback, where it usually ends. If it has to wait, the writer's task finishes it."""
        batch = ((run, draft),)
        if draft.puts or (draft.chunks and _has_last_output(draft)):
            self._hand_over(batch)  # blobs and last output are stored before the append, which may have to wait
            return
        try:
            if boundaries.hook is not None:
                boundary("commit.before")
            self._began = time.perf_counter()
            draft.mail_taken = run.mail_taken
            commit: Any = self._runs.commit((draft,), self._host)
            waits_for = commit.send(None)
        except StopIteration as ended:
            outcomes = ended.value
        except Exception as error:  # noqa: BLE001 - after any error the outcome of a commit is unknown
            self._on_failed(batch, error)
            return
        except BaseException as error:  # noqa: BLE001 - it must end the writer's task, not the step that reported
            self._hand_over(batch, _raise_when_awaited(error))
            return
        else:
            self._hand_over(batch, _resume_coroutine(commit, waits_for))
            return
        if boundaries.hook is not None:
            boundary("commit.after")
        self._record_success(batch)
        run.committed(draft, outcomes[0])

    def _hand_over(self, batch: _Batch, begun: Awaitable[Sequence[Outcome]] | None = None) -> None:
        """Let the writer's task finish a commit."""
        self._begun = (batch, begun)
        self.wake()

    async def stop(self) -> None:
        """Stop committing, after the current commit has ended."""
        await self._loop.stop()
        self._begun = None

    async def _commit_loop(self) -> None:
        loop = asyncio.get_running_loop()
        self._now = loop.time
        while True:
            if not self.dirty and not self._given and self._begun is None:
                self._wake = loop.create_future()
                await self._wake
                self._wake = None
            if self._begun is not None:
                begun, self._begun = self._begun, None
                await self._finish_batch(*begun)
                continue
            if self._failures > 1:
                # Do not retry in a tight loop if the store refuses at once. New decisions wait meanwhile.
                await asyncio.sleep(min(PAUSE_SECONDS_MAX, PAUSE_SECONDS_FIRST * 2.0 ** (self._failures - 2)))
            batch = self._next_batch()
            if batch:
                await self._finish_batch(batch)

    def _next_batch(self) -> list[tuple[CommittingRun, Draft]]:
        most = 1 if self._solo else APPENDS_PER_BATCH_MAX
        self._solo = max(0, self._solo - 1)
        if self._given:
            return [self._given.pop(uid) for uid in sorted(islice(self._given, most))]
        batch: list[tuple[CommittingRun, Draft]] = []
        # The batch contains the runs that have waited longest, sorted by uid.
        for uid in sorted(islice(self.dirty, most)):
            writer = self.dirty.pop(uid)
            draft = writer.take_draft()
            if draft is not None:
                batch.append((writer, draft))
        return batch if self._others is None else self._keep_hops(batch, self._others)

    def _keep_hops(self, batch: _Batch, others: GroupWriter) -> list[tuple[CommittingRun, Draft]]:
        """Return the hops of a batch, and hand over the rest. Blobs are written first, so they are no hops either."""
        assert self._hot is not None
        hops = []
        for writer, draft in batch:
            if draft.puts or _has_last_output(draft) or not self._hot.is_hot(draft):
                others.give(writer, draft)
            else:
                hops.append((writer, draft))
        return hops

    async def _write_batch(self, batch: _Batch) -> Sequence[Outcome]:
        for _, draft in batch:
            for data in draft.puts.values():
                await self._blobs.put(data)
                boundary("blob.put")
        last = [chunk for _, draft in batch for chunk in draft.chunks if draft.status in OVER_STATUSES]
        if last and self._store_output is not None:
            await self._store_output(last)
        boundary("commit.before")
        for writer, draft in batch:
            draft.mail_taken = writer.mail_taken
        self._began = time.perf_counter()
        drafts = [draft for _, draft in batch]
        return await (self._runs.commit(drafts, self._host) if self._hot is None else self._hot.hop(drafts, self._host))

    async def _finish_batch(self, batch: _Batch, begun: Awaitable[Sequence[Outcome]] | None = None) -> None:
        """Commit a batch and tell its runs the outcome. ``begun`` is the rest of a commit that began in a callback."""
        try:
            outcomes = await (self._write_batch(batch) if begun is None else begun)
        except Exception as error:  # noqa: BLE001 - after any error the outcome of a commit is unknown
            self._on_failed(batch, error)
            return
        except GeneratorExit:
            raise  # discarded together with its host: there is no run to tell
        except BaseException:
            if self._loop.wanted:  # user code cancelled this task, or the loop failed and will be restarted
                self._on_failed(batch, Unavailable("the commit was interrupted"))
            raise
        boundary("commit.after")
        self._record_success(batch)
        await self._report_outcomes(batch, outcomes)

    def _record_success(self, batch: _Batch) -> None:
        """Record that a commit succeeded."""
        self._failures, self._failed = 0, None
        self.answered_at = self._now()
        measured = self.measured if self._others is None else self._others.measured
        if measured is not None:
            measured([draft for _, draft in batch], time.perf_counter() - self._began)
        self.batches += 1
        self.appends += len(batch)

    async def _report_outcomes(self, batch: _Batch, outcomes: Sequence[Outcome]) -> None:
        """Tell each run the outcome of its draft. Other tasks get turns in between."""
        cancelled: asyncio.CancelledError | None = None
        since = self._now()
        for number, ((writer, draft), outcome) in enumerate(zip(batch, outcomes, strict=True), 1):
            writer.committed(draft, outcome)
            if not number % TOLD_PER_CHECK and cancelled is None and self._now() - since > SHARE_SECONDS:
                try:
                    await asyncio.sleep(0)
                except asyncio.CancelledError as error:
                    cancelled = error  # all drafts are committed, so every run must be told first
                since = self._now()
        if cancelled is not None:
            raise cancelled

    def _on_failed(self, batch: _Batch, error: Exception) -> None:
        passing = not isinstance(error, VALUE_ERRORS)
        if not passing and len(batch) > 1:
            self._solo = SOLO_ROUNDS + len(batch)
        if passing:
            self._failures = min(self._failures + 1, FAILURES_COUNTED)
            failure = error if isinstance(error, StoreError) else Unavailable(f"A commit failed: {error}.")
            self._failed = (failure, asyncio.get_running_loop().time())
        runs = pluralize(len(batch), "run")
        self._throttled_log.warn("weft: a commit of %s failed (%s); what it was about is loaded again", runs, error)
        for writer, draft in batch:
            writer.unknown(draft, error, guilty=not passing and len(batch) == 1)


@types.coroutine
def _raise_when_awaited(error: BaseException) -> Generator[Any, Any, NoReturn]:
    """Raise an error when awaited. Nothing complains if the host is gone before."""
    yield from ()
    raise error


@types.coroutine
def _resume_coroutine(begun: Coroutine[Any, Any, T], waits_for: Any) -> Generator[Any, Any, T]:
    """Await a coroutine that began outside a task and now waits for ``waits_for``."""
    try:
        while True:
            try:
                value = yield waits_for
            except BaseException as error:  # noqa: BLE001 - the coroutine handles it
                waits_for = begun.throw(error)
            else:
                waits_for = begun.send(value)
    except StopIteration as ended:
        result: T = ended.value
        return result


class ReadyRun(Protocol):
    """A run that has something to decide."""

    def turn(self) -> None:
        """Process the commands in the mailbox."""
        ...


class RunQueue:
    """Gives runs their turns in the order in which they became ready."""

    def __init__(self, commits: GroupWriter, turns_max: int = TURNS_MAX, *, in_place: bool = True) -> None:
        """With ``in_place``, turns are given at once where that is allowed."""
        self._in_place = in_place
        self._commits = commits
        self._turns_max = turns_max
        self._ready: deque[ReadyRun] = deque()
        self._scheduled = False
        self._turning = False
        self._loop: asyncio.AbstractEventLoop
        self._context: contextvars.Context

    def start(self) -> None:
        """Use the running loop. Turns have their own context, independent of the code that made a run ready."""
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()

    def add(self, run: ReadyRun) -> None:
        """Give this run a turn soon."""
        self._ready.append(run)
        if not self._scheduled:
            self._schedule_turn()

    def at_once(self, task: asyncio.Task[Any], deliver: Callable[..., None], *args: Any) -> None:
        """Call a function at the end of this task, and give the runs that it makes ready their turns at once."""
        if self._scheduled or not self._in_place:
            deliver(*args)
            return
        self._scheduled = True
        # A turn belongs to no task: the code of a run has tasks of its own.
        asyncio._leave_task(self._loop, task)  # noqa: SLF001 - documented for those who extend asyncio
        try:
            self._context.run(self._run_turns, deliver, *args)
        finally:
            asyncio._enter_task(self._loop, task)  # noqa: SLF001

    def submit(self, run: CommittingRun) -> None:
        """Commit the draft of this run: at the end of the current round, or at once outside a round."""
        if self._turning:
            self._commits.dirty[run.uid] = run
        else:
            self._commits.submit(run)

    def _schedule_turn(self) -> None:
        self._scheduled = True
        self._loop.call_soon(self._run_turns, context=self._context)

    def _run_turns(self, first: Callable[..., None] | None = None, *args: Any) -> None:
        """Give ready runs their turns. ``first`` is a call that may make more runs ready."""
        ready, commits = self._ready, self._commits
        self._turning = more = True
        rounds = 0
        try:
            if first is not None:
                first(*args)
            while (ready or more) and rounds < ROUNDS_MAX:
                rounds += 1
                for _ in range(min(len(ready), self._turns_max)):
                    ready.popleft().turn()
                more = commits.flush()
        finally:
            self._turning = self._scheduled = False
            if ready:
                self._schedule_turn()
            if more:
                commits.wake()


class RunCreator:
    """Writes the rows of new runs that do not begin in this process, in groups.

    A single row is written at once. Rows that arrive during a transaction share the next one.
    """

    def __init__(self, runs: RunLog) -> None:
        self._runs = runs
        self._waiting: list[_Waiting] = []
        self._busy = False
        self.answered_at = 0.0
        """When rows were last written, by the loop's clock."""
        self._task: asyncio.Task[None] | None = None

    async def create(self, new: NewRun) -> Outcome:
        """Write the row of a run. After an error of the store, it is unknown whether the row was written."""
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
                self._task = asyncio.get_running_loop().create_task(self._create_waiting())
            else:
                self._busy = False

    async def _create_waiting(self) -> None:
        try:
            while self._waiting:
                batch = self._waiting[:RUNS_PER_BATCH_MAX]
                del self._waiting[:RUNS_PER_BATCH_MAX]
                await self._create_batch(batch)
        finally:
            self._busy = False
            # Only after a cancellation: the callers must check whether their rows were written.
            for _, future in self._waiting:
                future.cancel()
            self._waiting.clear()

    async def _create_batch(self, batch: Sequence[_Waiting]) -> None:
        try:
            outcomes = await self._runs.create([new for new, _ in batch])
        except Exception as error:  # noqa: BLE001 - every caller must get it
            if isinstance(error, StoreError) or len(batch) == 1:
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
                return
            # One of the rows cannot be written, so write them one by one.
            for one in batch:
                await self._create_batch([one])
            return
        self.answered_at = asyncio.get_running_loop().time()
        for (_, future), outcome in zip(batch, outcomes, strict=True):
            if not future.done():
                future.set_result(outcome)
