"""Timestamps and durations in CEL: conversion from text, and getters for their parts. Pure: no clock is read."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from weft.conditions.budget import Evaluation, EvaluationFault
from weft.conditions.cel.values import cel_type

_PIECE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})(ns|us|µs|ms|s|m|h|d|w)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_ZONE_STEPS = 2_000
_OFFSET = re.compile(r"([+-]?)([0-9]{1,2}):([0-9]{2})")


def timestamp(_frame: Evaluation, value: Any) -> datetime:
    """Convert RFC 3339 text with a time zone, or seconds since 1970, to a timestamp."""
    try:
        if type(value) is datetime:
            return value
        if type(value) is int:
            return datetime.fromtimestamp(value, UTC)
        if type(value) is str and len(value) <= 40:
            moment = datetime.fromisoformat(value)
            if moment.tzinfo is not None:
                return moment.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        pass
    raise EvaluationFault(
        f'"{value[:40]}" is not a timestamp' if type(value) is str else f"`timestamp` does not take {cel_type(value)}",
        hint='Timestamps look like "2026-05-06T07:08:09Z".',
    )


def duration(_frame: Evaluation, value: Any) -> timedelta:
    """Convert text like "1h30m", "-1.5s", "250ms" or "2d" to a duration."""
    if type(value) is timedelta:
        return value
    if type(value) is str and len(value) <= 60:
        text = value.removeprefix("-")
        pieces = _PIECE.findall(text)
        if pieces and "".join(f"{count}{unit}" for count, unit in pieces) == text:
            seconds = sum(float(count) * _SECONDS[unit] for count, unit in pieces)
            try:
                return timedelta(seconds=-seconds if value != text else seconds)
            except OverflowError:
                pass
        if text == "0":
            return timedelta()
    raise EvaluationFault(
        f'"{value[:40]}" is not a duration' if type(value) is str else f"`duration` does not take {cel_type(value)}",
        hint='Durations look like "1h30m".',
    )


@lru_cache(maxsize=256)
def _zone(name: str) -> tzinfo | None:
    """Return the time zone with an offset or name, or None. Cached, because a lookup reads files."""
    try:
        if offset := _OFFSET.fullmatch(name):
            minutes = int(offset[2]) * 60 + int(offset[3])
            return timezone(timedelta(minutes=-minutes if offset[1] == "-" else minutes))
        return ZoneInfo(name) if len(name) <= 60 else None
    except (ValueError, KeyError, OSError):
        return None


def _getter(name: str, read: Callable[[datetime], int], per_unit: float = 0) -> Callable[..., int]:
    """Make a getter for a part of a timestamp in a time zone (by default UTC), or for a duration in whole units."""

    def run(frame: Evaluation, value: Any, zone: Any = "UTC") -> int:
        if type(value) is timedelta and per_unit:
            return _part_of_duration(value, name, per_unit)
        if type(value) is not datetime or type(zone) is not str:
            raise EvaluationFault(
                f"`{name}` takes a timestamp and the name of a time zone, not {cel_type(value)} and {cel_type(zone)}"
            )
        misses = _zone.cache_info().misses
        zone_info = _zone(zone)
        if _zone.cache_info().misses > misses:
            frame.charge(_ZONE_STEPS)
        if zone_info is None:
            raise EvaluationFault(f"there is no time zone `{zone[:60]}`")
        try:
            return read(value.astimezone(zone_info))
        except OverflowError:
            raise EvaluationFault("the timestamp is outside the years 1 to 9999") from None

    return run


def _part_of_duration(value: timedelta, name: str, per_unit: float) -> int:
    whole = abs(value) // timedelta(seconds=per_unit)
    if name == "getMilliseconds":
        whole %= 1000
    return whole if value >= timedelta() else -whole


GETTERS: dict[str, Callable[..., int]] = {
    "getFullYear": _getter("getFullYear", lambda at: at.year),
    "getMonth": _getter("getMonth", lambda at: at.month - 1),
    "getDate": _getter("getDate", lambda at: at.day),
    "getDayOfMonth": _getter("getDayOfMonth", lambda at: at.day - 1),
    "getDayOfWeek": _getter("getDayOfWeek", lambda at: at.isoweekday() % 7),
    "getDayOfYear": _getter("getDayOfYear", lambda at: at.timetuple().tm_yday - 1),
    "getHours": _getter("getHours", lambda at: at.hour, 3600),
    "getMinutes": _getter("getMinutes", lambda at: at.minute, 60),
    "getSeconds": _getter("getSeconds", lambda at: at.second, 1),
    "getMilliseconds": _getter("getMilliseconds", lambda at: at.microsecond // 1000, 0.001),
}
