"""Windows of time in which limits count: minutes, hours, days and months in UTC. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from weft.agents.policy.rules import WindowLength

LENGTHS: dict[WindowLength, timedelta] = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
}


class PolicyWindow(NamedTuple):
    """A window of time, in milliseconds. Its end belongs to the next window."""

    begins_at: int
    ends_at: int

    def seconds_left(self, now_ms: int) -> int:
        """Return the seconds until the next window begins, rounded up; at least 1."""
        return max(1, -(-(self.ends_at - now_ms) // 1000))


def window_at(per: WindowLength, now_ms: int) -> PolicyWindow:
    """Return the window that a moment lies in."""
    if per != "month":
        length = LENGTHS[per] // timedelta(milliseconds=1)
        begins = now_ms - now_ms % length
        return PolicyWindow(begins, begins + length)
    first = datetime.fromtimestamp(now_ms / 1000, UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    following = (first + timedelta(days=32)).replace(day=1)
    return PolicyWindow(int(first.timestamp()) * 1000, int(following.timestamp()) * 1000)
