"""The protocols of a store. All durable state goes through them.

Three rules shape the port. Each append in a batch is judged separately, and a refused append does not affect the others
(docs/internals/engine.md#rule-1). Any error from ``RunLog.commit`` means that its outcome is *unknown*
(docs/internals/engine.md#rule-3). Ownership is an epoch on the run, compared in the statement that writes; it never
depends on clocks (docs/internals/engine.md#rule-4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol

import msgspec
from msgspec import UNSET, UnsetType

from weft.core.ids import Epoch, HostId, Millis, RunId, RunUid, Seq
from weft.core.ledger import Answer, Move
from weft.errors import Corrupt
from weft.ports.access import Access
from weft.ports.blobs import Blobs
from weft.ports.budgets import Budgets
from weft.ports.definitions import Definitions
from weft.ports.hosts import Hosts
from weft.ports.hot import HotRuns
from weft.ports.memos import Memos
from weft.ports.new_run import NewRun
from weft.ports.policies import PolicyVersions
from weft.ports.retention import AuditEntry, Holds, Retention
from weft.ports.run_query import RunCount, RunQuery
from weft.ports.saved_views import SavedViews
from weft.ports.starts import RuledStarts
from weft.ports.step_logs import StepLogs
from weft.ports.streams import Streams
from weft.ports.tags import Tags
from weft.ports.tasks import KeyLimits, QueueLimits, QueueRow, TaskOffer
from weft.ports.tool_pins import ToolPins
from weft.ports.wals import Wals
from weft.ports.web_sessions import WebSessions

PENDING = "pending"
"""The status of a run that was accepted and has no owner yet: its start is in its inbox, and it has no events."""
OPEN_STATUSES = (PENDING, "running", "paused", "cancelling", "rolling_back", "held")
IMPORTED = "imported"
"""The status of a run that was imported: it can be read, and nothing ever goes on with it."""
MOVED = "moved"
"""The status of a run that was moved to another store, which goes on with it."""
OVER_STATUSES = ("completed", "failed", "cancelled", MOVED, IMPORTED)
REOPENED_STATUSES = ("failed", "held", "cancelled")
EVENTS_PER_APPEND_MAX = 2_000
BYTES_PER_APPEND_MAX = 4 * 1024 * 1024
NEVER = Millis(2**62)
"""The ``idle_until`` of a run that only mail can wake."""


class StoredEvent(msgspec.Struct, frozen=True):
    """One event as a store keeps it. ``body`` is JSON; the store adds a checksum over run, number, time and body."""

    seq: Seq
    at: Millis
    body: bytes


class Snapshot(msgspec.Struct, frozen=True):
    """A cache of the state after event ``seq``. Readers ignore a snapshot with another ``fold`` number."""

    seq: Seq
    fold: int
    body: bytes


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """The data about a run that a store has without reading the run's log."""

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
    """How many pieces of mail were ever accepted for the run."""
    wake_at: Millis | None
    idle_until: Millis | None
    """While the run is owned: when it next has something to do without mail (``NEVER`` if only mail can wake it).

    None while work is in flight.
    """
    format: int
    parent: RunUid | None
    created_at: Millis
    updated_at: Millis
    ended_at: Millis | None
    attributes: Mapping[str, Any]
    fault: str | None
    """Why the log cannot be read, if it cannot. Such a run does not continue, whatever its status."""
    slot: str | None = None
    """The name of the workflow and the key, if the workflow has a rule about starts."""
    inputs: int = 0
    """How many inputs of a batch the starts have brought so far."""
    priority: int = 0
    """Pending runs and tasks of a run with a higher priority are taken first."""
    wal: int | None = None
    """The WAL that may hold events of the run that the store does not have yet. Only of a run with an owner."""


class Resolved(msgspec.Struct, frozen=True):
    """The version and style to which a host resolved the name of a workflow."""

    version: str
    style: str


class Mail(msgspec.Struct, frozen=True, kw_only=True):
    """A command on its way to a run. Mail with an ``id`` that was used before is ignored, without a time limit.

    ``key`` (with ``digest`` of the body) is the sender's own idempotency key, if there is one.
    """

    id: str
    to: RunUid
    body: bytes
    at: Millis
    key: str | None = None
    digest: str = ""
    urgent: bool = False
    """Start a run whose start was delayed. Only ``send`` uses this."""


