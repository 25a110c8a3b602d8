"""The host of this process, as the service, the server and the command line see it: its runs, and its work.

These classes hide the parts of the host, and neither starts nor stops it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from weft.core import commands as c
from weft.core.effects import PerformTask
from weft.core.ids import HostId, Millis, RunId, RunUid
from weft.errors import StoreError
from weft.ports.clock import Clock
from weft.ports.store import Directory, Mail, RunRow
from weft.ports.tasks import WORKFLOW_LIMIT
from weft.runtime.background_tasks import BackgroundTasks
from weft.runtime.catalogue import HostCatalogue
from weft.runtime.commit import GroupWriter, Measured
from weft.runtime.decision_inputs import InThread
from weft.runtime.delivery import CommandDelivery
from weft.runtime.duties.scheduler import HINT, MAIL, RUNS, Wakeups
from weft.runtime.loop_share import Callers
from weft.runtime.ownership.begin import RunStarter
from weft.runtime.ownership.claim import Claims
from weft.runtime.run.actor import Actor
from weft.runtime.run.draft import Draft, PendingCommand
from weft.runtime.runs import Ending, RunTable
from weft.runtime.shared import SharedTasks
from weft.runtime.status import HostStatus
from weft.runtime.step_logs import StepLogWriter
from weft.runtime.worker.flight import Flight
from weft.runtime.worker.step_worker import StepWorker
from weft.runtime.worker_streams.counts import StreamCounts


class LocalRuns:
    """The runs that this process hosts."""

    def __init__(
        self,
        host: HostId,
        runs: RunTable,
        *,
        catalogue: HostCatalogue,
        publish: Callable[[], Awaitable[None]],
        status: HostStatus,
        starter: RunStarter,
        delivery: CommandDelivery,
        claims: Claims,
        background: BackgroundTasks,
        in_thread: InThread,
        callers: Callers,
    ) -> None:
        self.host = host
        self.catalogue = catalogue
        """The workflows and steps of this host."""
        self.publish = publish
        """Store the graphs of this host that are not stored yet."""
        self.in_thread = in_thread
        """Call a function in a thread, because it may be slow."""
        self.callers = callers
        self._runs = runs
        self._status = status
        self._starter = starter
        self._limits = catalogue.limits()
        self._delivery = delivery
        self._claims = claims
        self._background = background
        self._claiming: dict[RunUid, asyncio.Task[Any]] = {}

    def find(self, uid: RunUid) -> Actor | None:
        """Return the run with this uid if it is in memory here."""
        return self._runs.actors.get(uid)

    def find_by_id(self, run_id: RunId) -> Actor | None:
        """Return the run with this id if it is in memory here."""
        return self._runs.by_id.get(run_id)

    def all(self) -> list[Actor]:
        """Return all runs in memory here."""
        return list(self._runs.actors.values())

    def begin(self, start: c.StartRun) -> Coroutine[Any, Any, RunUid] | None:
        """Return the work that creates a run here, which raises IdTaken.

        None if there is no room, or if the store must judge first whether the run may begin.
        """
        if not self._status.running or self._runs.is_full() or WORKFLOW_LIMIT + start.workflow in self._limits:
            return None
        return self._starter.begin(start)

    async def tell(self, actor: Actor, posted: PendingCommand) -> None:
        """Give a command to a run in memory. Returns when its decision is durable. Raises the refusal."""
        await self._delivery.tell(actor, posted)

    async def take_mail(self, actor: Actor) -> Actor | None:
        """Give a run the mail in its inbox. Returns the run; None if it has left memory meanwhile."""
        await self._delivery.take_mail(actor)
        return self.find(actor.uid)

    def post(self, mail: Mail) -> None:
        """Deliver mail that was just stored. A run that is not in memory here finds it in its inbox."""
        self._delivery.post_local(mail)

    def can_claim(self, row: RunRow) -> bool:
        """Return whether this host can run the workflow of a run."""
        return self._status.running and (row.workflow, row.version) in self.catalogue.programs()

    async def claim(self, row: RunRow) -> None:
        """Claim and load a run. A claimed run is loaded completely, even if the caller is cancelled."""
        task = self._claiming.get(row.uid)
        if task is None:
            task = self._claiming[row.uid] = self._background.spawn(self._claims.claim([row]), may_fail=True)
            task.add_done_callback(lambda _: self._claiming.pop(row.uid, None))
        await asyncio.shield(task)

    def forget(self, uids: Sequence[RunUid]) -> None:
        """Drop the memory of runs that were written without their owner. Those that are still ours are loaded again."""
        for uid in uids:
            actor = self._runs.actors.get(uid)
            if actor is not None:
                self._claims.forget(actor)

    async def claim_new(self, uids: Sequence[RunUid]) -> None:
        """Begin delayed runs before their time, unless another host has claimed them or there is no room."""
        await self._claims.claim_new(uids)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in the background while this host runs. It may fail."""
        self._background.spawn(work, may_fail=True)

    async def wait_for_end(self, uid: RunUid, *, timeout: float | None = None) -> Ending | None:
        """Wait until a run has ended, on any host. Returns how it ended if it ended here. Raises TimeoutError."""
        return await self._runs.wait_for_end(uid, timeout=timeout)


