"""Memos: what was put under a key answers for it until its time is over."""

import pytest

from tests.contract.kit import go
from weft.core.ids import Millis, RunId
from weft.ports.memos import Memo
from weft.ports.store import Store


def memo(key: str = "k", output: bytes = b'{"total":3}', until: int | None = None, run: str = "order-1") -> Memo:
    return Memo(key=key, output=output, run=RunId(run), at=Millis(5), until=Millis(until) if until else None)


def get(store: Store, key: str = "k", now: int = 10) -> Memo | None:
    return go(store.memos.get(key, now=Millis(now)))


def test_a_memo_is_found_as_it_was_put_by_others_too(store: Store, peer: Store) -> None:
    put = memo(output=b'{"a":"gr\xc3\xbcn"}', until=77)
    go(store.memos.put(put))

    assert get(store) == put
    assert get(peer) == put


def test_what_was_never_put_is_not_there(store: Store) -> None:
    go(store.memos.put(memo("another")))

    assert get(store) is None


def test_a_memo_without_an_end_always_answers(store: Store) -> None:
    go(store.memos.put(memo()))

    assert get(store, now=10**15) == memo()


@pytest.mark.parametrize(("now", "answers"), [(19, True), (20, False), (21, False)])
def test_a_memo_answers_until_its_time_is_over(store: Store, now: int, answers: bool) -> None:
    go(store.memos.put(memo(until=20)))

    assert (get(store, now=now) is not None) is answers


def test_a_newer_memo_replaces_an_older_one(store: Store, peer: Store) -> None:
    go(store.memos.put(memo(until=7)))
    newer = memo(output=b"4", run="order-2")
    go(peer.memos.put(newer))

    assert get(store) == newer
