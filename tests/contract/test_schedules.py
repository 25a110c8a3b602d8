"""Schedules on every store: a firing and the start of its run are one append, and two hosts fire each time once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import weft
from tests.contract.kit import OTHER, RUN, THERE, append, commit, go, new, row, start
from weft.authoring.app_catalogue import AppCatalogue
from weft.core import events as e
from weft.core.ids import RunId
from weft.core.schedule.calendar import ATTRIBUTE, WORKFLOW, schedule_id
from weft.ports.new_run import NewRun
from weft.ports.run_query import RunQuery
from weft.ports.store import Outcome, Store
from weft.runtime.clock import SystemClock, TimeIds
from weft.runtime.host import Host
from weft.runtime.schedule_form import ScheduleForm
from weft.runtime.schedules import ScheduleService
from weft.runtime.service import RunService
from weft.runtime.settings import Settings
from weft.runtime.surroundings import Surroundings
from weft.runtime.worker.executor import PoolExecutor

QUICK = Settings(lease_seconds=1.0, scan_seconds=0.1, poll_seconds=0.02, idle_seconds=0.2)

app = weft.App("memory://")


@app.workflow
async def job(ctx: weft.Context, fails: bool = False) -> int:
    if fails:
        raise ValueError("it fails")
    return int(ctx.scheduled_at.timestamp()) if ctx.scheduled_at is not None else 0


def root(**fields: Any) -> NewRun:
    return new(OTHER, owner=None, start=b"{}", attributes={ATTRIBUTE: "nightly"}, **fields)


def test_a_run_that_an_append_starts_may_be_a_root(store: Store) -> None:
    start(store)

    assert commit(store, append(children=[root()])) == [Outcome.ACCEPTED]
    assert (row(store, OTHER).parent, row(store, OTHER).status) == (None, "pending")
    assert [mail.id for mail in go(store.log.inbox(OTHER))] == ["start"]


def test_an_append_that_is_refused_starts_nothing(store: Store) -> None:
    start(store)

    assert commit(store, append(seq=7, children=[root()])) == [Outcome.STALE_SEQ]
    assert commit(store, append(children=[root()]), host=THERE) == [Outcome.STALE_EPOCH]
    assert go(store.directory.row(OTHER)) is None


@pytest.mark.parametrize("workflow", ["weft.schedule", "weft.bulk", "weft.hook"])
def test_own_runs_are_found_only_if_they_are_named(store: Store, workflow: str) -> None:
    start(store, RUN)
    start(store, OTHER, workflow=workflow)

    def found(**fields: Any) -> list[str]:
        return [one.uid for one in go(store.directory.search(RunQuery(**fields))).rows]

    assert found() == [RUN]
    assert found(status="running", limit=1) == [RUN]
    assert found(workflow=workflow) == [OTHER]
    assert sorted(found(internal=True)) == sorted([RUN, OTHER])
    assert go(store.directory.counts()) == {"running": 1}


# --- with hosts --------------------------------------------------------------------------------------------------


async def hosted(make: Callable[[], Store], hosts: int, play: Callable[[ScheduleService, RunService], Any]) -> None:
    stores = [make() for _ in range(hosts)]
    running: list[tuple[Host, PoolExecutor]] = []
    services = []
    for store in stores:
        await store.open()
        executor = PoolExecutor()
        given = Surroundings(store=store, clock=SystemClock(), ids=TimeIds(), executor=executor, settings=QUICK)
        services.append(RunService(store, given.clock, given.ids))
        host = Host(given, AppCatalogue(app.registered), services[-1])
        await host.start()
        running.append((host, executor))
    try:
        await play(ScheduleService(services[-1]), services[0])
    finally:
        for host, executor in running:
            await host.stop()
            executor.close()
        for store in stores:
            await store.close()


async def events_of(service: RunService, name: str) -> list[e.AnyEvent]:
    found = await service.row(RunId(schedule_id(name)))
    return [e.decode(stored.body) async for stored in service.reader.events(found)]


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(200):
        while not await condition():
            await asyncio.sleep(0.05)


def test_two_hosts_fire_each_nominal_time_once(make: Callable[[], Store]) -> None:
    async def play(schedules: ScheduleService, service: RunService) -> None:
        form = ScheduleForm(name="tick", workflow="job", every="1s", overlap="allow", catch_up="1m")
        await schedules.add(form)

        async def enough() -> bool:
            view = await schedules.get("tick")
            return view.fired >= 2 and not view.open_runs

        await until(enough)
        await schedules.remove("tick")
        events = await events_of(service, "tick")
        fired = [event for event in events if isinstance(event, e.ScheduleFired)]
        page = await service.search(RunQuery(where={ATTRIBUTE: "tick"}))
        assert Counter(event.run_id for event in fired) == Counter(found.id for found in page.rows)
        assert [event.nominal for event in fired] == [fired[0].nominal + n * 1000 for n in range(len(fired))]
        ending = await service.ending(RunId(fired[0].run_id))
        assert int(ending.output) == fired[0].nominal // 1000

    asyncio.run(hosted(make, 2, play))


def test_a_backfill_pauses_after_failures_and_a_removed_schedule_comes_back(make: Callable[[], Store]) -> None:
    async def play(schedules: ScheduleService, service: RunService) -> None:
        form = ScheduleForm(name="old", workflow="job", input={"fails": True}, cron="0 0 1 1 *", pause_after=2)
        await schedules.add(form)
        await schedules.trigger("old")

        async def failed_once() -> bool:
            view = await schedules.get("old")
            return view.fired == 1 and not view.open_runs

        await until(failed_once)
        await schedules.trigger("old")

        async def paused() -> bool:
            return (await schedules.get("old")).status == "paused"

        await until(paused)
        assert "2 runs in a row failed" in (await schedules.get("old")).reason
        await schedules.remove("old")

        async def removed() -> bool:
            return (await schedules.get("old")).status == "removed"

        await until(removed)
        view = await schedules.add(form)
        assert (view.status, view.fired) == ("active", 2)
        found = await service.search(RunQuery(workflow=WORKFLOW))
        assert [one.status for one in found.rows] == ["running"]

    asyncio.run(hosted(make, 1, play))
