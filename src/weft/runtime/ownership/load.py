"""Load runs that this host owns: after a claim, after a start, after a commit with an unknown outcome.

The log is the truth. Work that was open when the last owner died is derived from the log, and commands that the log
does not contain are given to the run again. Rules: docs/internals/engine.md#rule-3.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from weft.core import commands as c
from weft.core import events as e
from weft.core import values
from weft.core.effects import PerformTask
from weft.core.ids import EntryId, HostId, RunUid, Seq
from weft.core.machine import Machine
from weft.core.run.env import MissingInputs
from weft.core.run.state import FOLD
from weft.errors import BadValue, Corrupt, NotFound, StoreError
from weft.ports.boundary import boundary
from weft.ports.new_run import START_MAIL
from weft.ports.store import PENDING, Loaded, Mail, RunRow, Store
from weft.runtime.background_tasks import BackgroundTasks
from weft.runtime.call_format import format_call
from weft.runtime.catalogue import Callee
from weft.runtime.delivery import CommandDelivery
from weft.runtime.ownership.admission import RunAdmission, refuse_start
from weft.runtime.ownership.faults import FaultyRuns
from weft.runtime.ownership.first_start import FirstStarts
from weft.runtime.reader import begin_at
from weft.runtime.retries import RetryUntilAvailable
from weft.runtime.run.actor import Actor
from weft.runtime.run.covered_calls import reserve_again
from weft.runtime.run.draft import PendingCommand, posted_mail
from weft.runtime.runs import RunTable
from weft.runtime.shared import SharedTasks
from weft.runtime.trees import Trees
from weft.runtime.values import ValueStore
from weft.runtime.worker.step_worker import StepWorker


class Loader:
    """Loads runs into memory."""

    def __init__(
        self,
        store: Store,
        host: HostId,
        runs: RunTable,
        *,
        new_machine: Callable[..., Machine],
        new_actor: Callable[..., Actor],
        resolve: Callable[[RunRow], Awaitable[Callee | None]],
        learn_version: Callable[[str, str], Awaitable[None]],
        values: ValueStore,
        worker: StepWorker,
        shared: SharedTasks,
        trees: Trees,
        delivery: CommandDelivery,
        background: BackgroundTasks,
        faults: FaultyRuns,
        admission: RunAdmission,
        retry: RetryUntilAvailable,
        first_starts: FirstStarts,
        on_loaded: Callable[[], None],
    ) -> None:
        """``resolve`` finds the workflow of a run that was started by name."""
        self._log = store.log
        self._directory = store.directory
        self._tasks = store.tasks
        self._host = host
        self._runs = runs
        self._new_machine = new_machine
        self._new_actor = new_actor
        self._resolve = resolve
        self._learn_version = learn_version
        self._values = values
        self._worker = worker
        self._shared = shared
        self._trees = trees
        self._delivery = delivery
        self._background = background
        self._faults = faults
        self._admission = admission
        self._retry_until_available = retry
        self._first_starts = first_starts
        self._on_loaded = on_loaded
        self._repeated_calls: dict[RunUid, list[str]] = {}

    async def load(self, uid: RunUid) -> None:
        """Load a run that this host owns and does not have in memory: a new child, or one whose claim got no answer."""
        row = await self._retry_until_available(lambda: self._directory.row(uid))
        if row is not None and row.owner == self._host and row.ended_at is None and uid not in self._runs.actors:
            await self.load_run(row, died=row.seq > 0)

    async def load_run(self, row: RunRow, *, died: bool, pending: Sequence[PendingCommand] = ()) -> Actor | None:
        """Load a run that this host owns and let it continue. ``died`` says whether the last owner is gone."""
        refusal: BadValue | None = None
        if not row.seq and self._admission.is_limited(row.workflow):
            try:
                if not await self._admission.admit(row):
                    return None
            except BadValue as error:
                refusal = error
            except (NotFound, Corrupt) as error:  # the input, which has the key, is gone from the store
                await self._faults.mark(row.uid, row.id, error.message)
                return None
        callee = await self._resolve(row) if not row.style else None
        style, version = (row.style, row.version) if callee is None else (callee.style, callee.version)
        try:
            machine = self._new_machine(style, row.workflow, version, row.uid)
        except Corrupt as error:
            await self._faults.mark(row.uid, row.id, error.message)
            return None
        actor = self._new_actor(row.uid, row.id, row.epoch, machine)
        actor.callee = callee
        actor.pending = row.status == PENDING
        self._runs.add(actor)
        if row.slot is not None:
            self._runs.slotted.add(row.uid)
        actor.mailbox.extend(pending)
        # Read before the log: an answer that arrives between the two reads is then found in the inbox.
        rows = await self._retry_until_available(lambda: self._tasks.rows(row.uid)) if row.seq else ()
        try:
            loaded = await self._retry_until_available(lambda: self._log.load(row.uid, fold=FOLD))
            if loaded is not None and (loaded.row.epoch, loaded.row.owner) == (row.epoch, self._host):
                if not row.seq:
                    inbox = await self._first_starts.prepare(loaded.row, callee, loaded.inbox)
                    loaded = msgspec.structs.replace(loaded, inbox=inbox)
                if not row.style:
                    await self._fetch_input(actor, loaded)
                if not row.seq and row.parent is not None:
                    actor.cut_off = await self._is_cut_off(loaded)
                boundary("recovery.loaded")
                for offer in rows:
                    self._shared.record_offer(offer)
                await self._fold_log(actor, loaded)
                loaded = await self._with_late_mail(actor, loaded)
                self._restore_actor(actor, loaded, died=died, refusal=refusal)
                # A run that was over may still have rows of tasks that ended with it; a retry must not revive them.
                self._shared.withdraw(
                    row.uid, [offer.task for offer in rows if offer.task not in actor.machine.state.tasks]
                )
                return actor
        except Exception as error:
            if isinstance(error, StoreError) and not isinstance(error, Corrupt):
                raise
            # Any other error affects only this run.
            await self._faults.set_aside(actor, error)
            return None
        # Another host claimed the run between the claim and the load.
        self._runs.remove(actor)
        for posted in actor.take_unanswered():
            self._background.spawn(self._delivery.deliver(row.uid, posted))
        return None

    async def _with_late_mail(self, actor: Actor, loaded: Loaded) -> Loaded:
        """Add mail that was accepted since the inbox was read, if commands came too: it may have come before them."""
        checked = 0
        while len(actor.mailbox) > checked:
            checked = len(actor.mailbox)
            inbox = await self._retry_until_available(lambda: self._log.inbox(actor.uid))
            known = {mail.id for mail in loaded.inbox}
            late = [mail for mail in inbox if mail.id not in known]
            row = msgspec.structs.replace(loaded.row, mail=loaded.row.mail + len(late))
            loaded = msgspec.structs.replace(loaded, row=row, inbox=[*loaded.inbox, *late])
        return loaded

    async def _is_cut_off(self, loaded: Loaded) -> bool:
        """Return whether this run is about to start below a root that is cancelled or rolls back."""
        starts = (c.decode(mail.body) for mail in loaded.inbox if mail.id == START_MAIL)
        roots = [start.root for start in starts if isinstance(start, c.StartRun) and start.root]
        return any([await self._trees.is_stopped(root) for root in roots])

    async def _fetch_input(self, actor: Actor, loaded: Loaded) -> None:
        """Fetch the input of a run that was started by name: its first decision checks it."""
        for mail in loaded.inbox:
            command = c.decode(mail.body)
            raw = bytes(command.input) if isinstance(command, c.StartRun) else b""
            if values.is_ref(raw):
                actor.fetched[values.parse_ref(raw).digest] = await self._values.load(raw)

    async def _fold_log(self, actor: Actor, loaded: Loaded) -> None:
        """Apply the log. If it names versions that are not in memory, read them and begin again. Raises NotFound."""
        row = loaded.row
        body = loaded.snapshot.body if loaded.snapshot is not None else None
        machine = actor.machine
        while True:
            try:
                if body is not None:
                    machine = self._new_machine(row.style, row.workflow, row.version, actor.uid, body)
                begin_at(machine, loaded)
                for stored in loaded.events:
                    machine.fold(e.decode(stored.body), at=stored.at)
                break
            except MissingInputs as missing:
                for version in missing.versions:
                    await self._learn_version(row.workflow, version)
                machine = self._new_machine(row.style, row.workflow, row.version, actor.uid)
        actor.tail_bytes += sum([len(stored.body) for stored in loaded.events])
        actor.snapshot_bytes = len(body) if body is not None else 0  # or the next append would make another snapshot
        actor.machine = machine

    def _restore_actor(self, actor: Actor, loaded: Loaded, *, died: bool, refusal: BadValue | None) -> None:
        machine = actor.machine
        self._trees.loaded(machine.state)
        actor.committed_seq = Seq(machine.state.seq)
        actor.mail_taken = loaded.row.mail - len(loaded.inbox)
        actor.restored = True
        actor.idle_until = loaded.row.idle_until
        actor.owner_died = died
        actor.begin_turn()
        lost = self._lost_tasks(actor) if died else []
        open_effects = [
            effect
            for effect in machine.outstanding()
            if not isinstance(effect, PerformTask)
            or not (effect.task in lost or self._shared.has(actor.uid, effect.task, effect.attempt, effect.delivery))
        ]
        for number in lost:
            task = machine.state.tasks[number]
            actor.issue(c.ReportTaskLost(EntryId(number), task.attempt, task.delivery))  # type: ignore[arg-type]
            self._repeated_calls.setdefault(actor.uid, []).append(format_call(task.step, bytes(task.input)))
        # Mail comes first: it was accepted before the commands posted here that are not in the log.
        posted = actor.take_posted(loaded.inbox)
        for mail in loaded.inbox:
            command = posted_mail(mail)
            if refusal is not None and isinstance(command.command, c.StartRun):
                command.command = refuse_start(command.command, refusal)
            actor.post(command)
        actor.mailbox.extend(posted)
        # Replay the code in a callback of the loop: its private loop must not be pumped inside a task.
        asyncio.get_running_loop().call_soon(self._continue_run, actor, open_effects)

    def _continue_run(self, actor: Actor, open_effects: Sequence[object]) -> None:
        if not self._runs.is_current(actor):
            return
        actor.ready = True
        self._runs.note_arrival(actor.uid)
        self._on_loaded()
        actor.proceed(after_mail=True)
        actor.schedule()
        for effect in open_effects:
            if isinstance(effect, PerformTask) and not actor.is_open(effect):
                continue
            if isinstance(effect, PerformTask) and effect.cover is not None:
                reserve_again(actor, effect)
            else:
                actor.ports.apply_effect(actor, effect)  # type: ignore[arg-type]

    def performed_again(self, uid: RunUid) -> list[str]:
        """Return the calls of this run that had no result when it was loaded."""
        return self._repeated_calls.pop(uid, [])

    def _lost_tasks(self, actor: Actor) -> list[int]:
        """Return the tasks that were dispatched and that no host performs now."""
        now = actor.now_ms
        return [
            number
            for number, task in actor.machine.state.tasks.items()
            # By the last owner's clock, a retry may already have begun that is not due by ours; an undo must know.
            if not task.withheld
            and (task.due <= now or task.undo is not None)
            and not self._worker.has(actor.uid, EntryId(number), task.attempt, task.delivery)
            and not self._shared.has(actor.uid, number, task.attempt, task.delivery)
        ]

    async def read_mail(self, actor: Actor) -> None:
        """Copy the inbox of a run into its mailbox. If the inbox cannot be read, set the run aside."""
        try:
            inbox: Sequence[Mail] | Corrupt = await self._log.inbox(actor.uid)
        except Corrupt as error:
            inbox = error
        await self.take_mail(actor, inbox)

    async def take_mail(self, actor: Actor, inbox: Sequence[Mail] | Corrupt) -> None:
        """Put the inbox of a run into its mailbox. If the inbox is damaged, set the run aside."""
        if isinstance(inbox, Corrupt):
            await self._faults.set_aside(actor, inbox)
            return
        try:
            for mail in inbox:
                if actor.ready:
                    actor.post(posted_mail(mail))
        except Corrupt as error:
            await self._faults.set_aside(actor, error)
