"""The same operations, put to every store, have the same answers and leave the same behind.

Memory is the model: it is the shortest. Operations are drawn so that most are valid and the rest nearly are.
"""

import os
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from msgspec import UNSET

from tests import servers
from tests.contract.kit import HERE, THERE, event, go
from tests.scale import MARKS, scaled
from weft.core.ids import Epoch, HostId, Millis, RunUid, Seq
from weft.errors import WeftError
from weft.ports.new_run import NewRun
from weft.ports.run_query import RunQuery
from weft.ports.store import NEVER, Append, KeyRow, Mail, Release, Snapshot, Store
from weft.ports.tasks import QueueLimits, TaskOffer
from weft.stores.memory import MemoryStore
from weft.stores.postgres import PostgresStore
from weft.stores.sqlite import SqliteStore

pytestmark = MARKS

EXAMPLES = int(os.environ.get("WEFT_DIFFERENTIAL_EXAMPLES", str(scaled(5, 40))))
STEPS = 50

UIDS = [f"{name}{'0' * 9}" for name in "abcdefgh"]
IDS = [f"id {number}" for number in range(5)]
KEYS = ["k1", "k2"]
MAIL = [f"m{number}" for number in range(6)]
FLOWS = [("order", "1"), ("order", "2"), ("refund", "1")]

hosts = st.sampled_from([HERE, THERE])
uids = st.sampled_from(UIDS)
times = st.integers(0, 50)
values = st.sampled_from([1, 1.0, 0, True, False, "x", "grün", 2.5, [1, "a"], [], {"y": {"z": 1}}, 2**53, -7])
attributes = st.dictionaries(st.sampled_from(["p", "q"]), values, max_size=2)
changes = st.dictionaries(st.sampled_from(["p", "q"]), values | st.none(), max_size=2)
nearly = st.sampled_from([0] * 12 + [1, -1])
"""What an expected number is wrong by."""
idle = st.sampled_from([UNSET, UNSET, None, NEVER]) | times.map(Millis)
statuses = st.sampled_from(
    [None] * 6 + ["running", "paused", "held", "cancelling", "completed", "failed", "cancelled", "failed"]
)


@st.composite
def mail_pieces(draw: st.DrawFn, to: st.SearchStrategy[str] = uids) -> Mail:
    key = draw(st.sampled_from([None, None, *KEYS]))
    return Mail(
        id=draw(st.sampled_from(MAIL)),
        to=RunUid(draw(to)),
        body=b'{"say":"hello"}',
        at=Millis(draw(times)),
        key=key,
        digest=draw(st.sampled_from(["d", "d", "e"])) if key else "",
    )


@st.composite
def new_runs(draw: st.DrawFn, owners: st.SearchStrategy[HostId | None]) -> NewRun:
    workflow, version = draw(st.sampled_from(FLOWS))
    return NewRun(
        uid=RunUid(draw(uids)),
        id=draw(st.sampled_from(IDS)),  # type: ignore[arg-type]
        workflow=workflow,
        version=version,
        style="code",
        created_at=Millis(draw(times)),
        owner=draw(owners),
        parent=RunUid(draw(uids)) if draw(st.booleans()) else None,
        attributes=draw(attributes),
        start=draw(st.sampled_from([None, b'{"go":1}'])),
        wake_at=Millis(draw(times)) if draw(st.booleans()) else None,
    )


