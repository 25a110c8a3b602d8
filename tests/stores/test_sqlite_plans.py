"""What an idle engine asks again and again costs what is to do, not what is stored."""

from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.contract.kit import HERE, append, event, finish, go, new, start
from weft.core.ids import Millis, RunUid
from weft.ports.retention import DoomOutcome, DoomRule, EndedQuery
from weft.ports.run_query import RunQuery
from weft.ports.store import IMPORTED, OPEN_STATUSES, OVER_STATUSES, Outcome
from weft.stores.rows import make_cursor
from weft.stores.sqlite import SqliteStore, directory, hosts, inboxes, retention, run_search, tasks
from weft.stores.sqlite.commit import CommitBatch, Numbers
from weft.stores.sqlite.schema import migrate

WANTED = {"workflows": "[]", "dead": "[]", "now": 0, "limit": 1}


@pytest.mark.parametrize(
    ("statement", "values", "index"),
    [
        (directory._ORPHANED_IN_FLIGHT, WANTED, "runs_owned"),
        (directory._ORPHANED_DUE, WANTED, "runs_owned"),
        (directory._ORPHANED_WITH_MAIL, WANTED, "runs_mail"),
        (directory._UNOWNED[0], WANTED, "runs_due"),
        (directory._UNOWNED[1], WANTED, "runs_mail"),
        (directory._NEXT_WAKE, WANTED, "runs_due"),
        (inboxes._WAITING, ("h", 0, "", 1), "runs_mail"),
        (hosts._BUSY, (), "runs_owned"),
        (tasks._FREE, ("[]", "[]", 0, 1), "tasks_offered"),
    ],
)
def test_looking_for_work_uses_its_index(store: SqliteStore, statement: str, values: Any, index: str) -> None:
    connection = store.log._reader._short

    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)]

    assert any(f"INDEX {index}" in step for step in plan)
    assert not [step for step in plan if step.startswith(("SCAN runs", "SCAN tasks"))]


@pytest.mark.parametrize(
    ("statement", "values", "step"),
    [
        (
            directory._DUE_WITH_PRIORITY,
            {**WANTED, "priority": 1},
            "SEARCH runs USING INDEX runs_due_ranked (priority=? AND wake_at<?)",
        ),
        (directory._NEXT_PRIORITY, (1,), "SEARCH runs USING COVERING INDEX runs_due_ranked (priority<?)"),
        (directory._UNOWNED[2], WANTED, "SCAN runs USING INDEX runs_mail_ranked"),
    ],
    ids=["due", "the next priority", "mail"],
)
def test_looking_for_work_with_a_priority_reads_only_runs_that_have_one(
    store: SqliteStore, statement: str, values: Any, step: str
) -> None:
    connection = store.log._reader._short

    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)]

    assert step in plan
    assert not any("TEMP B-TREE" in step for step in plan)


def test_a_plain_append_changes_no_index_of_runs(store: SqliteStore) -> None:
    """Its columns are in none of them, so a plain append writes the row and its events only."""
    connection = store.log._reader._short

    indexed = {
        column
        for (index,) in connection.execute("SELECT name FROM pragma_index_list('runs')").fetchall()
        for (column,) in connection.execute("SELECT name FROM pragma_index_info(?)", (index,))
    }

    assert not indexed & {"seq", "updated_at"}


def test_the_end_of_a_run_deletes_tasks_only_if_it_has_any() -> None:
    """Few runs have any, and a DELETE opens every index of the table."""
    connection = apsw.Connection(":memory:")
    migrate(connection, Path("memory"))
    deleted: list[str] = []

    def is_executed(_: apsw.Cursor, statement: str, __: Any) -> bool:
        if statement.startswith("DELETE FROM tasks"):
            deleted.append(statement)
        return True

    def play(uid: str) -> None:
        begun = append(uid, create=new(uid))
        assert CommitBatch(connection, HERE, numbers).write([begun]) == [Outcome.ACCEPTED]

    def end(uid: str) -> None:
        ended = append(uid, seq=1, status="completed")
        assert CommitBatch(connection, HERE, numbers).write([ended]) == [Outcome.ACCEPTED]

    numbers: Numbers = {}
    connection.exec_trace = is_executed
    play("plain")
    end("plain")
    assert deleted == []

    play("queued")
    connection.execute(
        "INSERT INTO tasks (run, task, attempt, delivery, step, queue, body, epoch, not_before) "
        "SELECT num, 2, 1, 1, 'step', 'default', '{}', 1, 0 FROM runs WHERE uid = 'queued'"
    )
    end("queued")
    assert len(deleted) == 1
    assert connection.execute("SELECT count(*) FROM tasks").get == 0


