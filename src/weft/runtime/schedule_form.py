"""Read the definition of a schedule as people write it, and report everything that is wrong with it at once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, get_args

import msgspec
from msgspec import Raw

from weft.core import values
from weft.core.code.locations import check_name
from weft.core.durations import duration_ms, format_ms
from weft.core.events import Dst, Overlap, ScheduleSpec
from weft.core.findings import Finding, Problems, did_you_mean, document_error
from weft.errors import BadDuration, BadSchedule, WeftError
from weft.runtime.cron_calendar import CALENDAR, FIELDS, check_cron, cron_never_matches, zone

OVERLAPS: tuple[str, ...] = get_args(Overlap)
DSTS: tuple[str, ...] = get_args(Dst)
PRIORITY_MAX = 1_000
ALL = "all"
"""The ``catch_up`` without a limit."""
_SOME_TIME = 1_767_225_600_000  # 2026: an expression that has no time in the fifty years after it has none


class ScheduleForm(msgspec.Struct, kw_only=True, frozen=True):
    """A schedule as it is written in code, in a request or on the command line."""

    name: str
    workflow: str
    input: Mapping[str, Any] | bytes = {}
    """Bytes are JSON that the workflow has checked already."""
    cron: str | None = None
    every: str | float | timedelta | None = None
    timezone: str = "UTC"
    dst: str = "run"
    overlap: str = "skip"
    catch_up: str | float | timedelta = "1m"
    jitter: str | float | timedelta | None = None
    until: str | datetime | None = None
    pause_after: int | None = None
    priority: int = 0


def make_schedule_spec(form: ScheduleForm, *, now: int | None = None) -> ScheduleSpec:
    """Return the definition that a form describes. ``now``: refuse a schedule that has no time left.

    Raises:
        BadSchedule: with all findings.
    """
    return _Reader(form).read(now)


class _Reader:
    """Reads one form and collects what is wrong with it."""

    def __init__(self, form: ScheduleForm) -> None:
        self._form = form
        self._problems = Problems("schedule")

    def read(self, now: int | None) -> ScheduleSpec:
        form = self._form
        self._check_names()
        spec = ScheduleSpec(
            workflow=form.workflow,
            input=self._read_input(),
            cron=form.cron or "",
            every_ms=self._read_every(),
            timezone=form.timezone,
            dst=self._one_of("dst", form.dst, DSTS),
            overlap=self._one_of("overlap", form.overlap, OVERLAPS),
            catch_up_ms=-1 if form.catch_up == ALL else self._read_duration("catch_up", form.catch_up),
            jitter_ms=self._read_duration("jitter", form.jitter) if form.jitter is not None else 0,
            until=self._read_until(),
            pause_after=self._pause_after(),
            priority=self._read_priority(),
        )
        self._check_times(spec, now)
        if self._problems.has_errors:
            found = [
                Finding(one.code, one.message, ".".join(map(str, one.at)), suggestion=one.suggestion)
                for one in self._problems.entries
            ]
            raise document_error(found, name=f"The schedule {form.name[:60]!r}", error=BadSchedule)
        return spec

    def _add(self, code: str, field: str, message: str, suggestion: str = "") -> None:
        self._problems.add(code, (field,), message, suggestion)

    def _check_names(self) -> None:
        for field, name in (("name", self._form.name), ("workflow", self._form.workflow)):
            try:
                check_name(name)
            except WeftError as error:
                self._add("bad_name", field, f"{name[:60]!r} cannot be a name.", error.hint)

    def _read_input(self) -> Raw:
        given = self._form.input
        if isinstance(given, bytes):
            return Raw(given)
        try:
            return Raw(values.encode(dict(given), what=f"{self._form.workflow} gets"))
        except WeftError as error:
            self._add("bad_input", "input", error.message, error.hint)
            return Raw(b"{}")

    def _read_priority(self) -> int:
        given: object = self._form.priority
        if isinstance(given, int) and not isinstance(given, bool) and abs(given) <= PRIORITY_MAX:
            return given
        self._add(
            "bad_priority", "priority", f"{values.preview_text(given)} is not a whole number up to {PRIORITY_MAX}."
        )
        return 0

    def _one_of(self, field: str, given: str, known: tuple[str, ...]) -> Any:
        if given not in known:
            near = did_you_mean(str(given), known)
            self._add(f"bad_{field}", field, f"{values.preview_text(given)} is not one of {', '.join(known)}.", near)
            return known[0]
        return given

    def _read_duration(self, field: str, given: Any) -> int:
        try:
            return duration_ms(given)
        except BadDuration as error:
            self._add("bad_duration", field, error.message, error.hint)
            return 0

    def _read_every(self) -> int:
        form = self._form
        if form.every is None:
            if form.cron is None:
                self._add("no_time", "cron", "Neither cron nor every says when it runs.", 'Write cron="0 9 * * *".')
            return 0
        known = len(self._problems.entries)
        every_ms = self._read_duration("every", form.every)
        is_duration = len(self._problems.entries) == known
        if form.cron is not None:
            self._add("two_times", "every", "Both cron and every say when it runs.", "Leave one of them out.")
        elif is_duration and (every_ms % 1000 or not every_ms):
            self._add("bad_duration", "every", f"{format_ms(every_ms)} is not a number of whole seconds, one at least.")
        return every_ms

    def _read_until(self) -> int:
        given = self._form.until
        if given is None:
            return 0
        try:
            moment = given if isinstance(given, datetime) else datetime.fromisoformat(given)
            zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=zone(self._form.timezone))
            return int(zoned.timestamp() * 1000)
        except (ValueError, TypeError, OverflowError):
            hint = "Write 2026-12-31 or 2026-12-31T18:00+01:00."
            self._add("bad_until", "until", f"{values.preview_text(given)} is not a time.", hint)
            return 0

    def _pause_after(self) -> int:
        given: object = self._form.pause_after  # callers may pass anything
        if given is None:
            return 0
        if isinstance(given, bool) or not isinstance(given, int) or given < 1:
            self._add("bad_pause_after", "pause_after", f"{values.preview_text(given)} is not a number of failures.")
            return 0
        return given

    def _check_times(self, spec: ScheduleSpec, now: int | None) -> None:
        try:
            zone(spec.timezone)
        except ValueError as error:
            self._add("unknown_zone", "timezone", str(error), "Names are those of the IANA database: Europe/Berlin.")
            spec = msgspec.structs.replace(spec, timezone="UTC")
        wrong = check_cron(spec.cron) if self._form.cron is not None else ""
        if wrong and len(spec.cron.split()) == FIELDS and cron_never_matches(spec.cron):
            self._add("never_fires", "cron", f"{spec.cron!r} never comes.")
        elif wrong:
            self._add("bad_cron", "cron", f"{spec.cron[:60]!r} is not a cron expression: {wrong}.")
        if wrong or bool(spec.cron) == bool(spec.every_ms):
            return
        endless = msgspec.structs.replace(spec, until=0)
        if not next(CALENDAR.times(endless, _SOME_TIME), 0):
            self._add("never_fires", "cron", f"{spec.cron!r} never comes.")
        elif now is not None and not next(CALENDAR.times(spec, now), 0):
            self._add("never_fires", "until", "It has no time left before until.")
        if spec.every_ms and spec.jitter_ms >= spec.every_ms:
            self._add("bad_jitter", "jitter", "The jitter must be shorter than every.")
