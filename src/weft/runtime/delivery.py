"""Deliver commands to runs: directly to those in memory here, to others by mail."""

from __future__ import annotations

from collections.abc import Callable

from weft.core import commands as c
from weft.core.ids import RunUid
from weft.errors import Corrupt, KeyReused, LimitExceeded, NotFound, RunFinished, WeftError
from weft.ports.clock import Clock, Ids
from weft.ports.store import Mail, RunLog, Sent
from weft.runtime.background_tasks import BackgroundTasks
from weft.runtime.retries import RetryUntilAvailable
from weft.runtime.run.actor import Actor
from weft.runtime.run.draft import PendingCommand, posted_mail
from weft.runtime.runs import RunTable
from weft.runtime.worker.flight import Flight


class CommandDelivery:
    """Delivers commands to runs."""

    def __init__(
        self,
        runs: RunTable,
        log: RunLog,
        clock: Clock,
        ids: Ids,
        *,
        retry: RetryUntilAvailable,
        answered: Callable[[Flight], None],
        wake: Callable[[], None],
        mailbox_max: int,
        background: BackgroundTasks,
    ) -> None:
        """``answered`` is called when a report was delivered, ``wake`` when a host has mail to read."""
        self._runs = runs
        self._log = log
        self._clock = clock
        self._ids = ids
        self._retry_until_available = retry
        self._answered = answered
        self._wake = wake
        self._mailbox_max = mailbox_max
        self._background = background

    async def tell(self, actor: Actor, posted: PendingCommand) -> None:
        """Give a command to a run in memory. Returns when its decision is durable. Raises the refusal."""
        if len(actor.mailbox) >= self._mailbox_max:
            raise LimitExceeded(
                f"{actor.id} has {len(actor.mailbox)} commands waiting, which is the limit.", hint="Send more slowly."
            )
        await posted.decide_with(actor.post)

    async def take_mail(self, actor: Actor) -> None:
        """Give a run in memory the mail in its inbox. One that is being loaded reads its inbox by itself."""
        if not actor.restored:
            return
        try:
            inbox = await self._log.inbox(actor.uid)
        except Corrupt:
            return  # whoever looks for mail sets the run aside
        if self._runs.is_current(actor):
            for mail in inbox:
                actor.post(posted_mail(mail))

    async def deliver(self, uid: RunUid, posted: PendingCommand) -> None:
        """Deliver a command to a run: directly if it is in memory here, else by mail."""
        actor = self._runs.actors.get(uid)
        if actor is not None:
            actor.post(posted)
            return
        key, digest = (posted.key.key, posted.key.digest) if posted.key is not None else (None, "")
        body = c.encode(posted.command)
        mail = Mail(id=self._ids.new(), to=uid, body=body, at=self._clock.now_ms(), key=key, digest=digest)
        (sent,) = await self._retry_until_available(lambda: self._log.send([mail]))
        if posted.flight is not None:
            self._answered(posted.flight)
        if posted.reply is not None:
            posted.reply(_mail_refusal(sent, key))
        self._wake()

    def send_soon(self, uid: RunUid, posted: PendingCommand) -> None:
        """Deliver a command to a run in the background."""
        self._background.spawn(self.deliver(uid, posted))

    def post_local(self, mail: Mail) -> None:
        """Deliver mail that was just committed to a run in memory here, so that it need not read its inbox."""
        actor = self._runs.actors.get(mail.to)
        if actor is not None:
            # Also to a run that is being loaded: its inbox may have been read before this mail was committed.
            actor.post(posted_mail(mail))
        if actor is None or not actor.ready:
            self._wake()  # the run is on another host, or about to leave memory


def _mail_refusal(sent: Sent, key: str | None) -> WeftError | None:
    """Return the error for the sender of a piece of mail; None if it was accepted."""
    match sent:
        case Sent.OVER:
            return RunFinished("The run ended before this reached it; nothing was changed.")
        case Sent.UNKNOWN_RUN:
            return NotFound("The run was deleted before this reached it.")
        case Sent.KEY_REUSED:
            return KeyReused(f'The key "{key}" was used for another command.')
    return None
