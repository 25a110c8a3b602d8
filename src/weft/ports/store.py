"""What a store must do. Everything durable goes through here.

Three rules shape the port. A batch is judged append by append, and a refused one does not affect the others
(docs/internals/engine.md#rule-1). Any error out of :meth:`RunLog.commit` means *unknown*
(docs/internals/engine.md#rule-3). Ownership is an epoch on the run, compared in the statement that writes, and never a
matter of clocks (docs/internals/engine.md#rule-4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol

import msgspec
from msgspec import UNSET, UnsetType

from weft.core.ids import Epoch, HostId, Millis, RunId, RunUid, Seq
from weft.ports.access import Access
from weft.ports.hosts import Hosts
from weft.ports.memos import Memos
from weft.ports.streams import Streams

PENDING = "pending"
"""A run that was accepted and that no host has taken up: it has a start in its inbox, and no event."""
START_MAIL = "start"
"""The id of the mail that a run is made with."""
OPEN_STATUSES = (PENDING, "running", "paused", "cancelling", "rolling_back", "held")
OVER_STATUSES = ("completed", "failed", "cancelled")
REOPENED_STATUSES = ("failed", "held")
EVENTS_PER_APPEND_MAX = 2_000
BYTES_PER_APPEND_MAX = 4 * 1024 * 1024
NEVER = Millis(2**62)
"""The ``idle_until`` of a run that waits for mail alone."""


class StoredEvent(msgspec.Struct, frozen=True):
    """One event as a store keeps it. ``body`` is JSON; the store adds a checksum over run, number, time and body."""

    seq: Seq
    at: Millis
    body: bytes


class Snapshot(msgspec.Struct, frozen=True):
    """A cache of the state after event ``seq``. Another ``fold`` number than the reader's: ignored."""

    seq: Seq
    fold: int
    body: bytes


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """What a store knows of a run without its log."""

    uid: RunUid
    id: RunId
    workflow: str
    version: str
    style: str
    status: str
    seq: Seq
    epoch: Epoch
    owner: HostId | None
    mail: int
    """How many pieces of mail were ever accepted for it."""
    wake_at: Millis | None
    idle_until: Millis | None
    """While it is owned: when it next has something to do by itself (``NEVER``: only mail wakes it).

    None: work is in flight.
    """
    format: int
    parent: RunUid | None
    created_at: Millis
    updated_at: Millis
    ended_at: Millis | None
    attributes: Mapping[str, Any]
    fault: str | None
    """Set when its log cannot be read: the run stands still, whatever its status says."""


class Resolved(msgspec.Struct, frozen=True):
    """What a host makes of the name of a workflow: the version and style that its run has from now on."""

    version: str
    style: str


class NewRun(msgspec.Struct, frozen=True, kw_only=True):
    """A row to be made. ``owner`` set: born owned, at epoch 1, else ``pending``.

    ``start`` set: with this piece of mail in its inbox. ``style`` empty: whoever takes the run up resolves it, and the
    ``version`` too if that is empty.
    """

    uid: RunUid
    id: RunId
    workflow: str
    version: str
    style: str
    created_at: Millis
    owner: HostId | None = None
    parent: RunUid | None = None
    attributes: Mapping[str, Any] = {}
    start: bytes | None = None
    wake_at: Millis | None = None
    format: int = 1


class Mail(msgspec.Struct, frozen=True, kw_only=True):
    """A command on its way to a run. ``id`` identifies it for ever: the same id twice is one piece of mail.

    ``key`` (with ``digest`` of the body) is the sender's own idempotency key, if there is one.
    """

    id: str
    to: RunUid
    body: bytes
    at: Millis
    key: str | None = None
    digest: str = ""
    urgent: bool = False
    """A run whose start was put off hears of it now, and is started for that. Known to ``send`` only."""


class KeyRow(msgspec.Struct, frozen=True):
    """An outside command's key, kept as long as the run. ``seq`` 0: it came by mail and is not in the log yet."""

    key: str
    digest: str
    seq: Seq


