"""Read the start of a period as people write it: a time, or how long ago."""

from __future__ import annotations

from datetime import datetime, timedelta

from weft.core.durations import duration_ms
from weft.core.ids import Millis
from weft.core.plurals import shortened
from weft.errors import BadValue


def since_to_ms(since: datetime | timedelta | str | None) -> Millis | None:
    """Return a time, or the time that long ago, in milliseconds since 1970. Raises BadValue, BadDuration."""
    if since is None:
        return None
    given: object = since
    if isinstance(since, str):
        try:
            given = datetime.fromisoformat(since)
        except ValueError:
            given = timedelta(milliseconds=duration_ms(since))
    if isinstance(given, timedelta):
        try:
            given = datetime.now().astimezone() - given
        except OverflowError:
            return Millis(0)
    if not isinstance(given, datetime):
        raise BadValue(
            f"since={shortened(repr(since))} is neither a time nor a duration.",
            hint='Write a datetime, a timedelta, "2026-01-31" or "2h".',
        )
    return Millis(int(given.timestamp() * 1000))
