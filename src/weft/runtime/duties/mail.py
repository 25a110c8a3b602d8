"""Read the mail of runs that this host owns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from weft.core.ids import HostId, RunUid
from weft.ports.store import Directory
from weft.runtime.duties.scheduler import MAIL, Wakeups
from weft.runtime.run.actor import Actor
from weft.runtime.runs import RunTable
from weft.runtime.turns import Newborn, Turns

MAIL_PER_ROUND = 1_000


class MailDuty:
    """Delivers mail to the runs of this host, and loads runs with mail that are not in memory."""

    def __init__(
        self,
        runs: RunTable,
        directory: Directory,
        host: HostId,
        wakeups: Wakeups,
        *,
        turns: Turns,
        newborn: Newborn,
        is_claiming: Callable[[RunUid], bool],
        load: Callable[[RunUid], Awaitable[None]],
        read_mail: Callable[[Actor], Awaitable[None]],
    ) -> None:
        """``load`` loads a run that this host owns. ``read_mail`` copies a run's inbox into its mailbox."""
        self._runs = runs
        self._directory = directory
        self._host = host
        self._wakeups = wakeups
        self._turns = turns
        self._newborn = newborn
        self._is_claiming = is_claiming
        self._load = load
        self._read_mail = read_mail
        self._passed_over = False
        """Whether there was mail for a run that was being loaded or released."""

    def on_loaded(self) -> None:
        """Check mail that was skipped again, because a run has been loaded."""
        if self._passed_over:
            self._passed_over = False
            self._wakeups.wake(MAIL)

    async def run(self) -> None:
        """Read all mail once."""
        newborn = self._newborn.waiting
        for uid in await self._directory.with_mail(self._host, limit=MAIL_PER_ROUND + len(newborn)):
            if uid in newborn:
                continue
            await self._turns.share()
            actor = self._runs.actors.get(uid)
            if actor is None and not self._is_claiming(uid):
                await self._load(uid)
            elif actor is not None and actor.ready:
                await self._read_mail(actor)
            else:
                self._passed_over = True
