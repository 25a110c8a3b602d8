"""A deletion or a pass of ``gc`` that is killed between two writes goes on, on every store, whoever takes it up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests import scale
from tests.contract.kit import HERE, RUN, append, commit, create, finish, found, go, new, start
from weft.core.ids import Epoch, Millis, RunId, RunUid, Seq
from weft.errors import IdTaken, NotFound, NotOver, Refused, RunKept, UsageError
from weft.ports.boundary import ProcessDied, set_hook
from weft.ports.retention import AuditEntry, Cleared
from weft.ports.run_query import RunQuery
from weft.ports.store import Outcome, Store
from weft.runtime import deletion, retention
from weft.runtime.clock import SystemClock, TimeIds
from weft.runtime.deletion import DeletionService, clear_doomed
from weft.runtime.orders import StartOrder
from weft.runtime.retention import Collector, GcOrder
from weft.runtime.retention_policy import RetentionPolicy, RetentionRule
from weft.runtime.run.append_extras import FORKED_FROM
from weft.runtime.service import RunService

ROOT = RunId("id of run-1")
CHILDREN = 3
NOW = Millis(1_000)


def tree(store: Store, root: str = RUN) -> None:
    """Make a tree that is over: a root and children, with several events each."""
    start(store, root)
    children = [f"{root}-c{n}" for n in range(CHILDREN)]
    commit(store, append(root, count=5, children=[new(uid, parent=root) for uid in children]))
    for uid in children:
        finish(store, uid, count=4)
    finish(store, root, seq=5)


def service(store: Store) -> DeletionService:
    return DeletionService(RunService(store, SystemClock(), TimeIds()))


def killed_at(number: int, work: Callable[[], Any]) -> bool:
    """Die at the n-th boundary. Returns whether it came to it."""
    seen = 0

    def hook(_: str) -> None:
        nonlocal seen
        seen += 1
        if seen == number:
            raise ProcessDied

    before = set_hook(hook)
    try:
        work()
    except ProcessDied:
        return True
    finally:
        set_hook(before)
    return False


@pytest.mark.parametrize(
    "make", scale.first(3, ["sqlite", "postgres", "hot-memory", "memory", "hot-postgres"]), indirect=True
)
def test_a_deletion_killed_anywhere_goes_on(store: Store, peer: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion, "ROWS_PER_CLEAR", 4)
    number = 0
    while True:
        number += 1
        tree(store)
        tree(store, "other")
        if not killed_at(number, lambda: go(service(store).delete(ROOT, "asked"))):
            break
        # Nobody finds any of it, and its id is taken or free, never half there.
        assert {row.uid for row in go(peer.directory.search(RunQuery())).rows} == {
            RunUid("other"),
            *(f"other-c{n}" for n in range(CHILDREN)),
        }
        assert found(peer, ROOT) is None
        again = new("again", id=ROOT, owner=None)
        expected = Outcome.ID_TAKEN if go(peer.retention.is_doomed(ROOT)) else Outcome.ACCEPTED
        assert create(peer, again) == [expected]
        go(clear_doomed(peer.retention, ROOT))
        assert create(peer, again) == [Outcome.ACCEPTED if expected is Outcome.ID_TAKEN else Outcome.ID_TAKEN]
        _remove(store, "again", "other")
    assert number > 4
    assert go(store.retention.clear(limit=500)) == Cleared(0, 0)


def test_a_pass_killed_anywhere_is_finished_by_the_next(
    store: Store, peer: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "ROWS_PER_WRITE", 4)
    monkeypatch.setattr(retention, "TREES_PER_WRITE", 1)
    order = GcOrder(policy=RetentionPolicy(default=RetentionRule(ages={"completed": 0})))
    tree(store, "court")
    hold = AuditEntry(at=NOW, verb="keep", run=ROOT, uid=RunUid(""), workflow="", by="", reason="a court")
    go(store.holds.add(RunUid("court"), hold))
    start(store, "open")
    number, killed, kept = 0, True, {"open", "court", *(f"court-c{n}" for n in range(CHILDREN))}
    while killed:
        number += 1
        tree(store, f"old-{number}")
        tree(store, f"older-{number}")

        killed = killed_at(number, lambda: go(Collector(store, SystemClock()).collect(order)))
        go(Collector(peer, SystemClock()).collect(order))

        assert {row.uid for row in go(peer.directory.search(RunQuery(limit=1_000))).rows} == kept
        assert create(peer, new(f"again-{number}", id=f"id of old-{number}", owner=None)) == [Outcome.ACCEPTED]
        kept.add(f"again-{number}")
        assert len(go(store.log.events(RunUid("court"), after=Seq(0), limit=100))) > 4
        assert go(store.log.events(RunUid(f"old-{number}"), after=Seq(0), limit=100)) == []
    assert number > 6


def _remove(store: Store, pending: str, root: str) -> None:
    """Make room for the next trial."""
    (claimed,) = go(store.log.claim([RunUid(pending)], HERE, expected={RunUid(pending): Epoch(0)}))
    finish(store, pending, epoch=claimed.epoch)
    for uid, name in ((pending, ROOT), (root, RunId(f"id of {root}"))):
        assert found(store, name) is not None, uid
        go(service(store).delete(name, "the next trial"))


def test_who_deletes_what_may_not_be_deleted_learns_why(store: Store) -> None:
    start(store)
    commit(store, append(children=[new("child", parent=RUN)]))
    finish(store, seq=1)

    with pytest.raises(NotOver, match="id of child, which belongs to id of run-1, is not over"):
        go(service(store).delete(ROOT, "asked"))
    finish(store, "child")
    with pytest.raises(Refused, match="child of another run"):
        go(service(store).delete(RunId("id of child"), "asked"))
    with pytest.raises(UsageError, match="Say why"):
        go(service(store).delete(ROOT, " "))
    # A hold that is put on any run of a tree is on all of it.
    assert go(service(store).keep(RunId("id of child"), "a court", by="bob")).id == ROOT
    with pytest.raises(RunKept):
        go(service(store).delete(ROOT, "asked"))
    assert go(service(store).keep(ROOT, "a court", by="bob")).by == "bob", "the same hold again"
    with pytest.raises(RunKept, match=r"kept already by bob \(a court\)"):
        go(service(store).keep(ROOT, "a tax office", by="eve"))
    go(service(store).end_keep(ROOT))
    assert go(service(store).delete(ROOT, "asked", by="ann")).runs == 2
    with pytest.raises(NotFound):
        go(service(store).delete(ROOT, "asked"))
    assert [(one.verb, one.by) for one in go(store.holds.audit())] == [
        ("delete", "ann"),
        ("keep_end", ""),
        ("keep", "bob"),
    ]


def test_a_run_is_not_deleted_while_an_open_fork_names_it(store: Store) -> None:
    tree(store)
    start(store, "fork", attributes={FORKED_FROM: f"{RUN}-c1"})

    with pytest.raises(Refused, match=f"id of fork was forked from id of {RUN}-c1 and is open") as caught:
        go(service(store).delete(ROOT, "asked"))
    assert caught.value.code == "run.forked"
    assert not go(store.holds.audit())
    finish(store, "fork")
    assert go(service(store).delete(ROOT, "asked")).runs == CHILDREN + 1


def test_a_start_with_a_doomed_id_is_refused(store: Store, peer: Store) -> None:
    tree(store)
    killed_at(1, lambda: go(service(store).delete(ROOT, "asked")))
    runs = RunService(peer, SystemClock(), TimeIds())
    order = StartOrder(workflow="order", id=ROOT)

    with pytest.raises(IdTaken, match="is being deleted"):
        go(runs.start(order))
    go(clear_doomed(store.retention, ROOT))
    assert go(runs.start(order)).created
