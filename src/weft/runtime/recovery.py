"""Reading runs back: after a start, after a death, after a commit whose fate is unknown.

Recovery only ever claims, loads and hands over what is open; it never runs anything by itself. A run is claimed by
raising its epoch, which also fences the commit that was lost; then the log says what is true, and commands that it does
not contain are offered again.

Rules: docs/internals/engine.md#rule-3.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING
from zlib import crc32

from weft.core import commands as c
from weft.core import events as e
from weft.core import values
from weft.core.effects import PerformTask
from weft.core.ids import EntryId, Epoch, Millis, RunUid, Seq
from weft.core.run.state import FOLD
from weft.errors import Corrupt, KeyReused, StoreError, WeftError
from weft.ports.boundary import boundary
from weft.ports.store import PENDING, START_MAIL, KeyRow, Loaded, Mail, Outcome, RunRow
from weft.runtime.actor import Actor
from weft.runtime.draft import Draft, Posted
from weft.runtime.duties.scheduler import MAIL, RUNS
from weft.runtime.pending import resolve
from weft.runtime.shown import call_shown
from weft.steps.failures import text_of

if TYPE_CHECKING:
    from weft.runtime.engine import Engine

log = logging.getLogger("weft")

CLAIMS_PER_SCAN = 500
LOADS_PER_TURN = 50
SHARE_MIN = 20
"""So few runs are not worth sharing."""
PAUSE_SECONDS_FIRST = 0.1
PAUSE_SECONDS_MAX = 2.0
HELD = "held"
"""The status of a run that stands still until somebody looks after it."""
UNCLAIMED = Epoch(0)
"""Of a run that was made for nobody."""


class Recovery:
    """See the module."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._taking: set[RunUid] = set()
        self._again: dict[RunUid, list[str]] = {}
        self.wake_at: Millis | None = None
        """When time alone next makes a run claimable that nobody has in memory."""
        self.backlog = 0
        """How many runs were seen that could go on if there were room in memory."""

    def is_taking(self, uid: RunUid) -> bool:
        """Whether this run is being claimed right now."""
        return uid in self._taking

    def is_run_due(self) -> bool:
        """Whether the time of a run has come that nobody has in memory."""
        return self.wake_at is not None and self.wake_at <= self._engine.clock.now_ms()

    def on_released(self, wake_at: Millis) -> None:
        """A run was released that must be claimed again at this time."""
        if self.wake_at is None or wake_at < self.wake_at:
            self.wake_at = wake_at

    # --- runs that nobody works on --------------------------------------------------------------------------------

    async def scan(self) -> int:
        """Claim what nobody works on and this host can run; how many."""
        engine = self._engine
        dead = await engine.store.hosts.dead(monotonic=engine.clock.monotonic())
        await engine.shared.expire(dead)
        total = 0
        while not engine.status.closing:
            rows = await engine.store.directory.claimable(
                engine.catalogue.programs(), dead=dead, now=engine.clock.now_ms(), limit=CLAIMS_PER_SCAN
            )
            fresh = [row for row in rows if row.uid not in self._taking and row.uid not in engine.runs.actors]
            room = max(0, engine.settings.resident_max - len(engine.runs.actors))
            self.backlog = max(0, len(fresh) - room)
            share = await self._share(fresh)
            taken = await self.take(share[:room])
            total += taken
            if not taken or self.backlog or (len(rows) < CLAIMS_PER_SCAN and len(share) == len(fresh)):
                break
        self.wake_at = await engine.store.directory.next_wake(engine.catalogue.programs(), dead=dead)
        return total

    async def _share(self, rows: Sequence[RunRow]) -> Sequence[RunRow]:
        """What this host takes first of runs that others may be after too: hosts that start together begin apart."""
        engine = self._engine
        hosts = len(await engine.store.hosts.living())
        if hosts < 2 or len(rows) <= SHARE_MIN:
            return rows
        apart = sorted(rows, key=lambda row: crc32(f"{engine.host}{row.uid}".encode()))
        return apart[: max(SHARE_MIN, -(-len(rows) // hosts))]

    async def take(self, rows: Sequence[RunRow]) -> int:
        """Claim those of these runs whose log can be read here, and go on with them."""
        readable = [row for row in rows if row.format <= e.FORMAT]
        died = {row.uid for row in readable if row.owner is not None}
        return await self._take({row.uid: row.epoch for row in readable}, died)

    async def take_new(self, uids: Sequence[RunUid]) -> None:
        """Begin runs before the time until which they were put off, unless somebody has or there is no room."""
        room = max(0, self._engine.settings.resident_max - len(self._engine.runs.actors))
        await self._take(dict.fromkeys(uids[:room], UNCLAIMED), ())

    async def _take(self, epochs: Mapping[RunUid, Epoch], died: Collection[RunUid]) -> int:
        engine = self._engine
        if not epochs:
            return 0
        self._taking.update(epochs)
        try:
            claimed = await self._claim(epochs)
            boundary("recovery.claimed")
            for i, row in enumerate(claimed, 1):
                if row.uid not in engine.runs.actors:
                    await self.go_on(row, died=row.uid in died)
                if i % LOADS_PER_TURN == 0:
                    await asyncio.sleep(0)  # a store may answer at once, and others have something to do too
        finally:
            self._taking.difference_update(epochs)
        return len(claimed)

    async def _claim(self, expected: Mapping[RunUid, Epoch]) -> list[RunRow]:
        """Those that are ours now.

        A claim without an answer is made again: it went through, or the second one fences it.
        """
        engine = self._engine
        asked = 0

        async def claim() -> list[RunRow]:
            nonlocal asked
            asked += 1
            claimed = await engine.store.log.claim(list(expected), engine.host, expected=expected)
            if asked == 1:
                return list(claimed)
            names = {row.uid for row in claimed}
            rest = [await engine.store.directory.row(uid) for uid in expected if uid not in names]
            ours = [row for row in rest if row is not None and row.owner == engine.host and row.ended_at is None]
            return [*claimed, *ours]

        return await engine.retry_until_available(claim)

    async def go_on(self, row: RunRow, *, died: bool, pending: Sequence[Posted] = ()) -> Actor | None:
        """Load a run that is ours and let it go on. ``died``: its tasks were in the hands of somebody who is gone."""
        engine = self._engine
        callee = await resolve(engine, row) if not row.style else None
        style, version = (row.style, row.version) if callee is None else (callee.style, callee.version)
        try:
            machine = engine.machine(style, row.workflow, version, row.uid)
        except Corrupt as error:
            reason = error.message
            log.error("weft: %s is set aside: %s", row.id, reason)  # noqa: TRY400 - there is nothing more to see
            await engine.retry_until_available(lambda: engine.store.log.mark_fault(row.uid, reason, status=HELD))
            return None
        actor = Actor(engine.ports, row.uid, row.id, row.epoch, machine)
        actor.callee = callee
        actor.pending = row.status == PENDING
        engine.runs.add(actor)
        actor.mailbox.extend(pending)
        # Before the log: an answer that comes between the two is then in the inbox, and never in neither.
        rows = await engine.retry_until_available(lambda: engine.store.tasks.rows(row.uid)) if row.seq else ()
        try:
            loaded = await engine.retry_until_available(lambda: engine.store.log.load(row.uid, fold=FOLD))
            if loaded is not None and (loaded.row.epoch, loaded.row.owner) == (row.epoch, engine.host):
                if not row.style:
                    await self._fetch_input(actor, loaded)
                if not row.seq and row.parent is not None:
                    actor.cut_off = await self._is_cut_off(loaded)
                boundary("recovery.loaded")
                for offer in rows:
                    engine.shared.know(offer)
                self._restore(actor, loaded, died=died)
                return actor
        except Exception as error:
            if isinstance(error, StoreError) and not isinstance(error, Corrupt):
                raise
            # Whatever it is, it is this run's: others of the same round go on.
            await self.set_aside(actor, error)
            return None
        # It was taken from us between the claim and the reading; what is open in it is in other hands.
        engine.runs.remove(actor)
        for posted in actor.leave_behind():
            engine.background.spawn(engine.delivery.deliver(row.uid, posted))
        return None

    async def _is_cut_off(self, loaded: Loaded) -> bool:
        """Whether this is the start of a run below a root that is cancelled or rolls back."""
        starts = (c.decode(mail.body) for mail in loaded.inbox if mail.id == START_MAIL)
        roots = [start.root for start in starts if isinstance(start, c.StartRun) and start.root]
        return any([await self._engine.trees.is_stopped(root) for root in roots])

    async def _fetch_input(self, actor: Actor, loaded: Loaded) -> None:
        """Nobody has checked the input of a run that was started by name: its first decision needs it."""
        for mail in loaded.inbox:
            command = c.decode(mail.body)
            raw = bytes(command.input) if isinstance(command, c.StartRun) else b""
            if values.is_ref(raw):
                actor.fetched[values.parse_ref(raw).digest] = await self._engine.values.load(raw)

    def _restore(self, actor: Actor, loaded: Loaded, *, died: bool) -> None:
        shared = self._engine.shared
        machine = actor.machine
        if loaded.snapshot is not None:
            row = loaded.row
            body = loaded.snapshot.body
            machine = self._engine.machine(row.style, row.workflow, row.version, actor.uid, body)
        for stored in loaded.events:
            machine.evolve(e.decode(stored.body), at=stored.at)
            actor.tail_bytes += len(stored.body)
        actor.machine = machine
        self._engine.trees.loaded(machine.state)
        actor.committed_seq = Seq(machine.state.seq)
        actor.mail_taken = loaded.row.mail - len(loaded.inbox)
        actor.idle_until = loaded.row.idle_until
        actor.died = died
        actor.begin_turn()
        lost = self._lost_tasks(actor) if died else []
        open_effects = [
            effect
            for effect in machine.outstanding()
            if not isinstance(effect, PerformTask)
            or not (effect.task in lost or shared.has(actor.uid, effect.task, effect.attempt, effect.delivery))
        ]
        for number in lost:
            task = machine.state.tasks[number]
            actor.issue(c.ReportTaskLost(EntryId(number), task.attempt, task.delivery))  # type: ignore[arg-type]
            self._again.setdefault(actor.uid, []).append(call_shown(task.step, bytes(task.input)))
        # Mail was accepted before anything that was posted here and is not in the log.
        posted = [one for one in actor.mailbox if not one.abandoned]
        actor.mailbox.clear()
        for mail in loaded.inbox:
            actor.post(posted_mail(mail))
        actor.mailbox.extend(posted)
        # The code hears its past from a callback of the loop: its private loop may not be pumped inside a task.
        asyncio.get_running_loop().call_soon(self._wake, actor, open_effects)

    def _wake(self, actor: Actor, open_effects: Sequence[object]) -> None:
        if self._engine.runs.actors.get(actor.uid) is not actor:
            return
        actor.ready = True
        self._engine.mail_duty.on_loaded()
        actor.go_on(after_mail=True)
        actor.schedule()
        for effect in open_effects:
            if not isinstance(effect, PerformTask) or actor.is_open(effect):
                self._engine.effects.apply_effect(actor, effect)  # type: ignore[arg-type]

    def performed_again(self, uid: RunUid) -> list[str]:
        """Calls of this run that had no result when it was taken up."""
        return self._again.pop(uid, [])

    def _lost_tasks(self, actor: Actor) -> list[int]:
        """Tasks that had been handed out and are in nobody's hands now."""
        now = actor.now_ms
        engine = self._engine
        return [
            number
            for number, task in actor.machine.state.tasks.items()
            # By its owner's clock a retry may have begun that is still to come by ours; an undo must know.
            if (task.due <= now or task.undo is not None)
            and not engine.worker.has(actor.uid, EntryId(number), task.attempt, task.delivery)
            and not engine.shared.has(actor.uid, number, task.attempt, task.delivery)
        ]

    async def reconcile(self) -> None:
        """Compare what is in memory with what the store says is ours.

        What others took while this host was away leaves memory, so that whoever waits for it here hears of it; what is
        ours and not in memory, because the answer to a claim was lost for good, is taken up.
        """
        engine = self._engine
        known = list(engine.runs.actors.values())
        owned = await engine.store.directory.owned(engine.host)
        for actor in known:
            here = engine.runs.actors.get(actor.uid) is actor and actor.ready and actor.is_idle()
            if here and owned.get(actor.uid) != actor.epoch:
                engine.background.spawn(self.reload(actor, None, Outcome.STALE_EPOCH))
        for uid in owned:
            await engine.turns.share()
            if uid not in engine.runs.actors and uid not in self._taking and uid not in engine.newborn.waiting:
                await engine.take_up(uid)

    # --- mail -----------------------------------------------------------------------------------------------------

    async def read_mail(self, actor: Actor) -> None:
        """Take in what waits in the inbox. If it cannot be read, this run is set aside."""
        try:
            for mail in await self._engine.store.log.inbox(actor.uid):
                if actor.ready:
                    actor.post(posted_mail(mail))
        except Corrupt as error:
            await self.set_aside(actor, error)

    # --- commits whose fate is not known --------------------------------------------------------------------------

    async def reload(self, actor: Actor, draft: Draft | None, outcome: Outcome | None) -> None:
        """Throw the run's memory away, read it again, and offer what the log does not contain. ``None``: unknown."""
        engine = self._engine
        if actor.reloading:
            return
        actor.reloading = True
        engine.timers.disarm_run(actor.uid)
        actor.close()
        engine.worker.stop_after(actor.uid, actor.committed_seq)
        pause = PAUSE_SECONDS_FIRST
        while engine.status.running:
            try:
                if await self._read_again(actor, draft, outcome):
                    return
            except StoreError as error:
                engine.complaints.say("weft: %s cannot be read again yet: %s", actor.id, error)
            except Exception:
                # Whatever it was: a run that is not read again would stand still for ever.
                log.exception("weft: %s could not be read again", actor.id)
            await asyncio.sleep(pause)
            pause = min(2 * pause, PAUSE_SECONDS_MAX)

    async def _read_again(self, actor: Actor, draft: Draft | None, outcome: Outcome | None) -> bool:
        engine = self._engine
        row = await engine.store.directory.row(actor.uid)
        if row is None:
            return self._start_again(actor)
        if (
            outcome is not Outcome.STALE_EPOCH
            and outcome is not Outcome.MAIL_WAITING
            and outcome is not Outcome.KEY_TAKEN
        ):
            claimed = await engine.store.log.claim([actor.uid], engine.host, expected={actor.uid: actor.epoch})
            row = claimed[0] if claimed else await engine.store.directory.row(actor.uid)
        if row is None:
            return True
        if outcome is Outcome.KEY_TAKEN and draft is not None:
            await self._answer_known_keys(draft)
        if draft is not None and await self._is_applied(draft):
            self._answer_applied(actor, draft)
        engine.runs.remove(actor)
        pending = actor.leave_behind()
        if row.owner != engine.host:
            for posted in pending:
                engine.background.spawn(engine.delivery.deliver(row.uid, posted))
            return True
        await self.go_on(row, died=actor.died, pending=pending)
        return True

    def _answer_applied(self, actor: Actor, draft: Draft) -> None:
        """It was durable after all. What it asks of the world is outstanding, except for what lives in other runs."""
        engine = self._engine
        actor.flying = None
        actor.answer(draft)
        for child in draft.children:
            engine.adopt(child)
        if draft.mail:
            engine.wakeups.wake(MAIL, RUNS)

    def _start_again(self, actor: Actor) -> bool:
        """The run was never made: nothing of it exists, so its start is offered again."""
        engine = self._engine
        pending = actor.unanswered()
        engine.runs.remove(actor)
        start = next((posted for posted in pending if isinstance(posted.command, c.StartRun)), None)
        if start is None or not isinstance(start.command, c.StartRun) or start.abandoned:
            return True
        trouble = engine.committer.trouble()
        if trouble is not None and start.reply is not None:
            start.reply(trouble)
            return True
        engine.background.spawn(_begin_again(engine, start, start.command, actor.uid))
        return True

    async def _answer_known_keys(self, draft: Draft) -> None:
        """Another process sent under the same key meanwhile: that command was first, and this one is its echo."""
        for posted in list(draft.posted):
            if posted.key is None:
                continue
            known = await self._engine.store.directory.key(draft.uid, posted.key.key)
            if known is None:
                continue
            draft.posted.remove(posted)
            if posted.reply is not None:
                reused = KeyReused(f'The key "{known.key}" was used for another command.')
                posted.reply(None if known.digest == posted.key.digest else reused)

    async def _is_applied(self, draft: Draft) -> bool:
        """Whether the log holds this very append."""
        if not draft.events:
            return False
        found = await self._engine.store.log.events(draft.uid, after=draft.base, limit=1)
        return bool(found) and found[0].body == draft.events[0].body and found[0].at == draft.events[0].at

    async def set_aside(self, actor: Actor, error: BaseException) -> None:
        """This one run cannot be written or read: it stands still for a person, and no other is disturbed."""
        engine = self._engine
        reason = error if isinstance(error, WeftError) else Corrupt(f"{actor.id} cannot go on: {text_of(error)}.")
        log.error("weft: %s is set aside: %s", actor.id, reason)
        pending = actor.unanswered()
        engine.runs.remove(actor)
        engine.worker.stop_all(actor.uid)
        await engine.retry_until_available(lambda: engine.store.log.mark_fault(actor.uid, reason.message, status=HELD))
        for posted in pending:
            if posted.reply is not None:
                posted.reply(reason)


def posted_mail(mail: Mail) -> Posted:
    """A piece of mail as a command."""
    key = KeyRow(mail.key, mail.digest, Seq(0)) if mail.key is not None else None
    return Posted(c.decode(mail.body), mail_id=mail.id, key=key)


async def _begin_again(engine: Engine, posted: Posted, start: c.StartRun, uid: RunUid) -> None:
    try:
        await engine.begin(start, uid=uid)
    except WeftError as error:
        if posted.reply is not None:
            posted.reply(error)
        return
    if posted.reply is not None:
        posted.reply(None)
