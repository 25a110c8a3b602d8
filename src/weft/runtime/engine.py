"""The engine of one host: runs in memory, their commits, their tasks and timers, and the door through which commands
come.

``load → decide → append → effects``: an actor per run decides, the committer appends in groups, and what a durable
event asks of the world goes out from here. What another part does is in its own file: recovery reads runs back, the
keeper looks after time, mail and rest.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import msgspec

from weft.core import commands as c
from weft.core.decider import Machine
from weft.core.effects import AnyEffect, ArmTimer, DisarmTimer, EndRun, PerformTask, StopTask
from weft.core.goal.definitions import StepWay
from weft.core.goal.machine import GoalMachine
from weft.core.ids import EntryId, Epoch, HostId, RunId, RunUid
from weft.core.run.env import MissingInputs
from weft.core.run.state import State
from weft.errors import (
    Corrupt,
    Failure,
    LimitExceeded,
    NotFound,
    WeftError,
)
from weft.ports.clock import Clock, Ids
from weft.ports.store import Mail, NewRun, Outcome, Store
from weft.runtime.actor import Actor
from weft.runtime.background_tasks import BackgroundTasks
from weft.runtime.built_in import BuiltIn
from weft.runtime.catalogue import Catalogue
from weft.runtime.changes import Changes
from weft.runtime.clock import StoreClock
from weft.runtime.commit import GroupWriter
from weft.runtime.complaints import Complaints
from weft.runtime.draft import Draft, Posted
from weft.runtime.heart import Heartbeat
from weft.runtime.inline import InlineStep
from weft.runtime.keeper import Keeper
from weft.runtime.language import LANGUAGE
from weft.runtime.library import Library
from weft.runtime.programs import new_machine
from weft.runtime.recall import Recall
from weft.runtime.recovery import Recovery
from weft.runtime.replies import refusal, resolve, taken
from weft.runtime.retries import StoreRetries
from weft.runtime.schemas import check_schema
from weft.runtime.settings import Settings
from weft.runtime.shared import SharedWork
from weft.runtime.status import HostStatus
from weft.runtime.step_keeper import StepKeeper
from weft.runtime.streams import StreamWriter
from weft.runtime.timers import Timers
from weft.runtime.trees import Trees
from weft.runtime.turns import Newborn, Turns
from weft.runtime.values import OpenedValues, ValueStore, blob_cache
from weft.runtime.worker import Flight, Report, Worker
from weft.steps.base import Executor, StepBody

log = logging.getLogger("weft")

T = TypeVar("T")
Published = Callable[[RunUid, int, str], None]
Observer = Callable[[Actor, Draft], None]
LATER_MS = 100


class World(msgspec.Struct, frozen=True, kw_only=True):
    """All that an engine takes from outside."""

    store: Store
    clock: Clock
    ids: Ids
    executor: Executor
    settings: Settings = Settings()
    about: Mapping[str, Any] = {}
    """What people see of this host."""


class Ending(msgspec.Struct, frozen=True):
    """How a run ended; ``output`` as the log has it."""

    status: str
    output: bytes
    failure: Failure | None
    reason: str = ""


class Engine:
    """See the module."""

    def __init__(self, world: World, catalogue: Catalogue) -> None:
        self.store = world.store
        self.clock = StoreClock(world.clock, world.store)
        self.ids = world.ids
        self.settings = world.settings
        self.catalogue = catalogue
        self._executor = world.executor
        self.host = HostId(world.ids.new())
        self.actors: dict[RunUid, Actor] = {}
        self.by_id: dict[RunId, Actor] = {}
        self.status = HostStatus()
        self.complaints = Complaints()
        self.retry_until_available = StoreRetries(self.status, self.complaints).retry_until_available
        self.background = BackgroundTasks(self.status, lambda actor: self.actors.get(actor.uid) is actor)
        blobs = world.store.blobs
        self.values = ValueStore(
            put=lambda raw: self.retry_until_available(partial(blobs.put, raw)),
            get=lambda digest: self.retry_until_available(partial(blobs.get, digest)),
            cache=blob_cache(world.settings.blob_cache_bytes),
        )
        self.opened = OpenedValues(world.settings.recent_bytes)
        self.check_schema = check_schema
        self.committer = GroupWriter(world.store.log, blobs, self.host, self.status.fail, self.complaints)
        self.streams = StreamWriter(world.store.streams, self.background, self.retry_until_available)
        self.timers = Timers(self.clock, self._due, look_seconds=world.settings.look_seconds)
        self.worker = Worker(
            catalogue,
            world.executor,
            self.clock,
            slots=world.settings.slots,
            report=self._reported,
            load=self.values.load,
            keep=self.values.keep,
            streams=self.streams,
        )
        self.worker.failed = self.status.fail
        self.built_in = BuiltIn(self)
        self.steps = StepKeeper(self)
        self.library = Library(self)
        self.recall = Recall(self)
        self.shared = SharedWork(self)
        self.recovery = Recovery(self)
        self.trees = Trees(self)
        self.turns = Turns(self)
        self.newborn = Newborn(self)
        self.keeper = Keeper(self)
        self.heart = Heartbeat(self)
        self._about = world.about
        self._waiting: dict[RunUid, list[asyncio.Future[Ending | None]]] = {}
        self._watchers: list[Published] = []
        self._observers: list[Observer] = []
        self.changes = Changes()

    # --- life -----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Join the store, take up what nobody works on, and begin to look after it."""
        lease_ms = int(self.settings.lease_seconds * 1000)
        await self.store.hosts.join(self.host, lease_ms=lease_ms, about=self._about)
        self.background.start()
        self.streams.start()
        self.status.running = True
        self.heart.start()
        self.committer.start()
        await self.library.publish()
        await self.steps.start()
        await self.retry_until_available(self.library.refresh)
        await self.shared.refresh()
        await self.recovery.scan()
        self.keeper.start()

    async def stop(self) -> None:
        """Drain, then hand over: running steps may finish, idle runs go to rest, the rest is for whoever comes next."""
        if not self.status.running:
            return
        self.status.closing = True
        self.worker.closed = True
        await self.keeper.stop()
        left = await self.worker.drain(self.settings.drain_seconds)
        if left:
            log.warning(
                "weft: %d steps were still running after the drain timeout; the next host will retry them", left
            )
        # Runs that never come to rest are cut off: what they have not committed is decided again.
        await asyncio.wait([self.background.spawn(self.settle(), may_fail=True)], timeout=self.settings.drain_seconds)
        await self.streams.drain(self.settings.drain_seconds)
        await self.keeper.release(list(self.actors.values()))
        await self.kill()
        await self.store.hosts.leave(self.host)

    async def settle(self) -> None:
        """Wait until everything decided is committed, or cannot be here any more, as long as a drain may take."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + self.settings.drain_seconds
        while self.status.failure is None and self._has_work():
            if loop.time() > ends:
                log.warning("weft: not everything could be committed in time; the next host will decide it again")
                return
            await asyncio.sleep(0.001)

    def _has_work(self) -> bool:
        return any(not actor.is_idle() and actor.ready for actor in self.actors.values())

    async def kill(self) -> None:
        """Stop at once: nothing more is written, memory is let go."""
        self.status.running = False
        self.timers.close()
        self.worker.abandon()
        await self.keeper.stop()
        await self.heart.stop()
        self.background.cancel()
        await self.committer.stop()
        await self.built_in.close()
        for actor in list(self.actors.values()):
            actor.close()
        self.actors.clear()
        self.by_id.clear()
        await self.worker.let_go()

    # --- the door -------------------------------------------------------------------------------------------------

    async def begin(self, start: c.StartRun, *, uid: RunUid | None = None) -> RunUid:
        """Make a run and take its first steps; returns when it is durable. Raises IdTaken."""
        run_id = RunId(start.run_id)
        if run_id in self.by_id:
            raise taken(run_id)
        new = uid or RunUid(self.ids.new())
        actor = Actor(self, new, run_id, Epoch(1), self.machine(start.style, start.workflow, start.version, new))
        self.keep_actor(actor)
        actor.ready = True
        actor.begin_turn()
        draft = actor.new_draft()
        draft.create = NewRun(
            uid=actor.uid,
            id=run_id,
            workflow=start.workflow,
            version=start.version,
            style=start.style,
            created_at=actor.now_ms,
            owner=self.host,
            attributes=start.attributes,
        )
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        posted = Posted(start, reply=resolve(done))
        actor.post(posted)
        try:
            await done
        except asyncio.CancelledError:
            posted.abandoned = True
            raise
        except WeftError:
            if not actor.machine.state.started:
                self.forget(actor)
            raise
        return actor.uid

    def machine(self, style: str, workflow: str, version: str, uid: RunUid, snapshot: bytes | None = None) -> Machine:
        """The machine of a run, from nothing or from a snapshot. Raises UnknownWorkflow."""
        program = None if style == "code" else self.catalogue.program(workflow, version)
        return new_machine(style, program, uid, snapshot)

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Do something that would hold up the loop."""
        return await self._executor.in_thread(work)

    def is_full(self) -> bool:
        """Whether a new run must wait at rest until some have left memory.

        New runs have places of their own: runs that were read back never take these, so nobody's past is in their way.
        """
        return len(self.actors) >= self.settings.resident_max * 5 // 4

    async def tell(self, actor: Actor, command: c.Mailed, *, posted: Posted | None = None) -> None:
        """Give a run in memory a command; returns when what it decided is durable. Raises its rejection."""
        if len(actor.mailbox) >= self.settings.mailbox_max:
            raise LimitExceeded(f"{actor.id} has {len(actor.mailbox)} commands waiting.", hint="Send more slowly.")
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        item = posted or Posted(command)
        item.reply = resolve(done)
        actor.post(item)
        try:
            await done
        except asyncio.CancelledError:
            item.abandoned = True
            raise

    async def deliver(self, uid: RunUid, posted: Posted) -> None:
        """Give a command to a run wherever it is: in memory here, or by mail."""
        actor = self.actors.get(uid)
        if actor is not None:
            actor.post(posted)
            return
        key, digest = (posted.key.key, posted.key.digest) if posted.key is not None else (None, "")
        body = c.encode(posted.command)
        mail = Mail(id=self.ids.new(), to=uid, body=body, at=self.clock.now_ms(), key=key, digest=digest)
        (sent,) = await self.retry_until_available(lambda: self.store.log.send([mail]))
        if posted.flight is not None:
            self.worker.answered(posted.flight)
        if posted.reply is not None:
            posted.reply(refusal(sent, key))
        self.keeper.nudge()

    async def ended(self, uid: RunUid, *, timeout: float | None = None) -> Ending | None:
        """Wait until a run is over, whoever owns it; how it ended, if that was seen here. Raises TimeoutError."""
        future: asyncio.Future[Ending | None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(uid, []).append(future)
        try:
            if uid not in self.actors:
                row = await self.store.directory.row(uid)
                if row is None or row.ended_at is not None:
                    return None
            if timeout is None:
                return await future
            async with asyncio.timeout(timeout):
                return await future
        finally:
            waiting = self._waiting.get(uid, [])
            if future in waiting:
                waiting.remove(future)
            if not waiting:
                self._waiting.pop(uid, None)

    def waited_for(self) -> list[RunUid]:
        """Runs whose end somebody here waits for."""
        return list(self._waiting)

    def over(self, uid: RunUid, ending: Ending | None = None) -> None:
        """A run has ended: tell who waits."""
        for future in self._waiting.pop(uid, ()):
            if not future.done():
                future.set_result(ending)

    def watch(self, watcher: Published) -> Callable[[], None]:
        """Call back with (uid, last number, status) after every commit here; the answer ends it."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    def observe(self, observer: Observer) -> Callable[[], None]:
        """Call back with a run and what it has just committed, after every commit here; the answer ends it."""
        self._observers.append(observer)
        return lambda: self._observers.remove(observer)

    def published(self, actor: Actor, draft: Draft) -> None:
        for observer in self._observers:
            observer(actor, draft)
        if self.changes.waiting:
            self.changes.notify(actor.uid)
        for watcher in self._watchers:
            watcher(actor.uid, actor.committed_seq, actor.machine.state.status)

    # --- runs in memory -------------------------------------------------------------------------------------------

    def keep_actor(self, actor: Actor) -> None:
        self.actors[actor.uid] = actor
        self.by_id[actor.id] = actor

    def forget(self, actor: Actor) -> None:
        """The run leaves memory."""
        actor.close()
        self.shared.forget(actor.uid)
        self.recall.forget(actor.uid)
        if self.actors.get(actor.uid) is actor:
            del self.actors[actor.uid]
        if self.by_id.get(actor.id) is actor:
            del self.by_id[actor.id]

    def disarm(self, actor: Actor) -> None:
        """Its timers are set again by whoever reads it back."""
        self.timers.disarm_run(actor.uid)

    def state_of(self, uid: RunUid) -> State | None:
        actor = self.actors.get(uid)
        return actor.machine.state if actor is not None and actor.ready else None

    # --- effects --------------------------------------------------------------------------------------------------

    def let_out(self, actor: Actor, effect: AnyEffect) -> None:
        """Do what a durable event asks of the world."""
        match effect:
            case PerformTask():
                self._hand_out(actor, effect)
            case ArmTimer(entry=entry, due=due):
                self.timers.arm(actor.uid, entry, due)
            case DisarmTimer(entry=entry):
                self.timers.disarm(actor.uid, entry)
            case StopTask(task=task):
                self.timers.disarm(actor.uid, task)
                self.worker.stop(actor.uid, task)
                self.shared.withdraw(actor.uid, [task])
            case EndRun():
                self._end(actor)

    def _hand_out(self, actor: Actor, effect: PerformTask) -> None:
        if effect.due and effect.due > self.clock.now_ms():
            self.timers.arm(actor.uid, effect.task, effect.due)
            return
        if self.shared.has(actor.uid, effect.task, effect.attempt, effect.delivery):
            return  # it has a row, so whoever takes that performs it
        body: StepBody | None
        if effect.inline:
            inline = actor.driver.bodies.get(effect.task) if actor.driver is not None else None
            if inline is None:
                self.timers.arm(actor.uid, effect.task, self.clock.now_ms() + 1000)
                return
            body = InlineStep(effect.step, inline)
        else:
            own = self.catalogue.step(effect.step)
            body = self._body(actor, effect, own)
            if self.recall.looks(actor, effect):
                return  # it is handed out when nobody has done it before
            known = own is not None
            if body is None or (known and self.shared.needs_rows(effect.policy.queue)):
                self.shared.offer(actor, effect, known=known)
                return
        self.worker.hand_out(Flight(actor.uid, actor.id, effect, body, naps=actor.naps))

    def _body(self, actor: Actor, effect: PerformTask, own: StepBody | None) -> StepBody | None:
        """What performs a task, if anything here can. ``own``: the registered step of its name."""
        if isinstance(actor.machine, GoalMachine):
            definition = actor.machine.definition(effect.task)
            if definition is not None and not isinstance(definition.way, StepWay):
                return self.built_in.work(definition)
            undone = actor.machine.undone(effect.task)
            compensation = self.built_in.compensation(undone) if undone is not None else None
            if compensation is not None:
                return compensation
        return own or self.built_in.step(effect.step) or self.built_in.named(effect.step)

    def _end(self, actor: Actor) -> None:
        self.worker.stop_all(actor.uid)
        self.shared.withdraw(actor.uid)
        self.disarm(actor)
        self.forget(actor)
        for posted in actor.leave_behind():
            self.background.spawn(self.deliver(actor.uid, posted))
        state = actor.machine.state
        self.trees.closed(state)
        self.over(actor.uid, Ending(state.status, bytes(state.output), state.failure, state.cancelled or ""))

    def _due(self, uid: RunUid, entry: EntryId) -> None:
        actor = self.actors.get(uid)
        if actor is None:
            return
        state = actor.machine.state
        if not actor.ready or (entry in state.tasks and not actor.is_committed()):
            # Nothing is handed out before the decision to do so is durable.
            self.timers.arm(uid, entry, self.clock.now_ms() + LATER_MS)
            return
        if entry in state.tasks:
            if state.status != "paused":
                self._hand_out(actor, actor.machine.perform(entry))
        elif entry in state.timers or entry == 0:
            actor.post(Posted(c.FireTimer(entry)))
        else:
            self.background.spawn(self._due_after_mail(actor, entry), actor)

    async def _due_after_mail(self, actor: Actor, entry: EntryId) -> None:
        """What was accepted in time wins: the inbox is read at or after the due time, before the timer is decided."""
        await self.retry_until_available(lambda: self.recovery.read_mail(actor))
        actor.post(Posted(c.FireTimer(entry)))

    def arm_again(self, actor: Actor, entry: EntryId) -> None:
        """A timer fired early (the clock was set back meanwhile), or for something that has ended."""
        due = actor.machine.due_of(entry)
        if due:
            self.timers.arm(actor.uid, entry, due)

    def _reported(self, flight: Flight, report: Report) -> None:
        if flight.offer is not None:
            self.background.spawn(self.shared.settle(flight, report))
            return
        actor = self.actors.get(flight.uid)
        posted = Posted(report, flight=flight)
        if actor is None:
            self.background.spawn(self.deliver(flight.uid, posted))
        else:
            actor.post(posted)

    # --- values ---------------------------------------------------------------------------------------------------

    def fetch_blobs(self, actor: Actor, digests: set[str]) -> None:
        """The code cannot be told its next fact before these are here."""
        self.background.spawn(self._fetch_for_code(actor, digests), actor)

    async def _fetch_for_code(self, actor: Actor, digests: set[str]) -> None:
        try:
            for digest in sorted(digests):
                await self.values.blob(digest)
        except (Corrupt, NotFound) as error:
            if self.actors.get(actor.uid) is actor:
                await self.recovery.set_aside(actor, error)
            return
        driver = actor.driver
        if driver is not None and actor.ready:
            driver.lacks.clear()
            actor.fetching = True
            asyncio.get_running_loop().call_soon(actor.brought)

    def fetch(self, actor: Actor, wanting: MissingInputs) -> None:
        """A decision cannot be made before this is here."""
        self.background.spawn(self._fetch(actor, wanting), actor)

    async def _fetch(self, actor: Actor, wanting: MissingInputs) -> None:
        for digest in wanting.blobs:
            try:
                actor.fetched[digest] = await self.values.blob(digest)
            except (Corrupt, NotFound) as error:
                actor.fetched[digest] = error  # a document may name what is not there: that is for the run to judge
        for question in wanting.questions:
            await self._executor.in_thread(partial(LANGUAGE.answer, question))
        asyncio.get_running_loop().call_soon(actor.brought)

    # --- other runs -----------------------------------------------------------------------------------------------

    def post_local(self, mail: Mail) -> None:
        """Mail that was just committed: if its run is in memory here, it need not be looked for."""
        actor = self.actors.get(mail.to)
        if actor is not None:
            # Also to one that is being read back: whether its inbox was read before this came, nobody knows.
            actor.post(Posted(c.decode(mail.body), mail_id=mail.id))
        if actor is None or not actor.ready:
            self.keeper.nudge()  # it is elsewhere, or on its way to rest

    def adopt(self, child: NewRun) -> None:
        """A child run that was just committed, with its start in the inbox.

        Ours from birth, or for whoever has its workflow.
        """
        if child.owner == self.host:
            self.newborn.add(child.uid)
        else:
            self.keeper.nudge()

    async def take_up(self, uid: RunUid) -> None:
        """A run that is ours by the store and not in memory: a new child, or one whose claim was not answered."""
        row = await self.retry_until_available(lambda: self.store.directory.row(uid))
        if row is not None and row.owner == self.host and row.ended_at is None and uid not in self.actors:
            await self.recovery.go_on(row, died=row.seq > 0)

    # --- when a commit did not go through -------------------------------------------------------------------------

    def refused_append(self, actor: Actor, draft: Draft, outcome: Outcome) -> None:
        if outcome is Outcome.ID_TAKEN:
            self.background.spawn(self._refuse_start(actor, draft), actor)
            return
        self.background.spawn(self.recovery.reload(actor, draft, outcome))

    def lost_append(self, actor: Actor, draft: Draft, error: Exception, *, guilty: bool) -> None:
        if guilty:
            self.background.spawn(self.recovery.set_aside(actor, error))
        else:
            self.background.spawn(self.recovery.reload(actor, draft, None))

    async def _refuse_start(self, actor: Actor, draft: Draft) -> None:
        """The id belongs to another run, or to this very one.

        Then it is our own earlier start, whose answer was lost.
        """
        row = await self.retry_until_available(lambda: self.store.directory.row(actor.uid))
        if row is not None:
            await self.recovery.reload(actor, draft, None)
            return
        self.forget(actor)
        for posted in actor.leave_behind():
            if posted.reply is not None:
                posted.reply(taken(actor.id))
