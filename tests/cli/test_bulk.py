"""The same verb for many runs on the command line: counted first, done when that is wanted, by any host."""

import getpass
from typing import Any

import pytest

from tests.cli.conftest import Weft


def document(weft: Weft, *words: str) -> Any:
    return weft(*words, "--json").json()


def start_patients(weft: Weft, count: int) -> list[str]:
    runs = [f"q-{n}" for n in range(count)]
    for run in runs:
        assert weft("start", "patient", "--id", run).code == 0
    host_it(weft)
    return runs


def host_it(weft: Weft) -> None:
    """Let a host come by: any run of the app hosts all of them for its time."""
    assert weft("run", "app.py", "hello", "name=a").code == 0


def host_until_done(weft: Weft, bulk: str) -> Any:
    """Let hosts come by until a bulk is over; what it counted."""
    for _ in range(20):
        host_it(weft)
        if status_of(weft, bulk) == "completed":
            return document(weft, "show", bulk)["result"]
    raise AssertionError(weft("show", bulk).out)


def status_of(weft: Weft, run: str) -> str:
    return str(document(weft, "show", run)["status"])


def test_a_filter_is_counted_first_and_done_when_that_is_wanted(weft: Weft) -> None:
    runs = start_patients(weft, 2)

    counted = weft("pause", "--where", "status=running", "--workflow", "patient")

    assert counted.code == 1
    assert counted.out.startswith("pause: 2 runs, 2 would apply, 0 refused.")
    assert counted.err == "weft: nothing was changed. To do it, repeat the command with --apply.\n"
    assert {status_of(weft, run) for run in runs} == {"running"}
    started = weft("pause", "--workflow", "patient", "--reason", "maintenance", "--apply")
    assert started.code == 0
    assert "no process hosts runs of this store now; the next host of any app will carry this out." in started.err
    host_until_done(weft, started.out.splitlines()[-1])
    assert {status_of(weft, run) for run in runs} == {"paused"}
    paused = [event for event in weft("events", "q-0").out.splitlines() if "run_paused" in event]
    assert "reason=maintenance" in paused[0]
    assert f"by={getpass.getuser()}" in paused[0]


def test_several_ids_on_one_line(weft: Weft) -> None:
    start_patients(weft, 2)

    refused = weft("cancel", "q-0", "nobody", "--apply")
    assert (refused.code, "There is no run 'nobody'" in refused.err) == (1, True)
    found = document(weft, "cancel", "q-0", "q-1", "--apply")

    assert (found["matched"], found["would_apply"], found["unchanged"]) == (2, 2, 0)
    assert host_until_done(weft, found["run"])["applied"] == 2
    host_it(weft)
    assert [status_of(weft, run) for run in ("q-0", "q-1")] == ["cancelled", "cancelled"]
    assert found["run"] not in weft("list").out
    assert found["run"] in weft("list", "--workflow", "weft.bulk").out


def test_a_dry_run_prints_who_refuses_and_why(over: Weft) -> None:
    said = over("retry", "--where", "prefix=", "--status", "completed", "--dry-run")

    assert said.code == 0
    assert "0 would apply" in said.out
    assert "completed, so it cannot be retried" in said.out


def test_a_failed_run_is_retried_by_filter(over: Weft) -> None:
    found = document(over, "retry", "--where", "status=failed", "--workflow", "doomed", "--apply")
    assert found["would_apply"] == 1
    host_until_done(over, found["run"])
    kinds = over("events", "doomed-1").out
    assert kinds.count("run_retried") == 1


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["pause"], "a bulk is for runs by their ids, or for those that a filter finds"),
        (["pause", "--status", "asleep"], "'asleep' is not a status"),
        (["pause", "--status", "running", "--where", "status=running"], "status is given twice"),
        (["pause", "--where", "parent=nobody"], "No run 'nobody'"),
    ],
)
def test_what_is_typed_wrong_is_said(over: Weft, words: list[str], problem: str) -> None:
    said = over(*words)
    assert said.code in (1, 2)
    assert problem.lower() in said.err.lower()


def test_a_list_knows_the_same_filters(over: Weft) -> None:
    assert "doomed-1" in over("list", "--where", "status=failed").out
    assert "child" not in over("list", "--where", "prefix=doomed").out
    children = over("list", "--where", "parent=family-1").out
    assert "hello" in children
    assert "doomed-1" not in children
    assert "No such runs" in over("list", "--where", "attribute.status=failed").out


def test_runs_are_forked_and_deleted_by_filter(over: Weft) -> None:
    forked = document(over, "fork", "--status", "completed", "--where", "prefix=order", "--apply")
    assert (forked["verb"], forked["would_apply"]) == ("fork", 1)
    made = host_until_done(over, forked["run"])["made"]
    assert [one["id"] for one in document(over, "list", "--where", "prefix=order-1~")["runs"]] == made
    words = ("delete", "--status", "completed", "--where", "prefix=order", "--reason", "old")
    assert "was forked from order-1 and is open" in over(*words, "--dry-run").out
    host_until_done(over, *made)
    deleted = document(over, *words, "--apply")
    assert deleted["would_apply"] >= 1
    host_until_done(over, deleted["run"])
    assert "order-1 " not in over("list").out


def test_an_attribute_that_was_meant_to_be_a_field_is_pointed_out(over: Weft) -> None:
    for words in (("cancel", "--where", "stat=failed", "--dry-run"), ("list", "--where", "stat=failed")):
        assert 'no run has the attribute stat="failed". Did you mean --where status=…?' in over(*words).err
    assert over("list", "--where", "colour=red").err == ""
