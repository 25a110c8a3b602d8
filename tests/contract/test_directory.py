"""Finding runs: newest first, in pages, by what people know of them."""

from typing import Any

import pytest

from tests.contract.kit import (
    HERE,
    OTHER,
    RUN,
    THERE,
    append,
    claim,
    commit,
    create,
    finish,
    found,
    go,
    mail,
    new,
    row,
    send,
    start,
    waiting,
)
from weft.core.ids import RunUid
from weft.errors import UsageError
from weft.ports.run_query import RunQuery
from weft.ports.store import Outcome, Page, Store


def search(store: Store, **fields: Any) -> Page:
    return go(store.directory.search(RunQuery(**fields)))


def uids(store: Store, **fields: Any) -> list[str]:
    return [one.uid for one in search(store, **fields).rows]


def test_a_run_is_found_by_its_id(store: Store) -> None:
    start(store, id="order 7")

    assert found(store, "order 7") == row(store)


def test_an_id_is_not_a_uid(store: Store) -> None:
    start(store)

    assert found(store, RUN) is None


def test_the_newest_runs_come_first(store: Store) -> None:
    for uid, created_at in (("a", 20), ("b", 30), ("c", 10)):
        start(store, uid, created_at=created_at)

    assert uids(store) == ["b", "a", "c"]


def test_runs_of_the_same_moment_are_ordered_by_uid(store: Store) -> None:
    for uid in ("b", "c", "a"):
        start(store, uid, created_at=5)

    assert uids(store) == ["c", "b", "a"]


def test_an_empty_store_has_one_empty_page(store: Store) -> None:
    assert search(store) == Page([], None)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10])
def test_pages_show_every_run_once(store: Store, size: int) -> None:
    for number in range(7):
        start(store, f"{number}", created_at=100 + number // 3)
    seen: list[str] = []
    cursor = None
    while True:
        page = search(store, limit=size, after=cursor)
        seen += [one.uid for one in page.rows]
        cursor = page.cursor
        if cursor is None:
            break

    assert seen == ["6", "5", "4", "3", "2", "1", "0"]


def test_a_run_added_meanwhile_does_not_shift_the_pages(store: Store) -> None:
    for number in range(4):
        start(store, f"{number}", created_at=number)
    first = search(store, limit=2)
    start(store, "newer", created_at=99)

    assert uids(store, limit=2, after=first.cursor) == ["1", "0"]


def test_a_page_that_is_just_full_is_the_last(store: Store) -> None:
    start(store)

    assert search(store, limit=1).cursor is None


@pytest.mark.parametrize("cursor", ["", "nonsense", "x.y", "."])
def test_a_cursor_that_is_none_is_refused(store: Store, cursor: str) -> None:
    with pytest.raises(UsageError):
        search(store, after=cursor)


def test_runs_are_found_by_workflow(store: Store) -> None:
    start(store, "a", workflow="order")
    start(store, "b", workflow="refund")

    assert uids(store, workflow="refund") == ["b"]


def test_runs_are_found_by_status(store: Store) -> None:
    start(store, "a")
    start(store, "b")
    start(store, "c")
    commit(store, append("b", status="paused"))
    finish(store, "c")

    assert [uids(store, status=status) for status in ("running", "paused", "completed", "failed")] == [
        ["a"],
        ["b"],
        ["c"],
        [],
    ]


def test_runs_are_found_by_time(store: Store) -> None:
    for uid, created_at in (("a", 10), ("b", 20), ("c", 30)):
        start(store, uid, created_at=created_at)

    assert uids(store, since=20) == ["c", "b"]


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [("order-1", ["b", "a"]), ("order-12", ["b"]), ("x", []), ("%", ["c"]), ("", ["c", "b", "a"])],
)
def test_runs_are_found_by_the_beginning_of_their_id(store: Store, prefix: str, expected: list[str]) -> None:
    start(store, "a", id="order-1")
    start(store, "b", id="order-12")
    start(store, "c", id="%_")

    assert uids(store, id_prefix=prefix) == expected


@pytest.mark.parametrize(
    "value", ["gold", "", "1", 1, 0, -7, 2.5, True, False, [1, "a"], [], {"x": {"y": 1}}, "grün 🧵", 2**53]
)
def test_runs_are_found_by_attributes_of_every_kind(store: Store, value: Any) -> None:
    start(store, "a", attributes={"name": value})
    start(store, "b", attributes={"name": "something else"})
    start(store, "c", attributes={"another name": value})

    assert uids(store, where={"name": value}) == ["a"]


@pytest.mark.parametrize(
    ("stored", "asked", "same"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (1, "1", False),
        ("a", "A", False),
        ([1, 2], [2, 1], False),
        ({"a": 1, "b": 2.0}, {"b": 2, "a": 1}, True),
    ],
)
def test_attributes_are_equal_as_json_values_are(store: Store, stored: Any, asked: Any, same: bool) -> None:
    start(store, attributes={"v": stored})

    assert uids(store, where={"v": asked}) == ([RUN] if same else [])


def test_all_named_attributes_must_match(store: Store) -> None:
    start(store, "a", attributes={"x": 1, "y": 2})
    start(store, "b", attributes={"x": 1})

    assert uids(store, where={"x": 1, "y": 2}) == ["a"]


def test_changed_attributes_are_found_by_the_new_value_only(store: Store) -> None:
    start(store, attributes={"x": 1, "y": 1})

    commit(store, append(attributes={"x": 2, "y": None}))

    assert (uids(store, where={"x": 2}), uids(store, where={"x": 1}), uids(store, where={"y": 1})) == ([RUN], [], [])


def test_an_attribute_set_to_what_it_was_is_still_found(store: Store) -> None:
    start(store, attributes={"x": 1})

    commit(store, append(attributes={"x": 1}))

    assert uids(store, where={"x": 1}) == [RUN]


