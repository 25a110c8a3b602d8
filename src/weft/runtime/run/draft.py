"""The decisions of a run that are not committed yet: the append, and everything that waits for it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from functools import partial

import msgspec
from msgspec import UNSET, UnsetType

from weft.core.commands import Mailed
from weft.core.effects import AnyEffect
from weft.core.ids import Epoch, Millis, RunUid, Seq
from weft.errors import WeftError
from weft.ports.store import Append, KeyRow, Mail, NewRun, Resolved, Snapshot, StoredEvent
from weft.ports.streams import NewChunk
from weft.runtime.worker.flight import Flight

_REF = b'{"$weft":"blob"'
_DIGEST = re.compile(rb'{"\$weft":"blob","at":"cas://sha256:([0-9a-f]{64})"')

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
        self.reply = partial(_settle, done)
        post(self)
        try:
            await done
        except asyncio.CancelledError:
            self.abandoned = True
            raise


def _settle(done: asyncio.Future[None], error: WeftError | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)


class Draft(msgspec.Struct, eq=False):
    """One append that is being built. It has no effects before it is durable."""

    uid: RunUid
    epoch: Epoch
    base: Seq
    create: NewRun | None = None
    events: list[StoredEvent] = []
    effects: list[AnyEffect] = []
    posted: list[PendingCommand] = []
    refused: list[tuple[PendingCommand, WeftError]] = []
    resolved: Resolved | None = None
    taken: list[str] = []
    keys: list[KeyRow] = []
    mail: list[Mail] = []
    children: list[NewRun] = []
    puts: dict[str, bytes] = {}
    refs: list[str] = []
    snapshot: Snapshot | None = None
    idle_until: Millis | UnsetType | None = UNSET
    status: str | None = None
    attributes: dict[str, object] | None = None
    chunks: list[NewChunk] = []
    size_bytes: int = 0

    def record(self, body: bytes, at: Millis) -> None:
        """Add the next event."""
        events = self.events
        events.append(StoredEvent(Seq(self.base + len(events) + 1), at, body))
        self.size_bytes += len(body)
        if body.find(_REF) >= 0:  # ``in`` tries the left side as a number first, and raises and drops an error
            self.refs.extend(match.decode() for match in _DIGEST.findall(body))

    def append(self, mail_taken: int) -> Append:
        """Return the append for the store."""
        found = Append(uid=self.uid, epoch=self.epoch, seq=self.base, events=self.events, mail_taken=mail_taken)
        if self.create is not None or self.status is not None:
            found.create, found.status = self.create, self.status
        if self.idle_until is not UNSET:
            found.idle_until = self.idle_until
        if self.snapshot is not None:
            found.snapshot = self.snapshot
        if self.attributes is not None:
            found.attributes = self.attributes
        if self.resolved is not None:
            found.resolved = self.resolved
        if self.taken or self.keys or self.refs:
            found.taken, found.keys, found.refs = self.taken, self.keys, self.refs
        if self.mail or self.children:
            found.mail, found.children = self.mail, self.children
        return found

    def is_empty(self) -> bool:
        return not (self.events or self.taken or self.create is not None)
