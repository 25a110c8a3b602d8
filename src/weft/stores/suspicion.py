"""Who seems dead, judged by counters that stand still on the observer's own clock. Never by comparing two clocks.

Rules: docs/internals/engine.md#rule-6.
"""

from __future__ import annotations

import msgspec

from weft.core.ids import HostId


class _Seen(msgspec.Struct):
    """A counter, since when it stands there, and when that was last looked at."""

    beats: int
    since: float
    looked_at: float


class Suspicion:
    """What one observer has seen of other hosts."""

    def __init__(self) -> None:
        self._seen: dict[HostId, _Seen] = {}
        self._blind: set[HostId] = set()
        """Hosts that could not be seen since they were last looked at."""

    def is_due(self, host: HostId, *, beats: int, lease_ms: int, monotonic: float) -> bool:
        """Whether the counter has stood at ``beats`` for a lease. A first look never suspects: nothing is known yet."""
        return self.stood_ms(host, beats=beats, monotonic=monotonic) >= lease_ms

    def stood_ms(self, host: HostId, *, beats: int, monotonic: float, known_ms: int = 0) -> float:
        """How long the counter has stood at ``beats``. ``known_ms``: what other observers saw of that, at least."""
        seen = self._seen.get(host)
        since = monotonic - known_ms / 1000
        if seen is not None and seen.beats == beats and seen.looked_at <= monotonic:
            unseen = monotonic - seen.looked_at if host in self._blind else 0.0
            since = min(since, seen.since + unseen)
        self._blind.discard(host)
        self._seen[host] = _Seen(beats, since, monotonic)
        return (monotonic - since) * 1000

    def forget(self, host: HostId) -> None:
        self._seen.pop(host, None)

    def lost_sight(self) -> None:
        """Nothing could be seen for a while: nobody is blamed for that time."""
        self._blind.update(self._seen)
