"""Reload runs whose memory may be wrong: a commit was refused, or its outcome is unknown.

The run is claimed again, which also fences the commit that was lost; then it is loaded.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from weft.core import commands as c
from weft.core.ids import HostId, RunUid
from weft.errors import KeyReused, StoreError, WeftError
from weft.ports.new_run import NewRun
from weft.ports.store import Outcome, Store
from weft.runtime.background_tasks import BackgroundTasks
from weft.runtime.delivery import CommandDelivery
from weft.runtime.duties.scheduler import MAIL, RUNS, Wakeups
from weft.runtime.ownership.begin import id_taken
from weft.runtime.ownership.faults import FaultyRuns
from weft.runtime.ownership.load import Loader
from weft.runtime.retries import RetryUntilAvailable
from weft.runtime.run.actor import Actor
from weft.runtime.run.draft import Draft, PendingCommand
from weft.runtime.runs import RunTable
from weft.runtime.status import HostStatus
from weft.runtime.throttled_log import ThrottledLog
from weft.runtime.timers import Timers
from weft.runtime.worker.step_worker import StepWorker

log = logging.getLogger("weft")

PAUSE_SECONDS_FIRST = 0.1
PAUSE_SECONDS_MAX = 2.0


class Reloader:
    """Discards the memory of a run and loads the run again."""

    def __init__(
        self,
        store: Store,
        host: HostId,
        runs: RunTable,
        loader: Loader,
        *,
        status: HostStatus,
        worker: StepWorker,
        timers: Timers,
        delivery: CommandDelivery,
        background: BackgroundTasks,
        wakeups: Wakeups,
        throttled_log: ThrottledLog,
        faults: FaultyRuns,
        retry: RetryUntilAvailable,
        adopt: Callable[[NewRun], None],
        begin: Callable[[c.StartRun, RunUid], Awaitable[object]],
        trouble: Callable[[], StoreError | None],
    ) -> None:
        """``begin`` starts a run that was never created. ``trouble`` returns why nothing can be written now."""
        self._log = store.log
        self._directory = store.directory
        self._host = host
        self._runs = runs
        self._loader = loader
        self._status = status
        self._worker = worker
        self._timers = timers
        self._delivery = delivery
        self._background = background
        self._wakeups = wakeups
        self._throttled_log = throttled_log
        self._faults = faults
        self._retry_until_available = retry
        self._adopt = adopt
        self._begin = begin
        self._trouble = trouble

    def on_refused(self, actor: Actor, draft: Draft, outcome: Outcome) -> None:
        """Handle an append that the store refused."""
        if outcome is Outcome.ID_TAKEN:
            self._background.spawn(self._refuse_start(actor, draft), actor)
            return
        self._background.spawn(self.reload(actor, draft, outcome))

    def on_unknown(self, actor: Actor, draft: Draft, error: Exception, guilty: bool) -> None:  # noqa: FBT001
        """Handle an append that may be in the log. ``guilty`` means that the store rejected its data."""
        if guilty:
            self._background.spawn(self._faults.set_aside(actor, error))
        else:
            self._background.spawn(self.reload(actor, draft, None))

    def on_lost(self, uid: RunUid, error: Exception | None) -> None:
        """Drop a run whose last acknowledged steps the store refused: it is another host's, or cannot be written."""
        actor = self._runs.actors.get(uid)
        if actor is None:
            return
        if error is not None:
            self._background.spawn(self._faults.set_aside(actor, error))
        else:
            self._background.spawn(self.reload(actor, actor.in_flight, Outcome.STALE_EPOCH))

    async def _refuse_start(self, actor: Actor, draft: Draft) -> None:
        """Refuse a start whose id is taken, unless this run has the id because its earlier start got no answer."""
        row = await self._retry_until_available(lambda: self._directory.row(actor.uid))
        if row is not None:
            await self.reload(actor, draft, None)
            return
        self._runs.remove(actor)
        for posted in actor.take_unanswered():
            if posted.reply is not None:
                posted.reply(id_taken(actor.id))

    async def reload(self, actor: Actor, draft: Draft | None, outcome: Outcome | None) -> None:
        """Discard the run's memory, load it, and repeat commands that the log does not contain. ``None``: unknown."""
        if actor.reloading:
            return
        actor.reloading = True
        self._timers.disarm_run(actor.uid)
        actor.close()
        self._worker.stop_after(actor.uid, actor.committed_seq)
        pause = PAUSE_SECONDS_FIRST
        while self._status.running:
            try:
                if await self._try_reload(actor, draft, outcome):
                    return
            except StoreError as error:
                self._throttled_log.warn("weft: could not reload %s, trying again: %s", actor.id, error)
            except Exception:
                # Retry after any error: a run that is not reloaded would never continue.
                log.exception("weft: could not reload %s", actor.id)
            await asyncio.sleep(pause)
            pause = min(2 * pause, PAUSE_SECONDS_MAX)

    async def _try_reload(self, actor: Actor, draft: Draft | None, outcome: Outcome | None) -> bool:
        row = await self._directory.row(actor.uid)
        if row is None:
            return self._start_again(actor)
        if (
            outcome is not Outcome.STALE_EPOCH
            and outcome is not Outcome.MAIL_WAITING
            and outcome is not Outcome.KEY_TAKEN
        ):
            claimed = await self._log.claim([actor.uid], self._host, expected={actor.uid: actor.epoch})
            row = claimed[0] if claimed else await self._directory.row(actor.uid)
        if row is None:
            return True
        if outcome is Outcome.KEY_TAKEN and draft is not None:
            await self._answer_known_keys(draft)
        if draft is not None and await self._is_applied(draft):
            self._answer_applied(actor, draft)
        self._runs.remove(actor)
        pending = actor.take_unanswered()
        if row.owner != self._host:
            for posted in pending:
                self._background.spawn(self._delivery.deliver(row.uid, posted))
            return True
        await self._loader.load_run(row, died=actor.owner_died, pending=pending)
        return True

    def _answer_applied(self, actor: Actor, draft: Draft) -> None:
        """Answer the commands of an append that turned out to be durable. Its effects are derived by the reload."""
        actor.in_flight = None
        actor.answer_commands(draft)
        for child in draft.children:
            self._adopt(child)
        if draft.mail:
            self._wakeups.wake(MAIL, RUNS)

    def _start_again(self, actor: Actor) -> bool:
        """Repeat the start of a run that was never created. Returns True, because there is nothing to load."""
        pending = actor.unanswered()
        self._runs.remove(actor)
        start = next((posted for posted in pending if isinstance(posted.command, c.StartRun)), None)
        if start is None or not isinstance(start.command, c.StartRun) or start.abandoned:
            return True
        trouble = self._trouble()
        if trouble is not None and start.reply is not None:
            start.reply(trouble)
            return True
        self._background.spawn(self._begin_again(start, start.command, actor.uid))
        return True

    async def _begin_again(self, posted: PendingCommand, start: c.StartRun, uid: RunUid) -> None:
        try:
            await self._begin(start, uid)
        except WeftError as error:
            if posted.reply is not None:
                posted.reply(error)
            return
        if posted.reply is not None:
            posted.reply(None)

    async def _answer_known_keys(self, draft: Draft) -> None:
        """Answer commands whose key another process used first: the earlier command counts, this one repeats it."""
        for posted in list(draft.posted):
            if posted.key is None:
                continue
            known = await self._directory.key(draft.uid, posted.key.key)
            if known is None:
                continue
            draft.posted.remove(posted)
            if posted.reply is not None:
                reused = KeyReused(f'The key "{known.key}" was used for another command.')
                posted.reply(None if known.digest == posted.key.digest else reused)

    async def _is_applied(self, draft: Draft) -> bool:
        """Return whether the log contains exactly this append. Another host may have written its first events too."""
        if not draft.events:
            return False
        found = await self._log.events(draft.uid, after=draft.seq, limit=len(draft.events))
        written = [(event.body, event.at) for event in found]
        return written == [(event.body, event.at) for event in draft.events]