class KeyRow(msgspec.Struct, frozen=True):
    """The idempotency key of a command, kept as long as the run. ``seq`` is 0 until the command is in the log."""

    key: str
    digest: str
    seq: Seq


class Append(msgspec.Struct, kw_only=True):
    """The data that one run writes in one batch, all or nothing."""

    uid: RunUid
    epoch: Epoch
    seq: Seq
    """The number of the last event before ``events``. The log must end there."""
    events: Sequence[StoredEvent] = ()
    create: NewRun | None = None
    """Create the run with this append (``seq`` is 0). Its id must be free."""
    status: str | None = None
    """The new status. One of ``OVER_STATUSES`` ends the run: it loses its owner, and no mail may be left."""
    attributes: Mapping[str, Any] | None = None
    """Changes to the attributes of the row. None removes a name."""
    reopen: Millis | None = None
    """Reopen a failed, held or cancelled run that has no owner. The run is woken at this time.

    If ``status`` is that of a run that is over, the events are only added to the log, and the run stays over.
    """
    idle_until: Millis | UnsetType | None = UNSET
    """The new ``RunRow.idle_until``. UNSET: unchanged."""
    through: bool = False
    """Whether it must be in the durable store before it counts, although it may have only events."""
    mail_taken: int = 0
    """How many pieces of mail the run has consumed over its whole life.

    Compared with ``RunRow.mail`` when the append ends the run.
    """
    resolved: Resolved | None = None
    """The new version and style of the run: when it was started by name, or a patch changes its version."""
    taken: Sequence[str] = ()
    """Ids of inbox rows that these events consume. They are deleted."""
    keys: Sequence[KeyRow] = ()
    mail: Sequence[Mail] = ()
    """Mail to other runs. A run that is over or unknown drops it silently."""
    children: Sequence[NewRun] = ()
    """Rows of new child runs, each with its start mail.

    If an id is taken, the row gets the id ``<id>~<uid prefix>`` while its start mail is unchanged, so that the child
    can report the taken id to its parent.
    """
    refs: Sequence[str] = ()
    """Digests of blobs to which the events refer."""
    snapshot: Snapshot | None = None
    ledger: Sequence[Move] = ()
    """Moves of the ledger of budgets. They never refuse an append: a reservation that is not granted says so."""
    answers: Sequence[Answer] = ()
    """Set by the store if it accepts the append: the answers to the moves."""


class Outcome(StrEnum):
    """The judgement on an append. Unless it is ``ACCEPTED``, nothing in the append was written."""

    ACCEPTED = "accepted"
    STALE_EPOCH = "stale_epoch"
    STALE_SEQ = "stale_seq"
    MAIL_WAITING = "mail_waiting"
    ID_TAKEN = "id_taken"
    KEY_TAKEN = "key_taken"
    SLOT_TAKEN = "slot_taken"
    """Another run with the slot of the reopened run is open."""


class Sent(StrEnum):
    """The judgement on a piece of mail."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    KEY_REUSED = "key_reused"
    OVER = "over"
    UNKNOWN_RUN = "unknown_run"


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """A request to give up ownership of a run, until ``wake_at`` or until mail arrives.

    Judged like an append. Also refused while mail waits.
    """

    uid: RunUid
    epoch: Epoch
    seq: Seq
    mail_taken: int
    wake_at: Millis | None
    snapshot: Snapshot | None = None


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is needed to continue a run."""

    row: RunRow
    snapshot: Snapshot | None
    events: Sequence[StoredEvent]
    """The events after the snapshot, or all of them. A log that was shortened begins with a number above 1."""
    inbox: Sequence[Mail]
    """In order of arrival."""


class Page(msgspec.Struct, frozen=True):
    """One page of runs. The last page has no ``cursor``."""

    rows: Sequence[RunRow]
    cursor: str | None


