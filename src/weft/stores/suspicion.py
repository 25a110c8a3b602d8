"""Who seems dead, judged by counters that stand still on the observer's own clock. Never by comparing two clocks."""

from __future__ import annotations

from weft.core.ids import HostId


class Suspicion:
    """What one observer has seen of other hosts."""

    def __init__(self) -> None:
        self._seen: dict[HostId, tuple[int, float]] = {}

    def is_due(self, host: HostId, *, beats: int, lease_ms: int, monotonic: float) -> bool:
        """Whether the counter has stood at ``beats`` for a lease. A first look never suspects: nothing is known yet."""
        seen = self._seen.get(host)
        if seen is None or seen[0] != beats or monotonic < seen[1]:
            self._seen[host] = (beats, monotonic)
            return False
        return (monotonic - seen[1]) * 1000 >= lease_ms

    def forget(self, host: HostId) -> None:
        self._seen.pop(host, None)
