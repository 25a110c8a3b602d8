"""Nominal times of schedules: cron expressions in time zones, and fixed intervals.

A cron expression whose minute and hour are fixed follows the wall clock. A time that the clock skips in the change to
summer time is moved to the end of the gap (or left out, with ``dst="skip"``). A time that comes twice counts once, the
first time. An expression whose minute or hour begins with ``*`` follows real time: nothing is moved, and an hour that
comes twice counts twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from cronsim import CronSim, CronSimError

from weft.core.events import ScheduleSpec

_MINUTE = timedelta(minutes=1)
FIELDS = 5


@lru_cache(maxsize=1_000)
def zone(name: str) -> tzinfo:
    """Return a time zone. Raises ValueError if there is none with this name."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"There is no time zone {name[:60]!r}.") from error


def check_cron(text: str) -> str:
    """Return what is wrong with a cron expression; empty if it is valid."""
    if len(text.split()) != FIELDS:
        return "it needs five fields: minute, hour, day of the month, month, day of the week"
    try:
        CronSim(text, datetime(2024, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        wrong = str(error)
        return f"{wrong[0].lower()}{wrong[1:]}"
    return ""


def cron_never_matches(cron: str) -> bool:
    """Return whether a cron expression is well formed but matches no date, such as 31 February."""
    minute, hour, day, _, weekday = cron.split()
    return not check_cron(f"{minute} {hour} {day} * {weekday}")


def follows_real_time(cron: str) -> bool:
    """Return whether an expression follows real time and not the wall clock."""
    minute, hour, *_ = cron.split()
    return minute.startswith("*") or hour.startswith("*")


class CronCalendar:
    """Computes nominal times with cronsim and the time zones of this machine."""

    def times(self, spec: ScheduleSpec, after: int) -> Iterator[int]:
        """Yield the nominal times after a moment, in order, each once."""
        if spec.every_ms:
            found = _times_by_interval(spec.every_ms, after)
        elif spec.timezone == "UTC" or follows_real_time(spec.cron):
            found = _real_times(spec, after)
        else:
            found = _wall_times(spec, after)
        for nominal in found:
            if spec.until and nominal > spec.until:
                return
            if nominal > after:
                after = nominal
                yield nominal


def _times_by_interval(every_ms: int, after: int) -> Iterator[int]:
    nominal = after - after % every_ms
    while True:
        nominal += every_ms
        yield nominal


def _local_time(spec: ScheduleSpec, moment: int) -> datetime:
    return datetime.fromtimestamp(moment / 1000, zone(spec.timezone))


def _to_millis(moment: datetime) -> int:
    return int(moment.timestamp()) * 1000


def _real_times(spec: ScheduleSpec, after: int) -> Iterator[int]:
    for moment in CronSim(spec.cron, _local_time(spec, after)):
        yield _to_millis(moment)


def _wall_times(spec: ScheduleSpec, after: int) -> Iterator[int]:
    where = zone(spec.timezone)
    for wall in CronSim(spec.cron, _local_time(spec, after).replace(tzinfo=None)):
        moment = wall.replace(tzinfo=where)
        if not is_missing(moment):
            yield _to_millis(moment)
        elif spec.dst == "run":
            yield _to_millis(_end_of_gap(moment))


def is_missing(moment: datetime) -> bool:
    """Return whether the wall clock skips this time."""
    return moment.astimezone(UTC).astimezone(moment.tzinfo).replace(tzinfo=None) != moment.replace(tzinfo=None)


def _end_of_gap(moment: datetime) -> datetime:
    while is_missing(moment):
        moment += _MINUTE
    return moment


def clock_notes(spec: ScheduleSpec, nominal: int) -> str:
    """Say what is unusual about a nominal time near a clock change; empty if nothing is."""
    if not spec.cron or spec.timezone == "UTC":
        return ""
    local = _local_time(spec, nominal)
    if _is_twice(local):
        return "second time" if local.fold else "comes twice"
    if not follows_real_time(spec.cron):
        existing = msgspec.structs.replace(spec, dst="skip")
        if next(CALENDAR.times(existing, nominal - 1), 0) != nominal:
            return "moved: the clocks skip its time"
    before, after = _local_time(spec, nominal - 86_400_000), _local_time(spec, nominal + 86_400_000)
    return "clocks change" if before.utcoffset() != after.utcoffset() else ""


def _is_twice(local: datetime) -> bool:
    return local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset()


CALENDAR = CronCalendar()