class NewRuns(Protocol):
    """Creates runs that no host owns yet."""

    async def create(self, runs: Sequence[NewRun]) -> Sequence[Outcome]:
        """Insert the rows of runs without an owner, each with its start mail. Returns ``ACCEPTED`` or ``ID_TAKEN``."""
        ...

    async def write_run(self, run: Append) -> Outcome:
        """Create a run without an owner, with its whole log, in one transaction. Returns ``ACCEPTED`` or ``ID_TAKEN``.

        ``run.create`` is its row and ``run.status`` its status. The limits of an append do not apply to its events.
        Any exception means *unknown*, as for ``commit``: the caller looks for the uid.
        """
        ...


class Transfers(Protocol):
    """Hands whole trees of runs to another store, and takes them up from one."""

    async def write_together(self, batch: Sequence[Append], entry: AuditEntry | None = None) -> Sequence[Outcome]:
        """Write all appends in one transaction, or none of them: unless all are ``ACCEPTED``, nothing was written.

        Each is for another run that exists, whoever owns it. The run must be at the epoch and event number of the
        append, have no mail left, and name no WAL that is not drained. With ``reopen`` it gets the ``status``, whatever
        it had. The limits of an append do not apply. Any exception means *unknown*.

        ``entry`` is written with them, once: if the audit table has one about this run with the same ``digest`` in its
        details, whatever its verb, all appends are ``KEY_TAKEN``.
        """
        ...

    async def keys(self, uid: RunUid) -> Sequence[KeyRow]:
        """Return all idempotency keys of a run, in order."""
        ...


class RunLog(NewRuns, Transfers, Protocol):
    """The logs of runs, with one writer each, and the mail between runs."""

    commits_in_place: bool
    """Whether a commit of one append usually ends without waiting, so that it may begin outside a task."""

    @property
    def hot(self) -> HotRuns | None:
        """Return the runs whose appends may be acknowledged before they are in the durable store; None if none are."""
        ...

    async def commit(self, batch: Sequence[Append], host: HostId) -> Sequence[Outcome]:
        """Write each valid append, all in one transaction. Returns one outcome per append, in order.

        The outcomes are durable when this returns. Any exception means *unknown*: the caller must claim its runs again
        and reload them. A batch has at most one append per run. Raises Unavailable, Full, or any error of the store.
        """
        ...

    async def load(self, uid: RunUid, *, fold: int) -> Loaded | None:
        """Return the row, the newest snapshot of this fold number, the events after it, and the inbox.

        Returns None if there is no such run. Raises Corrupt, naming the run and the event, if a checksum or number is
        wrong.
        """
        ...

    async def events(self, uid: RunUid, *, after: Seq, limit: int) -> Sequence[StoredEvent]:
        """Return committed events with numbers above ``after``, in order."""
        ...

    async def claim(
        self, uids: Sequence[RunUid], host: HostId, *, expected: Mapping[RunUid, Epoch]
    ) -> Sequence[RunRow]:
        """Make ``host`` the owner of those runs that are open and still at the expected epoch.

        A run that names a WAL which is not drained can only be claimed by its owner. Raises the epoch of each by one.
        The run then names the WAL of the new owner, if it has one. Returns their new rows.
        """
        ...

    async def release(self, releases: Sequence[Release]) -> Sequence[Outcome]:
        """Give up ownership of runs. Returns one outcome each."""
        ...

    async def send(self, mail: Sequence[Mail]) -> Sequence[Sent]:
        """Put mail into inboxes from outside. Mail, key and the run's count are one transaction."""
        ...

    async def inbox(self, uid: RunUid) -> Sequence[Mail]:
        """Return the mail in the inbox of a run, in order of arrival."""
        ...

    async def refers_to(self, uid: RunUid, digest: str) -> bool:
        """Return whether events of a run refer to a blob, by themselves or through the content of other blobs.

        References through other blobs are followed backwards, to at most ``LINKS_MAX`` blobs.
        """
        ...

    async def mark_fault(self, uid: RunUid, fault: str | None, *, status: str | None = None) -> None:
        """Record why the log of a run cannot be read. None means that it can be read again.

        A run with a fault names no WAL, so that anybody may end it.

        ``status`` is the new status of an open run; None leaves it.
        """
        ...


