"""The shared queue: offer tasks that this host cannot perform, and perform tasks that other hosts offer.

A task gets a row if the owner of its run lacks the step or has no slot for it, or if its queue has limits, which are
counted over all hosts. The host that performs a task reports by mail, written together with the removal of the row. The
report is fenced by (task, attempt, delivery) like any other. If that host dies, the loss is reported to the run.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from weft.core import commands as c
from weft.core.effects import PerformTask
from weft.core.ids import EntryId, HostId, Millis, RunUid
from weft.errors import StoreError
from weft.ports.clock import Clock, Ids
from weft.ports.store import Mail, QueueLimits, Store, TaskOffer
from weft.runtime.background_tasks import BackgroundTasks
from weft.runtime.catalogue import HostCatalogue
from weft.runtime.duties.scheduler import MAIL, RUNS, TASKS, Wakeups
from weft.runtime.retries import RetryUntilAvailable
from weft.runtime.run.actor import Actor
from weft.runtime.run.ports import CountsStalls
from weft.runtime.runs import RunTable
from weft.runtime.worker.flight import Flight, Report
from weft.runtime.worker.step_worker import StepWorker

log = logging.getLogger("weft")

TAKEN_PER_ROUND = 100
TAKEN_MAX = 10_000


class Offered(msgspec.Struct, frozen=True):
    """The data about a task that another host needs to perform it."""

    run_id: str
    effect: PerformTask


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Offered).decode


class SharedTasks:
    """Offers tasks to other hosts, and performs tasks that they offer."""

    def __init__(
        self,
        store: Store,
        host: HostId,
        clock: Clock,
        ids: Ids,
        *,
        catalogue: HostCatalogue,
        runs: RunTable,
        worker: StepWorker,
        heartbeat: CountsStalls,
        wakeups: Wakeups,
        background: BackgroundTasks,
        retry: RetryUntilAvailable,
        reload: Callable[[Actor], Awaitable[None]],
        spill_seconds: float,
    ) -> None:
        """``reload`` is for a run when it is unknown whether its task was offered."""
        self._tasks = store.tasks
        self._hosts = store.hosts
        self._host = host
        self._clock = clock
        self._ids = ids
        self._catalogue = catalogue
        self._runs = runs
        self._worker = worker
        self._heartbeat = heartbeat
        self._wakeups = wakeups
        self._background = background
        self._retry_until_available = retry
        self._reload = reload
        self._spill_seconds = spill_seconds
        self._unknown: set[str] = set()
        self.offered: dict[RunUid, dict[int, tuple[int, int]]] = {}
        """Tasks that have a row, or are about to get one: attempt and delivery."""
        self._in_progress: Counter[RunUid] = Counter()
        self._turn = asyncio.Lock()
        """Rows are inserted and removed in the order of the decisions."""
        self._taken: dict[tuple[RunUid, int], TaskOffer] = {}
        self._queues = catalogue.queues()
        self._limits: Mapping[str, QueueLimits] = {}
        self._others = False
        """Whether another host is alive."""

    # --- limits of queues -----------------------------------------------------------------------------------------

    async def refresh(self) -> None:
        """Read the limits of the queues again, and whether there are other hosts."""
        self._limits = await self._tasks.limits()
        self._others = any(host != self._host for host in await self._hosts.list_living())

    def needs_rows(self, queue: str) -> bool:
        """Return whether tasks of this queue need rows: it has limits, or this host does not serve it."""
        if self._limits:
            limits = self._limits.get(queue)
            if limits is not None and limits.is_limited:
                return True
        queues = self._queues
        return queues is not None and queue not in queues

    def waits_for_time(self) -> bool:
        """Return whether any queue allows more tasks as time passes."""
        return any(limits.rate is not None for limits in self._limits.values())

    # --- as the owner of runs -------------------------------------------------------------------------------------

    def offer(self, actor: Actor, effect: PerformTask, *, known: bool = False) -> None:
        """Offer a task to other hosts. ``known`` means that this host could perform it too."""
        if not known and effect.step not in self._unknown:
            self._unknown.add(effect.step)
            log.warning('weft: no step "%s" on this host; %s waits for a host that has it', effect.step, actor.id)
        task = TaskOffer(
            uid=actor.uid,
            task=effect.task,
            attempt=effect.attempt,
            delivery=effect.delivery,
            step=effect.step,
            queue=effect.policy.queue,
            body=_encode(Offered(actor.id, effect)),
            epoch=actor.epoch,
            not_before=Millis(effect.due),
        )
        self.record_offer(task)
        self._in_progress[actor.uid] += 1
        self._background.spawn(self._offer(actor, task), actor)

    async def _offer(self, actor: Actor, task: TaskOffer) -> None:
        try:
            async with self._turn:
                await self._tasks.offer([task])
            self._wakeups.wake(TASKS)
        except StoreError:
            # The row may still be inserted, even after the task is done. A reload ends the epoch in which it could be.
            if self._runs.is_current(actor):
                await self._reload(actor)
        finally:
            self._in_progress[actor.uid] -= 1

    def spill(self) -> None:
        """Offer tasks that have waited too long for a slot here, if there are other hosts."""
        if not self._others:
            return
        for flight in self._worker.withdraw_queued(self._clock.monotonic() - self._spill_seconds):
            actor = self._runs.actors.get(flight.uid)
            if actor is not None and actor.ready and actor.is_open(flight.effect):
                self.offer(actor, flight.effect, known=True)

    def record_offer(self, offer: TaskOffer) -> None:
        """Record that this delivery of a task has a row, or is about to get one."""
        self.offered.setdefault(offer.uid, {})[offer.task] = (offer.attempt, offer.delivery)

    def has(self, uid: RunUid, task: int, attempt: int, delivery: int) -> bool:
        """Return whether exactly this delivery was offered to other hosts, so that its answer comes by mail."""
        return self.offered.get(uid, {}).get(task) == (attempt, delivery)

    def is_busy(self, uid: RunUid) -> bool:
        """Return whether a row of this run is being inserted or removed."""
        return self._in_progress[uid] > 0

    def forget(self, uid: RunUid) -> None:
        """Forget a run that leaves this host. Its rows stay."""
        self.offered.pop(uid, None)

    def withdraw(self, uid: RunUid, tasks: Sequence[int] | None = None) -> None:
        """Remove the rows of tasks that are no longer needed (None for all tasks of the run)."""
        offered = self.offered.get(uid)
        if not offered:
            return
        known = [task for task in offered if tasks is None or task in tasks]
        if known:
            for task in known:
                del offered[task]
            self._background.spawn(self._withdraw(uid, known))

    async def _withdraw(self, uid: RunUid, tasks: Sequence[int]) -> None:
        async with self._turn:
            await self._retry_until_available(lambda: self._tasks.withdraw(uid, tasks))

    # --- as a worker ----------------------------------------------------------------------------------------------

    async def take(self) -> int:
        """Take and perform offered tasks that this host can perform. Returns how many were taken."""
        free = min(self._worker.free_slots(), TAKEN_PER_ROUND)
        steps = self._catalogue.steps()
        if not free or not steps:
            return 0
        stalls = self._heartbeat.stalls
        offers = await self._tasks.take(
            self._host, queues=self._queues, steps=steps, now=self._clock.now_ms(), limit=free
        )
        for offer in offers:
            self._perform(offer, stalls)
        return len(offers)

    def _perform(self, offer: TaskOffer, stalls: int) -> None:
        offered = _decode(offer.body)
        self._taken[offer.uid, offer.task] = offer
        body = self._catalogue.step(offered.effect.step)
        self._worker.perform(Flight(offer.uid, offered.run_id, offered.effect, body, offer, stalls=stalls))

    async def renew(self) -> None:
        """Stop tasks that this host no longer holds; begin tasks taken by a call whose answer never arrived."""
        known = dict(self._taken)
        stalls = self._heartbeat.stalls
        held = {
            (offer.uid, offer.task): offer for _, offer in await self._tasks.taken_by([self._host], limit=TAKEN_MAX)
        }
        for place, offer in known.items():
            if place not in held and self._taken.get(place) is offer:
                del self._taken[place]
                self._worker.stop(offer.uid, EntryId(offer.task))
        for place, offer in held.items():
            if place not in self._taken and place not in known:
                self._perform(offer, stalls)

    async def settle(self, flight: Flight, report: Report) -> None:
        """Put the result into the inbox of the run, and remove the row, in one transaction."""
        offer = flight.offer
        assert offer is not None
        mail = Mail(id=self._ids.new(), to=offer.uid, body=c.encode(report), at=self._clock.now_ms())
        await self._retry_until_available(lambda: self._tasks.settle(self._host, offer, mail))
        if self._taken.get((offer.uid, offer.task)) is offer:
            del self._taken[offer.uid, offer.task]
        self._worker.answered(flight)
        self._wakeups.wake(MAIL, RUNS, TASKS)

    async def expire(self, dead: Sequence[HostId]) -> None:
        """Settle the rows taken by dead hosts, and report each task as lost to its run."""
        if not dead:
            return
        for host, offer in await self._tasks.taken_by(dead, limit=TAKEN_PER_ROUND):
            lost = c.ReportTaskLost(EntryId(offer.task), offer.attempt, offer.delivery)
            mail = Mail(
                id=f"lost/{offer.task}/{offer.attempt}/{offer.delivery}",
                to=offer.uid,
                body=c.encode(lost),
                at=self._clock.now_ms(),
            )
            await self._tasks.settle(host, offer, mail)
