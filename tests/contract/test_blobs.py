"""Blobs: content by its name, kept as long as a run refers to it or somebody has just put it."""

import hashlib

import pytest

from tests.contract.kit import OTHER, RUN, append, commit, create, finish, go, new, start
from weft.core.ids import Millis, RunId, RunUid
from weft.core.values import blob_ref
from weft.errors import NotFound
from weft.ports.memos import Memo
from weft.ports.retention import Cleared, DoomRule
from weft.ports.store import Store

DAY = 24 * 3600 * 1000


def put(store: Store, data: bytes = b"hello") -> str:
    return go(store.blobs.put(data))


def sweep(store: Store, now: int, untouched_ms: int = DAY) -> int:
    return go(store.blobs.sweep(now=Millis(now), untouched_ms=untouched_ms))


@pytest.mark.parametrize("data", [b"", b"hello", bytes(range(256)), b"x" * 70_000, b"y" * 3_000_000])
def test_content_comes_back_under_its_sha256(store: Store, data: bytes) -> None:
    digest = put(store, data)

    assert digest == hashlib.sha256(data).hexdigest()
    assert go(store.blobs.get(digest)) == data


def test_the_same_content_twice_is_one_blob(store: Store) -> None:
    assert put(store) == put(store)
    assert sweep(store, 0, untouched_ms=0) == 1


def test_another_process_reads_it(store: Store, peer: Store) -> None:
    assert go(peer.blobs.get(put(store))) == b"hello"


def test_what_was_never_put_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound):
        go(store.blobs.get("0" * 64))


def test_what_nobody_touched_for_so_long_is_deleted(store: Store) -> None:
    digest = put(store)
    sweep(store, 1_000)

    assert (sweep(store, 1_000 + DAY - 1), sweep(store, 1_000 + DAY)) == (0, 1)
    with pytest.raises(NotFound):
        go(store.blobs.get(digest))


def test_a_fresh_blob_survives_a_sweep_at_any_hour(store: Store) -> None:
    """The sweeper's clock may be anywhere; what was put just now must be there when the append follows."""
    put(store)

    assert sweep(store, 10**15) == 0


def test_putting_again_keeps_it_alive(store: Store) -> None:
    put(store)
    sweep(store, 0)

    put(store)

    assert sweep(store, DAY) == 0
    assert sweep(store, 2 * DAY) == 1


def test_what_a_run_refers_to_stays(store: Store) -> None:
    digest = put(store)
    start(store)
    commit(store, append(refs=[digest]))
    sweep(store, 0)

    assert sweep(store, 100 * DAY) == 0
    assert go(store.blobs.get(digest)) == b"hello"


def test_it_stays_after_the_runs_end(store: Store) -> None:
    digest = put(store)
    start(store)
    finish(store, refs=[digest])

    assert sweep(store, 10**15, untouched_ms=0) == 0


def test_a_refused_append_refers_to_nothing(store: Store) -> None:
    digest = put(store)
    start(store)
    commit(store, append(seq=5, refs=[digest]))

    assert sweep(store, 0, untouched_ms=0) == 1


def test_referring_twice_is_referring_once(store: Store) -> None:
    digest = put(store)
    start(store)
    start(store, OTHER)

    commit(store, append(refs=[digest, digest]), append(OTHER, refs=[digest]))
    commit(store, append(seq=1, refs=[digest]))

    assert sweep(store, 10**15, untouched_ms=0) == 0


def test_only_what_is_unused_is_deleted(store: Store) -> None:
    used, unused = put(store, b"used"), put(store, b"unused")
    start(store)
    commit(store, append(refs=[used]))

    assert sweep(store, 0, untouched_ms=0) == 1
    assert go(store.blobs.get(used)) == b"used"
    with pytest.raises(NotFound):
        go(store.blobs.get(unused))


# --- what refers to a blob besides runs ---------------------------------------------------------------------------


def ref(digest: str) -> bytes:
    return blob_ref(digest, 5)


def test_a_blob_stays_as_long_as_another_that_refers_to_it(store: Store) -> None:
    inner = put(store, b"inner")
    middle = put(store, b'{"large":%b,"again":%b}' % (ref(inner), ref(inner)))
    outer = put(store, b'["x",%b]' % ref(middle))
    start(store)
    commit(store, append(refs=[outer]))
    sweep(store, 0, untouched_ms=0)

    assert [go(store.blobs.get(digest))[:1] for digest in (inner, middle, outer)] == [b"i", b"{", b"["]
    finish(store, seq=1)
    delete(store)
    assert [sweep(store, DAY) for _ in range(4)] == [1, 1, 1, 0]
    with pytest.raises(NotFound):
        go(store.blobs.get(inner))


def test_a_run_refers_to_its_blobs_and_to_theirs_and_to_no_others(store: Store) -> None:
    inner = put(store, b"inner")
    middle = put(store, b'{"large":%b}' % ref(inner))
    outer = put(store, b'["x",%b]' % ref(middle))
    unused = put(store, b'["y",%b]' % ref(outer))
    start(store)
    start(store, OTHER)
    commit(store, append(refs=[outer]), append(OTHER, refs=[inner]))

    found = {digest: go(store.log.refers_to(RUN, digest)) for digest in (outer, middle, inner, unused)}
    assert found == {outer: True, middle: True, inner: True, unused: False}
    assert [go(store.log.refers_to(OTHER, digest)) for digest in (outer, middle, inner)] == [False, False, True]
    assert not go(store.log.refers_to(RunUid("nobody"), outer))


def test_a_blob_that_mail_on_its_way_refers_to_stays(store: Store) -> None:
    """The input of a run whose start is delayed for days."""
    digest = put(store)
    create(store, new(OTHER, owner=None, start=b'{"input":%b}' % ref(digest)))
    sweep(store, 0)

    assert sweep(store, 9 * DAY) == 0
    assert go(store.blobs.get(digest)) == b"hello"


def test_a_blob_that_a_memo_refers_to_stays(store: Store) -> None:
    digest = put(store)
    go(store.memos.put(Memo(key="k", output=ref(digest), run=RunId("r"), at=Millis(0))))
    sweep(store, 0)
    assert sweep(store, 9 * DAY) == 0

    go(store.memos.put(Memo(key="k", output=b"1", run=RunId("r"), at=Millis(0))))
    assert sweep(store, 9 * DAY) == 1


def test_a_sweep_takes_no_more_than_it_is_told(store: Store) -> None:
    for number in range(5):
        put(store, b"%d" % number)
    sweep(store, 0)

    swept = [go(store.blobs.sweep(now=Millis(DAY), untouched_ms=DAY, limit=2)) for _ in range(4)]
    assert swept == [2, 2, 1, 0]


def delete(store: Store, uid: str = RUN) -> None:
    assert go(store.retention.doom(RunUid(uid), DoomRule())).outcome == "doomed"
    while go(store.retention.clear(limit=500)) != Cleared(0, 0):
        pass