class Append(msgspec.Struct, kw_only=True):
    """What one run writes in one batch: all of it or nothing."""

    uid: RunUid
    epoch: Epoch
    seq: Seq
    """The number of the last event before these: the log must end there."""
    events: Sequence[StoredEvent] = ()
    create: NewRun | None = None
    """The run is made by this append (``seq`` is 0); its id must be free."""
    status: str | None = None
    """The new status; one of ``OVER_STATUSES`` ends the run: its owner becomes null, its mail must be taken."""
    attributes: Mapping[str, Any] | None = None
    """Merged into the row's; a value of None removes the name."""
    reopen: Millis | None = None
    """Open a failed or held run again that nobody owns, without owning it: it is woken at this time.

    With the status of a run that is over, its log is only added to: the run stays as it ended.
    """
    idle_until: Millis | UnsetType | None = UNSET
    """The new ``RunRow.idle_until``; UNSET: as it was."""
    mail_taken: int = 0
    """How many pieces of mail the writer has taken in, over the whole life of the run.

    Compared when the append ends it.
    """
    resolved: Resolved | None = None
    """The first append of a run that was started by name only: what the row says from now on."""
    taken: Sequence[str] = ()
    """Ids of inbox rows that these events consume; they are deleted."""
    keys: Sequence[KeyRow] = ()
    mail: Sequence[Mail] = ()
    """To other runs. A run that is over or unknown drops it silently."""
    children: Sequence[NewRun] = ()
    """Rows of new child runs, each with its start mail.

    An id that is taken: the row is made under the id ``<id>~<uid prefix>`` with the start mail unchanged, so that the
    parent hears of it from the child.
    """
    refs: Sequence[str] = ()
    """Digests of blobs that the events name."""
    snapshot: Snapshot | None = None


class Outcome(StrEnum):
    """How an append was judged. Everything but ``ACCEPTED`` wrote nothing of it."""

    ACCEPTED = "accepted"
    STALE_EPOCH = "stale_epoch"
    STALE_SEQ = "stale_seq"
    MAIL_WAITING = "mail_waiting"
    ID_TAKEN = "id_taken"
    KEY_TAKEN = "key_taken"


class Sent(StrEnum):
    """What became of a piece of mail from outside."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    KEY_REUSED = "key_reused"
    OVER = "over"
    UNKNOWN_RUN = "unknown_run"


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """A run goes to rest: owner null, woken at ``wake_at`` or by mail.

    Refused like an append; also while mail waits.
    """

    uid: RunUid
    epoch: Epoch
    seq: Seq
    mail_taken: int
    wake_at: Millis | None
    snapshot: Snapshot | None = None


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """All that is needed to go on with a run."""

    row: RunRow
    snapshot: Snapshot | None
    events: Sequence[StoredEvent]
    """Those after the snapshot, or all."""
    inbox: Sequence[Mail]
    """In order of arrival."""


class RunQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs to list, newest first. ``after`` is the cursor of the previous page."""

    workflow: str | None = None
    status: str | None = None
    since: Millis | None = None
    where: Mapping[str, Any] = {}
    id_prefix: str | None = None
    parent: RunUid | None = None
    limit: int = 100
    after: str | None = None


class Page(msgspec.Struct, frozen=True):
    """One page of runs; ``cursor`` None: the last one."""

    rows: Sequence[RunRow]
    cursor: str | None


