"""Parse durations into milliseconds, and format them for people; convert times. Pure.

A duration is a text like "250ms", "30s", "1h30m", "2d" or "1w" (each unit once, biggest first), a duration in ISO 8601
without years and months (their length varies), a number of seconds, or a ``timedelta``.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta

from weft.core.values import preview_text
from weft.errors import BadDuration

DURATION_MS_MAX = 1000 * 365_25 * 864_000  # a thousand years of 365.25 days; anything longer is a mistake

_N = r"([0-9]{1,15}(?:\.[0-9]{1,9})?)"
_SHORT = re.compile(rf"(?:{_N}w)?(?:{_N}d)?(?:{_N}h)?(?:{_N}m(?!s))?(?:{_N}s)?(?:{_N}ms)?")
_ISO = re.compile(rf"P(?:{_N}W)?(?:{_N}D)?(?:T(?=[0-9])(?:{_N}H)?(?:{_N}M)?(?:{_N}S)?)?")
_UNITS_MS = (604_800_000, 86_400_000, 3_600_000, 60_000, 1_000, 1)  # w d h m s ms

_HINT = 'Write "1h", "30s", "2d", "1h30m", timedelta(hours=1) or seconds as a number.'


def time_of(ms: int) -> datetime:
    """Return a time in milliseconds since 1970 as a datetime in UTC."""
    return datetime.fromtimestamp(ms / 1000, UTC)


def duration_ms(value: str | float | timedelta) -> int:
    """Convert a duration to milliseconds, rounded to the nearest.

    Raises:
        BadDuration: the value is not a duration, is negative, or is longer than a thousand years.
    """
    anything: object = value  # callers may pass anything; type hints are not checked at run time
    if isinstance(anything, str):
        exact = _parse_seconds(anything)
    elif isinstance(anything, timedelta):
        exact = anything / timedelta(milliseconds=1)
    elif isinstance(anything, int | float) and not isinstance(anything, bool):
        exact = _from_seconds(anything)
    else:
        raise _bad_duration(anything)
    if exact < 0:
        raise _bad_duration(value, ": it is negative")
    if exact > DURATION_MS_MAX:
        raise _bad_duration(value, ": it is longer than a thousand years")
    return math.floor(exact + 0.5)


def format_ms(duration: int) -> str:
    """Format a duration for people ("1h30m", "1.5s", "250ms"). ``duration_ms`` parses the result."""
    if duration < 0:
        return f"-{format_ms(-duration)}"
    if duration < 1000:
        return f"{duration}ms" if duration else "0s"
    rest, seconds_ms = divmod(duration, 60_000)
    rest, minutes = divmod(rest, 60)
    days, hours = divmod(rest, 24)
    parts = [f"{count}{unit}" for count, unit in ((days, "d"), (hours, "h"), (minutes, "m")) if count]
    if seconds_ms:
        parts.append(f"{seconds_ms / 1000:g}s")
    return "".join(parts)


def parse_rate(rate: object) -> tuple[int, int]:
    """Parse a rate ("10/s", "100/1m", "5/1h30m") into a count and a period in milliseconds. Raises BadDuration."""
    number, _, period = rate.partition("/") if isinstance(rate, str) else ("", "", "")
    if not number.isascii() or not number.isdigit() or len(number) > 15:
        raise BadDuration(f"{preview_text(rate)} is not a rate.", hint='Write "10/s" or "100/1m".')
    return int(number), duration_ms(period if period[:1].isdigit() else f"1{period}")


def format_rate(count: int, per_ms: int) -> str:
    """Format a rate for people ("10/s", "100/1m"). ``parse_rate`` parses the result."""
    period = format_ms(per_ms)
    return f"{count}/{period[1:] if period in ('1s', '1m', '1h', '1d') else period}"


def _parse_seconds(text: str) -> float:
    match = _SHORT.fullmatch(text) or _ISO.fullmatch(text)
    if match is None or not any(match.groups()):
        raise _bad_duration(text)
    return math.fsum(float(count) * unit for count, unit in zip(match.groups(), _UNITS_MS, strict=False) if count)


def _from_seconds(seconds: float) -> float:
    if isinstance(seconds, int) and abs(seconds) > DURATION_MS_MAX:
        return math.inf if seconds > 0 else -math.inf  # the number may be too large for a float
    if not math.isfinite(seconds):
        raise _bad_duration(seconds)
    return seconds * 1000.0


def _bad_duration(value: object, why: str = "") -> BadDuration:
    return BadDuration(f"{preview_text(value)} is not a duration{why}.", hint=_HINT)