class ClaimableRuns(Protocol):
    """Finds the runs that have something to do."""

    async def claimable(
        self, workflows: Sequence[tuple[str, str]], *, dead: Sequence[HostId], now: Millis, limit: int
    ) -> Sequence[RunRow]:
        """Return open runs of these (workflow, version) pairs that have something to do and no living owner.

        A run without an owner counts if it is due or has mail; a run of a dead host also if it has work in flight.
        Runs with a fault are left out, and so are held runs without mail, and a singleton that has not begun while an
        older run with its slot is open. Runs with a higher priority come first, then those that have waited longest.
        """
        ...

    async def owned(self, host: HostId) -> Mapping[RunUid, Epoch]:
        """Return all runs of this owner with their epochs, except those with a fault."""
        ...

    async def next_wake(self, workflows: Sequence[tuple[str, str]], *, dead: Sequence[HostId]) -> Millis | None:
        """Return the earliest time at which a run without an owner, or of a dead host, becomes due."""
        ...


class Directory(ClaimableRuns, Protocol):
    """An index of runs."""

    async def find(self, id: RunId) -> RunRow | None:
        """Return the row of the run with this id."""
        ...

    async def row(self, uid: RunUid) -> RunRow | None:
        """Return the row of the run with this uid."""
        ...

    async def search(self, query: RunQuery) -> Page:
        """Return a page of runs, newest first, then by uid."""
        ...

    async def count(self, queries: Sequence[RunQuery], *, limit: int) -> Sequence[RunCount]:
        """Return how many runs each search finds, up to ``limit``. Examines no more runs than ``RunQuery.scan``."""
        ...

    async def workflows(self, prefix: str = "", *, limit: int) -> Sequence[str]:
        """Return the names of workflows that have runs and begin with a prefix, sorted."""
        ...

    async def key(self, uid: RunUid, key: str) -> KeyRow | None:
        """Return the row of an idempotency key, if it was used."""
        ...

    async def counts(self, below: RunUid | None = None, *, limit: int = 0) -> Mapping[str, int]:
        """Return the number of runs in each status, without Weft's own runs.

        With ``below``, count only open descendants of this run, reached through open runs, up to ``limit``.
        """
        ...

    async def open_versions(self, id_prefix: str = "") -> Mapping[tuple[str, str], int]:
        """Return how many open runs each workflow has in each version, of runs whose id has this prefix."""
        ...


class Addressed(msgspec.Struct, frozen=True):
    """The answer to mail that was sent to a run by its id."""

    row: RunRow | None
    """The row just before the mail; None if there is no such run."""
    sent: Sent | None
    """The judgement; None if nothing was sent, because no host owns the run or its log cannot be read."""


class News(msgspec.Struct, frozen=True, kw_only=True):
    """The work that other processes have left for a host."""

    inboxes: Mapping[RunUid, Sequence[Mail] | Corrupt]
    """The inboxes of its runs, as ``Inboxes.waiting`` returns them."""
    claimable: bool
    """Whether there are runs that ``Directory.claimable`` would return."""
    wake_at: Millis | None
    """The result of ``Directory.next_wake``."""


class Inboxes(Protocol):
    """The mail between processes. Each side needs one call per message."""

    async def send_to(self, id: RunId, mail: Mail) -> Addressed:
        """Put mail into the inbox of the run with this id if a host owns it. Its ``to`` is ignored."""
        ...

    async def waiting(self, host: HostId, *, limit: int) -> Mapping[RunUid, Sequence[Mail] | Corrupt]:
        """Return the inboxes of this owner's runs that have mail, except those with a fault. Oldest mail comes first.

        A damaged inbox is returned as Corrupt and does not affect the others.
        """
        ...

    async def news(
        self, host: HostId, workflows: Sequence[tuple[str, str]], *, dead: Sequence[HostId], now: Millis, limit: int
    ) -> News | None:
        """Return the work that other processes left since the last call; None if none of them wrote.

        May return work without a write, but never None after a visible commit. At most ``limit`` inboxes are returned.
        """
        ...


