"""The decisions of a run that are not committed yet: the append, and everything that waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import msgspec

from weft.core import commands as c
from weft.core.commands import Mailed
from weft.core.effects import AnyEffect
from weft.core.ids import Millis, Seq
from weft.core.ledger import Move
from weft.core.values import BLOB_START, REF_BYTES_MIN, blobs_in
from weft.errors import KeyReused, WeftError
from weft.ports.new_run import NewRun
from weft.ports.store import Append, KeyRow, Mail, StoredEvent
from weft.ports.streams import NewChunk
from weft.runtime.worker.flight import Flight

Reply = Callable[[WeftError | None], None]


class PendingCommand(msgspec.Struct, eq=False):
    """A command for a run, with the callback that gets its answer."""

    command: Mailed
    reply: Reply | None = None
    mail_id: str = ""
    key: KeyRow | None = None
    flight: Flight | None = None
    abandoned: bool = False
    """The caller was told that the command may not have happened, so it is not repeated."""

    async def decide_with(self, post: Callable[[PendingCommand], None]) -> None:
        """Post the command to its run. Returns when its decision is durable. Raises the refusal."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.reply = partial(_settle_future, done)
        post(self)
        try:
            await done
        except asyncio.CancelledError:
            self.abandoned = True
            raise


def posted_mail(mail: Mail) -> PendingCommand:
    """Return a piece of mail as a command."""
    key = KeyRow(mail.key, mail.digest, Seq(0)) if mail.key is not None else None
    return PendingCommand(c.decode(mail.body), mail_id=mail.id, key=key)


def _settle_future(done: asyncio.Future[None], error: WeftError | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)


class Draft(Append, kw_only=True, eq=False):
    """One append that is being built, and everything that waits for it. It has no effects before it is durable.

    What most drafts do not have is a tuple, because a draft is made for nearly every step.
    """

    events: list[StoredEvent] = []
    taken: tuple[str, ...] = ()
    keys: tuple[KeyRow, ...] = ()
    mail: tuple[Mail, ...] = ()
    children: tuple[NewRun, ...] = ()
    refs: tuple[str, ...] = ()
    ledger: tuple[Move, ...] = ()
    effects: list[AnyEffect] = []
    posted: list[PendingCommand] = []
    refused: tuple[tuple[PendingCommand, WeftError], ...] = ()
    puts: dict[str, bytes] = {}
    """Blobs, which are written before the append."""
    chunks: tuple[NewChunk, ...] = ()
    size_bytes: int = 0

    def record(self, body: bytes, at: Millis) -> None:
        """Add the next event."""
        events = self.events
        seq: Any = self.seq + len(events) + 1
        events.append(StoredEvent(seq, at, body))
        size = len(body)
        self.size_bytes += size
        # ``in`` tries the left side as a number first, and raises and drops an error.
        if size > REF_BYTES_MIN and body.partition(BLOB_START)[1]:
            self.refs += tuple(blobs_in(body))

    def is_empty(self) -> bool:
        return not (self.events or self.taken or self.create is not None or self.ledger)


def is_echo(drafts: Sequence[Draft], posted: PendingCommand, key: KeyRow) -> bool:
    """Return whether a command with this key is already being processed; this one then shares its answer."""
    for draft in drafts:
        for row in draft.keys:
            if row.key != key.key:
                continue
            if row.digest == key.digest:
                draft.posted.append(posted)
            else:
                draft.refused += ((posted, KeyReused(f'The key "{key.key}" was used for another command.')),)
            return True
    return False


class AnsweringRun(Protocol):
    """The parts of a run in memory that have commands without an answer."""

    ports: Any
    mailbox: list[PendingCommand]
    drafts: list[Draft]
    in_flight: Draft | None
    reading: Any


def answer_commands(run: AnsweringRun, draft: Draft) -> None:
    """Answer all commands that this append settles."""
    answered = run.ports.answered
    for chunk in draft.chunks:
        run.ports.emit(chunk)
    for posted in draft.posted:
        flight, reply = posted.flight, posted.reply
        if flight is not None:
            answered(flight)
        if reply is not None:
            reply(None)
    for posted, error in draft.refused:
        if posted.flight is not None:
            answered(posted.flight)
        if posted.reply is not None:
            posted.reply(error)


def unanswered(run: AnsweringRun) -> list[PendingCommand]:
    """Return unanswered commands, oldest first: those in appends that may not be durable, then the mailbox."""
    drafts = [*([run.in_flight] if run.in_flight is not None else []), *run.drafts]
    found = [posted for draft in drafts for posted in draft.posted]
    found += [posted for draft in drafts for posted, _ in draft.refused]
    return found + list(run.mailbox) + (run.reading.waiting if run.reading is not None else [])


def take_unanswered(run: AnsweringRun) -> list[PendingCommand]:
    """Return the unanswered commands that this actor will not process, without mail, which stays in the store."""
    if not run.mailbox and not run.drafts and run.in_flight is None and run.reading is None:
        return []
    left = [posted for posted in unanswered(run) if not posted.mail_id and not posted.abandoned]
    run.in_flight = None
    run.drafts.clear()
    run.mailbox.clear()
    run.reading = None
    return left