class Stores(RuleBasedStateMachine):
    """Three stores that must not be told apart."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        url = servers.database("differential")
        self.stores: dict[str, Store] = {
            "memory": MemoryStore(),
            "sqlite": SqliteStore(f"sqlite:///{Path(self._folder.name)}/weft.db", durability="fast"),
            "postgres": PostgresStore(url, durability="fast"),
        }
        for store in self.stores.values():
            go(store.open())
        servers.empty(url)

    def teardown(self) -> None:
        try:
            self._compare_all()
        finally:
            for store in self.stores.values():
                go(store.close())
            self._folder.cleanup()

    def _same(self, ask: Callable[[Store], Awaitable[Any]]) -> Any:
        answers = {name: go(_answer(ask, store)) for name, store in self.stores.items()}
        assert answers["sqlite"] == answers["memory"], answers
        assert answers["postgres"] == answers["memory"], answers
        return answers["memory"]

    def _heads(self, chosen: Sequence[str]) -> dict[str, Any]:
        rows = {uid: go(self.stores["memory"].directory.row(RunUid(uid))) for uid in chosen}
        return {uid: row for uid, row in rows.items() if row is not None}

    # --- runs -----------------------------------------------------------------------------------------------------

    @rule(runs=st.lists(new_runs(st.none()), min_size=1, max_size=3, unique_by=lambda new: new.uid))
    def create(self, runs: list[NewRun]) -> None:
        self._same(lambda store: store.log.create(runs))

    @rule(data=st.data(), host=hosts, chosen=st.lists(uids, min_size=1, max_size=4, unique=True))
    def commit(self, data: st.DataObject, host: HostId, chosen: list[str]) -> None:
        heads = self._heads(chosen)
        batch = [self._append(data.draw, uid, heads.get(uid), host) for uid in sorted(chosen)]
        self._same(lambda store: store.log.commit(batch, host))
        for uid in chosen:
            self._same(lambda store, uid=uid: store.log.load(RunUid(uid), fold=1))

    def _append(self, draw: Callable[[Any], Any], uid: str, head: Any, host: HostId) -> Append:
        if head is None or draw(st.integers(0, 15)) == 0:
            new = draw(new_runs(st.just(host)))
            birth = _renamed(new, uid)
            fields: dict[str, Any] = {"idle_until": draw(idle)} | _events(draw, 0)
            return Append(uid=RunUid(uid), epoch=Epoch(1), seq=Seq(0), create=birth, **fields)
        seq = max(0, head.seq + draw(nearly))
        taken = draw(st.lists(st.sampled_from(["start", *MAIL]), max_size=3, unique=True))
        fields = {"status": draw(statuses), "idle_until": draw(idle)} | _events(draw, seq)
        if draw(st.booleans()):
            fields |= {
                "taken": taken,
                "keys": draw(st.lists(_keys(seq + 1), max_size=2, unique_by=lambda row: row.key)),
            }
            fields["mail"] = draw(st.lists(mail_pieces(), max_size=2))
            fields["refs"] = draw(st.lists(st.sampled_from(["aa", "bb"]), max_size=2))
        if draw(st.integers(0, 3)) == 0:
            fields["attributes"] = draw(changes)
            fields["children"] = draw(st.lists(new_runs(st.sampled_from([None, host])), max_size=2))
        if draw(st.integers(0, 7)) == 0 and head.owner is None:
            fields |= {"reopen": Millis(draw(times)), "status": "running"}
        mail_taken = max(0, head.mail + draw(nearly))
        return Append(
            uid=RunUid(uid), epoch=Epoch(head.epoch + draw(nearly)), seq=Seq(seq), mail_taken=mail_taken, **fields
        )

    @rule(data=st.data(), host=hosts, chosen=st.lists(uids, min_size=1, max_size=3, unique=True))
    def claim(self, data: st.DataObject, host: HostId, chosen: list[str]) -> None:
        expected = {RunUid(uid): Epoch(row.epoch + data.draw(nearly)) for uid, row in self._heads(chosen).items()}
        self._same(lambda store: store.log.claim([RunUid(uid) for uid in chosen], host, expected=expected))

    @rule(data=st.data(), chosen=st.lists(uids, min_size=1, max_size=3, unique=True))
    def release(self, data: st.DataObject, chosen: list[str]) -> None:
        releases = [
            Release(
                uid=RunUid(uid),
                epoch=Epoch(row.epoch + data.draw(nearly)),
                seq=Seq(row.seq + data.draw(nearly)),
                mail_taken=row.mail + data.draw(nearly),
                wake_at=Millis(data.draw(times)) if data.draw(st.booleans()) else None,
                snapshot=Snapshot(row.seq, 1, b"\x00state") if data.draw(st.booleans()) else None,
            )
            for uid, row in self._heads(chosen).items()
        ]
        self._same(lambda store: store.log.release(releases))

    @rule(pieces=st.lists(mail_pieces(), min_size=1, max_size=4))
    def send(self, pieces: list[Mail]) -> None:
        self._same(lambda store: store.log.send(pieces))

    @rule(uid=uids, fault=st.sampled_from([None, "damaged"]))
    def mark_fault(self, uid: str, fault: str | None) -> None:
        self._same(lambda store: store.log.mark_fault(RunUid(uid), fault))

    # --- tasks and hosts --------------------------------------------------------------------------------------------

    @rule(data=st.data(), chosen=st.lists(uids, min_size=1, max_size=3))
    def offer(self, data: st.DataObject, chosen: list[str]) -> None:
        heads = self._heads(chosen)
        offers = [
            TaskOffer(
                uid=RunUid(uid),
                task=data.draw(st.integers(1, 3)),
                attempt=data.draw(st.integers(1, 2)),
                delivery=1,
                step=data.draw(st.sampled_from(["s1", "s2"])),
                queue=data.draw(st.sampled_from(["q1", "q2"])),
                body=b"[1]",
                epoch=Epoch(heads[uid].epoch + data.draw(nearly) if uid in heads else 0),
                not_before=Millis(data.draw(times)),
            )
            for uid in chosen
        ]
        self._same(lambda store: store.tasks.offer(offers))

    @rule(host=hosts, now=times, limit=st.integers(1, 3), steps=st.sampled_from([["s1"], ["s1", "s2"]]))
    def take(self, host: HostId, now: int, limit: int, steps: list[str]) -> None:
        self._same(lambda store: store.tasks.take(host, queues=["q1", "q2"], steps=steps, now=Millis(now), limit=limit))

    @rule(data=st.data(), host=hosts)
    def settle(self, data: st.DataObject, host: HostId) -> None:
        held = self._same(lambda store: store.tasks.taken_by([HERE, THERE], limit=100))
        if held:
            _, task = data.draw(st.sampled_from(held))
            report = data.draw(mail_pieces(st.just(task.uid)))
            self._same(lambda store: store.tasks.settle(host, task, report))

    @rule(
        queue=st.sampled_from(["q1", "q2"]),
        concurrency=st.sampled_from([None, 0, 1, 2]),
        rate=st.sampled_from([None, 1, 2]),
        priority=st.sampled_from([-1, 0, 1]),
    )
    def limit(self, queue: str, concurrency: int | None, rate: int | None, priority: int) -> None:
        # Nothing of a rate is forgotten here, because the times of the operations go back and forth.
        limits = QueueLimits(concurrency=concurrency, rate=rate, per_ms=10**9, priority=priority)
        self._same(lambda store: store.tasks.limit(queue, limits if limits.is_limited or priority else None))

    @rule(uid=uids, tasks=st.lists(st.integers(1, 3), max_size=2))
    def withdraw(self, uid: str, tasks: list[int]) -> None:
        self._same(lambda store: store.tasks.withdraw(RunUid(uid), tasks))

    @rule(host=hosts, verb=st.sampled_from(["join", "beat", "leave"]))
    def live(self, host: HostId, verb: str) -> None:
        for store in self.stores.values():
            if verb == "join":
                go(store.hosts.join(host, lease_ms=60_000))
            else:
                go(getattr(store.hosts, verb)(host))
        self._same(lambda store: store.hosts.find_dead(monotonic=0.0))

    # --- looking ----------------------------------------------------------------------------------------------------

    @rule(now=times, dead=st.lists(hosts, unique=True), flows=st.lists(st.sampled_from(FLOWS), unique=True))
    def look(self, now: int, dead: list[HostId], flows: list[tuple[str, str]]) -> None:
        self._same(lambda store: store.directory.claimable(flows, dead=dead, now=Millis(now), limit=100))
        self._same(lambda store: store.directory.next_wake(flows, dead=dead))
        for host in (HERE, THERE):
            self._same(lambda store, host=host: store.inboxes.waiting(host, limit=100))
        self._same(lambda store: store.directory.counts())

    @rule(where=attributes, status=statuses, since=st.none() | times, limit=st.integers(1, 4))
    def search(self, where: dict[str, Any], status: str | None, since: int | None, limit: int) -> None:
        query = RunQuery(where=where, status=status, since=None if since is None else Millis(since), limit=limit)
        page = self._same(lambda store: store.directory.search(query))
        prefix = RunQuery(id_prefix="id", after=page.cursor, limit=limit)
        self._same(lambda store: store.directory.search(prefix))

    def _compare_all(self) -> None:
        for uid in map(RunUid, UIDS):
            self._same(lambda store, uid=uid: store.log.load(uid, fold=1))
            for key in KEYS:
                self._same(lambda store, uid=uid, key=key: store.directory.key(uid, key))
            self._same(lambda store, uid=uid: store.tasks.rows(uid))
        self._same(lambda store: store.directory.search(RunQuery(limit=100)))
        self._same(lambda store: store.blobs.sweep(now=Millis(10**12), untouched_ms=0))


async def _answer(ask: Callable[[Store], Awaitable[Any]], store: Store) -> Any:
    """What a store says; an error by its class."""
    try:
        answer = await ask(store)
    except WeftError as error:
        return type(error)
    return list(answer) if isinstance(answer, (list, tuple)) else answer


def _events(draw: Callable[[Any], Any], seq: int) -> dict[str, Any]:
    count = draw(st.sampled_from([0, 1, 1, 2, 5]))
    fields: dict[str, Any] = {"events": [event(seq + n, b'{"n":%d}' % draw(times)) for n in range(1, count + 1)]}
    if draw(st.integers(0, 5)) == 0:
        fields["snapshot"] = Snapshot(Seq(seq + count), draw(st.integers(1, 2)), b"state")
    return fields


def _keys(seq: int) -> st.SearchStrategy[KeyRow]:
    return st.builds(KeyRow, st.sampled_from(KEYS), st.sampled_from(["d", "d", "e"]), st.just(Seq(seq)))


def _renamed(new: NewRun, uid: str) -> NewRun:
    return NewRun(
        uid=RunUid(uid),
        id=new.id,
        workflow=new.workflow,
        version=new.version,
        style=new.style,
        created_at=new.created_at,
        owner=new.owner,
        parent=new.parent,
        attributes=new.attributes,
        wake_at=new.wake_at,
    )


def test_no_sequence_of_operations_tells_the_stores_apart() -> None:
    run_state_machine_as_test(
        Stores,
        settings=settings(
            max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
