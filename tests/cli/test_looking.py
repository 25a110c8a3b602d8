"""What is recorded can be found, read by people, and read by programs."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.cli.conftest import Weft
from tests.cli.shop import APP

LINE = APP[: APP.index("raise ValueError")].count("\n") + 1


def document(weft: Weft, *words: str) -> Any:
    return weft(*words, "--json").json()


def listed(weft: Weft, *words: str) -> list[str]:
    return [run["id"] for run in document(weft, "list", *words)["runs"]]


def test_an_empty_folder_has_no_runs_and_looking_makes_no_store(weft: Weft, folder: Path) -> None:
    said = weft("list")

    assert said.code == 0
    assert said.out == (
        "No runs. Store: sqlite:///weft.db in this folder (new, empty). "
        "Another one? weft list --url sqlite:///../shop/weft.db, or set WEFT_URL.\n"
    )
    assert weft("show", "x").code == 1
    assert weft("send", "x", "go").code == 1
    assert document(weft, "inbox") == {"store": "sqlite:///weft.db", "questions": []}
    assert document(weft, "status") == {
        "store": "sqlite:///weft.db",
        "exists": False,
        "files": {},
        "free_bytes": None,
        "runs": {},
        "retention": False,
        "losses": [],
        "redis": [],
        "streams": [],
    }
    assert not list(folder.glob("*.db*"))


def test_a_list_is_newest_first_and_names_its_store(over: Weft) -> None:
    said = over("list")

    lines = said.out.splitlines()
    assert lines[0].split() == ["RUN", "WORKFLOW", "STATUS", "AGE", "WAITS", "FOR"]
    assert [line.split()[:3] for line in lines[1:5]] == [
        ["family-1.hello", "hello", "completed"],
        ["family-1", "family", "completed"],
        ["doomed-1", "doomed", "failed"],
        ["order-1", "order", "completed"],
    ]
    assert lines[5] == "Store: sqlite:///weft.db in this folder."


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--workflow", "doomed"], ["doomed-1"]),
        (["--status", "failed"], ["doomed-1"]),
        (["--since", "1h", "--status", "failed"], ["doomed-1"]),
        (["--since", "2001-01-31", "--workflow", "order"], ["order-1"]),
        (["--since", "0s"], []),
        (["--where", "customer=o-1"], ["order-1"]),
        (["--where", "customer=o-1", "--where", "n=2"], ["order-1"]),
        (["--where", "n=3"], []),
    ],
)
def test_runs_are_found_by_what_is_known_of_them(over: Weft, words: list[str], expected: list[str]) -> None:
    assert listed(over, *words) == expected


def test_a_list_goes_on_where_its_page_ended(over: Weft) -> None:
    first = document(over, "list", "--limit", "3")
    second = document(over, "list", "--limit", "3", "--cursor", first["cursor"])

    assert [run["id"] for run in first["runs"]] == ["family-1.hello", "family-1", "doomed-1"]
    assert [run["id"] for run in second["runs"]] == ["order-1"]
    assert second["cursor"] is None
    assert f"--cursor {first['cursor']}" in over("list", "--limit", "3").out


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--status", "broken"], "'broken' is not a status."),
        (["--since", "yesterday"], "neither a duration nor a date"),
        (["--where", "n"], "is not KEY=VALUE"),
        (["--where", "n"], "--where status=failed"),
        (["--cursor", "x"], "is not a cursor"),
        (["--limit", "5000"], "at most 1,000"),
        (["--url", "memory://"], "this command cannot read it"),
        (["--url", "mysql://x/y"], "is not the URL of a store"),
        (["--url", "postgress://ann:hunter2@db/x"], "'postgress://ann:***@db/x' is not the URL"),
        (["--url", "htps://weft.example.com"], "also take a server"),
        (["--url", "weft.db"], "is not the URL of a store"),
    ],
)
def test_a_search_that_means_nothing_is_refused(over: Weft, words: list[str], problem: str) -> None:
    said = over("list", *words)

    assert said.code == 2
    assert problem in said.err


def test_a_search_without_hits_says_so(over: Weft) -> None:
    assert over("list", "--workflow", "none").out == "No such runs. Store: sqlite:///weft.db in this folder.\n"


def test_the_fields_of_a_listed_run_are_stable(over: Weft) -> None:
    (run,) = document(over, "list", "--workflow", "order")["runs"]

    fields = "id workflow version status created_at updated_at ended_at attributes hosted fault waits_for progress"
    assert sorted(run) == sorted([*fields.split(), "key", "priority"])
    assert run["attributes"] == {"customer": "o-1", "n": 2}


def test_a_run_is_shown_with_its_operations_as_a_tree(over: Weft) -> None:
    lines = [line.rstrip() for line in over("show", "order-1").out.splitlines()]

    assert lines[0].startswith("order-1  completed in ")
    assert lines[1].startswith("order version 1, started ")
    assert lines[1].endswith("Store: sqlite:///weft.db in this folder.")
    assert 'input   {"order_id":"o-1","n":2}' in lines
    tree = [line.replace("✓", "").split()[0] for line in lines if line.lstrip().startswith(("✓", "boxes"))]
    assert tree == ["set", "charge", "boxes", "~0/charge", "~1/charge"]
    assert any('"pay-b1-4200"' in line for line in lines)
    assert "→ {" in lines


def test_a_failed_run_shows_the_step_its_attempts_and_the_line(over: Weft) -> None:
    said = over("show", "doomed-1").out

    assert "✗ decline" in said
    assert f"2 attempts · ValueError: declined o-2 (app.py:{LINE})" in said
    assert "Try again: weft retry doomed-1" in said


def test_a_run_is_a_document_for_programs(over: Weft) -> None:
    shown = document(over, "show", "doomed-1")

    assert shown["store"] == "sqlite:///weft.db"
    assert (shown["status"], shown["input"], shown["result"]) == ("failed", {"order_id": "o-2"}, None)
    assert shown["failure"]["type"] == "StepFailed"
    charge, decline = shown["entries"]
    assert (charge["location"], charge["kind"], charge["status"], charge["output"]) == (
        "charge",
        "step",
        "done",
        "pay-o-2-4200",
    )
    assert (decline["status"], decline["attempts"], decline["failure"]["where"]) == ("failed", 2, f"app.py:{LINE}")


def test_child_runs_are_drawn_where_they_were_started(over: Weft) -> None:
    assert "run family-1.hello" in over("show", "family-1", "--tree").out
    (entry,) = document(over, "show", "family-1", "--tree")["entries"]
    assert entry["child"] == entry["run"]["id"] == "family-1.hello"
    assert entry["run"]["result"] == "hello child"
    assert "child of family-1" in over("show", "family-1.hello").out


def test_the_beginning_of_an_id_is_enough(over: Weft) -> None:
    assert document(over, "show", "order")["id"] == "order-1"
    assert document(over, "show", "family-1")["id"] == "family-1"
    said = over("show", "family")
    assert said.code == 2
    assert "could be" in said.err


def test_many_operations_are_cut_for_people_and_whole_for_programs(weft: Weft) -> None:
    weft("run", "app.py", "order", "order_id=o-1", "n=60", "--id", "big")

    assert "… 42 more" in weft("show", "big").out
    assert len(document(weft, "show", "big")["entries"]) == 63  # the map itself, too


def test_the_log_is_one_json_object_per_line(over: Weft) -> None:
    events = [msgspec.json.decode(line) for line in over("events", "order-1", "--json").out.splitlines()]

    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert all(sorted(event) == ["at", "data", "kind", "location", "part", "seq"] for event in events)
    assert (events[0]["kind"], events[-1]["kind"]) == ("run_started", "run_completed")
    assert {event["location"] for event in events if event["kind"] == "task_succeeded"} == {
        "charge",
        "boxes/~0/charge",
        "boxes/~1/charge",
    }


def test_the_log_after_a_number_still_knows_its_places(over: Weft) -> None:
    whole = over("events", "order-1").out.splitlines()

    assert over("events", "order-1", "--after", "4", "--follow").out.splitlines() == whole[4:]
    assert "boxes/~0/charge" in whole[5]


def test_a_finished_run_is_explained_by_its_end(over: Weft) -> None:
    assert "nothing is left to do" in over("explain", "order-1").out
    explained = document(over, "explain", "doomed-1")
    assert (explained["run"], explained["status"], explained["waiting"]) == ("doomed-1", "failed", [])


def test_the_status_counts_runs_and_bytes(over: Weft, folder: Path) -> None:
    counted = document(over, "status")

    assert counted["runs"] == {"completed": 3, "failed": 1}
    assert counted["files"]["weft.db"] == (folder / "weft.db").stat().st_size
    assert "runs    4, 0 open" in over("status").out


def test_watching_a_run_that_is_over_prints_how_it_ended(over: Weft) -> None:
    completed, failed = over("watch", "order-1"), over("watch", "doomed-1")

    assert completed.code == 0
    assert '"pay-b1-4200"' in completed.out
    assert failed.code == 1
    assert "failed: StepFailed" in failed.out


def test_a_file_of_another_program_is_refused_and_left_alone(weft: Weft, folder: Path) -> None:
    (folder / "notes.db").write_text("dear diary " * 100)

    said = weft("list", "--url", "sqlite:///notes.db")

    assert said.code == 1
    assert "is not a SQLite database" in said.err
    assert (folder / "notes.db").read_text() == "dear diary " * 100


def test_a_store_of_a_newer_version_is_refused(over: Weft, folder: Path) -> None:
    import apsw

    with apsw.Connection(str(folder / "weft.db")) as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()

    said = over("list")

    assert said.code == 1
    assert "newer Weft" in said.err
    assert "weft help store.newer_schema" in said.err


def test_a_run_that_stopped_for_a_person_says_so_everywhere(weft: Weft, folder: Path) -> None:
    (folder / "odd.py").write_text(
        "import asyncio, weft\napp = weft.App()\n"
        "@app.workflow\nasync def naps() -> None:\n    await asyncio.sleep(3600)\n"
    )

    said = weft("run", "odd.py", "naps", "--id", "n-1")

    assert said.code == 1
    assert "naps waits at odd.py:5 for something Weft cannot record" in said.err
    assert "weft help code.foreign_await" in said.err
    assert "weft resume n-1" in said.err
    assert "you: weft explain n-1" in weft("list").out
    for verb in ("show", "explain", "watch"):
        told = weft(verb, "n-1")
        assert 'Write: await ctx.sleep("1h")' in told.out
        assert "When the code is corrected: weft resume n-1" in told.out
        assert r"\n" not in told.out
    assert told.code == 1
    refused = weft("retry", "n-1")
    assert (refused.code, "weft resume n-1" in refused.err) == (1, True)
    assert "weft resume RUN" in weft("help", "code.foreign_await").out
    assert "weft resume RUN" in weft("help", "code.spinning").out
    assert document(weft, "show", "n-1")["status"] == "held"


def test_a_held_run_that_is_corrected_and_resumed_goes_on_without_the_old_complaint(weft: Weft, folder: Path) -> None:
    code = "import asyncio, weft\napp = weft.App()\n@app.workflow\nasync def naps() -> str:\n    {}return 'rested'\n"
    (folder / "odd.py").write_text(code.format("await asyncio.sleep(3600); "))
    weft("run", "odd.py", "naps", "--id", "n-1")
    again = weft("run", "odd.py", "naps", "--id", "n-1")
    assert (again.code, "goes on" in again.err) == (1, False)
    (folder / "odd.py").write_text(code.format(""))

    weft("resume", "n-1")

    assert "It takes effect when a process hosts the run" in weft("show", "n-1").out
    said = weft("run", "odd.py", "naps", "--id", "n-1")
    assert (said.code, said.out) == (0, "rested\n"), said
    assert "cannot record" not in said.err


def test_a_run_that_stays_wrong_is_held_again_after_a_resume(weft: Weft, folder: Path) -> None:
    (folder / "odd.py").write_text(
        "import asyncio, weft\napp = weft.App()\n"
        "@app.workflow\nasync def naps() -> None:\n    await asyncio.sleep(3600)\n"
    )
    weft("run", "odd.py", "naps", "--id", "n-1")
    weft("resume", "n-1")

    said = weft("run", "odd.py", "naps", "--id", "n-1")

    assert (said.code, "cannot record" in said.err) == (1, True)


def test_a_pending_run_is_shown_without_a_version(weft: Weft) -> None:
    weft("start", "hello", "name=a", "--id", "h-1")

    shown = weft("show", "h-1").out

    assert "\nhello, created " in shown
    assert weft("show", "h-1", "--svg").err.startswith("weft: h-1 has no picture before a host takes it up.")


def test_what_could_not_be_undone_of_a_cancelled_run_is_told(weft: Weft, folder: Path) -> None:
    (folder / "odd.py").write_text(
        "import weft\napp = weft.App()\n"
        "@app.step\ndef take() -> int:\n    return 1\n"
        "@take.undo\ndef give(result: int) -> None:\n    raise weft.Critical('lost')\n"
        "@app.step\nasync def stop(run: str) -> None:\n    await app.get(run).cancel('no more')\n"
        "@app.workflow\nasync def waits(ctx: weft.Context) -> None:\n"
        "    await take()\n    await stop(ctx.run_id)\n    await ctx.receive('never')\n"
    )

    said = weft("run", "odd.py", "waits", "--id", "w-1")

    assert "w-1 is over, but not undone: give: lost" in said.err
    assert "not undone: give: lost" in weft("show", "w-1").out


def test_undos_are_shown_beside_what_they_undo(weft: Weft, folder: Path) -> None:
    (folder / "odd.py").write_text(
        "import weft\napp = weft.App()\n"
        "@app.step\ndef take() -> int:\n    return 1\n"
        "@take.undo\ndef give(result: int) -> None:\n    raise weft.Critical('lost')\n"
        "@app.workflow\nasync def fails() -> None:\n    await take()\n    raise weft.Rollback('stop')\n"
    )
    weft("run", "odd.py", "fails", "--id", "f-1")

    shown = weft("show", "f-1").out

    assert "✓ take" in shown
    assert "✗ take!undo" in shown
    assert "not undone: give: lost" in shown


def test_a_failed_run_shows_its_traceback(weft: Weft) -> None:
    weft("run", "app.py", "doomed", "order_id=o-1", "--id", "d-1")

    shown = weft("show", "d-1").out

    assert f'app.py", line {LINE}, in ' in shown
    assert "\n  ValueError: declined o-1\n" in shown
    assert "weft/runtime" not in shown
    assert "ValueError: declined o-1" in document(weft, "show", "d-1")["failure"]["traceback"]


def test_a_big_value_is_told_by_its_size_and_printed_whole_as_the_result(weft: Weft, folder: Path) -> None:
    (folder / "odd.py").write_text(
        "import weft\napp = weft.App()\n"
        "@app.step\ndef big() -> str:\n    return 'x' * 50_000\n"
        "@app.workflow\nasync def go() -> str:\n    return await big()\n"
    )
    weft("run", "odd.py", "go", "--id", "g-1")

    assert "(50,002 bytes)" in weft("show", "g-1").out
    assert document(weft, "show", "g-1")["result"] == "x" * 50_000
