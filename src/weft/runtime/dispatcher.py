"""Apply the effects of committed events: give work to the worker, the timers or the shared queue."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from weft.core import commands as c
from weft.core.effects import AnyEffect, ArmTimer, DisarmTimer, EndRun, PerformTask, StopTask
from weft.core.ids import EntryId, RunUid
from weft.core.run.children import caller_of
from weft.ports.clock import Clock
from weft.runtime.background_tasks import BackgroundTasks
from weft.runtime.built_in import BuiltIn
from weft.runtime.catalogue import HostCatalogue
from weft.runtime.delivery import CommandDelivery
from weft.runtime.duties.scheduler import RUNS, Wakeups
from weft.runtime.memo_lookup import MemoLookup
from weft.runtime.programs import planned_step
from weft.runtime.run.actor import Actor
from weft.runtime.run.covered_calls import with_grant
from weft.runtime.run.draft import PendingCommand
from weft.runtime.run.inline import InlineStep
from weft.runtime.runs import Ending, RunTable
from weft.runtime.shared import SharedTasks
from weft.runtime.task_policy import TaskPolicy
from weft.runtime.timers import Timers
from weft.runtime.trees import Trees
from weft.runtime.worker.flight import Flight, Report
from weft.runtime.worker.refused import RefusedStep
from weft.runtime.worker.step_worker import StepWorker
from weft.steps.task import MODEL, StepBody

RETRY_MS = 100
INLINE_RETRY_MS = 1000
"""How long to wait for the code that defines the body of an inline step."""


class Dispatcher:
    """Applies effects, and handles their results: due timers and reports of work."""

    def __init__(
        self,
        runs: RunTable,
        *,
        catalogue: HostCatalogue,
        built_in: BuiltIn,
        clock: Clock,
        timers: Timers,
        worker: StepWorker,
        shared: SharedTasks,
        memos: MemoLookup,
        trees: Trees,
        delivery: CommandDelivery,
        background: BackgroundTasks,
        wakeups: Wakeups,
        read_mail: Callable[[Actor], Awaitable[None]],
        policy: TaskPolicy,
    ) -> None:
        """``read_mail`` copies the inbox of a run into its mailbox."""
        self._runs = runs
        self._catalogue = catalogue
        self._built_in = built_in
        self._clock = clock
        self._timers = timers
        self._worker = worker
        self._shared = shared
        self._memos = memos
        self._trees = trees
        self._delivery = delivery
        self._background = background
        self._wakeups = wakeups
        self._read_mail = read_mail
        self._policy = policy

    def apply_effect(self, actor: Actor, effect: AnyEffect) -> None:
        """Apply an effect of a durable event."""
        match effect:
            case PerformTask():
                self.dispatch(actor, effect)
            case ArmTimer(entry=entry, due=due):
                self._timers.arm(actor.uid, entry, due)
            case DisarmTimer(entry=entry):
                self._timers.disarm(actor.uid, entry)
            case StopTask(task=task):
                self._timers.disarm(actor.uid, task)
                self._worker.stop(actor.uid, task)
                self._shared.withdraw(actor.uid, [task])
            case EndRun():
                self._end_run(actor)

    def dispatch(self, actor: Actor, effect: PerformTask) -> None:
        """Give a task to the worker here or to the shared queue, or arm a timer until it is due."""
        if effect.due and effect.due > self._clock.now_ms():
            self._timers.arm(actor.uid, effect.task, effect.due)
            return
        if effect.cover is not None:
            effect = with_grant(actor, effect)
        shared, held = self._shared, self._built_in.held
        due = held.due(effect.policy.queue, effect.key) if held.any else None
        if due is not None and not (effect.attempt == 1 and self._built_in.has_fallback(effect)):
            self._timers.arm(actor.uid, effect.task, due)
            return
        if actor.uid in shared.offered and shared.has(actor.uid, effect.task, effect.attempt, effect.delivery):
            return  # the task has a row in the shared queue
        if self._policy.current.checks_steps:
            refusal = self._policy.refusal(actor.machine.state, effect)
            if refusal is not None:
                self._give_to_worker(actor, effect, RefusedStep(effect.step, refusal))
                return
        body: StepBody | None
        if effect.inline:
            inline = actor.driver.bodies.get(effect.task) if actor.driver is not None else None
            if inline is None:
                self._timers.arm(actor.uid, effect.task, self._clock.now_ms() + INLINE_RETRY_MS)
                return
            body = InlineStep(effect.step, inline)
        else:
            find = self._catalogue.step
            own = body = find(effect.step)
            planned = planned_step(actor.machine, effect.task) if actor.driver is None else None
            if own is None or planned is not None or effect.takes is not None:
                body = self._built_in.body_of(actor.machine, effect, own, planned)
            if planned is not None and self._memos.start_lookup(actor, effect, planned, self.dispatch):
                return  # dispatched later if there is no earlier result
            known = own is not None or effect.step == MODEL
            if body is None or (known and shared.needs_row(effect)):
                if not self._worker.has(actor.uid, effect.task, effect.attempt, effect.delivery):
                    shared.offer(actor, effect, known=known)
                return
        self._give_to_worker(actor, effect, body)

    def _give_to_worker(self, actor: Actor, effect: PerformTask, body: StepBody) -> None:
        state = actor.machine.state
        self._worker.perform(
            Flight(
                actor.uid,
                actor.id,
                effect,
                body,
                stalls=actor.stalls,
                root=state.root,
                workflow=state.workflow,
                caller=caller_of(state),
                priority=state.priority,
            )
        )

    def _end_run(self, actor: Actor) -> None:
        self._worker.stop_all(actor.uid)
        self._shared.forget_ended(actor.uid)
        self._timers.disarm_run(actor.uid)
        if actor.uid in self._runs.slotted:
            self._wakeups.wake(RUNS)
        self._runs.remove(actor)
        for posted in actor.take_unanswered():
            self._background.spawn(self._delivery.deliver(actor.uid, posted))
        state = actor.machine.state
        self._trees.closed(state)
        self._shared.on_run_ended(state.workflow)
        self._runs.on_ended(actor.uid, Ending(state.status, bytes(state.output), state.failure, state.cancelled or ""))

    # --- results of effects ---------------------------------------------------------------------------------------

    def on_due(self, uid: RunUid, entry: EntryId) -> None:
        """Handle a task or timer that is due."""
        actor = self._runs.actors.get(uid)
        if actor is None:
            return
        state = actor.machine.state
        if not actor.ready or (entry in state.tasks and not actor.is_committed()):
            # No task is dispatched before the decision to do so is durable.
            self._timers.arm(uid, entry, self._clock.now_ms() + RETRY_MS)
            return
        if entry in state.tasks:
            if state.status != "paused":
                self.dispatch(actor, actor.machine.perform(entry))
        elif entry in state.timers or entry == 0:
            actor.post(PendingCommand(c.FireTimer(entry)))
        else:
            self._background.spawn(self._fire_after_mail(actor, entry), actor)

    async def _fire_after_mail(self, actor: Actor, entry: EntryId) -> None:
        """Read the inbox, then fire the timer, so that mail that was accepted in time is processed before it."""
        await self._read_mail(actor)
        if actor.ready:
            actor.post(PendingCommand(c.FireTimer(entry)))
        else:
            # It took no mail, because it is about to leave memory. If it stays, its mail is read again first.
            self._timers.arm(actor.uid, entry, self._clock.now_ms() + RETRY_MS)

    def arm_again(self, actor: Actor, entry: EntryId) -> None:
        """Arm a timer again that fired early because the clock was set back. Does nothing if the entry has ended."""
        due = actor.machine.due_of(entry)
        if due:
            self._timers.arm(actor.uid, entry, due)

    def on_report(self, flight: Flight, report: Report) -> None:
        """Deliver the report of a worker to its run."""
        actor = self._runs.actors.get(flight.uid)
        if flight.offer is not None and (actor is None or not flight.offer.limit):
            self._background.spawn(self._shared.settle(flight, report))
            return
        posted = PendingCommand(report, flight=flight)
        if actor is None:
            self._background.spawn(self._delivery.deliver(flight.uid, posted))
        else:
            actor.post(posted)
