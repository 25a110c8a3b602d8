"""Viewers of a busy run get what fits into their part of the time, and everything as soon as it rests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from tests.observe.test_viewed_run import play
from weft.core.ids import RunId
from weft.observe import viewed_run
from weft.observe.cpu_pace import CpuPace
from weft.observe.cpu_time import CpuTime
from weft.observe.viewed_run import ViewedRuns
from weft.ports.store import RunRow
from weft.runtime.service import RunService

PAGE = 4
Look = Callable[[RunService, RunRow, ViewedRuns], Awaitable[None]]


@pytest.fixture
def views(monkeypatch: pytest.MonkeyPatch) -> Callable[[Look], None]:
    """Return a function that looks at a run as if it were open, with small pages, each of which takes too long."""
    monkeypatch.setattr(viewed_run, "EVENTS_PER_TURN", PAGE)
    monkeypatch.setattr(viewed_run, "TURN_SECONDS_MAX", 0.0)
    world, app = play("code")

    def show(look: Look) -> None:
        async def perform() -> None:
            service = app.get("run")._service
            row = await service.row(RunId("run"))
            await look(service, msgspec.structs.replace(row, ended_at=None), ViewedRuns())

        world.perform(perform)
        world.close()

    return show


def test_a_busy_run_is_folded_in_parts_and_a_resting_one_to_its_end(views: Callable[[Look], None]) -> None:
    async def look(service: RunService, row: RunRow, runs: ViewedRuns) -> None:
        viewed = await runs.get(service, row, is_busy=lambda: True)
        assert (viewed.log.seq, viewed.is_behind) == (PAGE, True)
        await runs.get(service, row, is_busy=lambda: False)
        assert (viewed.log.seq, viewed.is_behind) == (row.seq, False)

    views(look)


def test_the_next_part_comes_after_a_pause_that_all_viewers_share(views: Callable[[Look], None]) -> None:
    async def look(service: RunService, row: RunRow, runs: ViewedRuns) -> None:
        viewed = await runs.get(service, row, is_busy=lambda: True)
        viewed._pace.spend(1.0)
        await runs.get(service, row, is_busy=lambda: True)
        assert (viewed.log.seq, viewed.is_behind) == (PAGE, True)
        viewed._pace.spend(0.0)
        await runs.get(service, row, is_busy=lambda: True)
        assert viewed.log.seq == 2 * PAGE

    views(look)


def test_other_requests_see_what_the_viewers_of_a_busy_run_see(views: Callable[[Look], None]) -> None:
    async def look(service: RunService, row: RunRow, runs: ViewedRuns) -> None:
        with runs.watch(row):
            viewed = await runs.get(service, row, is_busy=lambda: True)
            await runs.get_until(service, row, None)
            await runs.get_until(service, row, PAGE - 1)
            assert viewed.log.seq == PAGE
            standing = await viewed.standing(service, row, viewed.log.seq)
            assert standing.seq == PAGE

    views(look)


def test_a_run_that_has_ended_is_shown_to_its_end(views: Callable[[Look], None]) -> None:
    async def look(service: RunService, row: RunRow, runs: ViewedRuns) -> None:
        with runs.watch(row):
            viewed = await runs.get(service, row, is_busy=lambda: True)
            await runs.get_until(service, msgspec.structs.replace(row, ended_at=row.updated_at), None)
            assert viewed.log.seq == row.seq

    views(look)


def test_a_request_for_an_event_that_is_not_folded_yet_folds_it(views: Callable[[Look], None]) -> None:
    async def look(service: RunService, row: RunRow, runs: ViewedRuns) -> None:
        with runs.watch(row):
            viewed = await runs.get(service, row, is_busy=lambda: True)
            await runs.get_until(service, row, PAGE + 1)
            assert viewed.log.seq == row.seq

    views(look)


def test_requests_see_everything_when_nobody_watches_any_more(views: Callable[[Look], None]) -> None:
    async def look(service: RunService, row: RunRow, runs: ViewedRuns) -> None:
        with runs.watch(row):
            viewed = await runs.get(service, row, is_busy=lambda: True)
        await runs.get_until(service, row, None)
        assert viewed.log.seq == row.seq

    views(look)


@pytest.mark.parametrize(
    ("used", "passed", "is_due"),
    [
        pytest.param(0.9, 0.9, False, id="a busy process has not used enough"),
        pytest.param(1.0, 1.0, True, id="a busy process"),
        pytest.param(1.0, 9.0, True, id="a process that gets a part of a core"),
        pytest.param(0.0, 4.0, False, id="an idle process, too early"),
        pytest.param(0.0, 5.0, True, id="an idle process"),
    ],
)
def test_what_costs_ten_milliseconds_is_done_again_after_its_share(used: float, passed: float, is_due: bool) -> None:
    now = cpu = 0.0
    pace = CpuPace(0.01, 0.002, 60.0, clock=lambda: now, cpu_clock=lambda: cpu)
    pace.spend(0.01)

    now, cpu = passed, used

    assert pace.is_due() == is_due


def test_the_longest_pause_holds_whatever_something_cost() -> None:
    now = 0.0
    pace = CpuPace(0.01, 0.002, 60.0, clock=lambda: now, cpu_clock=lambda: 0.0)
    pace.spend(1_000.0)

    now = 59.0
    assert not pace.is_due()
    now = 60.0
    assert pace.is_due()


def test_the_cpu_time_of_a_coroutine_leaves_out_what_others_do_while_it_waits() -> None:
    now = 0.0
    cost = CpuTime(lambda: now)

    async def work() -> str:
        nonlocal now
        now += 1
        await asyncio.sleep(0)
        now += 2
        return "done"

    async def measured() -> str:
        return await cost.measure(work())

    async def other() -> None:
        nonlocal now
        now += 100

    async def both() -> str:
        return (await asyncio.gather(measured(), other()))[0]

    assert asyncio.run(both()) == "done"
    assert cost.seconds == 3.0


def test_a_measured_coroutine_gets_the_errors_of_what_it_awaits() -> None:
    async def work() -> str:
        try:
            await asyncio.wait_for(asyncio.Event().wait(), 0)
        except TimeoutError:
            return "late"
        return ""

    async def measured() -> str:
        return await CpuTime().measure(work())

    assert asyncio.run(measured()) == "late"