def test_filters_are_combined(store: Store) -> None:
    start(store, "a", created_at=1, attributes={"x": 1})
    start(store, "b", created_at=2, attributes={"x": 1}, workflow="refund")
    start(store, "c", created_at=3, attributes={"x": 1})
    finish(store, "c")

    assert uids(store, workflow="order", status="running", where={"x": 1}, since=1, id_prefix="id of") == ["a"]


def test_filters_and_pages_go_together(store: Store) -> None:
    for number in range(6):
        start(store, f"{number}", created_at=number, attributes={"even": number % 2 == 0})
    first = search(store, where={"even": True}, limit=2)

    assert [one.uid for one in first.rows] == ["4", "2"]
    assert uids(store, where={"even": True}, limit=2, after=first.cursor) == ["0"]


def test_runs_are_counted_by_status(store: Store) -> None:
    for uid in ("a", "b", "c"):
        start(store, uid)
    finish(store, "c", status="failed")

    assert dict(go(store.directory.counts())) == {"running": 2, "failed": 1}


def test_open_runs_are_counted_by_version(store: Store) -> None:
    assert go(store.directory.open_versions()) == {}
    for number in range(3):
        start(store, f"a{number}", id=f"@acme/{number}")
    start(store, "b", id="b", version="2")
    create(store, new("c", id="c", workflow="bill", owner=None))
    finish(store, "a0")

    assert go(store.directory.open_versions()) == {("order", "1"): 2, ("order", "2"): 1, ("bill", "1"): 1}
    assert go(store.directory.open_versions("@acme/")) == {("order", "1"): 2}
    assert go(store.directory.open_versions("@acm/")) == {}


def test_an_empty_store_counts_nothing(store: Store) -> None:
    assert dict(go(store.directory.counts())) == {}


def test_an_owner_sees_which_of_its_runs_have_mail(store: Store) -> None:
    start(store, "a")
    start(store, "b")
    commit(store, append("c", count=0, create=new("c", owner=THERE)), host=THERE)
    send(store, mail(to="b", at=9), mail(to="a", at=3), mail(to="c"))

    assert list(waiting(store, HERE, limit=10)) == ["a", "b"]
    assert list(waiting(store, HERE, limit=1)) == ["a"]
    assert list(waiting(store, THERE, limit=10)) == ["c"]


def test_the_mail_of_many_runs_is_read_in_order_up_to_the_limit(store: Store) -> None:
    runs = [f"r{n:04}" for n in range(1_200)]
    assert set(commit(store, *(append(uid, count=0, create=new(uid)) for uid in runs))) == {Outcome.ACCEPTED}
    # Some arrive at the same time, and a run with two pieces counts once.
    send(store, *(mail("m1", to=uid, at=n // 7) for n, uid in enumerate(runs)))
    send(store, *(mail("m2", to=uid, at=5_000) for uid in runs[::100]))

    for limit in (99, 100, 101, 600, 601, 1_199, 1_200, 1_201):
        found = waiting(store, limit=limit)
        assert list(found) == runs[:limit]
        assert found["r0000"] == ["m1", "m2"]


def test_mail_of_a_run_with_a_fault_is_not_looked_at(store: Store) -> None:
    start(store, "a")
    start(store, "b")
    send(store, mail(to="a"), mail(to="b"))

    go(store.log.mark_fault(RunUid("a"), "its mail is torn"))

    assert list(waiting(store, HERE, limit=10)) == ["b"]


def test_a_run_whose_mail_was_taken_has_none(store: Store) -> None:
    start(store)
    send(store, mail("a"), mail("b"))

    commit(store, append(taken=["a"]))
    assert list(waiting(store, HERE, limit=10)) == [RUN]

    commit(store, append(seq=1, taken=["b"]))
    assert list(waiting(store, HERE, limit=10)) == []


def test_the_oldest_mail_that_still_waits_decides_the_order(store: Store) -> None:
    start(store, "a")
    start(store, "b")
    send(store, mail("1", to="a", at=10), mail("2", to="b", at=20), mail("3", to="a", at=30))
    assert list(waiting(store, HERE, limit=10)) == ["a", "b"]

    commit(store, append("a", taken=["1"]))

    assert list(waiting(store, HERE, limit=10)) == ["b", "a"]


def test_a_row_by_uid_is_the_row_by_id(store: Store) -> None:
    start(store, OTHER)

    assert row(store, OTHER) == found(store, f"id of {OTHER}")


def test_the_runs_of_an_owner_are_told_with_their_epochs(store: Store) -> None:
    start(store, "run-1")
    start(store, "run-2")
    start(store, "run-3")
    create(store, new("run-4", owner=None))
    claim(store, "run-4", epoch=0, host=THERE)
    claim(store, "run-2", epoch=1)
    finish(store, "run-3")

    assert go(store.directory.owned(HERE)) == {"run-1": 1, "run-2": 2}
    assert go(store.directory.owned(THERE)) == {"run-4": 1}

    go(store.log.mark_fault(RunUid("run-1"), "its log is torn"))
    assert go(store.directory.owned(HERE)) == {"run-2": 2}


def test_open_runs_below_a_run_are_counted_through_open_ones(store: Store) -> None:
    start(store, "root")
    for uid, parent in (("a", "root"), ("b", "root"), ("c", "a"), ("d", "c"), ("x", "other")):
        start(store, uid, parent=RunUid(parent))
    finish(store, "b")

    def below(uid: str, limit: int = 100) -> int:
        return sum(go(store.directory.counts(RunUid(uid), limit=limit)).values())

    assert (below("root"), below("a"), below("d"), below("nobody")) == (3, 2, 0, 0)
    assert below("root", limit=2) == 2
