"""Release runs: they leave memory, and any host may claim them when they have something to do."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from weft.core.effects import ArmTimer, PerformTask
from weft.core.ids import Millis
from weft.core.run.state import FOLD
from weft.errors import StoreError
from weft.ports.boundary import boundary
from weft.ports.store import Outcome, Release, RunLog, Snapshot
from weft.runtime.background_tasks import BackgroundTasks
from weft.runtime.delivery import CommandDelivery
from weft.runtime.run.actor import Actor
from weft.runtime.runs import RunTable
from weft.runtime.shared import SharedTasks
from weft.runtime.status import HostStatus
from weft.runtime.timers import Timers
from weft.runtime.worker.step_worker import StepWorker

SNAPSHOT_BYTES_MIN = 4 * 1024


class Releaser:
    """Removes idle runs from memory."""

    def __init__(
        self,
        runs: RunTable,
        log: RunLog,
        *,
        status: HostStatus,
        worker: StepWorker,
        shared: SharedTasks,
        timers: Timers,
        delivery: CommandDelivery,
        background: BackgroundTasks,
        reload: Callable[[Actor, Outcome | None], Coroutine[Any, Any, None]],
        read_mail: Callable[[Actor], Coroutine[Any, Any, None]],
        on_released: Callable[[Millis], None],
    ) -> None:
        """``reload`` is for a run whose release failed. ``on_released`` gets the time of a run's next claim."""
        self._runs = runs
        self._log = log
        self._status = status
        self._worker = worker
        self._shared = shared
        self._timers = timers
        self._delivery = delivery
        self._background = background
        self._reload = reload
        self._read_mail = read_mail
        self._on_released = on_released

    def may_leave(self, actor: Actor) -> bool:
        """Return whether a run has nothing to do here."""
        return actor.is_idle() and not self._worker.is_busy(actor.uid) and not self._shared.is_busy(actor.uid)

    async def release(self, actors: Sequence[Actor]) -> None:
        """Release these runs. A run that got something to do meanwhile stays."""
        leaving = [actor for actor in actors if self.may_leave(actor)]
        if not leaving:
            return
        for actor in leaving:
            actor.ready = False
        boundary("release.before")
        rows = [self._release_row(actor) for actor in leaving]
        try:
            outcomes = await self._log.release(rows)
        except StoreError:
            # It is unknown whether they are released. A host that stops leaves them to others; otherwise reload them.
            if not self._status.closing:
                for actor in leaving:
                    self._background.spawn(self._reload(actor, None))
            return
        for actor, row, outcome in zip(leaving, rows, outcomes, strict=True):
            if outcome is Outcome.ACCEPTED:
                self._remove_from_memory(actor, row.wake_at)
                continue
            actor.ready = True
            actor.schedule()
            # In the background: a failure for one run must not leave other runs in the group half released.
            if outcome is Outcome.MAIL_WAITING:
                self._background.spawn(self._read_again(actor), actor)
            else:
                self._background.spawn(self._reload(actor, outcome))

    async def _read_again(self, actor: Actor) -> None:
        # If the store does not answer while the host stops, the next host reads the mail.
        with contextlib.suppress(StoreError):
            await self._read_mail(actor)

    def _release_row(self, actor: Actor) -> Release:
        snapshot = None
        if actor.tail_bytes >= SNAPSHOT_BYTES_MIN:
            snapshot = Snapshot(actor.committed_seq, FOLD, actor.machine.snapshot())
        return Release(
            uid=actor.uid,
            epoch=actor.epoch,
            seq=actor.committed_seq,
            mail_taken=actor.mail_taken,
            wake_at=self._wake_at(actor),
            snapshot=snapshot,
        )

    def _remove_from_memory(self, actor: Actor, wake_at: Millis | None) -> None:
        self._timers.disarm_run(actor.uid)
        if wake_at is not None:
            self._on_released(wake_at)
        waiting = [posted for posted in actor.mailbox if not posted.mail_id]  # mail waits in the store
        self._runs.remove(actor)
        for posted in waiting:
            self._background.spawn(self._delivery.deliver(actor.uid, posted))

    def _wake_at(self, actor: Actor) -> Millis | None:
        """Return the earliest time at which the run does something by itself."""
        if actor.uid in self._runs.misplaced:
            return actor.now_ms  # a host that has its version goes on with it
        dues = [
            effect.due
            for effect in actor.machine.outstanding()
            if isinstance(effect, ArmTimer)
            or (
                isinstance(effect, PerformTask)
                and not self._shared.has(actor.uid, effect.task, effect.attempt, effect.delivery)
            )
        ]
        return Millis(min(dues)) if dues else None