AGE = "(created_at,uid)<(?,?)"
LISTS = [
    ({}, [f"SEARCH runs USING INDEX runs_newest ({AGE})"]),
    ({"since": 5, "until": 9}, ["SEARCH runs USING INDEX runs_newest (created_at>? AND created_at<?)"]),
    ({"style": "graph"}, [f"SEARCH runs USING INDEX runs_newest ({AGE})"]),
    ({"status": "failed"}, [f"SEARCH runs USING INDEX runs_status (status=? AND {AGE})"]),
    ({"statuses": ["failed", "held"]}, [f"SEARCH runs USING INDEX runs_status (status=? AND {AGE})"] * 2),
    (
        {"workflow": "w", "status": "failed", "version": "1"},
        [f"SEARCH runs USING INDEX runs_workflow (workflow=? AND status=? AND {AGE})"],
    ),
    ({"parent": "p", "statuses": ["failed"]}, [f"SEARCH runs USING INDEX runs_children (parent=? AND {AGE})"]),
    ({"faulty": True}, [f"SEARCH runs USING INDEX runs_fault ({AGE})"]),
    ({"status": "running", "changed_before": 7}, ["SEARCH runs USING INDEX runs_status (status=? AND created_at<?)"]),
]


@pytest.mark.parametrize(("fields", "expected"), LISTS, ids=lambda one: str(one)[:60])
def test_a_list_is_read_from_an_index_in_its_order(
    store: SqliteStore, fields: dict[str, Any], expected: list[str]
) -> None:
    """No sort and no scan: a page costs what it shows, and what it examines at most."""
    connection = store.log._reader._short
    after = None if {"until", "changed_before"} & fields.keys() else "1.u"
    statements, _ = run_search._plan_search(connection, RunQuery(**fields, after=after, scan=100))

    plans = [
        [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", (*each.values, 9))]
        for each in statements
        for text in (each.rows_text(), each.last_text())
    ]

    assert plans == [[step] for step in expected for _ in range(2)]


def test_a_workflow_is_listed_from_an_index_per_status(store: SqliteStore) -> None:
    statements, _ = run_search._plan_search(store.log._reader._short, RunQuery(workflow="w"))

    assert {each.source for each in statements} == {"runs INDEXED BY runs_workflow"}
    assert [each.values[1] for each in statements] == [s for s in (*OPEN_STATUSES, *OVER_STATUSES) if s != IMPORTED]


@pytest.mark.parametrize(
    ("fields", "few"),
    [({"where": {"customer": 1}}, "found USING PRIMARY KEY"), ({"id_prefix": "o-"}, "INDEX sqlite_autoindex_runs_2")],
    ids=["attribute", "prefix"],
)
def test_runs_that_share_something_rare_are_collected_and_others_visited_by_age(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], few: str
) -> None:
    connection = store.log._reader._short

    def planned() -> str:
        ((statement,), _) = run_search._plan_search(connection, RunQuery(**fields))
        text = f"EXPLAIN QUERY PLAN {statement.rows_text()}"
        return "\n".join(row[3] for row in connection.execute(text, (*statement.values, 9)))

    assert few in planned()
    monkeypatch.setattr(run_search, "FEW", -1)
    assert "runs USING INDEX runs_newest" in planned()
    assert "TEMP B-TREE" not in planned()


def test_names_of_workflows_are_read_without_visiting_their_runs(store: SqliteStore) -> None:
    connection = store.log._reader._short

    text = f"EXPLAIN QUERY PLAN {directory._WORKFLOWS}"
    plan = [row[3] for row in connection.execute(text, ("", "z", 9))]

    assert [step for step in plan if "runs" in step] == [
        "SEARCH runs USING COVERING INDEX runs_workflow (workflow>?)"
    ] * 2


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        (retention._TREES, ('["r1"]', "fork")),
        (retention._DOOM, ('["r1"]',)),
        (retention._DOOMED, (1,)),
        (retention._FREE_ID, ("[1]",)),
        (retention._REMOVE, ("[1]",)),
        retention._ended_runs_query(EndedQuery(status="completed", ended_before=Millis(9), after=make_cursor(1, "r1"))),
    ],
)
def test_deleting_runs_visits_only_those_runs(store: SqliteStore, statement: str, values: Any) -> None:
    connection = store.log._reader._short

    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)]

    assert any(step.startswith(("SEARCH runs", "SEARCH r ")) for step in plan)
    assert not [step for step in plan if step.startswith(("SCAN runs", "SCAN r ", "SCAN n", "SCAN events"))]


def test_deleting_many_trees_takes_as_many_statements_as_deleting_one(store: SqliteStore) -> None:
    """Between two statements the transaction waits for the interpreter, and everyone else for the transaction."""
    counts = []
    for trees in (1, 20):
        uids = [RunUid(f"{trees}-{number}") for number in range(trees)]
        for uid in uids:
            start(store, uid)
            finish(store, uid, events=[event(1)])
        done: list[str] = []
        connection = store.retention._writer._connection
        connection.exec_trace = lambda _, text, __, done=done: done.append(text) or True
        results = go(store.retention.doom_each(uids, DoomRule()))
        go(store.retention.clear(limit=500))
        connection.exec_trace = None
        assert [one.outcome for one in results] == [DoomOutcome.DOOMED] * trees
        counts.append(len(done))

    assert counts[0] == counts[1]
