"""Blobs: content by its name, kept as long as a run refers to it or somebody has just put it."""

import hashlib

import pytest

from tests.contract.kit import OTHER, append, commit, finish, go, start
from weft.core.ids import Millis
from weft.errors import NotFound
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
