"""``weft fork``, and where forks are shown."""

from pathlib import Path
from typing import Any

from tests.cli.conftest import Weft, hosting


def hosted(weft: Weft, run: str) -> Any:
    """The run after hosts went on with it: one hosts all runs until its own has ended."""
    for _ in range(50):
        assert weft("run", "app.py", "hello", "name=a").code == 0
        shown: Any = weft("show", run, "--json").json()
        if shown["status"] == "completed":
            break
    return shown


def test_a_fork_is_made_and_a_host_goes_on_with_it(over: Weft) -> None:
    said = over("fork", "order-1", "--before", "boxes/~0/charge", "--id", "again", "--reason", "why not")
    assert (said.code, said.out.strip()) == (0, "again"), said.err
    assert "shares" in said.err

    assert hosted(over, "again")["status"] == "completed"
    shown = over("show", "again").out
    assert "fork of order-1 at" in shown
    assert ", created " in shown
    assert ", started " not in shown, "that is the start of its original"
    assert "forks   again" in over("show", "order-1").out
    listed: Any = over("list", "--forks", "order-1", "--json").json()
    assert [run["id"] for run in listed["runs"]] == ["again"]


def test_a_failed_run_is_forked_before_its_failure_with_the_result_set(over: Weft) -> None:
    made: Any = over("fork", "doomed-1", "--failure", "--set", "decline=fine", "--json").json()

    shown = hosted(over, made["id"])
    assert (shown["status"], shown["result"]) == ("completed", "fine")


def test_the_input_may_be_changed(over: Weft) -> None:
    made: Any = over("fork", "order-1", "--input", "n=1", "--json").json()
    assert made["seq"] == 1

    assert len(hosted(over, made["id"])["result"]["boxes"]) == 1


def test_an_argument_is_read_by_its_type_and_refused_if_it_is_none(over: Weft) -> None:
    app = ["--app", "app.py"]
    assert over("fork", "order-1", "--input", "order_id=7", *app).code == 0, "an id is text, also if it looks like more"
    for word, told in (("order=o-7", "order"), ("n=many", "n")):
        refused = over("fork", "order-1", "--input", word, *app)
        assert refused.code != 0
        assert f'"{told}"' in refused.err or f"{told}:" in refused.err or f"{told} " in refused.err
        bulk = over("fork", "order-1", "doomed-1", "--input", word, "--dry-run", *app)
        assert "value.wrong_type" in bulk.out
    assert len(over("list", "--forks", "order-1", "--json").json()["runs"]) == 1  # type: ignore[index]


def test_the_app_says_to_which_steps_a_fork_may_come(over: Weft) -> None:
    app = ["--app", "app.py"]
    refused = over("fork", "doomed-1", "--failure", "--set", "delcine=fine", *app)
    assert refused.code != 0
    assert "never came to a step delcine" in refused.err
    assert "charge, decline" in refused.err
    bulk = over("fork", "doomed-1", "--failure", "--set", "delcine=fine", "--dry-run", *app)
    assert "fork.bad_edit" in bulk.out
    assert over("fork", "doomed-1", "--failure", "--set", "decline=fine", *app).code == 0


def test_without_the_code_an_argument_that_no_host_takes_is_refused(over: Weft, folder: Path) -> None:
    with hosting(folder):
        refused = over("fork", "order-1", "--input", "order=o-7")
    assert refused.code != 0
    assert 'order has no argument "order"' in refused.err


def test_without_code_and_host_the_fork_fails_as_a_start_would(over: Weft) -> None:
    made: Any = over("fork", "order-1", "--input", "n=many", "--json").json()
    assert over("run", "app.py", "hello", "name=a").code == 0

    shown: Any = over("show", made["id"], "--json").json()

    assert shown["status"] == "failed"
    assert shown["failure"]["code"] == "value.wrong_type"


def test_bad_orders_are_refused(over: Weft) -> None:
    for words in (
        ["--at", "x"],
        ["--at", "900"],
        ["--before", "nowhere"],
        ["--at", "1", "--failure"],
        ["--visit", "1"],
    ):
        assert over("fork", "order-1", *words).code != 0
    assert over("fork", "order-1", "--id", "doomed-1").code != 0
    listed: Any = over("list", "--forks", "order-1", "--json").json()
    assert listed["runs"] == []
