"""The shared queue: offer tasks that this host cannot perform, and perform tasks that other hosts offer.

A task gets a row if the owner of its run lacks the step or has no slot for it, or if its queue or its step has limits,
which are counted over all hosts. The owner takes a task with a limit per key in the call that inserts its row, if the
limit lets it begin at once; the same call removes the rows of tasks that have ended here.

The host that performs a task reports by mail, written together with the removal of the row; if it owns the run itself,
it reports directly, and removes the row afterwards. The report is fenced by (task, attempt, delivery) like any other.
If that host dies, the loss is reported to the run.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from weft.core import commands as c
from weft.core.effects import PerformTask
from weft.core.event_parts import Parent
from weft.core.ids import EntryId, HostId, Millis, RunUid
from weft.core.run.children import caller_of
from weft.errors import BadValue, Corrupt, NotFound, StoreError
from weft.ports.clock import Clock, Ids
from weft.ports.store import Mail, Store
from weft.ports.tasks import STEP_LIMIT, QueueLimits, TaskOffer
from weft.runtime.background_tasks import BackgroundTasks
from weft.runtime.built_in import BuiltIn, task_name
from weft.runtime.catalogue import HostCatalogue
from weft.runtime.duties.scheduler import MAIL, RUNS, TASKS, Wakeups
from weft.runtime.host_limits import HostLimits
from weft.runtime.key_limits import limit_key
from weft.runtime.retries import RetryUntilAvailable
from weft.runtime.run.actor import Actor
from weft.runtime.run.ports import CountsStalls
from weft.runtime.runs import RunTable
from weft.runtime.worker.arguments import Load, arguments_of
from weft.runtime.worker.flight import Flight, Report
from weft.runtime.worker.refused import RefusedStep
from weft.runtime.worker.step_worker import StepWorker

if TYPE_CHECKING:
    from weft.agents.models.meter import ModelCounts

log = logging.getLogger("weft")

TAKEN_PER_ROUND = 100
TAKEN_MAX = 10_000
ROWS_PER_CALL = 200
ROUNDS_MAX = 5
"""How many times in a row to ask for tasks before other duties have their turn."""

_Identity = tuple[RunUid, int, int, int]
"""The run, the number of the task, its attempt and its delivery."""


class Offered(msgspec.Struct, frozen=True, omit_defaults=True):
    """The data about a task that another host needs to perform it."""

    run_id: str
    effect: PerformTask
    root: str = ""
    """The uid of the run at the root of the tree, if that is another run."""
    trace: str = ""
    """The span of the attempt as a W3C traceparent, if the host of the run is traced."""
    workflow: str = ""
    caller: Parent | None = None
    """Who asked the agent, if it is the run of one."""


class _NewRow(NamedTuple):
    """A row to insert, its content, and the run that offers the task."""

    offer: TaskOffer
    offered: Offered
    actor: Actor


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
        built_in: BuiltIn,
        runs: RunTable,
        worker: StepWorker,
        heartbeat: CountsStalls,
        wakeups: Wakeups,
        background: BackgroundTasks,
        retry: RetryUntilAvailable,
        reload: Callable[[Actor], Coroutine[Any, Any, None]],
        load: Load,
        spill_seconds: float,
    ) -> None:
        """``reload`` is for a run when it is unknown whether its task was offered. ``load`` loads a large value."""
        self._tasks = store.tasks
        self._hosts = store.hosts
        self._host = host
        self._clock = clock
        self._ids = ids
        self._catalogue = catalogue
        self._built_in = built_in
        self._runs = runs
        self._worker = worker
        worker.on_over = self._on_over
        self._heartbeat = heartbeat
        self._wakeups = wakeups
        self._background = background
        self._retry_until_available = retry
        self._reload = reload
        self._load = load
        self._spill_seconds = spill_seconds
        self._unknown: set[str] = set()
        self.offered: dict[RunUid, dict[int, tuple[int, int]]] = {}
        """Tasks that have a row, or are about to get one: attempt and delivery."""
        self._in_progress: Counter[RunUid] = Counter()
        self._outbox: list[tuple[Actor, PerformTask] | tuple[RunUid, Sequence[int]]] = []
        """Tasks that get rows next, and tasks of runs that lose theirs, in the order of the decisions."""
        self._finished: list[TaskOffer] = []
        """Taken rows to remove in the next call."""
        self._is_writing = False
        """Whether rows are being inserted and removed."""
        self._is_behind = False
        """Whether tasks may wait because this host had no slots. Then its own tasks wait for their turns too."""
        self._taken: dict[tuple[RunUid, int], TaskOffer] = {}
        self._removals: list[set[_Identity]] = []
        """For each call whose answer may name rows of this host: the rows that were removed since it was made."""
        self._reports = 0
        """How many results are being put into inboxes, together with the removal of their rows."""
        self._takes = True
        """Whether this host still takes tasks."""
        self._lingering: set[TaskOffer] = set()
        """Unwanted tasks of this host that were not in flight when it last looked."""
        self._queues = catalogue.queues()
        self.limits = HostLimits(catalogue, store.tasks, built_in.shared_steps)
        """The limits of steps and workflows per key."""
        self.turn_at: Millis | None = None
        """When the rate of a key next lets something begin that waits for it."""
        self._limits: Mapping[str, QueueLimits] = {}
        self._others = False
        """Whether another host is alive."""
        self.traceparent: Callable[[Actor, PerformTask], str] | None = None
        """Set if this host is traced: returns the trace context for a task that is offered."""

    # --- limits of queues -----------------------------------------------------------------------------------------

    async def refresh(self) -> None:
        """Read the limits of the queues, steps and workflows again, and whether there are other hosts."""
        self._limits = await self._tasks.limits()
        await self.limits.refresh()
        await self._built_in.held.refresh()
        self._others = any(host != self._host for host in await self._hosts.list_living())

    def needs_row(self, effect: PerformTask) -> bool:
        """Return whether a task needs a row: its step or queue has limits, or this host does not serve the queue."""
        if self.limits.any and self.limits.of_step(task_name(effect)) is not None:
            return True
        if self._limits:
            limits = self._limits.get(effect.policy.queue)
            if limits is not None and limits.is_limited:
                return True
        queues = self._queues
        return queues is not None and effect.policy.queue not in queues

    def stream_queues(self) -> list[str]:
        """Return the queues whose tasks are published on streams."""
        return [queue for queue, limits in self._limits.items() if limits.stream]

    def waits_for_time(self) -> bool:
        """Return whether any queue allows more tasks as time passes."""
        return any(limits.rate is not None for limits in self._limits.values())

    def is_turn_due(self) -> bool:
        """Return whether the rate of a key allows more now."""
        return self.turn_at is not None and self.turn_at <= self._clock.now_ms()

    def on_run_ended(self, workflow: str) -> None:
        """Let the next run of a workflow with a limit begin."""
        if self.limits.for_runs and self.limits.of_workflow(workflow) is not None:
            self._wakeups.wake(TASKS)

    # --- as the owner of runs -------------------------------------------------------------------------------------

    def offer(self, actor: Actor, effect: PerformTask, *, known: bool = False) -> None:
        """Offer a task to other hosts. ``known`` means that this host could perform it too."""
        if not known and effect.step not in self._unknown and not self._is_stream(effect.policy.queue):
            self._unknown.add(effect.step)
            log.warning('weft: no step "%s" on this host; %s waits for a host that has it', effect.step, actor.id)
        self.offered.setdefault(actor.uid, {})[effect.task] = (effect.attempt, effect.delivery)
        self._in_progress[actor.uid] += 1
        self._outbox.append((actor, effect))
        self._write_soon()

    def _is_stream(self, queue: str) -> bool:
        limits = self._limits.get(queue)
        return limits is not None and limits.stream

    def _write_soon(self) -> None:
        if not self._is_writing:
            self._is_writing = True
            self._background.spawn(self._write_rows())

    async def _write_rows(self) -> None:
        """Insert and remove rows until there are none left to write."""
        try:
            while self._outbox or self._finished:
                await self._write_round()
        finally:
            self._is_writing = False

    async def _write_round(self) -> None:
        """Insert and remove rows in the order of the decisions. Rows that are inserted in a row share a call."""
        entries, self._outbox = self._outbox, []
        offered = [entry[0] for entry in entries if isinstance(entry[0], Actor)]
        unknown: dict[RunUid, Actor] = {}
        try:
            rows: list[_NewRow] = []
            for entry in entries:
                if isinstance(entry[0], Actor):
                    row = await self._new_row(entry[0], entry[1])
                    rows += [row] if row is not None else ()
                else:
                    unknown |= await self._update_rows(rows)
                    rows = []
                    uid, tasks = entry[0], entry[1]
                    await self._retry_until_available(partial(self._tasks.withdraw, uid, tasks))
                    self._wakeups.wake(TASKS)
            unknown |= await self._update_rows(rows)
            # Rows may still be inserted, even after the tasks are done. A reload ends the epoch of these rows. Until
            # then the runs must not be released, because nobody would wait for their tasks.
            for actor in unknown.values():
                if self._runs.is_current(actor):
                    await self._reload(actor)
        finally:
            for actor in offered:
                self._in_progress[actor.uid] -= 1
                if not self._in_progress[actor.uid]:
                    del self._in_progress[actor.uid]

    async def _update_rows(self, rows: Sequence[_NewRow]) -> dict[RunUid, Actor]:
        """Insert rows, remove those of tasks that have ended, and begin what may begin at once.

        Returns the runs for which it is unknown whether their rows were inserted.
        """
        own = [row for row in rows if self._can_perform(row.offer)]
        left = [*own, *(row for row in rows if not self._can_perform(row.offer))]
        own_left = len(own)
        while left or self._finished:
            batch, finished = left[:ROWS_PER_CALL], self._finished[:ROWS_PER_CALL]
            self._is_behind = self._is_behind or own_left > self._worker.free_slots()
            may_take = self._takes and not self._is_behind
            stalls, most, now = self._heartbeat.stalls, own_left if may_take else 0, self._clock.now_ms()
            try:
                offered = [row.offer for row in batch]
                with self._note_removals() as removed:
                    done = await self._tasks.exchange(self._host, finished, offered, now=now, most=most)
            except StoreError:
                if finished:
                    await self._retry_until_available(partial(self._tasks.finish, self._host, finished))
                    self._forget_rows(finished)
                    self._wakeups.wake(TASKS)
                return {row.actor.uid: row.actor for row in left}
            self._forget_rows(finished)
            taken = set(map(id, done.taken))
            for row in batch:
                if id(row.offer) in taken and not self._is_known(row.offer, removed):
                    self._perform_offer(row.offer, row.offered, stalls)
            left, own_left = left[len(batch) :], max(0, own_left - len(batch))
            if done.is_ready or self._is_behind:
                self._wakeups.wake(TASKS)
        return {}

    def _can_perform(self, offer: TaskOffer) -> bool:
        """Return whether this host may take a task that it offers."""
        if not offer.limit or (self._queues is not None and offer.queue not in self._queues):
            return False
        if self._is_stream(offer.queue):
            return False
        held = self._built_in.held
        if held.any and offer.queue in held.queues():
            return False
        return self._catalogue.step(offer.step) is not None or offer.step in self._built_in.shared_steps()

    def _forget_rows(self, finished: Sequence[TaskOffer]) -> None:
        """Forget taken rows that were removed: the first of those that have ended."""
        del self._finished[: len(finished)]
        for offer in finished:
            self._forget_row(offer)

    def _forget_row(self, offer: TaskOffer) -> None:
        """Forget a taken row that was removed."""
        if self._taken.get((offer.uid, offer.task)) is offer:
            del self._taken[offer.uid, offer.task]
        for removed in self._removals:
            removed.add(_identity_of(offer))

    @contextmanager
    def _note_removals(self) -> Iterator[set[_Identity]]:
        """Collect the rows that are removed while the store answers a call. Its answer may still name them."""
        removed: set[_Identity] = set()
        self._removals = [*self._removals, removed]
        try:
            yield removed
        finally:
            self._removals = [other for other in self._removals if other is not removed]

    def _is_known(self, offer: TaskOffer, removed: set[_Identity]) -> bool:
        """Return whether another call brought this row, and whether its task may even have ended since."""
        known = self._taken.get((offer.uid, offer.task))
        return _identity_of(offer) in removed or (known is not None and _identity_of(known) == _identity_of(offer))

    async def _new_row(self, actor: Actor, effect: PerformTask) -> _NewRow | None:
        """Return the row of a task; None if its attempt fails because its key cannot be found."""
        name = task_name(effect)
        limit = self.limits.of_step(name)
        key = ""
        if limit is not None:
            try:
                key = limit_key(effect.step, limit, await arguments_of(effect, self._load))
            except (BadValue, NotFound, Corrupt) as error:  # the last two: its arguments are gone from the store
                self.offered.get(actor.uid, {}).pop(effect.task, None)
                body = RefusedStep(effect.step, error)
                self._worker.perform(Flight(actor.uid, actor.id, effect, body, stalls=actor.stalls))
                return None
        offered = self._make_offered(actor, effect)
        offer = TaskOffer(
            uid=actor.uid,
            task=effect.task,
            attempt=effect.attempt,
            delivery=effect.delivery,
            step=name,
            queue=effect.policy.queue,
            body=_encode(offered),
            epoch=actor.epoch,
            not_before=Millis(effect.due),
            limit=f"{STEP_LIMIT}{name}" if limit is not None else "",
            key=key,
        )
        return _NewRow(offer, offered, actor)

    def spill(self) -> None:
        """Offer tasks that have waited too long for a slot here, if there are other hosts."""
        if not self._others:
            return
        for flight in self._worker.withdraw_queued(self._clock.monotonic() - self._spill_seconds):
            actor = self._runs.actors.get(flight.uid)
            if actor is not None and actor.ready and actor.is_open(flight.effect):
                self.offer(actor, flight.effect, known=True)

    def record_offer(self, offer: TaskOffer) -> None:
        """Record that this delivery of a task has a row. It may be waiting to be taken."""
        self.offered.setdefault(offer.uid, {})[offer.task] = (offer.attempt, offer.delivery)
        self._wakeups.wake(TASKS)

    def has(self, uid: RunUid, task: int, attempt: int, delivery: int) -> bool:
        """Return whether exactly this delivery was offered to other hosts, so that its answer comes by mail."""
        return self.offered.get(uid, {}).get(task) == (attempt, delivery)

    def is_busy(self, uid: RunUid) -> bool:
        """Return whether a row of this run is being inserted or removed."""
        return self._in_progress[uid] > 0

    def has_rows_to_remove(self) -> bool:
        """Return whether tasks have ended here whose rows are still there."""
        return bool(self._finished) or self._reports > 0

    def forget(self, uid: RunUid) -> None:
        """Forget a run that leaves this host. Its rows stay."""
        self.offered.pop(uid, None)

    def forget_ended(self, uid: RunUid) -> None:
        """Forget a run that is over. The append that ended it has removed its rows."""
        if self.offered.pop(uid, None):
            self._wakeups.wake(TASKS)

    def withdraw(self, uid: RunUid, tasks: Sequence[int]) -> None:
        """Remove the rows of tasks that are no longer needed."""
        offered = self.offered.get(uid)
        if not offered:
            return
        known = [task for task in offered if task in tasks]
        if known:
            for task in known:
                del offered[task]
            self._outbox.append((uid, known))
            self._write_soon()

    def model_counts(self) -> Mapping[str, ModelCounts]:
        """Return what the models were asked here, by alias."""
        meter = self._built_in.meter
        return meter.counts if meter is not None else {}

    # --- as a worker ----------------------------------------------------------------------------------------------

    async def take(self) -> int:
        """Take and perform offered tasks that this host can perform. Returns how many were taken."""
        total = 0
        for _ in range(ROUNDS_MAX):
            free = min(self._worker.free_slots(), TAKEN_PER_ROUND)
            steps = [*self._catalogue.steps(), *self._built_in.shared_steps()]
            if not free or not steps or not self._takes:
                self._is_behind = not free
                return total
            stalls = self._heartbeat.stalls
            queues = await self._open_queues()
            with self._note_removals() as removed:
                offers = await self._tasks.take(
                    self._host, queues=queues, steps=steps, now=self._clock.now_ms(), limit=free
                )
            for offer in offers:
                if not self._is_known(offer, removed):
                    self._perform_offer(offer, _decode(offer.body), stalls)
            total += len(offers)
            # Keys take turns, so that one call may not bring all that they allow.
            if len(offers) < free and not any(offer.limit for offer in offers):
                self._is_behind = False
                return total
        self._wakeups.wake(TASKS)
        return total

    async def stop_taking(self, seconds: float) -> None:
        """Take nothing more. Waits, at most this long, for the answers of calls that may have taken tasks.

        A task that nobody here knows of would be lost with this host.
        """
        self._takes = False
        asked, ends = self._removals, self._clock.monotonic() + seconds
        while any(one is other for one in asked for other in self._removals):
            if self._clock.monotonic() > ends:
                return
            await asyncio.sleep(0.001)

    async def _open_queues(self) -> Sequence[str] | None:
        """Return the queues that this host serves and that are not held; None for all."""
        held = self._built_in.held.queues() if self._built_in.held.any else ()
        if not held:
            return self._queues
        names = self._queues if self._queues is not None else [row.queue for row in await self._tasks.queues()]
        return [queue for queue in names if queue not in held]

    async def note_turn(self) -> None:
        """Note when the rate of a key next lets something begin that waits for it."""
        self.turn_at = await self._tasks.next_turn(self._clock.now_ms()) if self.limits.paced else None

    def _perform_offer(self, offer: TaskOffer, offered: Offered, stalls: int) -> None:
        self._taken[offer.uid, offer.task] = offer
        actor = self._runs.actors.get(offer.uid) if offer.limit else None
        if actor is not None and actor.ready and offer.task not in actor.machine.state.tasks:
            self.finish(offer)  # it was withdrawn while the store answered
            return
        name = offered.effect.step
        body = self._catalogue.step(name) or self._built_in.step(name)
        flight = Flight(
            offer.uid,
            offered.run_id,
            offered.effect,
            body,
            offer,
            stalls=stalls,
            root=offered.root,
            workflow=offered.workflow,
            caller=offered.caller,
        )
        self._worker.perform(flight)

    def _make_offered(self, actor: Actor, effect: PerformTask) -> Offered:
        trace = self.traceparent(actor, effect) if self.traceparent else ""
        state = actor.machine.state
        return Offered(actor.id, effect, state.root, trace, state.workflow, caller_of(state))

    async def renew(self) -> None:
        """Stop tasks that this host no longer holds; begin tasks taken by a call whose answer never arrived."""
        known = dict(self._taken)
        stalls = self._heartbeat.stalls
        with self._note_removals() as removed:
            rows = await self._tasks.taken_by([self._host], limit=TAKEN_MAX)
        held = {(offer.uid, offer.task): offer for _, offer in rows}
        for place, offer in known.items():
            if place not in held and self._taken.get(place) is offer:
                del self._taken[place]
                self._worker.stop(offer.uid, EntryId(offer.task))
        for place, offer in held.items():
            if offer.unwanted:
                self._stop_unwanted(offer)
            elif place not in known and not self._is_known(offer, removed):
                self._perform_offer(offer, _decode(offer.body), stalls)

    def _stop_unwanted(self, offer: TaskOffer) -> None:
        """Stop a task that was withdrawn. Its row counts until its body has ended."""
        if self._worker.has(offer.uid, EntryId(offer.task), offer.attempt, offer.delivery):
            self._worker.stop(offer.uid, EntryId(offer.task))
        elif offer in self._lingering:
            self._lingering.discard(offer)
            self.finish(offer)
        else:
            self._lingering.add(offer)  # its body may still be cleaning up; by the next time it has ended

    def finish(self, offer: TaskOffer) -> None:
        """Remove the row of a task that has ended here and needs no report by mail."""
        self._finished.append(offer)
        self._write_soon()

    def _on_over(self, flight: Flight) -> None:
        """Remove the row of a task whose report was delivered without it, or that was stopped.

        Not before that: if this host has lost the run and dies, the row is how the loss of the report is noticed.
        """
        offer = flight.offer
        if offer is not None and offer.limit and self._taken.get((offer.uid, offer.task)) is offer:
            if self.has(offer.uid, offer.task, offer.attempt, offer.delivery):
                del self.offered[offer.uid][offer.task]
            self.finish(offer)

    async def settle(self, flight: Flight, report: Report) -> None:
        """Put the result into the inbox of the run, and remove the row, in one transaction."""
        offer = flight.offer
        assert offer is not None
        mail = Mail(id=self._ids.new(), to=offer.uid, body=c.encode(report), at=self._clock.now_ms())
        self._reports += 1
        try:
            await self._retry_until_available(lambda: self._tasks.settle(self._host, offer, mail))
        finally:
            self._reports -= 1
        self._forget_row(offer)
        self._worker.answered(flight)
        self._wakeups.wake(MAIL, RUNS, TASKS)

    async def remove_unwanted(self) -> None:
        """Remove the rows of this host that nobody needs. For a host that stops, after all bodies have ended."""
        if not self._taken:
            return
        rows = await self._tasks.taken_by([self._host], limit=TAKEN_MAX, with_body=False)
        if unwanted := [offer for _, offer in rows if offer.unwanted]:
            await self._tasks.finish(self._host, unwanted)

    async def expire(self, dead: Sequence[HostId]) -> None:
        """Settle the rows taken by dead hosts, and report each task as lost to its run."""
        if not dead:
            return
        rows = await self._tasks.taken_by(dead, limit=TAKEN_MAX, with_body=False)
        for first in range(0, len(rows), ROWS_PER_CALL):
            batch = rows[first : first + ROWS_PER_CALL]
            await asyncio.gather(*(self._expire_row(host, offer) for host, offer in batch))

    async def _expire_row(self, host: HostId, offer: TaskOffer) -> None:
        if offer.unwanted:
            await self._tasks.finish(host, [offer])
            return
        lost = c.ReportTaskLost(EntryId(offer.task), offer.attempt, offer.delivery)
        mail = Mail(
            id=f"lost/{offer.task}/{offer.attempt}/{offer.delivery}",
            to=offer.uid,
            body=c.encode(lost),
            at=self._clock.now_ms(),
        )
        await self._tasks.settle(host, offer, mail)


def _identity_of(offer: TaskOffer) -> _Identity:
    return offer.uid, offer.task, offer.attempt, offer.delivery
