"""Who seems dead, judged by counters that stand still on the observer's own clock. Never by comparing two clocks."""

from __future__ import annotations

from weft.core.ids import HostId


class Suspicion:
    """What one observer has seen of other hosts."""

    def __init__(self) -> None:
        self._seen: dict[HostId, tuple[int, float]] = {}

    def is_due(self, host: HostId, *, beats: int, lease_ms: int, monotonic: float) -> bool:
        """Whether the counter has stood at ``beats`` for a lease. A first look never suspects: nothing is known yet."""
        return self.stood_ms(host, beats=beats, monotonic=monotonic) >= lease_ms

    def stood_ms(self, host: HostId, *, beats: int, monotonic: float, known_ms: int = 0) -> float:
        """How long the counter has stood at ``beats``. ``known_ms``: what other observers saw of that, at least."""
        seen = self._seen.get(host)
        since = monotonic - known_ms / 1000
        if seen is not None and seen[0] == beats and seen[1] <= monotonic:
            since = min(since, seen[1])
        self._seen[host] = (beats, since)
        return (monotonic - since) * 1000

    def forget(self, host: HostId) -> None:
        self._seen.pop(host, None)

    def begin_anew(self) -> None:
        """Nothing could be seen for a while: nobody is blamed for that time."""
        self._seen.clear()
