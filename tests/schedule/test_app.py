"""Schedules as users declare and steer them, in a world where time is skipped."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

import weft
from weft.core.schedule.calendar import schedule_id
from weft.runtime.schedule_form import ScheduleForm
from weft.runtime.schedules import Schedule, ScheduleService
from weft.runtime.tenancy import TenantService
from weft.testing import World


def new_app() -> weft.App:
    app = weft.App("memory://")

    @app.step
    async def collect(region: str) -> int:
        return 3

    @app.workflow
    async def report(ctx: weft.Context, region: str, days: int = 1) -> str:
        day = ctx.scheduled_at or await ctx.now()
        return f"{region} {day:%F %H:%M}: {await collect(region)}"

    return app


@pytest.fixture
def app() -> weft.App:
    return new_app()


@pytest.fixture
def world(app: weft.App) -> Iterator[World]:
    app.schedule("daily", app.registered.runnable_named("report"), {"region": "eu"}, cron="0 9 * * *", catch_up="2h")
    made = World(app)
    yield made
    made.close()


def looked_up(world: World, name: str = "daily") -> Schedule:
    return world.perform(lambda: world.app.schedules.get(name))


def runs(world: World) -> dict[str, str]:
    async def read() -> dict[str, str]:
        return {run.id: await run.status() async for run in world.app.list()}

    return world.perform(read)


def test_a_declared_schedule_starts_runs_by_itself(world: World) -> None:
    world.advance("2d10h")

    assert runs(world) == {f"daily/2026010{day}T090000Z": "completed" for day in (3, 2, 1)}
    result = world.perform(lambda: world.app.get("daily/20260102T090000Z").result())
    assert result == "eu 2026-01-02 09:00: 3"
    found = looked_up(world)
    assert (found.status, found.fired, found.declared, found.workflow) == ("active", 3, True, "report")
    assert found.next == datetime(2026, 1, 4, 9, tzinfo=UTC)


def test_a_process_that_dies_at_a_firing_loses_and_repeats_nothing(app: weft.App) -> None:
    """The process is killed before and after every write of three days."""

    def play(crash: Any) -> tuple[dict[str, str], list[str]]:
        fresh = new_app()
        fresh.schedule("daily", "report", {"region": "eu"}, cron="0 */8 * * *", catch_up="1h")
        world = World(fresh)
        world.crash_at_write(crash)
        world.advance("1d1h")
        found = runs(world), world.writes
        world.close()
        return found

    expected, writes = play(None)
    assert len(expected) == 3
    for index in range(len(writes)):
        for when in ("before", "after"):
            assert play((index, when))[0] == expected, (index, when, writes[index])


def test_a_changed_declaration_counts_from_the_next_start_of_a_host(world: World) -> None:
    world.advance("10h")
    changed = new_app()
    changed.schedule("daily", "report", {"region": "us"}, cron="0 12 * * *")
    world.app.registered = changed.registered
    world.restart()
    world.advance("14h")

    assert list(runs(world)) == ["daily/20260101T120000Z", "daily/20260101T090000Z"]
    result = world.perform(lambda: world.app.get("daily/20260101T120000Z").result())
    assert result.startswith("us")


def test_a_declaration_that_has_not_changed_is_left_alone(world: World) -> None:
    before = world.perform(lambda: world.app.get(schedule_id("daily")).status())
    world.restart()
    world.restart()

    async def kinds() -> list[str]:
        return [event.kind async for event in world.app.get(schedule_id("daily")).events()]

    assert before == "running"
    assert world.perform(kinds) == ["run_started", "schedule_declared"]


def test_an_undeclared_schedule_is_shown_as_such_and_never_fires(world: World) -> None:
    world.app.registered = new_app().registered
    world.restart()
    world.advance("3d")

    assert looked_up(world).status == "undeclared"
    assert runs(world) == {}


def test_a_workflow_that_no_host_offers_is_warned_about(world: World) -> None:
    wrong = world.perform(lambda: world.app.schedules.add("x", "repotr", every="1h"))
    right = world.perform(lambda: world.app.schedules.add("x", "report", {"region": "eu"}, every="1h"))

    assert wrong.warning == 'No running host offers repotr, so its runs wait until one does. Did you mean "report"?'
    assert (right.warning, right.replaced and right.replaced.workflow) == ("", "repotr")
    with pytest.raises(weft.UnknownWorkflow, match="repotr"):
        world.app.schedule("y", "repotr", every="1h")


def test_a_schedule_that_was_made_by_hand_is_hosted_by_all(world: World) -> None:
    world.perform(lambda: world.app.schedules.add("hourly", "report", {"region": "eu"}, every="1h"))
    world.app.registered = new_app().registered
    world.restart()
    world.advance("2h30m")

    assert list(runs(world)) == ["hourly/20260101T020000Z", "hourly/20260101T010000Z"]
    with pytest.raises(weft.BadSchedule) as caught:
        world.perform(lambda: world.app.schedules.add("hourly", "report", {"rgion": "eu"}, every="1h"))
    assert caught.value.code == "schedule.bad_input"


def test_a_declared_schedule_is_changed_only_in_code(world: World) -> None:
    with pytest.raises(weft.Refused, match="is declared in code") as caught:
        world.perform(lambda: world.app.schedules.add("daily", "report", {"region": "eu"}, every="1h"))
    assert caught.value.code == "schedule.declared"


def test_it_can_be_paused_triggered_backfilled_and_removed(world: World) -> None:
    world.perform(lambda: world.app.schedules.pause("daily", "holiday"))
    assert (looked_up(world).status, looked_up(world).reason) == ("paused", "holiday")
    world.advance("2d12h")
    world.perform(lambda: world.app.schedules.resume("daily"))
    world.settle()
    assert looked_up(world).missed == 3
    handle = world.perform(lambda: world.app.schedules.trigger("daily"))
    world.settle()
    assert runs(world) == {handle.id: "completed"}
    day = datetime(2026, 1, 1, tzinfo=UTC)
    assert world.perform(lambda: world.app.schedules.backfill("daily", day, day.replace(day=3, hour=10))) == 3
    world.advance("1m")
    assert len(runs(world)) == 4
    world.perform(lambda: world.app.schedules.remove("daily"))
    world.advance("2d")
    assert len(runs(world)) == 4
    assert looked_up(world).status == "removed"
    assert world.perform(lambda: _all(world)) == []


def test_a_backfill_of_decades_is_refused(world: World) -> None:
    first, last = datetime(2000, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)

    with pytest.raises(weft.BadSchedule, match="more than 5,000 times") as refused:
        world.perform(lambda: world.app.schedules.backfill("daily", first, last))

    assert refused.value.hint.endswith("The first 5,000 times end at 2013-09-08T09:00:00+00:00.")
    assert (
        world.perform(lambda: world.app.schedules.backfill("daily", first, datetime(2013, 9, 8, 9, tzinfo=UTC)))
        == 5_000
    )


async def _all(world: World) -> list[str]:
    return [found.name async for found in world.app.schedules.list()]


def test_explain_and_show_speak_of_its_runs(world: World) -> None:
    world.advance("10h")

    explained = world.perform(lambda: world.app.get(schedule_id("daily")).explain())
    assert explained.path == ["1 fired, 0 missed, 0 found"]
    assert [wait.until for wait in explained.waiting] == [datetime(2026, 1, 2, 9, tzinfo=UTC)]


@pytest.mark.parametrize(
    ("options", "codes"),
    [
        ({}, {"no_time"}),
        ({"cron": "0 9 * * *", "every": "1h"}, {"two_times"}),
        ({"cron": "0 0 30 2 *"}, {"never_fires"}),
        ({"cron": "0 0 31 4,6 *"}, {"never_fires"}),
        ({"cron": "0 0 1 1"}, {"bad_cron"}),
        ({"cron": "0 9 * * *", "timezone": "Mars/Base"}, {"unknown_zone"}),
        ({"every": "1ms"}, {"bad_duration"}),
        ({"every": "0s"}, {"bad_duration"}),
        ({"every": "soon"}, {"bad_duration"}),
        ({"every": "1m", "jitter": "1m"}, {"bad_jitter"}),
        ({"every": "1m", "until": "tomorrow"}, {"bad_until"}),
        ({"every": "1m", "pause_after": 0}, {"bad_pause_after"}),
        (
            {"every": "1m", "overlap": "wait", "dst": "no", "catch_up": "-1"},
            {"bad_overlap", "bad_dst", "bad_duration"},
        ),
        (
            {
                "cron": "x",
                "every": "y",
                "timezone": "z",
                "overlap": "o",
                "jitter": "j",
                "until": "u",
                "pause_after": -1,
            },
            {"bad_cron", "bad_duration", "two_times", "unknown_zone", "bad_overlap", "bad_until", "bad_pause_after"},
        ),
    ],
)
def test_everything_that_is_wrong_is_said_at_once(app: weft.App, options: dict[str, Any], codes: set[str]) -> None:
    with pytest.raises(weft.BadSchedule) as caught:
        app.schedule("s/", "report", {"region": "eu"}, **options)

    assert {finding.code for finding in caught.value.findings} == {f"schedule.{code}" for code in codes | {"bad_name"}}
    assert app.registered.schedules() == {}


def test_a_schedule_made_by_hand_must_have_a_time_left(world: World) -> None:
    with pytest.raises(weft.BadSchedule) as caught:
        world.perform(
            lambda: world.app.schedules.add("s", "report", {"region": "eu"}, cron="0 9 * * *", until="2025-01-01")
        )
    assert caught.value.code == "schedule.never_fires"


def test_a_wrong_backfill_is_refused_with_all_that_is_wrong(world: World) -> None:
    late = datetime(2030, 1, 1, tzinfo=UTC)
    with pytest.raises(weft.BadSchedule, match="to is before from; to lies in the future; overlap"):
        world.perform(lambda: world.app.schedules.backfill("daily", late.replace(year=2031), late, overlap="x"))  # type: ignore[arg-type]


def test_two_schedules_of_one_name_are_refused(app: weft.App) -> None:
    app.schedule("s", "report", {"region": "eu"}, every="1h")
    app.schedule("s", "report", {"region": "eu"}, every="1h")

    with pytest.raises(weft.NameTaken):
        app.schedule("s", "report", {"region": "us"}, every="1h")


def test_a_group_brings_its_schedules(app: weft.App) -> None:
    group = weft.Group(prefix="shop.")

    @group.workflow
    async def tidy() -> None:
        return

    group.schedule("nightly", tidy(), cron="0 2 * * *")
    app.include(group)

    assert list(app.registered.schedules()) == ["shop.nightly"]


def test_an_unknown_schedule_is_not_found(world: World) -> None:
    with pytest.raises(weft.NotFound, match="There is no schedule 'other'"):
        looked_up(world, "other")


def test_a_large_input_is_kept_beside_the_log(app: weft.App) -> None:
    app.schedule("big", "report", {"region": "x" * 50_000}, cron="0 9 * * *")
    world = World(app)
    world.advance("10h")

    assert runs(world) == {"big/20260101T090000Z": "completed"}
    world.close()


def test_schedules_of_a_real_store_survive_their_process(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/weft.db"

    async def first() -> None:
        app = new_app()
        app.url = url
        app.schedule("often", "report", {"region": "eu"}, every="1s", overlap="allow")
        async with app, asyncio.timeout(200):
            while not (await app.schedules.get("often")).fired:
                await asyncio.sleep(0.02)

    async def second() -> int:
        async with weft.Client(url) as client:
            assert [found.status async for found in client.schedules.list()] == ["active"]  # nobody says otherwise
            return (await client.schedules.get("often")).fired

    asyncio.run(first())
    assert asyncio.run(second()) >= 1


def test_a_tenant_has_schedules_of_its_own(world: World) -> None:
    async def play() -> None:
        service = world.app.service
        acme, other = (ScheduleService(TenantService(service, tenant)) for tenant in ("acme", "other"))
        await acme.add(ScheduleForm(name="daily", workflow="report", input={"region": "a"}, cron="0 12 * * *"))
        assert [found.name async for found in acme.all()] == ["daily"]
        assert [found async for found in other.all()] == []
        with pytest.raises(weft.NotFound):
            await other.get("daily")
        assert (await acme.next("daily", 1))[0].run == "daily/20260101T120000Z"

    world.perform(play)
    world.advance("13h")

    assert set(runs(world)) == {"daily/20260101T090000Z", "@acme/daily/20260101T120000Z"}
