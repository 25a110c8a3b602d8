"""Tasks that this host cannot perform itself, and tasks of others that it can: the shared queue.

A task gets a row only if the owner of its run lacks the step. Whoever performs it reports by mail, written together
with the removal of the row; the report is fenced by (task, attempt, delivery) like any other. A row whose worker died
becomes a loss that its run hears of.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from weft.core import commands as c
from weft.core.effects import PerformTask
from weft.core.ids import EntryId, HostId, Millis, RunUid
from weft.ports.store import Mail, TaskOffer
from weft.runtime.worker import Flight, Report

if TYPE_CHECKING:
    from weft.runtime.actor import Actor
    from weft.runtime.engine import Engine

log = logging.getLogger("weft")

TAKEN_PER_ROUND = 100


class Offered(msgspec.Struct, frozen=True):
    """What a worker needs to know of a task."""

    run_id: str
    effect: PerformTask


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Offered).decode


class SharedWork:
    """See the module."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._unknown: set[str] = set()
        self._offered: set[tuple[RunUid, EntryId]] = set()
        self._taken: dict[tuple[RunUid, int], TaskOffer] = {}

    # --- as the owner of runs -------------------------------------------------------------------------------------

    def offer(self, actor: Actor, effect: PerformTask) -> None:
        """Nobody here has this step: let others have it."""
        if effect.step not in self._unknown:
            self._unknown.add(effect.step)
            log.warning('weft: no step "%s" here; %s waits for a process that has it', effect.step, actor.id)
        self._offered.add((actor.uid, effect.task))
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
        self._engine.aside(self._engine.store.tasks.offer([task]))

    def withdraw(self, uid: RunUid, tasks: Sequence[EntryId]) -> None:
        """Nobody waits for these any more."""
        known = [task for task in tasks if (uid, task) in self._offered]
        if known:
            self._offered.difference_update((uid, task) for task in known)
            self._engine.aside(self._engine.store.tasks.withdraw(uid, known))

    # --- as a worker ----------------------------------------------------------------------------------------------

    async def take(self) -> int:
        """Perform what others offer and this host can do; how many were taken."""
        engine = self._engine
        free = min(engine.worker.free_slots(), TAKEN_PER_ROUND)
        steps = engine.catalogue.steps()
        if not free or not steps:
            return 0
        offers = await engine.store.tasks.take(
            engine.host, queues=engine.catalogue.queues(), steps=steps, now=engine.clock.now_ms(), limit=free
        )
        for offer in offers:
            known = _decode(offer.body)
            self._taken[offer.uid, offer.task] = offer
            body = engine.catalogue.step(known.effect.step)
            engine.worker.hand_out(Flight(offer.uid, known.run_id, known.effect, body, offer))
        return len(offers)

    async def renew(self) -> None:
        """Say that the work goes on; stop what is no longer ours."""
        held = list(self._taken.values())
        if not held:
            return
        for offer, ours in zip(held, await self._engine.store.tasks.renew(self._engine.host, held), strict=True):
            if not ours:
                self._taken.pop((offer.uid, offer.task), None)
                self._engine.worker.stop(offer.uid, EntryId(offer.task))

    async def settle(self, flight: Flight, report: Report) -> None:
        """The result goes into the inbox of the run, together with the removal of the row."""
        engine = self._engine
        offer = flight.offer
        assert offer is not None
        mail = Mail(id=engine.ids.new(), to=offer.uid, body=c.encode(report), at=engine.clock.now_ms())
        if not await engine.store.tasks.settle(engine.host, offer, mail):
            log.warning("weft: the answer of %s came too late; somebody else performs it", offer.step)
        self._taken.pop((offer.uid, offer.task), None)
        engine.worker.answered(flight)
        engine.keeper.nudge()

    async def expire(self, dead: Sequence[HostId]) -> None:
        """Rows of workers that are gone: their runs hear that the task was lost."""
        engine = self._engine
        for offer in await engine.store.tasks.expired(dead=dead, limit=TAKEN_PER_ROUND):
            lost = c.ReportTaskLost(EntryId(offer.task), offer.attempt, offer.delivery)
            mail = Mail(
                id=f"lost/{offer.task}/{offer.attempt}/{offer.delivery}",
                to=offer.uid,
                body=c.encode(lost),
                at=engine.clock.now_ms(),
            )
            await engine.store.log.send([mail])
