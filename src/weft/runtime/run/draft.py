"""What a run has decided and not yet committed: the append, and everything that waits for it."""

from __future__ import annotations

import re
from collections.abc import Callable

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
    """A command on its way into a run, and who must hear of it."""

    command: Mailed
    reply: Reply | None = None
    mail_id: str = ""
    key: KeyRow | None = None
    flight: Flight | None = None
    abandoned: bool = False
    """Whoever wanted it was told that it may not have happened, so it is not tried again."""


class Draft:
    """One append in the making. Nothing in it leaves before it is durable."""

    __slots__ = (
        "attributes",
        "base",
        "bytes",
        "children",
        "chunks",
        "create",
        "effects",
        "epoch",
        "events",
        "idle_until",
        "keys",
        "mail",
        "posted",
        "puts",
        "refs",
        "refused",
        "resolved",
        "snapshot",
        "status",
        "taken",
        "uid",
    )

    def __init__(self, uid: RunUid, epoch: Epoch, base: Seq) -> None:
        self.uid = uid
        self.epoch = epoch
        self.base = base
        self.create: NewRun | None = None
        self.events: list[StoredEvent] = []
        self.effects: list[AnyEffect] = []
        self.posted: list[PendingCommand] = []
        self.refused: list[tuple[PendingCommand, WeftError]] = []
        self.resolved: Resolved | None = None
        self.taken: list[str] = []
        self.keys: list[KeyRow] = []
        self.mail: list[Mail] = []
        self.children: list[NewRun] = []
        self.puts: dict[str, bytes] = {}
        self.refs: list[str] = []
        self.snapshot: Snapshot | None = None
        self.idle_until: Millis | UnsetType | None = UNSET
        self.status: str | None = None
        self.attributes: dict[str, object] | None = None
        self.chunks: list[NewChunk] = []
        self.bytes = 0

    def record(self, body: bytes, at: Millis) -> None:
        """The next event."""
        self.events.append(StoredEvent(Seq(self.base + len(self.events) + 1), at, body))
        self.bytes += len(body)
        if _REF in body:
            self.refs.extend(match.decode() for match in _DIGEST.findall(body))

    def append(self, mail_taken: int) -> Append:
        """What the store is asked to write."""
        # With one more keyword Python would build a dict of them for every append.
        found = Append(
            uid=self.uid,
            epoch=self.epoch,
            seq=self.base,
            events=self.events,
            create=self.create,
            status=self.status,
            attributes=self.attributes,
            idle_until=self.idle_until,
            mail_taken=mail_taken,
            taken=self.taken,
            keys=self.keys,
            mail=self.mail,
            children=self.children,
            refs=self.refs,
            snapshot=self.snapshot,
        )
        if self.resolved is not None:
            found.resolved = self.resolved
        return found

    def is_empty(self) -> bool:
        return not (self.events or self.taken or self.create is not None)
