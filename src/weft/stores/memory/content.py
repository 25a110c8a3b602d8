"""The content of a memory store: plain data, which the ports in this package read and change.

It survives an engine as a file would. The simulator drops the engine and keeps the content.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from weft.core.ids import Epoch, HostId, Millis, RunId, RunUid, Seq
from weft.core.ledger import Ledger
from weft.ports.access import ApiKey
from weft.ports.definitions import Definition
from weft.ports.memos import Memo
from weft.ports.new_run import NewRun
from weft.ports.policies import StoredPolicy
from weft.ports.retention import AuditEntry
from weft.ports.saved_views import SavedView
from weft.ports.step_logs import StoredLine
from weft.ports.store import OPEN_STATUSES, KeyRow, Mail, RunRow, Sent, Snapshot, StoredEvent
from weft.ports.streams import Chunk
from weft.ports.tags import Tag, TagKey, TagMove
from weft.ports.tasks import ADMITTED, KeyLimit, QueueLimits, TaskOffer
from weft.ports.tool_pins import ToolPin
from weft.ports.wals import Loss, Wal
from weft.ports.web_sessions import WebSession
from weft.stores.judge import judge_mail
from weft.stores.judge_starts import is_singleton
from weft.stores.key_turns import Key
from weft.stores.rows import as_json, initial_epoch, initial_status, start_mail

TaskKey = tuple[RunUid, int, int, int]


class StoredRun(msgspec.Struct, kw_only=True):
    """The row of a run and everything that belongs to it."""

    new: NewRun
    id: RunId
    status: str = "running"
    seq: Seq = Seq(0)
    epoch: Epoch = Epoch(0)
    owner: HostId | None = None
    mail: int = 0
    wake_at: Millis | None = None
    idle_until: Millis | None = None
    updated_at: Millis = Millis(0)
    ended_at: Millis | None = None
    attributes: dict[str, Any] = {}
    fault: str | None = None
    events: list[StoredEvent] = []
    cut: int = 0
    """How many events at the beginning of the log were deleted."""
    inbox: dict[str, Mail] = {}
    posted: set[str] = set()
    """Ids of all mail that was ever accepted: an id is accepted once, even after its mail was consumed."""
    keys: dict[str, KeyRow] = {}
    snapshots: dict[int, Snapshot] = {}
    number: int = 0
    """The place of the run in the order of creation."""
    slot: str | None = None
    inputs: int = 0
    wal: int | None = None

    @property
    def is_open(self) -> bool:
        return self.status in OPEN_STATUSES

    def row(self) -> RunRow:
        new = self.new
        return RunRow(
            uid=new.uid,
            id=self.id,
            workflow=new.workflow,
            version=new.version,
            style=new.style,
            status=self.status,
            seq=self.seq,
            epoch=self.epoch,
            owner=self.owner,
            mail=self.mail,
            wake_at=self.wake_at,
            idle_until=self.idle_until,
            format=new.format,
            parent=new.parent,
            created_at=new.created_at,
            updated_at=self.updated_at,
            ended_at=self.ended_at,
            attributes=dict(self.attributes),
            fault=self.fault,
            slot=self.slot,
            inputs=self.inputs,
            priority=new.priority,
            wal=self.wal,
        )


class JoinedHost(msgspec.Struct):
    """A host that has joined: its lease, its counter and its description."""

    lease_ms: int
    beats: int = 0
    about: dict[str, Any] = {}
    beat_at: float = msgspec.field(default_factory=time.monotonic)
    """When its last heartbeat arrived, in real time. Only shown to people."""
    redis: str | None = None
    """The id of the Redis server that it sees."""


class StoredWal(msgspec.Struct):
    """A WAL, and whether anybody still needs it."""

    wal: Wal
    drained: bool = False
    drained_at: Millis = Millis(0)
    forced: bool = False
    """Whether it was marked as drained although nobody had read it."""


class OfferedTask(msgspec.Struct):
    """An offered task, and the host that has taken it."""

    offer: TaskOffer
    host: HostId | None = None
    offered_at: int = msgspec.field(default_factory=lambda: time.time_ns() // 1_000_000)
    """In real time. Only shown to people."""

    @property
    def since(self) -> Millis:
        """Return since when the task has been ready to be taken."""
        return Millis(max(self.offered_at, self.offer.not_before))


def task_key(task: TaskOffer) -> TaskKey:
    """Return the identity of a task."""
    return task.uid, task.task, task.attempt, task.delivery


class StoredBlob(msgspec.Struct):
    """A blob, and since when it has been unused. None if it was used after the last sweep."""

    data: bytes
    links: Sequence[str] = ()
    """The blobs to which its content refers."""
    touched: Millis | None = None


class StoredStream(msgspec.Struct):
    """An output stream: its chunks and their keys."""

    chunks: list[Chunk] = []
    keys: set[str] = set()


class StoredLines(msgspec.Struct):
    """What the steps of a run printed."""

    lines: list[StoredLine] = []
    last: int = 0
    size_bytes: int = 0
    batch: tuple[str, int] = ("", 0)
    """The host that wrote last, and the number of its batch."""


class MemoryContent:
    """Everything in one memory store."""

    def __init__(self) -> None:
        self.runs: dict[RunUid, StoredRun] = {}
        self.open: dict[RunUid, StoredRun] = {}
        """The runs that are not over. A search for work visits only these."""
        self.doomed: dict[RunUid, StoredRun] = {}
        """The runs that are being deleted. Their ids stay in ``ids`` until nothing is left of them."""
        self.ids: dict[RunId, RunUid] = {}
        self.hosts: dict[HostId, JoinedHost] = {}
        self.wals: dict[int, StoredWal] = {}
        self.last_wal = 0
        self.drain_askers: list[Callable[[RunUid], None]] = []
        """Tell each store that shares this content which run somebody wants to be drained."""
        self.host_wals: dict[HostId, int] = {}
        """The newest WAL of each host that ever had one."""
        self.losses: list[Loss] = []
        """The losses that nobody has acknowledged."""
        self.deployment: dict[str, str] = {}
        """The values that all hosts agree on, by name."""
        self.tasks: dict[TaskKey, OfferedTask] = {}
        self.limits: dict[str, QueueLimits] = {}
        self.handed_out: dict[str, list[Millis]] = {}
        """When tasks of queues with a rate were handed out, for the period of the rate."""
        self.unwanted: list[OfferedTask] = []
        """Taken tasks with a limit that were withdrawn. They count until their hosts have stopped them."""
        self.key_limits: dict[str, KeyLimit] = {}
        self.ready_keys: dict[Key, Millis] = {}
        """The keys that may have room, in the order of their turns, and when their turn may come."""
        self.key_starts: dict[Key, list[Millis]] = {}
        """Until when the starts of keys with a rate count."""
        self.blobs: dict[str, StoredBlob] = {}
        self.refs: dict[str, set[RunUid]] = {}
        self.definitions: dict[tuple[str, str], Definition] = {}
        self.definitions_used: dict[tuple[str, str], Millis] = {}
        """When versions were last put again."""
        self.tags: dict[TagKey, Tag] = {}
        self.policies: list[StoredPolicy] = []
        self.tool_pins: dict[tuple[str, str], ToolPin] = {}
        """By server and tool."""
        self.policy_counts: dict[tuple[str, str, int], tuple[int, int]] = {}
        """How much of a limit was used, and when its window ends, by tenant, name and beginning of the window."""
        self.tag_moves: dict[TagKey, list[TagMove]] = {}
        self.streams: dict[tuple[RunUid, str], StoredStream] = {}
        self.step_lines: dict[RunUid, StoredLines] = {}
        self.api_keys: dict[str, ApiKey] = {}
        self.web_sessions: dict[str, WebSession] = {}
        self.seeds: dict[str, bytes] = {}
        self.memos: dict[str, Memo] = {}
        self.saved_views: dict[tuple[str, str], SavedView] = {}
        self.holds: dict[RunUid, AuditEntry] = {}
        self.audit: list[AuditEntry] = []
        self.start_rules: dict[str, bytes] = {}
        """The rules about starts, by the names of their workflows."""
        self.start_ids: dict[RunId, tuple[RunUid, str]] = {}
        """Ids of starts that other runs took: those runs, and the digests of the inputs."""
        self.ledger = Ledger()
        self.created = 0
        """How many runs were ever added."""
        self.turn: tuple[HostId, Millis] | None = None
        """The host that deletes runs, and until when."""

    def find(self, id: RunId) -> StoredRun | None:
        """Return the run with this id, unless it is being deleted."""
        uid = self.ids.get(id)
        return None if uid is None else self.runs.get(uid)

    def add(self, new: NewRun, id: RunId) -> StoredRun:
        """Add a run under this id, which must be free, with its start mail."""
        run = StoredRun(
            new=new,
            id=id,
            status=initial_status(new),
            epoch=initial_epoch(new),
            owner=new.owner,
            wake_at=new.wake_at,
            updated_at=new.created_at,
            attributes=as_json(new.attributes),
            number=self.created,
            slot=new.slot,
            inputs=new.inputs,
            wal=None if new.owner is None else self.wal_of(new.owner),
        )
        self.created += 1
        self.runs[new.uid] = self.open[new.uid] = run
        self.ids[id] = new.uid
        mail = start_mail(new)
        if mail is not None:
            self.deliver(mail)
        return run

    def wal_of(self, host: HostId) -> int | None:
        """Return the WAL that a host uses; None if it has none, or the last one is drained."""
        number = self.host_wals.get(host)
        return None if number is None or self.is_drained(number) else number

    def is_drained(self, wal: int) -> bool:
        """Return whether nobody needs a WAL any more."""
        row = self.wals.get(wal)
        return row is None or row.drained

    def with_slot(self, slot: str | None) -> list[StoredRun]:
        """Return the open runs with this slot, oldest first; none without a slot."""
        found = [run for run in self.open.values() if run.slot == slot] if slot is not None else []
        return sorted(found, key=lambda run: run.number)

    def is_behind(self, run: StoredRun) -> bool:
        """Return whether a singleton that has not begun waits for an older run with its slot."""
        if run.seq or not is_singleton(run.slot):
            return False
        return any(other.number < run.number for other in self.with_slot(run.slot))

    def deliver(self, mail: Mail) -> Sent:
        """Put mail into the inbox of its run, once."""
        run = self.runs.get(mail.to)
        if run is None:
            return judge_mail(None, mail, None, posted=False)
        key = None if mail.key is None else run.keys.get(mail.key)
        sent = judge_mail(run, mail, key, posted=mail.id in run.posted)
        if sent is not Sent.ACCEPTED:
            return sent
        if mail.key is not None:
            run.keys[mail.key] = KeyRow(mail.key, mail.digest, Seq(0))
        run.posted.add(mail.id)
        run.inbox[mail.id] = mail
        run.mail += 1
        return sent

    def write_entry(self, entry: AuditEntry) -> AuditEntry:
        """Add an entry to the audit table. Returns it with its number."""
        self.audit.append(msgspec.structs.replace(entry, number=len(self.audit) + 1))
        return self.audit[-1]

    def write_once(self, entry: AuditEntry) -> bool:
        """Add an entry to the audit table, unless it has one about this run with the same digest."""
        digest = entry.details["digest"]
        if any(one.run == entry.run and one.details.get("digest") == digest for one in self.audit):
            return False
        self.write_entry(entry)
        return True

    def drop_tasks(self, uid: RunUid) -> None:
        """Withdraw all tasks of a run, and give back its own place under the limit of its workflow."""
        for key in [key for key in self.tasks if key[0] == uid]:
            self.withdraw_task(key)

    def withdraw_task(self, key: TaskKey) -> None:
        """Delete the row of a task, or keep it as unwanted while a host performs a task with a limit."""
        row = self.tasks[key]
        if row.offer.limit and row.host not in (None, ADMITTED):
            del self.tasks[key]
            row.offer = msgspec.structs.replace(row.offer, unwanted=True)
            self.unwanted.append(row)
        else:
            self.remove_task(key)

    def remove_task(self, key: TaskKey) -> None:
        """Delete the row of a task. If it was taken, its place is free."""
        self._free_place(self.tasks.pop(key))

    def finish_task(self, host: HostId, key: TaskKey) -> bool:
        """Delete the rows of a task that this host has taken. Returns whether there were any."""
        row = self.tasks.get(key)
        mine = [one for one in self.unwanted if one.host == host and task_key(one.offer) == key]
        for one in mine:
            self.unwanted.remove(one)
            self._free_place(one)
        if row is not None and row.host == host:
            self.remove_task(key)
            return True
        return bool(mine)

    def _free_place(self, row: OfferedTask) -> None:
        if not row.offer.limit or row.host is None:
            return
        key = Key(row.offer.limit, row.offer.key)
        if any(one.host is None and key == (one.offer.limit, one.offer.key) for one in self.tasks.values()):
            self.ready_keys.setdefault(key, Millis(0))

    def add_refs(self, uid: RunUid, digests: Sequence[str]) -> None:
        """Record that a run refers to these blobs."""
        for digest in digests:
            self.refs.setdefault(digest, set()).add(uid)
