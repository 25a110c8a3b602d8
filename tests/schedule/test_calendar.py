"""Nominal times, compared with a clock on the wall that is watched every minute."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from msgspec import Raw

from tests.scale import MARKS, sample, scaled
from tests.schedule.wall import expected
from tests.schedule.worlds import CRONS, ZONES, changes
from weft.core.events import ScheduleSpec
from weft.runtime.cron_calendar import CALENDAR, check_cron, clock_notes, zone

pytestmark = MARKS


def spec(cron: str, timezone: str = "UTC", **fields: object) -> ScheduleSpec:
    return ScheduleSpec(workflow="job", input=Raw(b"{}"), cron=cron, timezone=timezone, **fields)  # type: ignore[arg-type]


def local(cron: str, timezone: str, since: str, count: int, **fields: object) -> list[str]:
    after = int(datetime.fromisoformat(since).timestamp() * 1000)
    times = islice(CALENDAR.times(spec(cron, timezone, **fields), after), count)
    return [f"{datetime.fromtimestamp(one / 1000, ZoneInfo(timezone)):%d %H:%M%z}" for one in times]


def test_a_fixed_time_that_does_not_exist_runs_at_the_end_of_the_gap() -> None:
    found = local("30 2 * * *", "America/New_York", "2026-03-07T12:00:00-05:00", 2)

    assert found == ["08 03:00-0400", "09 02:30-0400"]


def test_a_fixed_time_that_does_not_exist_can_be_left_out() -> None:
    found = local("30 2 * * *", "America/New_York", "2026-03-07T12:00:00-05:00", 1, dst="skip")

    assert found == ["09 02:30-0400"]


def test_a_fixed_time_that_comes_twice_runs_the_first_time() -> None:
    found = local("30 1 * * *", "America/New_York", "2026-10-31T12:00:00-04:00", 2)

    assert found == ["01 01:30-0400", "02 01:30-0500"]


def test_an_hour_that_comes_twice_counts_twice_for_what_follows_real_time() -> None:
    found = local("0 * * * *", "America/New_York", "2026-11-01T00:30:00-04:00", 3)

    assert found == ["01 01:00-0400", "01 01:00-0500", "01 02:00-0500"]


def test_half_an_hour_may_be_skipped_too() -> None:
    assert local("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00+10:30", 1) == ["04 02:30+1100"]


def test_intervals_are_aligned_to_1970() -> None:
    every = ScheduleSpec(workflow="job", input=Raw(b"{}"), every_ms=7 * 60_000)

    assert list(islice(CALENDAR.times(every, 1), 2)) == [420_000, 840_000]
    assert next(CALENDAR.times(every, 420_000)) == 840_000


def test_notes_say_what_is_unusual() -> None:
    new_york = spec("30 2 * * *", "America/New_York")
    times = list(islice(CALENDAR.times(new_york, int(datetime(2026, 3, 7, tzinfo=UTC).timestamp() * 1000)), 3))

    assert [clock_notes(new_york, one) for one in times[:2]] == ["clocks change", "moved: the clocks skip its time"]
    hourly = spec("0 * * * *", "America/New_York")
    twice = islice(CALENDAR.times(hourly, int(datetime(2026, 11, 1, 4, 30, tzinfo=UTC).timestamp() * 1000)), 2)
    assert [clock_notes(hourly, one) for one in twice] == ["comes twice", "second time"]
    assert clock_notes(spec("0 9 * * *"), 0) == ""


@pytest.mark.parametrize("text", ["", "* * * *", "* * * * * *", "61 * * * *", "0 0 30 2 *", "a b c d e", "@daily"])
def test_what_is_not_cron_is_named(text: str) -> None:
    assert check_cron(text)


@pytest.mark.parametrize("name", ["", "Mars/Base", "../etc/passwd", "/etc/localtime", "a" * 300, "Europe"])
def test_what_is_not_a_zone_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="There is no time zone"):
        zone(name)


@pytest.mark.parametrize("timezone", sample(2, ZONES))
def test_times_are_those_that_a_watched_clock_shows(timezone: str) -> None:
    chance = random.Random(timezone)
    for _ in range(scaled(12, 400)):
        cron = chance.choice(CRONS)
        change = chance.choice(changes(timezone))
        first = change - chance.randrange(26 * 60) * 60_000 - chance.randrange(60_000)
        last = first + 50 * 3_600_000
        known = spec(cron, timezone, dst=chance.choice(("run", "skip")))
        found = []
        for nominal in CALENDAR.times(known, first):
            if nominal > last:
                break
            found.append(nominal)
        assert found == expected(known, first, last), (cron, timezone, known.dst, first)
        # From wherever one looks, the next time is the same.
        for moment in (chance.randrange(first, last) for _ in range(20)):
            following = next(one for one in [*found, None] if one is None or one > moment)
            assert following is None or next(CALENDAR.times(known, moment)) == following