class LocalWork:
    """The work that this host performs and writes, and its backlog."""

    def __init__(
        self,
        runs: RunTable,
        worker: StepWorker,
        writer: GroupWriter,
        wakeups: Wakeups,
        *,
        claims: Claims,
        catalogue: HostCatalogue,
        directory: Directory,
        clock: Clock,
        performed_again: Callable[[RunUid], list[str]],
        step_logs: StepLogWriter | None,
        shared: SharedTasks,
        stream_counts: StreamCounts | None = None,
    ) -> None:
        self.stream_counts = stream_counts
        """What happened to tasks on Redis streams; None without Redis."""
        self._wakeups = wakeups
        self.trouble: Callable[[], StoreError | None] = writer.trouble
        """Return why nothing can be written now."""
        self.performed_again = performed_again
        """Return the calls of a run that had no result when it was loaded."""
        self._shared = shared
        self.model_counts = shared.model_counts
        """Return what the models were asked here, by alias."""
        self.tools = worker.tools
        """Counts the tool calls of agents."""
        self.step_logs = step_logs
        """Stores what steps print here; None if that is not kept."""
        self._runs = runs
        self._worker = worker
        self._writer = writer
        self._claims = claims
        self._catalogue = catalogue
        self._directory = directory
        self._clock = clock

    def wake(self) -> None:
        """Look for mail and for runs to claim now, because this process wrote some."""
        self._wakeups.wake(MAIL, RUNS)

    def on_hint(self) -> None:
        """Look for what other processes wrote now, because one of them said so."""
        self._wakeups.wake(HINT)

    def on_created(self, wake_at: Millis | None) -> None:
        """Claim a run that was just created in the store: now, or at this time."""
        if wake_at is None:
            self.wake()
        else:
            self._claims.note_wake(wake_at)

    def answered_at(self) -> float:
        """Return when the store last answered a write, by the loop's clock."""
        return self._writer.answered_at

    def trace_offers(self, traceparent: Callable[[Actor, PerformTask], str]) -> None:
        """Send this trace context along with every task that is offered to other processes."""
        self._shared.traceparent = traceparent

    def measure_commits(self, measured: Measured) -> None:
        """Call back after every commit, with its drafts and its duration in seconds."""
        before = self._writer.measured
        self._writer.measured = measured if before is None else partial(_measure_twice, before, measured)

    def is_busy(self, uid: RunUid) -> bool:
        """Return whether a step of this run is performed here."""
        return self._worker.is_busy(uid)

    def release_steps(self) -> None:
        """Perform the steps that were held when the host started."""
        self._worker.release()

    def in_flight(self) -> int:
        """Return how many attempts are dispatched here."""
        return sum(len(flights) for flights in self._worker.flights.values())

    @property
    def taken_over(self) -> int:
        """Return how many runs of hosts that were gone this host has claimed."""
        return self._claims.taken_over

    @property
    def lost_from_wals(self) -> int:
        """Return how many runs of hosts that were gone have lost events, or may have, as this host found."""
        return self._claims.lost

    def oldest_attempt_seconds(self) -> float:
        """Return the age of the oldest attempt that is dispatched here; 0 if there is none."""
        since = (flight.since for flights in self._worker.flights.values() for flight in flights.values())
        now = self._clock.monotonic()
        return now - min(since, default=now)

    async def unclaimed(self, limit: int) -> list[RunUid]:
        """Return runs of all workflows that have something to do and no living owner, longest waiting first."""
        versions = list(await self._directory.open_versions())
        now = self._clock.now_ms()
        rows = await self._directory.claimable(versions, dead=self._claims.dead, now=now, limit=limit)
        return [row.uid for row in rows]

    async def backlog_ms(self) -> int:
        """Return the age of the oldest work that waits for a slot or for memory."""
        return max(self._slot_wait_ms(), await self._memory_wait_ms())

    def _slot_wait_ms(self) -> int:
        flight = self._worker.next_queued()
        return max(0, self._clock.now_ms() - self._waiting_since(flight)) if flight is not None else 0

    def _waiting_since(self, flight: Flight) -> int:
        state = self._runs.state_of(RunUid(flight.uid))
        task = state.tasks.get(flight.effect.task) if state is not None else None
        return max(task.since, task.due) if task is not None else self._clock.now_ms()

    async def _memory_wait_ms(self) -> int:
        if not self._claims.backlog and not self._runs.is_full():
            return 0
        now = self._clock.now_ms()
        rows = await self._directory.claimable(self._catalogue.programs(), dead=(), now=now, limit=1)
        if not rows:
            return 0
        since = rows[0].wake_at or (rows[0].updated_at if rows[0].seq else rows[0].created_at)
        return max(0, now - since)


def _measure_twice(first: Measured, second: Measured, drafts: Sequence[Draft], seconds: float) -> None:
    first(drafts, seconds)
    second(drafts, seconds)
