"""Nominal times by brute force: every minute is looked at, with the clock on the wall of its zone. Knows no cronsim."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from weft.core.events import ScheduleSpec

MINUTE = 60_000
_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))


def expected(spec: ScheduleSpec, first: int, last: int) -> list[int]:
    """All nominal times after ``first``, up to ``last``."""
    if spec.until:
        last = min(last, spec.until)
    if spec.every_ms:
        return [n for n in range(first - first % spec.every_ms, last + 1, spec.every_ms) if n > first]
    found = _follows_real_time if "*" in (spec.cron.split()[0][0], spec.cron.split()[1][0]) else _follows_the_wall
    # The whole day before: a time that comes twice may have come before the period.
    begin = first - first % MINUTE - 26 * 60 * MINUTE
    return sorted({n for n in found(spec, begin, last) if first < n <= last})


def _minutes(spec: ScheduleSpec, first: int, last: int) -> Iterator[tuple[int, datetime]]:
    zone = ZoneInfo(spec.timezone)
    for moment in range(first, last + 1, MINUTE):
        yield moment, datetime.fromtimestamp(moment / 1000, UTC).astimezone(zone)


def _follows_real_time(spec: ScheduleSpec, first: int, last: int) -> Iterator[int]:
    fields = [_values(text, *bounds) for text, bounds in zip(spec.cron.split(), _RANGES, strict=True)]
    for moment, local in _minutes(spec, first, last):
        if _matches(fields, local):
            yield moment


def _follows_the_wall(spec: ScheduleSpec, first: int, last: int) -> Iterator[int]:
    """Go along the clock on the wall: where it jumps ahead, what it skips comes at the end; where it goes back, what
    was shown before does not come again.
    """
    fields = [_values(text, *bounds) for text, bounds in zip(spec.cron.split(), _RANGES, strict=True)]
    shown = int(next(_minutes(spec, first, last))[1].replace(tzinfo=UTC).timestamp() * 1000) - MINUTE
    for moment, local in _minutes(spec, first, last):
        wall = int(local.replace(tzinfo=UTC).timestamp() * 1000)
        skipped = [datetime.fromtimestamp(t / 1000, UTC) for t in range(shown + MINUTE, wall, MINUTE)]
        if (spec.dst == "run" and any(_matches(fields, one) for one in skipped)) or (
            wall > shown and _matches(fields, local)
        ):
            yield moment
        shown = max(shown, wall)


def _matches(fields: list[set[int]], local: datetime) -> bool:
    weekday = (local.weekday() + 1) % 7
    now = (local.minute, local.hour, local.day, local.month, weekday)
    return all(value in field for value, field in zip(now, fields, strict=True))


def _values(text: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        first, dash, last = (span, "", "") if span != "*" else (str(low), "-", str(high))
        if "-" in first and not dash:
            first, dash, last = first.partition("-")
        found.update(range(int(first), int(last if dash else first) + 1, int(step or 1)))
    return found
