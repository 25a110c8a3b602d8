"""Schedules over HTTP: made, looked at, steered; and what is wrong with them, all at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import weft
from tests.server.kit import API, Server, covers

YEARLY = {"workflow": "hello", "input": {"name": "ann"}, "cron": "0 0 1 1 *"}


def made(server: Server, name: str, **fields: Any) -> Any:
    return server.post(f"{API}/schedules", {"name": name, **YEARLY, **fields})


def shown(server: Server, name: str) -> Any:
    return server.get(f"{API}/schedules/{name}").json


def until(server: Server, name: str, is_done: Callable[[Any], bool]) -> Any:
    end = time.monotonic() + 200
    while time.monotonic() < end:
        found = shown(server, name)
        if is_done(found):
            return found
        time.sleep(0.02)
    raise AssertionError(found)


@covers("putSchedule", "getSchedule", "listSchedules", "nextTimes")
def test_a_schedule_is_made_shown_and_listed(server: Server) -> None:
    answer = made(server, "yearly", timezone="Europe/Berlin")

    assert answer.status == 200
    assert answer.json["status"] == "active"
    assert shown(server, "yearly")["timezone"] == "Europe/Berlin"
    listed = server.get(f"{API}/schedules").json["schedules"]
    assert "yearly" in [one["name"] for one in listed]
    times = server.get(f"{API}/schedules/yearly/next?count=2").json["times"]
    assert [one["local"][5:] for one in times] == ["01-01T00:00:00+01:00"] * 2
    assert times[0]["run"].startswith("yearly/")


@covers("triggerSchedule")
def test_a_trigger_starts_a_run_once_for_each_key(server: Server) -> None:
    made(server, "t", overlap="allow")
    first = server.post(f"{API}/schedules/t/trigger", Idempotency_Key="k1")
    again = server.post(f"{API}/schedules/t/trigger", Idempotency_Key="k1")

    assert first.json == again.json
    assert server.result(first.json["run"])["output"] == "hello ann!"
    assert until(server, "t", lambda found: not found["open_runs"])["fired"] == 1


@covers("backfillSchedule")
def test_a_backfill_starts_what_is_lacking(server: Server) -> None:
    made(server, "b", cron="0 * * * *")
    now = datetime.now(UTC).replace(minute=30, second=0, microsecond=0) - timedelta(hours=1)
    body = {"from": (now - timedelta(hours=3)).isoformat(), "to": now.isoformat()}

    assert server.post(f"{API}/schedules/b/backfill", body).json == {"times": 3}
    assert until(server, "b", lambda found: found["fired"] == 3 and not found["open_runs"])["backfills"] == 0
    assert server.post(f"{API}/schedules/b/backfill", body).json == {"times": 3}
    assert until(server, "b", lambda found: found["found"] == 3)["fired"] == 3
    assert server.post(f"{API}/schedules/b/backfill", body | {"to": "2999-01-01T00:00:00Z"}).code == (
        "schedule.bad_backfill"
    )


@covers("pauseSchedule", "resumeSchedule", "removeSchedule")
def test_it_is_paused_resumed_and_removed(server: Server) -> None:
    made(server, "p")
    server.post(f"{API}/schedules/p/pause", {"reason": "holiday"})
    assert until(server, "p", lambda found: found["status"] == "paused")["reason"] == "holiday"
    server.post(f"{API}/schedules/p/resume")
    until(server, "p", lambda found: found["status"] == "active")
    assert server.ask("DELETE", f"{API}/schedules/p").status == 200
    until(server, "p", lambda found: found["status"] == "removed")
    assert "p" not in [one["name"] for one in server.get(f"{API}/schedules").json["schedules"]]
    assert server.post(f"{API}/schedules/p/trigger").status == 409
    assert server.get(f"{API}/schedules/p/next").status == 409
    assert made(server, "p").json["status"] == "active"


def test_all_findings_come_at_once_and_nothing_is_written(server: Server) -> None:
    answer = made(server, "bad", cron="0 0 30 2 *", every="3 moons", timezone="Mars/Base", overlap="wait")

    assert (answer.status, answer.code) == (422, "schedule.invalid")
    codes = {finding["code"] for finding in answer.json["findings"]}
    assert codes >= {"schedule.bad_duration", "schedule.unknown_zone", "schedule.bad_overlap", "schedule.two_times"}
    assert server.get(f"{API}/schedules/bad").status == 404
    wrong = made(server, "bad", input={"nam": 1})
    assert (wrong.status, wrong.code) == (422, "schedule.bad_input")
    assert server.get(f"{API}/schedules/bad").status == 404


@pytest.mark.parametrize("path", ["", "/next", "/trigger", "/pause"])
def test_an_unknown_schedule_is_not_found(server: Server, path: str) -> None:
    ask = server.post if path in ("/trigger", "/pause") else server.get

    assert ask(f"{API}/schedules/nobody{path}").status == 404


def test_runs_of_schedules_are_listed_only_if_they_are_named(server: Server) -> None:
    made(server, "hidden")

    def ids(query: str) -> list[str]:
        return [run["id"] for run in server.get(f"{API}/runs?limit=500&{query}").json["runs"]]

    assert "schedule/hidden" not in ids("prefix=schedule%2F")
    assert "schedule/hidden" in ids("all=true")
    assert "schedule/hidden" in ids("workflow=weft.schedule")


def test_what_became_of_nominal_times_is_counted(server: Server) -> None:
    made(server, "counted", overlap="allow")
    server.get("/metrics")
    server.post(f"{API}/schedules/counted/trigger")
    until(server, "counted", lambda found: found["fired"] == 1)

    assert b'weft_scheduled_times_total{outcome="fired"}' in server.get("/metrics").raw


def test_who_paused_resumed_and_removed_it_is_in_its_log(server: Server) -> None:
    assert (
        server.post(
            f"{API}/schedules", {"name": "w", "workflow": "hello", "input": {"name": "x"}, "every": "1d"}
        ).status
        == 200
    )
    for verb in ("pause", "resume"):
        assert server.post(f"{API}/schedules/w/{verb}", {"reason": verb, "by": "ann"}).status == 200
    assert server.ask("DELETE", f"{API}/schedules/w", {"reason": "remove", "by": "ann"}).status == 200

    events = server.get(f"{API}/runs/schedule%2Fw/events").json["events"]
    kinds = ("run_paused", "run_resumed", "cancel_requested")
    said = [(one["data"]["reason"], one["data"]["by"]) for one in events if one["kind"] in kinds]
    assert said == [("pause", "ann"), ("resume", "ann"), ("remove", "ann")]


def test_who_made_and_triggered_it_is_the_name_given_or_local(server: Server) -> None:
    for number, by in enumerate(({"by": "ann"}, {})):
        made(server, "who", pause_after=number + 1, overlap="allow", **by)
        server.post(f"{API}/schedules/who/trigger", by)

    events = server.get(f"{API}/runs/schedule%2Fwho/events").json["events"]
    for kind in ("schedule_declared", "schedule_fired"):
        assert [one["data"]["by"] for one in events if one["kind"] == kind] == ["ann", "local"]


def test_a_client_of_the_server_can_do_all_of_it(server: Server) -> None:
    async def body(client: weft.Client) -> None:
        schedules = client.schedules
        found = await schedules.add("c", "hello", {"name": "bob"}, every=timedelta(days=1), overlap="allow")
        assert (found.every, found.status) == ("1d", "active")
        assert "c" in [one.name async for one in schedules.list()]
        assert len(await schedules.next("c", 3)) == 3
        assert await (await schedules.trigger("c")).result(timeout=200) == "hello bob!"
        end = datetime.now(UTC) - timedelta(days=1)
        assert await schedules.backfill("c", end - timedelta(days=2), end) == 2
        await schedules.pause("c", "holiday")
        await schedules.resume("c", "over")
        await schedules.remove("c", "not needed")
        said = {event.kind: event.data async for event in client.get("schedule/c").events()}
        for kind, why in (("run_paused", "holiday"), ("run_resumed", "over"), ("cancel_requested", "not needed")):
            assert said[kind]["reason"] == why
        with pytest.raises(weft.BadSchedule) as caught:
            await schedules.add("c", "hello", {"name": "bob"})
        assert caught.value.code == "schedule.no_time"
        with pytest.raises(weft.NotFound):
            await schedules.get("nobody")

    _talk(server, body)


def _talk(server: Server, body: Callable[[weft.Client], Awaitable[Any]]) -> None:
    async def main() -> None:
        async with weft.Client(server.url) as client:
            await body(client)

    asyncio.run(main())
