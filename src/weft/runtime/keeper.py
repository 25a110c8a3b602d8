"""The host's periodic duties: hear of what other processes wrote, take up what nobody works on, put idle runs to rest.

Polling is the truth and hints only make it sooner: a nudge from inside (a child was made, mail was sent) runs the next
look at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from weft.core.effects import ArmTimer, PerformTask
from weft.core.ids import Millis
from weft.core.run.state import FOLD
from weft.errors import StoreError
from weft.ports.boundary import boundary
from weft.ports.store import Outcome, Release, Snapshot
from weft.runtime.actor import Actor
from weft.runtime.background import BackgroundLoop
from weft.runtime.shared import SharedWork

if TYPE_CHECKING:
    from weft.runtime.engine import Engine

log = logging.getLogger("weft")

RELEASES_PER_ROUND = 50
MAIL_PER_ROUND = 1_000
SNAPSHOT_BYTES_MIN = 4 * 1024
WAKE_SECONDS_MIN = 0.05
TAKE_SECONDS = 0.2
"""How often to ask for tasks of queues whose limits give way with time, which nobody announces."""


class Keeper:
    """See the module."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._loop = BackgroundLoop("looking after the store", self._run, engine.status.fail)
        # From the beginning: what is noticed while runs are taken up must be looked at too.
        self._nudged = asyncio.Event()
        self._renew_at = 0.0
        self._take_at = 0.0
        self._reconcile_at = 0.0
        self._scan_at = 0.0
        self._health_at = 0.0
        self._passed_over = False

    def start(self) -> None:
        self._loop.start()

    async def stop(self) -> None:
        await self._loop.stop()

    def woke(self) -> None:
        """A run is in memory that was not a moment ago: mail that was passed over because of it is looked at again."""
        if self._passed_over:
            self._passed_over = False
            self.nudge()

    def nudge(self) -> None:
        """There is something to look at now."""
        self._nudged.set()

    async def _run(self) -> None:
        while True:
            nudged = await self._pause(self._nudged)
            try:
                await self.look(nudged=nudged)
            except StoreError as error:
                self._engine.complaints.say("weft: the store does not answer (%s); trying again", error)
                await asyncio.sleep(0.5)
            except Exception:
                # Whatever it was: a host that no longer hears of mail would let its runs wait for ever.
                log.exception("weft: a round of the host's duties failed")
                await asyncio.sleep(0.5)

    async def _pause(self, nudged: asyncio.Event) -> bool:
        try:
            async with asyncio.timeout(self._patience()):
                await nudged.wait()
        except TimeoutError:
            return False
        nudged.clear()
        return True

    def _patience(self) -> float:
        """Until the next look: the next poll, or the time at which a run is due that nobody has."""
        engine = self._engine
        poll, wake_at = engine.settings.poll_seconds, engine.recovery.wake_at
        # Not at once for what was due and could not be taken: there is no room for it, or another host is at it.
        return poll if wake_at is None else min(poll, max(WAKE_SECONDS_MIN, (wake_at - engine.clock.now_ms()) / 1000))

    async def look(self, *, nudged: bool) -> None:
        """One round of duties."""
        engine = self._engine
        now = engine.clock.monotonic()
        if now >= self._renew_at:
            self._renew_at = now + engine.settings.lease_seconds / 3
            await engine.shared.renew()
        if now >= self._reconcile_at:
            self._reconcile_at = now + engine.settings.lease_seconds
            await engine.recovery.reconcile()
        changed = nudged or await engine.store.hosts.changed()
        if changed or now >= self._scan_at:
            await self._read_mail()
            await self._tell_waiters()
        wake_at = engine.recovery.wake_at
        due = wake_at is not None and wake_at <= engine.clock.now_ms()
        if changed or due or now >= self._scan_at:
            self._scan_at = now + engine.settings.scan_seconds
            await engine.library.refresh()
            await engine.recovery.scan()
            await engine.shared.refresh()
            await engine.shared.take()
            engine.shared.spill()
            await engine.steps.refresh()
        elif engine.shared.waits_for_time() and now >= self._take_at:
            self._take_at = now + TAKE_SECONDS
            await engine.shared.take()
        if engine.settings.health_seconds and now >= self._health_at:
            self._health_at = now + engine.settings.health_seconds
            engine.steps.begin_round()
        await self._rest(now)

    async def _read_mail(self) -> None:
        engine = self._engine
        newborn = engine.newborn.waiting
        for uid in await engine.store.directory.with_mail(engine.host, limit=MAIL_PER_ROUND + len(newborn)):
            if uid in newborn:
                continue
            await engine.turns.share()
            actor = engine.runs.actors.get(uid)
            if actor is None and not engine.recovery.is_taking(uid):
                await engine.take_up(uid)
            elif actor is not None and actor.ready:
                await engine.recovery.read_mail(actor)
            else:
                self._passed_over = True

    async def _tell_waiters(self) -> None:
        engine = self._engine
        for uid in engine.runs.awaited():
            if uid in engine.runs.actors:
                continue
            row = await engine.store.directory.row(uid)
            if row is None or row.ended_at is not None:
                engine.runs.on_ended(uid)

    # --- rest -----------------------------------------------------------------------------------------------------

    async def _rest(self, now: float) -> None:
        """Runs idle for long leave memory; above the limit, those idle longest leave at once."""
        engine = self._engine
        wanted = engine.recovery.backlog + len(engine.newborn.waiting)
        surplus = len(engine.runs.actors) - engine.settings.resident_max + wanted
        limit = now - engine.settings.idle_seconds
        if surplus <= 0 and (not engine.runs.actors or next(iter(engine.runs.actors.values())).idle_since > limit):
            return
        idle = [actor for actor in engine.runs.actors.values() if self._may_rest(actor)]
        idle.sort(key=lambda actor: actor.idle_since)
        leaving = [actor for i, actor in enumerate(idle) if i < surplus or actor.idle_since <= limit]
        for start in range(0, len(leaving), RELEASES_PER_ROUND):
            await self.release(leaving[start : start + RELEASES_PER_ROUND])
            await asyncio.sleep(0)
        if wanted and leaving:
            self.nudge()

    def _may_rest(self, actor: Actor) -> bool:
        engine = self._engine
        return actor.is_idle() and not engine.worker.is_busy(actor.uid) and not engine.shared.is_busy(actor.uid)

    async def release(self, actors: Sequence[Actor]) -> None:
        """Put these to rest; one that got something to do meanwhile stays."""
        engine = self._engine
        leaving = [actor for actor in actors if self._may_rest(actor)]
        if not leaving:
            return
        for actor in leaving:
            actor.ready = False
        boundary("release.before")
        try:
            outcomes = await engine.store.log.release([self._release(actor) for actor in leaving])
        except StoreError:
            # Nobody knows whether they are at rest. Who stops leaves them to others; who goes on claims and reads them.
            if not engine.status.closing:
                for actor in leaving:
                    engine.background.spawn(engine.recovery.reload(actor, None, None))
            return
        for actor, outcome in zip(leaving, outcomes, strict=True):
            if outcome is Outcome.ACCEPTED:
                self._let_go(actor)
                continue
            actor.ready = True
            actor.schedule()
            # Beside this: what fails for one run must not leave the others of the group half-way to rest.
            if outcome is Outcome.MAIL_WAITING:
                engine.background.spawn(self._read_again(actor), actor)
            else:
                engine.background.spawn(engine.recovery.reload(actor, None, outcome))

    async def _read_again(self, actor: Actor) -> None:
        # A store that does not answer while the host stops: whoever comes next reads it.
        with contextlib.suppress(StoreError):
            await self._engine.retry_until_available(partial(self._engine.recovery.read_mail, actor))

    def _release(self, actor: Actor) -> Release:
        snapshot = None
        if actor.tail_bytes >= SNAPSHOT_BYTES_MIN:
            snapshot = Snapshot(actor.committed_seq, FOLD, actor.machine.snapshot())
        return Release(
            uid=actor.uid,
            epoch=actor.epoch,
            seq=actor.committed_seq,
            mail_taken=actor.mail_taken,
            wake_at=_wake_at(actor, self._engine.shared),
            snapshot=snapshot,
        )

    def _let_go(self, actor: Actor) -> None:
        engine = self._engine
        engine.timers.disarm_run(actor.uid)
        wake = _wake_at(actor, self._engine.shared)
        recovery = engine.recovery
        if wake is not None and (recovery.wake_at is None or wake < recovery.wake_at):
            recovery.wake_at = wake
        waiting = [posted for posted in actor.mailbox if not posted.mail_id]  # mail waits in the store
        engine.runs.remove(actor)
        for posted in waiting:
            engine.background.spawn(engine.delivery.deliver(actor.uid, posted))


def _wake_at(actor: Actor, shared: SharedWork) -> Millis | None:
    """The earliest time at which something happens by itself."""
    dues = [
        effect.due
        for effect in actor.machine.outstanding()
        if isinstance(effect, ArmTimer)
        or (isinstance(effect, PerformTask) and not shared.has(actor.uid, effect.task, effect.attempt, effect.delivery))
    ]
    return Millis(min(dues)) if dues else None
