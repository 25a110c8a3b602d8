"""``weft schedule``: list, add, next, trigger, backfill, pause, resume, remove."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Weft, hosting


@pytest.fixture
def scheduled(weft: Weft) -> Weft:
    """A schedule that no host has seen yet."""
    said = weft(
        "schedule", "add", "nightly", "hello", "name=ann", "--cron", "30 2 * * *", "--timezone", "Europe/Berlin"
    )
    assert said.code == 0, said.err
    return weft


def one(weft: Weft, name: str = "nightly") -> Any:
    found: Any = weft("schedule", "list", "--json").json()
    return next(schedule for schedule in found["schedules"] if schedule["name"] == name)


def host_it(weft: Weft) -> None:
    assert weft("run", "app.py", "hello", "name=a").code == 0


def test_a_schedule_is_added_and_listed(scheduled: Weft) -> None:
    listed = scheduled("schedule").out

    assert "nightly" in listed
    assert "30 2 * * * Europe/Berlin" in listed
    assert one(scheduled)["input"] == {"name": "ann"}


def test_the_next_times_are_shown_in_both_zones(scheduled: Weft) -> None:
    said = scheduled("schedule", "next", "nightly", "-n", "400").out

    assert said.splitlines()[0].split() == ["LOCAL", "UTC", "RUN", "NOTE"]
    assert "T02:30:00+01:00" in said
    assert "T02:30:00+02:00" in said
    assert "moved: the clocks skip its time" in said
    assert "comes twice" in said
    document: Any = scheduled("schedule", "next", "nightly", "-n", "2", "--json").json()
    assert len(document["times"]) == 2
    said = scheduled("schedule", "next", "nightly", "-n", "0")
    assert said.code != 0
    assert "0 is not a number of nominal times" in said.err


def test_a_trigger_is_kept_for_the_next_host(scheduled: Weft) -> None:
    run = scheduled("schedule", "trigger", "nightly").out.strip()

    assert run.startswith("nightly/now-")
    host_it(scheduled)
    host_it(scheduled)
    assert "completed" in scheduled("list").out
    assert one(scheduled)["fired"] == 1


def test_it_is_paused_resumed_and_removed(scheduled: Weft) -> None:
    host_it(scheduled)
    assert scheduled("schedule", "pause", "nightly", "--reason", "holiday").code == 0
    host_it(scheduled)
    assert (one(scheduled)["status"], one(scheduled)["reason"]) == ("paused", "holiday")
    assert scheduled("schedule", "resume", "nightly").code == 0
    host_it(scheduled)
    assert one(scheduled)["status"] == "active"
    assert scheduled("schedule", "remove", "nightly").code == 0
    host_it(scheduled)
    assert scheduled("schedule", "list", "--json").json()["schedules"] == []  # type: ignore[index]
    never = ["--from", "2026-01-01", "--to", "2026-01-01"]
    for action in ("pause", "resume", "remove", "trigger", "next", "backfill"):
        again = scheduled("schedule", action, "nightly", *(never if action == "backfill" else ()))
        assert (again.code, "There is no schedule 'nightly': it was removed." in again.err) == (1, True), again.err


@pytest.mark.parametrize("action", ["pause", "resume", "remove"])
def test_without_a_host_it_is_not_said_that_a_schedule_has_changed(scheduled: Weft, action: str) -> None:
    host_it(scheduled)

    said = scheduled("schedule", action, "nightly")

    assert said.code == 0
    assert "no process hosts nightly now; the next host will act on this." in said.err
    assert one(scheduled)["status"] == "active"


def test_how_to_type_text_that_looks_like_a_number_is_said(weft: Weft, folder: Path) -> None:
    with hosting(folder):
        said = weft("schedule", "add", "often", "hello", "name=5", "--every", "1h")
        assert said.code != 0
        assert """name='"…"'""" in said.err
        assert weft("schedule", "add", "often", "hello", 'name="5"', "--every", "1h").code == 0
    assert one(weft, "often")["input"] == {"name": "5"}


@pytest.mark.parametrize(
    "typed",
    [
        ("add", "often", "hello", "name=bo", "--every", "1h"),
        ("trigger", "nightly"),
        ("backfill", "nightly", "--from", "2025-11-01", "--to", "2025-11-04"),
    ],
    ids=lambda typed: typed[0],
)
def test_without_a_host_it_is_said_that_a_schedule_starts_nothing(scheduled: Weft, typed: tuple[str, ...]) -> None:
    said = scheduled("schedule", *typed)

    assert said.code == 0
    assert f"no process hosts {typed[1]} now, so it starts nothing until one does" in said.err


def test_a_backfill_says_how_many_times_there_are(scheduled: Weft) -> None:
    said = scheduled("schedule", "backfill", "nightly", "--from", "2026-01-01", "--to", "2026-01-03T12:00")

    assert said.code == 0
    assert "3 nominal times" in said.err


def test_runs_of_schedules_are_listed_with_all(scheduled: Weft) -> None:
    assert "schedule/nightly" not in scheduled("list").out
    assert "schedule/nightly" in scheduled("list", "--all").out
    assert "schedule/nightly" in scheduled("list", "--workflow", "weft.schedule").out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("add", "x", "hello", "--cron", "0 0 30 2 *", "--timezone", "Mars"), ("never comes", "no time zone")),
        (("add", "x", "hello", "--cron", "0 9 * * *", "--every", "1h"), ("Both cron and every",)),
        (
            ("add", "x", "hello", "--every", "soon", "--jitter", "-5", "--overlap", "no"),
            ("every:", "jitter:", "overlap:"),
        ),
        (("add", "x"), ("Say what it starts",)),
        (("next",), ("Say which schedule",)),
        (("next", "nobody"), ("There is no schedule 'nobody'",)),
        (("backfill", "nightly", "--from", "monday", "--to", "2026-01-01"), ("--from monday is not a time",)),
        (("backfill", "nightly", "--from", "2999-01-01", "--to", "2999-01-02"), ("lies in the future",)),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_written(
    scheduled: Weft, words: tuple[str, ...], told: tuple[str, ...]
) -> None:
    said = scheduled("schedule", *words)

    assert said.code != 0
    assert all(text in said.err for text in told), said.err
    assert [schedule["name"] for schedule in scheduled("schedule", "list", "--json").json()["schedules"]] == ["nightly"]  # type: ignore[index]


def test_an_unknown_action_is_refused(weft: Weft) -> None:
    said = weft("schedule", "fire", "x")

    assert said.code == 2
    assert "is none of list, add" in said.err


def test_what_replaces_a_schedule_counts_before_its_host_has_read_it(scheduled: Weft) -> None:
    host_it(scheduled)
    said = scheduled("schedule", "add", "nightly", "hello", "name=bob", "--cron", "15 4 1 1 *", "--overlap", "allow")

    assert "nightly is changed: overlap from skip to allow; when from 30 2 * * * Europe/Berlin to 15 4 1 1 * UTC" in (
        said.err
    )
    assert '; input from {"name":"ann"} to {"name":"bob"}' in said.err
    assert "-01-01 04:15:00 UTC" in said.err
    assert one(scheduled)["next"].endswith("-01-01T04:15:00Z")
    words = ("schedule", "add", "nightly", "hello", "name=ann", "--cron", "30 2 * * *", "--timezone", "Europe/Berlin")
    assert "is changed" in scheduled(*words).err
    assert "is changed" not in scheduled(*words).err
    host_it(scheduled)
    assert one(scheduled)["cron"] == "30 2 * * *"


def test_a_paused_schedule_says_why_and_when_its_backfill_begins(scheduled: Weft) -> None:
    host_it(scheduled)
    scheduled("schedule", "pause", "nightly", "--reason", "holiday")
    host_it(scheduled)
    listed = scheduled("schedule", "list").out

    assert "NEXT (UTC)" in listed
    assert "holiday" in listed
    said = scheduled("schedule", "backfill", "nightly", "--from", "2026-01-01", "--to", "2026-01-03T12:00")
    assert "begins when it is resumed" in said.err
    host_it(scheduled)
    log = scheduled("events", "schedule/nightly").out
    assert "first=20" in log
    assert "=17" not in log, "times are not shown as numbers"
