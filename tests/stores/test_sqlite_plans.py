"""What an idle engine asks again and again costs what is to do, not what is stored."""

from typing import Any

import pytest

from weft.ports.store import RunQuery
from weft.stores.sqlite import SqliteStore, directory, hosts, inboxes, tasks

WANTED = {"workflows": "[]", "dead": "[]", "now": 0, "limit": 1}


@pytest.mark.parametrize(
    ("statement", "values", "index"),
    [
        (directory._ORPHANED_IN_FLIGHT, WANTED, "runs_owned"),
        (directory._ORPHANED_DUE, WANTED, "runs_owned"),
        (directory._ORPHANED_WITH_MAIL, WANTED, "runs_mail"),
        (directory._DUE, WANTED, "runs_due"),
        (directory._WITH_MAIL, WANTED, "runs_mail"),
        (directory._NEXT_WAKE, WANTED, "runs_due"),
        (inboxes._WAITING, ("h", 1), "runs_mail"),
        (hosts._BUSY, (), "runs_owned"),
        (tasks._FREE, ("[]", "[]", 0, 1), "tasks_offered"),
    ],
)
def test_looking_for_work_uses_its_index(store: SqliteStore, statement: str, values: Any, index: str) -> None:
    connection = store.log._reader._short

    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)]

    assert any(f"INDEX {index}" in step for step in plan)
    assert not [step for step in plan if step.startswith(("SCAN runs", "SCAN tasks"))]


def test_a_plain_append_changes_no_index_of_runs(store: SqliteStore) -> None:
    """Its columns are in none of them, so a plain append writes the row and its events only."""
    connection = store.log._reader._short

    indexed = {
        column
        for (index,) in connection.execute("SELECT name FROM pragma_index_list('runs')").fetchall()
        for (column,) in connection.execute("SELECT name FROM pragma_index_info(?)", (index,))
    }

    assert not indexed & {"seq", "updated_at"}


def test_runs_of_a_workflow_are_listed_from_its_index(store: SqliteStore) -> None:
    connection = store.log._reader._short
    conditions, values = directory._conditions(RunQuery(workflow="w", after="1.u"))
    text = f"SELECT * FROM runs WHERE {' AND '.join(conditions)} ORDER BY created_at DESC, uid DESC LIMIT 9"

    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", values)]

    assert plan == ["SEARCH runs USING INDEX runs_workflow (workflow=? AND (created_at,uid)<(?,?))"]