class RunLog(Protocol):
    """The logs, one writer each, and the mail between them."""

    async def commit(self, batch: Sequence[Append], host: HostId) -> Sequence[Outcome]:
        """Write each append that is valid, all in one transaction; one outcome per append, in order.

        Returned means durable. Any exception means *unknown*: the caller claims its runs again and reloads. At most one
        append per run. Raises: Unavailable, Full, or whatever the store has: nothing is known then.
        """
        ...

    async def load(self, uid: RunUid, *, fold: int) -> Loaded | None:
        """The row, the newest snapshot of this fold number, the events after it, and the inbox. None: no such run.

        Raises Corrupt (naming the run and the event) if a checksum or the numbering is wrong.
        """
        ...

    async def events(self, uid: RunUid, *, after: Seq, limit: int) -> Sequence[StoredEvent]:
        """Committed events with numbers above ``after``, in order."""
        ...

    async def claim(
        self, uids: Sequence[RunUid], host: HostId, *, expected: Mapping[RunUid, Epoch]
    ) -> Sequence[RunRow]:
        """Make ``host`` the owner of those runs that are open and still at the expected epoch.

        Each epoch rises by one.
        """
        ...

    async def release(self, releases: Sequence[Release]) -> Sequence[Outcome]:
        """Put runs to rest, one outcome each."""
        ...

    async def send(self, mail: Sequence[Mail]) -> Sequence[Sent]:
        """Put mail into inboxes from outside: the row, its key and the run's count in one transaction."""
        ...

    async def create(self, runs: Sequence[NewRun]) -> Sequence[Outcome]:
        """Make rows of runs that nobody owns, each with its start mail: ``ACCEPTED`` or ``ID_TAKEN``."""
        ...

    async def inbox(self, uid: RunUid) -> Sequence[Mail]:
        """The mail that waits for a run, in order of arrival."""
        ...

    async def mark_fault(self, uid: RunUid, fault: str | None, *, status: str | None = None) -> None:
        """Note on the row that its log cannot be read (or, None, that it can again).

        ``status``: what the row says of an open run from now on; None: what it said.
        """
        ...


class Directory(Protocol):
    """Finding runs."""

    async def find(self, id: RunId) -> RunRow | None:
        """The run of this id."""
        ...

    async def row(self, uid: RunUid) -> RunRow | None:
        """The row of this incarnation."""
        ...

    async def search(self, query: RunQuery) -> Page:
        """A page of runs, newest first, ties by uid."""
        ...

    async def key(self, uid: RunUid, key: str) -> KeyRow | None:
        """The row of an outside command's key, if it was used."""
        ...

    async def claimable(
        self, workflows: Sequence[tuple[str, str]], *, dead: Sequence[HostId], now: Millis, limit: int
    ) -> Sequence[RunRow]:
        """Open runs of these (workflow, version) pairs that have something to do and nobody to do it: at rest and due
        or with mail; or owned by a dead host, with work in flight, due or with mail.

        Runs with a fault are left out, held ones too unless they have mail. Those waiting longest come first.
        """
        ...

    async def owned(self, host: HostId) -> Mapping[RunUid, Epoch]:
        """All runs of this owner but those with a fault, with their epochs."""
        ...

    async def with_mail(self, host: HostId, *, limit: int) -> Sequence[RunUid]:
        """Runs of this owner that have mail in the inbox, but those with a fault."""
        ...

    async def next_wake(self, workflows: Sequence[tuple[str, str]], *, dead: Sequence[HostId]) -> Millis | None:
        """The earliest time at which time alone makes a run claimable, at rest or of a dead host."""
        ...

    async def counts(self, below: RunUid | None = None, *, limit: int = 0) -> Mapping[str, int]:
        """How many runs there are of each status.

        ``below``: only open runs below this one, found through open runs; at most ``limit`` are counted.
        """
        ...


class Blobs(Protocol):
    """Content by its SHA-256 (hexadecimal)."""

    async def put(self, data: bytes) -> str:
        """Store it durably and mark it as touched now; the digest. The same content twice is one blob."""
        ...

    async def get(self, digest: str) -> bytes:
        """The content. Raises NotFound, or Corrupt if it does not match its name."""
        ...

    async def sweep(self, *, now: Millis, untouched_ms: int) -> int:
        """Delete what no run refers to and nobody touched for that long; how many."""
        ...


class TaskOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A task that another process may perform: (run, task, attempt, delivery) is its identity."""

    uid: RunUid
    task: int
    attempt: int
    delivery: int
    step: str
    queue: str
    body: bytes
    """All that a worker needs, as JSON."""
    epoch: Epoch
    """The run's, when offered: the row is made only if it still is."""
    not_before: Millis = Millis(0)


class QueueLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a queue may do, on all hosts together. None: as much as it likes."""

    concurrency: int | None = None
    """Tasks in hands at once."""
    rate: int | None = None
    """Tasks handed out in any stretch of ``per_ms``."""
    per_ms: int = 1_000
    priority: int = 0
    """Of two queues with tasks waiting, those of the higher one are handed out first."""

    @property
    def bound(self) -> bool:
        """Whether its tasks have to be counted."""
        return self.concurrency is not None or self.rate is not None


class QueueRow(msgspec.Struct, frozen=True, kw_only=True):
    """A queue as people see it: tasks with rows that nobody has, and those in hands."""

    queue: str
    waiting: int
    running: int
    limits: QueueLimits


class TaskQueue(Protocol):
    """Rows of tasks for other processes. A lease only says when to hand out again; the fence is in the decision."""

    async def offer(self, tasks: Sequence[TaskOffer]) -> None:
        """Make rows, guarded by the epoch; the same identity twice is one row."""
        ...

    async def take(
        self, host: HostId, *, queues: Sequence[str] | None, steps: Sequence[str], now: Millis, limit: int
    ) -> Sequence[TaskOffer]:
        """Claim up to ``limit`` unclaimed rows of these queues (None: of all) and steps that are due, oldest first.

        Rows of runs that are over are left alone. Queues of higher priority come first, and of a queue with limits no
        more are claimed than these allow.
        """
        ...

    async def held(self, hosts: Sequence[HostId], *, limit: int) -> Sequence[tuple[HostId, TaskOffer]]:
        """Rows claimed by these hosts, oldest first, with who has each. It only looks.

        What a dead host had is settled in its name, as lost; what a living one has and does not know of was taken by a
        call whose answer it never got.
        """
        ...

    async def rows(self, uid: RunUid) -> Sequence[TaskOffer]:
        """All rows of a run, claimed or not, oldest first."""
        ...

    async def settle(self, host: HostId, task: TaskOffer, report: Mail) -> bool:
        """Remove the claimed row and put the result into the run's inbox, in one transaction.

        False: not this host's any more.
        """
        ...

    async def withdraw(self, uid: RunUid, tasks: Sequence[int]) -> None:
        """Remove rows of tasks that are no longer wanted, claimed or not."""
        ...

    async def limit(self, queue: str, limits: QueueLimits | None) -> None:
        """Set what a queue may do from now on; None: it has no limits any more."""
        ...

    async def limits(self) -> Mapping[str, QueueLimits]:
        """The queues that have limits or a priority."""
        ...

    async def queues(self) -> Sequence[QueueRow]:
        """All queues that have rows or limits, by name."""
        ...


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """A stored version of a workflow: immutable; identical content is the same version."""

    name: str
    version: str
    style: str
    body: bytes
    created_at: Millis


class Definitions(Protocol):
    """Versions of workflows, with tags."""

    async def put(self, definition: Definition) -> bool:
        """Store it; False: this very definition was there.

        Raises Conflict if another body has this name and version.
        """
        ...

    async def get(self, name: str, version: str) -> Definition | None:
        """One version; a tag may stand for it."""
        ...

    async def versions(self, name: str | None = None) -> Sequence[Definition]:
        """All, by name and then oldest first."""
        ...

    async def names(self, style: str) -> Sequence[tuple[str, str]]:
        """All of a style, as (name, version): so light that it can be asked for again and again."""
        ...

    async def tag(self, name: str, tag: str, version: str) -> None:
        """Let ``tag`` mean ``version``. Raises NotFound."""
        ...

    async def tags(self, name: str) -> Mapping[str, str]:
        """The tags of a workflow and the versions they mean."""
        ...


class Store(Protocol):
    """All ports of one database, opened together."""

    @property
    def url(self) -> str:
        """How users name it, without a password."""
        ...

    @property
    def offset_ms(self) -> int:
        """How far its clock is ahead of this machine's. 0: it has none of its own."""
        ...

    @property
    def log(self) -> RunLog: ...
    @property
    def directory(self) -> Directory: ...
    @property
    def hosts(self) -> Hosts: ...
    @property
    def blobs(self) -> Blobs: ...
    @property
    def tasks(self) -> TaskQueue: ...
    @property
    def definitions(self) -> Definitions: ...
    @property
    def streams(self) -> Streams: ...
    @property
    def access(self) -> Access: ...
    @property
    def memos(self) -> Memos: ...

    async def open(self) -> None:
        """Connect, check and migrate. Raises NewerSchema, Corrupt, Unavailable, Full, each with a hint."""
        ...

    async def close(self) -> None: ...
