"""Find hosts that seem dead: their counters stand still by the observer's own clock. Clocks are never compared.

Rules: docs/internals/engine.md#rule-6.
"""

from __future__ import annotations

import msgspec

from weft.core.ids import HostId


class _Seen(msgspec.Struct):
    """A counter, since when it has had this value, and when it was last read."""

    beats: int
    since: float
    looked_at: float


class Suspicion:
    """What one observer knows about the counters of other hosts."""

    def __init__(self) -> None:
        self._seen: dict[HostId, _Seen] = {}
        self._blind: set[HostId] = set()
        """Hosts that could not be observed since their counters were last read."""

    def is_due(self, host: HostId, *, beats: int, lease_ms: int, monotonic: float) -> bool:
        """Return whether the counter has stood at ``beats`` for a lease. The first look never says so."""
        return self.stood_ms(host, beats=beats, monotonic=monotonic) >= lease_ms

    def stood_ms(self, host: HostId, *, beats: int, monotonic: float, known_ms: int = 0) -> float:
        """Return how long the counter has stood at ``beats``. ``known_ms``: what other observers have recorded."""
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
        """Forget the time since the last look: nothing could be observed."""
        self._blind.update(self._seen)
