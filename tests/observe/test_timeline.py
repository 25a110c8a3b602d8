"""The timeline of a run: spans of work and waits, counts, idle gaps, and lines across."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import weft
from weft.core.ids import RunId
from weft.observe.place_log import PlaceLog
from weft.observe.timeline import SPANS_PER_BOX_MAX, TimelineRow, TimeWindow, place_row, timeline_rows
from weft.observe.timeline_marks import GAP_MIN_MS, IdleGap, gaps_of, lines_of
from weft.testing import World

HOUR = 3_600_000


def make_app() -> weft.App:
    app = weft.App()
    failures = [ValueError("no answer")]

    @app.step(retries=weft.Retry(3, delay="20s"))
    async def call(n: int) -> int:
        await asyncio.sleep(5)
        if failures:
            raise failures.pop()
        return n

    @app.workflow
    async def order(ctx: weft.Context, items: int) -> int:
        await call(0)
        await ctx.map("each", call, list(range(items)), width=4)
        await ctx.sleep("1h")
        answer = await ctx.ask("approve", title="Good?")
        return int(answer.approved)

    return app


@pytest.fixture(scope="module")
def log() -> PlaceLog:
    """Return the log of a run that failed once, fanned out, slept for an hour and was answered."""
    app = make_app()
    world = World(app)
    run = world.start("order", {"items": SPANS_PER_BOX_MAX + 1}, id="run")
    world.advance("2h")
    run.answer("approve")
    world.settle()
    found = PlaceLog()

    async def read() -> None:
        service = app.get("run")._service
        async for stored in service.reader.events(await service.row(RunId("run"))):
            found.add(stored)

    world.perform(read)
    world.close()
    return found


def window_of(log: PlaceLog, columns: int = 100) -> TimeWindow:
    begun, now = log.time_of(1), log.time_of(log.seq)
    return TimeWindow(begun, now, columns, now, gaps_of(log, log.seq, now))


def rows_of(log: PlaceLog) -> dict[str, TimelineRow]:
    return {row.box: row for row in timeline_rows(log.places, log.seq, window_of(log))}


def spans_of(row: TimelineRow) -> list[Any]:
    return [(span.mark, span.wait, span.until - span.since if span.until else None, span.retries) for span in row.spans]


def test_a_retry_is_a_wait_between_two_spans_of_work(log: PlaceLog) -> None:
    row = rows_of(log)["call"]

    end, first, wait, second = spans_of(row)

    assert end == ("done", "", 0, False)
    assert first == ("working", "", 5_000, True)
    assert wait[:2] == ("waiting", "retry")
    assert second == ("working", "", 5_000, False)


def test_waits_say_what_they_wait_for(log: PlaceLog) -> None:
    rows = rows_of(log)

    assert ("waiting", "time", HOUR, False) in spans_of(rows["sleep"])
    assert [span.wait for span in rows["approve"].spans if span.mark == "waiting"] == ["person"]


def test_a_box_with_many_places_counts_how_many_were_open_at_once(log: PlaceLog) -> None:
    row = rows_of(log)["each/call"]

    assert row.places == SPANS_PER_BOX_MAX + 1
    assert row.spans == []
    assert max(row.columns) == 4
    assert row.columns[0] == 0
    assert len(row.columns) == 100


def test_a_place_of_a_box_has_a_row_of_its_own(log: PlaceLog) -> None:
    places = [place for place in log.places if place.box == "each/call"]

    row = place_row(places[2], log.seq, window_of(log))

    assert (row.number, row.place, row.mark) == (places[2].number, places[2].operation.location, "done")
    assert len(row.spans) == 2


def test_idle_times_are_gaps_and_work_is_none(log: PlaceLog) -> None:
    gaps = window_of(log).gaps

    assert [gap.until - gap.since for gap in gaps] == [HOUR, pytest.approx(HOUR, rel=0.1)]
    assert gaps_of(log, 1, log.time_of(1) + GAP_MIN_MS - 1) == []
    assert gaps_of(log, 1, log.time_of(1) + GAP_MIN_MS) == [IdleGap(log.time_of(1), log.time_of(1) + GAP_MIN_MS)]
    scheduled = next(place for place in log.places if place.box == "call").began
    assert gaps_of(log, scheduled, log.time_of(scheduled) + HOUR) == []


def test_gaps_have_no_columns(log: PlaceLog) -> None:
    window = window_of(log)
    gap = window.gaps[0]

    assert window.column(gap.since) == window.column((gap.since + gap.until) // 2) == window.column(gap.until)
    assert window.column(gap.since - 1) > 50


def test_an_answer_is_a_line_across_all_rows(log: PlaceLog) -> None:
    assert [line.kind for line in lines_of(log, log.seq)] == ["answer"]
    assert lines_of(log, log.seq - 2) == []
