"""Tasks that this host cannot perform itself, and tasks of others that it can: the shared queue.

A task gets a row if the owner of its run lacks the step or has no slot for it, or if its queue has limits, which are
counted over all hosts. Whoever performs it reports by mail, written together
with the removal of the row; the report is fenced by (task, attempt, delivery) like any other. A row whose worker died
becomes a loss that its run hears of.
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
HELD_PER_LOOK = 10_000


class Offered(msgspec.Struct, frozen=True):
    """What a worker needs to know of a task."""

    run_id: str
    effect: PerformTask


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Offered).decode


class SharedTasks:
    """Offers tasks to other hosts, and performs what others offer."""

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
        """``reload`` is for a run whose task may have been offered, or not."""
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
        """Tasks that have a row, or are about to have one: attempt and delivery."""
        self._under_way: Counter[RunUid] = Counter()
        self._turn = asyncio.Lock()
        """A row is made and removed in the order in which that was decided."""
        self._taken: dict[tuple[RunUid, int], TaskOffer] = {}
        self._limits: Mapping[str, QueueLimits] = {}
        self._others = False
        """Whether another host is alive."""

    # --- limits of queues -----------------------------------------------------------------------------------------

    async def refresh(self) -> None:
        """Read again what the queues allow, and whether others are there."""
        self._limits = await self._tasks.limits()
        self._others = any(host != self._host for host in await self._hosts.living())

    def needs_rows(self, queue: str) -> bool:
        """Whether tasks of this queue have rows: all hosts count them, or this one does not perform them."""
        if self._limits:
            limits = self._limits.get(queue)
            if limits is not None and limits.bound:
                return True
        queues = self._catalogue.queues()
        return queues is not None and queue not in queues

    def waits_for_time(self) -> bool:
        """Whether a queue of this host allows more as time goes by."""
        return any(limits.rate is not None for limits in self._limits.values())

    # --- as the owner of runs -------------------------------------------------------------------------------------

    def offer(self, actor: Actor, effect: PerformTask, *, known: bool = False) -> None:
        """Let others have this task. ``known``: this host could perform it too."""
        if not known and effect.step not in self._unknown:
            self._unknown.add(effect.step)
            log.warning('weft: no step "%s" here; %s waits for a process that has it', effect.step, actor.id)
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
        self.know(task)
        self._under_way[actor.uid] += 1
        self._background.spawn(self._offer(actor, task), actor)

    async def _offer(self, actor: Actor, task: TaskOffer) -> None:
        try:
            async with self._turn:
                await self._tasks.offer([task])
            self._wakeups.wake(TASKS)
        except StoreError:
            # It may yet come, after the task is done. A claim ends the epoch under which it could, and offers it anew.
            if self._runs.is_current(actor):
                await self._reload(actor)
        finally:
            self._under_way[actor.uid] -= 1

    def spill(self) -> None:
        """Give away what has waited too long for a slot here, if there is anybody to take it."""
        if not self._others:
            return
        for flight in self._worker.withdraw_queued(self._clock.monotonic() - self._spill_seconds):
            actor = self._runs.actors.get(flight.uid)
            if actor is not None and actor.ready and actor.is_open(flight.effect):
                self.offer(actor, flight.effect, known=True)

    def know(self, offer: TaskOffer) -> None:
        """This hand-out has a row, or is about to have one."""
        self.offered.setdefault(offer.uid, {})[offer.task] = (offer.attempt, offer.delivery)

    def has(self, uid: RunUid, task: int, attempt: int, delivery: int) -> bool:
        """Whether this very hand-out is for others, so that its answer comes by mail."""
        return self.offered.get(uid, {}).get(task) == (attempt, delivery)

    def is_busy(self, uid: RunUid) -> bool:
        """Whether a row of this run is on its way."""
        return self._under_way[uid] > 0

    def forget(self, uid: RunUid) -> None:
        """The run leaves this host; its rows stay."""
        self.offered.pop(uid, None)

    def withdraw(self, uid: RunUid, tasks: Sequence[int] | None = None) -> None:
        """Nobody waits for these any more (None: for any of the run)."""
        offered = self.offered.get(uid, {})
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
        """Perform what others offer and this host can do; how many were taken."""
        free = min(self._worker.free_slots(), TAKEN_PER_ROUND)
        steps = self._catalogue.steps()
        if not free or not steps:
            return 0
        stalls = self._heartbeat.stalls
        offers = await self._tasks.take(
            self._host, queues=self._catalogue.queues(), steps=steps, now=self._clock.now_ms(), limit=free
        )
        for offer in offers:
            self._perform(offer, stalls)
        return len(offers)

    def _perform(self, offer: TaskOffer, stalls: int) -> None:
        known = _decode(offer.body)
        self._taken[offer.uid, offer.task] = offer
        body = self._catalogue.step(known.effect.step)
        self._worker.perform(Flight(offer.uid, known.run_id, known.effect, body, offer, stalls=stalls))

    async def renew(self) -> None:
        """Stop what is no longer ours; begin what was taken by a call whose answer never came."""
        known = dict(self._taken)
        stalls = self._heartbeat.stalls
        ours = {
            (offer.uid, offer.task): offer for _, offer in await self._tasks.held([self._host], limit=HELD_PER_LOOK)
        }
        for place, offer in known.items():
            if place not in ours and self._taken.get(place) is offer:
                del self._taken[place]
                self._worker.stop(offer.uid, EntryId(offer.task))
        for place, offer in ours.items():
            if place not in self._taken and place not in known:
                self._perform(offer, stalls)

    async def settle(self, flight: Flight, report: Report) -> None:
        """The result goes into the inbox of the run, together with the removal of the row."""
        offer = flight.offer
        assert offer is not None
        mail = Mail(id=self._ids.new(), to=offer.uid, body=c.encode(report), at=self._clock.now_ms())
        await self._retry_until_available(lambda: self._tasks.settle(self._host, offer, mail))
        if self._taken.get((offer.uid, offer.task)) is offer:
            del self._taken[offer.uid, offer.task]
        self._worker.answered(flight)
        self._wakeups.wake(MAIL, RUNS, TASKS)

    async def expire(self, dead: Sequence[HostId]) -> None:
        """Rows of workers that are gone: each is settled in the name of the dead, and its run hears of the loss."""
        if not dead:
            return
        for host, offer in await self._tasks.held(dead, limit=TAKEN_PER_ROUND):
            lost = c.ReportTaskLost(EntryId(offer.task), offer.attempt, offer.delivery)
            mail = Mail(
                id=f"lost/{offer.task}/{offer.attempt}/{offer.delivery}",
                to=offer.uid,
                body=c.encode(lost),
                at=self._clock.now_ms(),
            )
            await self._tasks.settle(host, offer, mail)