class TaskQueue(KeyLimits, Protocol):
    """Tasks for other processes. A lease only decides when a task is handed out again; the run judges the results."""

    async def offer(self, tasks: Sequence[TaskOffer]) -> None:
        """Insert the rows of tasks whose run is still in their epoch and has an owner. No task gets a second row."""
        ...

    async def take(
        self, host: HostId, *, queues: Sequence[str] | None, steps: Sequence[str] | None, now: Millis, limit: int
    ) -> Sequence[TaskOffer]:
        """Claim up to ``limit`` unclaimed rows that are due, in these queues and for these steps (None for all).

        The oldest come first, after those in queues with a higher priority. Rows of runs that are over are not claimed.
        No more rows of a queue are claimed than its limits allow, and no more of a key than the limit of its step
        allows. Keys take turns. Rows of a queue that is a stream are claimed by ``STREAM``, and others by all but it.
        """
        ...

    async def taken_by(
        self, hosts: Sequence[HostId], *, limit: int, with_body: bool = True
    ) -> Sequence[tuple[HostId, TaskOffer]]:
        """Return the tasks taken by these hosts, oldest first, with their hosts. Bodies are empty if not asked for.

        A task taken by a dead host is lost. A task that a living host does not know about was taken by a call whose
        answer never arrived.
        """
        ...

    async def rows(self, uid: RunUid) -> Sequence[TaskOffer]:
        """Return all wanted tasks of a run, taken or not, oldest first."""
        ...

    async def settle(self, host: HostId, task: TaskOffer, report: Mail) -> bool:
        """Remove the claimed row and put the result into the run's inbox, in one transaction.

        Returns False if the row no longer belongs to this host.
        """
        ...

    async def withdraw(self, uid: RunUid, tasks: Sequence[int]) -> None:
        """Remove rows of tasks that are no longer wanted, claimed or not.

        A claimed row of a task with a limit per key becomes ``unwanted`` instead, until its host removes it.
        """
        ...

    async def limit(self, queue: str, limits: QueueLimits | None) -> None:
        """Set the limits of a queue from now on. None removes them."""
        ...

    async def limits(self) -> Mapping[str, QueueLimits]:
        """Return the queues that have limits or a priority."""
        ...

    async def queues(self) -> Sequence[QueueRow]:
        """Return all queues that have tasks or limits, by name."""
        ...


class StoreDetails(msgspec.Struct, frozen=True, kw_only=True):
    """A store as people see it."""

    kind: str
    """``sqlite``, ``postgres`` or ``memory``."""
    schema: int
    """The number of its schema; 0 if it has none."""
    size_bytes: int | None
    """The size of its file or database, without blobs that are kept elsewhere; None if it has none."""
    free_bytes: int | None = None
    """The free space on its disk; None if that is not the disk of this machine."""


class Store(Protocol):
    """All ports of one database, opened together."""

    @property
    def url(self) -> str:
        """Return the URL without the password."""
        ...

    @property
    def offset_ms(self) -> int:
        """Return how far the store's clock is ahead of this machine's clock; 0 if the store has no clock of its own."""
        ...

    @property
    def log(self) -> RunLog: ...
    @property
    def directory(self) -> Directory: ...
    @property
    def inboxes(self) -> Inboxes: ...
    @property
    def hosts(self) -> Hosts: ...
    @property
    def blobs(self) -> Blobs: ...
    @property
    def tasks(self) -> TaskQueue: ...
    @property
    def definitions(self) -> Definitions: ...
    @property
    def tags(self) -> Tags: ...
    @property
    def streams(self) -> Streams: ...
    @property
    def step_logs(self) -> StepLogs: ...
    @property
    def access(self) -> Access: ...
    @property
    def memos(self) -> Memos: ...
    @property
    def retention(self) -> Retention: ...
    @property
    def holds(self) -> Holds: ...
    @property
    def saved_views(self) -> SavedViews: ...
    @property
    def web_sessions(self) -> WebSessions: ...
    @property
    def starts(self) -> RuledStarts: ...
    @property
    def policies(self) -> PolicyVersions: ...
    @property
    def budgets(self) -> Budgets: ...

    @property
    def tool_pins(self) -> ToolPins: ...

    @property
    def wals(self) -> Wals | None:
        """Return the WALs before this store; None if it cannot have any."""
        ...

    async def details(self) -> StoreDetails:
        """Return the kind, schema and size of the store."""
        ...

    async def open(self) -> None:
        """Connect, check the schema and migrate it. Raises NewerSchema, Corrupt, Unavailable or Full, with a hint."""
        ...

    async def close(self) -> None: ...
