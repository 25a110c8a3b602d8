"""The content of a memory store: plain data, which the ports in this package read and change.

It survives an engine as a file would. The simulator drops the engine and keeps the content.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import msgspec

from weft.core.ids import Epoch, HostId, Millis, RunId, RunUid, Seq
from weft.ports.access import ApiKey
from weft.ports.definitions import Definition
from weft.ports.memos import Memo
from weft.ports.retention import AuditEntry
from weft.ports.store import (
    OPEN_STATUSES,
    KeyRow,
    Mail,
    NewRun,
    QueueLimits,
    RunRow,
    Sent,
    Snapshot,
    StoredEvent,
    TaskOffer,
)
from weft.ports.streams import Chunk
from weft.ports.tags import Tag, TagKey, TagMove
from weft.stores.judge import judge_mail
from weft.stores.rules import as_json, initial_epoch, initial_status, start_mail

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
        )


class JoinedHost(msgspec.Struct):
    """A host that has joined: its lease, its counter and its description."""

    lease_ms: int
    beats: int = 0
    about: dict[str, Any] = {}
    beat_at: float = msgspec.field(default_factory=time.monotonic)
    """When its last heartbeat arrived, in real time. Only shown to people."""


class OfferedTask(msgspec.Struct):
    """An offered task, and the host that has taken it."""

    offer: TaskOffer
    host: HostId | None = None


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
        self.tasks: dict[TaskKey, OfferedTask] = {}
        self.limits: dict[str, QueueLimits] = {}
        self.handed_out: dict[str, list[Millis]] = {}
        """When tasks of queues with a rate were handed out, for the period of the rate."""
        self.blobs: dict[str, StoredBlob] = {}
        self.refs: dict[str, set[RunUid]] = {}
        self.definitions: dict[tuple[str, str], Definition] = {}
        self.definitions_used: dict[tuple[str, str], Millis] = {}
        """When versions were last put again."""
        self.tags: dict[TagKey, Tag] = {}
        self.tag_moves: dict[TagKey, list[TagMove]] = {}
        self.streams: dict[tuple[RunUid, str], StoredStream] = {}
        self.api_keys: dict[str, ApiKey] = {}
        self.seeds: dict[str, bytes] = {}
        self.memos: dict[str, Memo] = {}
        self.holds: dict[RunUid, AuditEntry] = {}
        self.audit: list[AuditEntry] = []
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
        )
        self.runs[new.uid] = self.open[new.uid] = run
        self.ids[id] = new.uid
        mail = start_mail(new)
        if mail is not None:
            self.deliver(mail)
        return run

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
        """Delete the rows of a run's tasks, taken or not."""
        for key in [key for key in self.tasks if key[0] == uid]:
            del self.tasks[key]

    def add_refs(self, uid: RunUid, digests: Sequence[str]) -> None:
        """Record that a run refers to these blobs."""
        for digest in digests:
            self.refs.setdefault(digest, set()).add(uid)
