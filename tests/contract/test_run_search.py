"""Lists of runs: every filter finds what it says, whichever index it uses, in pages and as a count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.contract.kit import append, commit, finish, go, start
from weft.core.ids import INTERNAL_WORKFLOWS, Millis, RunUid
from weft.ports.run_query import RunCount, RunQuery
from weft.ports.store import RunRow, Store

WORKFLOWS = ("order", "orders", "parcel", INTERNAL_WORKFLOWS[0])
STATUSES = ("running", "completed", "failed", "paused")
QUERIES: Sequence[dict[str, Any]] = [
    {},
    {"statuses": ["failed", "paused"]},
    {"statuses": ["failed", "failed"]},
    {"workflow": "order"},
    {"workflow": "order", "status": "failed"},
    {"workflow": "order", "statuses": ["failed", "running"], "since": 1_010},
    {"style": "graph"},
    {"version": "2", "workflow": "parcel"},
    {"since": 1_005, "until": 1_020},
    {"status": "running", "changed_before": 2_005},
    {"changed_before": 1_020},
    {"where": {"customer": 1}},
    {"where": {"customer": 1, "vip": True}, "statuses": ["failed", "running"]},
    {"where": {"customer": 1}, "workflow": "order"},
    {"id_prefix": "a/"},
    {"id_prefix": "a/", "statuses": ["failed", "completed"], "style": "graph"},
    {"parent": "run-03"},
    {"parent": "run-03", "statuses": ["failed", "running"], "workflow": "order"},
    {"parent": "run-03", "where": {"customer": 1}},
    {"faulty": True},
    {"faulty": True, "statuses": ["failed"], "style": "graph"},
    {"internal": True, "until": 1_012},
]


@pytest.fixture(autouse=True)
def _runs(store: Store) -> None:
    """Forty runs in which all properties meet; two of each moment."""
    for number in range(40):
        uid = f"run-{number:02}"
        start(
            store,
            uid,
            id=f"{'ab'[number % 2]}/{number}",
            workflow=WORKFLOWS[number % 4],
            version=str(1 + number % 3),
            style=("code", "graph")[number % 5 == 0],
            created_at=1_000 + number // 2,
            parent="run-03" if number in range(10, 30) else None,
            attributes={"customer": number % 3, "vip": number % 7 == 0},
        )
        status = STATUSES[number % 9 % 4]
        if status in ("completed", "failed"):
            finish(store, uid, status=status)
        else:
            assert commit(store, append(uid, status=status, count=number % 3))
        if number % 6 == 0:
            go(store.log.mark_fault(RunUid(uid), "cannot be read"))


def everything(store: Store) -> list[RunRow]:
    rows = [go(store.directory.row(RunUid(f"run-{number:02}"))) for number in range(40)]
    return sorted((row for row in rows if row is not None), key=lambda row: (row.created_at, row.uid), reverse=True)


def matches(row: RunRow, query: RunQuery) -> bool:
    """Whether a run is what a search is for, said as plainly as possible."""
    return all((
        query.workflow in (None, row.workflow),
        not query.any_status or row.status in query.any_status,
        query.style in (None, row.style),
        query.version in (None, row.version),
        query.since is None or row.created_at >= query.since,
        query.until is None or row.created_at < query.until,
        query.changed_before is None or row.updated_at < query.changed_before,
        all(row.attributes.get(name) == value for name, value in query.where.items()),
        query.id_prefix is None or row.id.startswith(query.id_prefix),
        query.parent in (None, row.parent),
        not query.faulty or row.fault is not None,
        row.workflow not in query.leaves_out,
    ))  # fmt: skip


def pages(store: Store, **fields: Any) -> Iterator[list[str]]:
    cursor = None
    while True:
        page = go(store.directory.search(RunQuery(**fields, after=cursor)))
        yield [row.uid for row in page.rows]
        cursor = page.cursor
        if cursor is None:
            return


# All queries in one test: to write the runs again for each would cost far more than the queries.


def wanted_by_query(store: Store) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Yield each query with the runs that it must find, newest first."""
    rows = everything(store)
    for fields in QUERIES:
        yield fields, [row.uid for row in rows if matches(row, RunQuery(**fields))]


def test_a_search_finds_what_it_is_for_newest_first(store: Store) -> None:
    for fields, wanted in wanted_by_query(store):
        assert list(pages(store, **fields)) == [wanted], fields
        assert [uid for page in pages(store, **fields, limit=3) for uid in page] == wanted, fields


def test_a_search_that_examines_few_runs_at_a_time_still_finds_all(store: Store) -> None:
    for fields, wanted in wanted_by_query(store):
        found = list(pages(store, **fields, limit=3, scan=4))

        assert [uid for page in found for uid in page] == wanted, fields
        assert all(len(page) <= 3 for page in found), fields


def test_a_count_is_exact_up_to_its_limit(store: Store) -> None:
    for fields, uids in wanted_by_query(store):
        query, wanted = RunQuery(**fields), len(uids)

        assert list(go(store.directory.count([query, query], limit=100))) == [RunCount(wanted, more=False)] * 2, fields
        assert list(go(store.directory.count([query], limit=wanted))) == [RunCount(wanted, more=False)], fields
        if wanted > 1:
            few = list(go(store.directory.count([query], limit=wanted - 1)))
            assert few == [RunCount(wanted - 1, more=True)], fields


def test_a_count_that_may_examine_all_runs_is_exact(store: Store) -> None:
    (found,) = go(store.directory.count([RunQuery(style="graph", scan=1_000)], limit=100))

    assert found == RunCount(sum(row.style == "graph" for row in everything(store) if _is_listed(row)), more=False)


def _is_listed(row: RunRow) -> bool:
    return row.workflow not in INTERNAL_WORKFLOWS


def test_workflows_that_have_runs_are_found_by_the_beginning_of_their_names(store: Store) -> None:
    def names(prefix: str = "", limit: int = 10) -> list[str]:
        return list(go(store.directory.workflows(prefix, limit=limit)))

    assert names() == sorted(WORKFLOWS)
    assert names("order") == ["order", "orders"]
    assert names("order", 1) == ["order"]
    assert names("q") == []


def test_a_count_of_nothing_is_nothing(store: Store) -> None:
    query = RunQuery(workflow="order", since=Millis(9_999))

    assert list(go(store.directory.count([query], limit=5))) == [RunCount(0, more=False)]
