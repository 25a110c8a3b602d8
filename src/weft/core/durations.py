"""Durations: parsed into whole milliseconds and formatted for people. Pure.

Accepts "250ms", "30s", "1h30m", "2d", "1w" (each unit once, biggest first), ISO 8601 without years and months (their
length varies), numbers as seconds, and ``timedelta``. Anything else raises ``BadDuration``.
"""

from __future__ import annotations

import math
import re
from datetime import timedelta

from weft.core.values import shown
from weft.errors import BadDuration

DURATION_MS_MAX = 1000 * 365_25 * 864_000  # a thousand years of 365.25 days; anything longer is a mistake

_N = r"([0-9]{1,15}(?:\.[0-9]{1,9})?)"
_SHORT = re.compile(rf"(?:{_N}w)?(?:{_N}d)?(?:{_N}h)?(?:{_N}m(?!s))?(?:{_N}s)?(?:{_N}ms)?")
_ISO = re.compile(rf"P(?:{_N}W)?(?:{_N}D)?(?:T(?=[0-9])(?:{_N}H)?(?:{_N}M)?(?:{_N}S)?)?")
_UNITS_MS = (604_800_000, 86_400_000, 3_600_000, 60_000, 1_000, 1)  # w d h m s ms

_HINT = 'Write "1h", "30s", "2d", "1h30m", timedelta(hours=1) or seconds as a number.'


def duration_ms(value: str | float | timedelta) -> int:
    """Convert a duration to milliseconds, rounded to the nearest.

    Raises:
        BadDuration: not a duration, negative, or longer than a thousand years.
    """
    given: object = value  # callers may pass anything; type hints are not checked at run time
    if isinstance(given, str):
        exact = _parse(given)
    elif isinstance(given, timedelta):
        exact = given / timedelta(milliseconds=1)
    elif isinstance(given, int | float) and not isinstance(given, bool):
        exact = _from_seconds(given)
    else:
        raise _bad(given)
    if exact < 0:
        raise _bad(value, ": it is negative")
    if exact > DURATION_MS_MAX:
        raise _bad(value, ": it is longer than a thousand years")
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


def _parse(text: str) -> float:
    found = _SHORT.fullmatch(text) or _ISO.fullmatch(text)
    if found is None or not any(found.groups()):
        raise _bad(text)
    return math.fsum(float(count) * unit for count, unit in zip(found.groups(), _UNITS_MS, strict=False) if count)


def _from_seconds(seconds: float) -> float:
    if isinstance(seconds, int) and abs(seconds) > DURATION_MS_MAX:
        return math.inf if seconds > 0 else -math.inf  # it may be too large for a float
    if not math.isfinite(seconds):
        raise _bad(seconds)
    return seconds * 1000.0


def _bad(value: object, why: str = "") -> BadDuration:
    return BadDuration(f"{shown(value)} is not a duration{why}.", hint=_HINT)
