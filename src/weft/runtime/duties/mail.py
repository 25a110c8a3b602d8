"""Read the mail of runs that this host owns, and learn what else other processes left to do.

A message from another process costs one question (``Inboxes.news``), and then its commit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from weft.core.ids import HostId, RunUid
from weft.errors import Corrupt
from weft.ports.clock import Clock
from weft.ports.store import Inboxes, Mail
from weft.runtime.catalogue import HostCatalogue
from weft.runtime.duties.scheduler import MAIL, READY, STORE, Wakeups
from weft.runtime.loop_share import NewChildren, Turns
from weft.runtime.ownership.claim import Claims
from weft.runtime.ownership.load import Loader
from weft.runtime.runs import RunTable

MAIL_PER_ROUND = 1_000
CHILDREN_PER_SECOND = 10_000
"""How many inboxes of new children that wait to be loaded are read past in a second, to find the mail behind them.

They are the oldest, so every round would read them all, and thousands would cost the square of their number.
"""


class MailDuty:
    """Delivers mail to the runs of this host, and loads runs with mail that are not in memory."""

    def __init__(
        self,
        runs: RunTable,
        inboxes: Inboxes,
        host: HostId,
        wakeups: Wakeups,
        *,
        catalogue: HostCatalogue,
        clock: Clock,
        turns: Turns,
        new_children: NewChildren,
        claims: Claims,
        loader: Loader,
    ) -> None:
        self._runs = runs
        self._inboxes = inboxes
        self._host = host
        self._wakeups = wakeups
        self._catalogue = catalogue
        self._clock = clock
        self._turns = turns
        self._new_children = new_children
        self._claims = claims
        self._loader = loader
        self._next_past_children = -math.inf
        """When the mail behind the new children is read again."""
        self._skipped = False
        """Whether there was mail for a run that was being loaded or released."""

    def on_loaded(self) -> None:
        """Check skipped mail again, because a run has been loaded."""
        if self._skipped:
            self._skipped = False
            self._wakeups.wake(MAIL)

    async def look(self) -> set[str]:
        """Ask whether other processes wrote. Delivers their mail, and returns reasons to run other duties."""
        programs, claims = self._catalogue.programs(), self._claims
        now, limit = self._clock.now_ms(), self._mail_limit()
        with self._runs.note_arrivals() as arrived:
            news = await self._inboxes.news(self._host, programs, dead=claims.dead, now=now, limit=limit)
            if news is None:
                return set()
            self._note_read(limit)
            await self._deliver_mail(news.inboxes, arrived)
        if news.wake_at is not None:
            claims.note_wake(news.wake_at)
        return {STORE, READY} if news.claimable else {STORE}

    async def run(self) -> None:
        """Read all mail once."""
        limit = self._mail_limit()
        with self._runs.note_arrivals() as arrived:
            inboxes = await self._inboxes.waiting(self._host, limit=limit)
            self._note_read(limit)
            await self._deliver_mail(inboxes, arrived)

    def _mail_limit(self) -> int:
        if self._clock.monotonic() < self._next_past_children:
            return MAIL_PER_ROUND
        return MAIL_PER_ROUND + len(self._new_children.waiting)

    def _note_read(self, limit: int) -> None:
        if limit > MAIL_PER_ROUND:
            pause = (limit - MAIL_PER_ROUND) / CHILDREN_PER_SECOND
            self._next_past_children = self._clock.monotonic() + pause

    async def _deliver_mail(self, inboxes: Mapping[RunUid, Sequence[Mail] | Corrupt], arrived: set[RunUid]) -> None:
        for uid, inbox in inboxes.items():
            if uid in self._new_children.waiting:
                continue
            await self._turns.share()
            actor = self._runs.actors.get(uid)
            if actor is None and not self._claims.is_claiming(uid):
                await self._loader.load(uid)
            elif actor is not None and actor.ready and uid not in arrived:
                await self._loader.take_mail(actor, inbox)
            elif actor is not None and actor.ready:
                # It may have read its inbox later than this, and consumed what is there.
                await self._loader.read_mail(actor)
            else:
                self._skipped = True
