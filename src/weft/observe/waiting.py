"""One thing that a run waits for, in words."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec


class Waiting(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing a run waits for."""

    kind: str
    location: str
    what: str
    since: datetime
    until: datetime | None = None
    unblock: str = ""


def time_of(ms: int) -> datetime:
    """A moment of the log."""
    return datetime.fromtimestamp(ms / 1000, UTC)
