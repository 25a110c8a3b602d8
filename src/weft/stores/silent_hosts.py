"""Find hosts whose heartbeat counters have stopped, by the observer's own clock. Clocks are never compared.

Rules: docs/internals/engine.md#rule-6.
"""

from __future__ import annotations

import msgspec

from weft.core.ids import HostId


class _Observation(msgspec.Struct):
    """The value of a host's counter, since when it has had this value, and when it was last read."""

    beats: int
    since: float
    read_at: float


class SilentHosts:
    """The heartbeat counters of other hosts, as one observer has seen them."""

    def __init__(self) -> None:
        self._observations: dict[HostId, _Observation] = {}
        self._unobserved: set[HostId] = set()
        """Hosts that could not be observed since their counters were last read."""

    def is_silent(self, host: HostId, *, beats: int, lease_ms: int, monotonic: float) -> bool:
        """Return whether the counter has stood at ``beats`` for a lease. Always false at the first observation."""
        return self.measure_silence(host, beats=beats, monotonic=monotonic) >= lease_ms

    def measure_silence(self, host: HostId, *, beats: int, monotonic: float, known_ms: int = 0) -> float:
        """Return how long the counter has stood at ``beats``, at least ``known_ms``, which others have recorded."""
        last = self._observations.get(host)
        since = monotonic - known_ms / 1000
        if last is not None and last.beats == beats and last.read_at <= monotonic:
            gap = monotonic - last.read_at if host in self._unobserved else 0.0
            since = min(since, last.since + gap)
        self._unobserved.discard(host)
        self._observations[host] = _Observation(beats, since, monotonic)
        return (monotonic - since) * 1000

    def forget(self, host: HostId) -> None:
        """Forget a host that has left."""
        self._observations.pop(host, None)

    def lost_sight(self) -> None:
        """Do not count the time since the last observation as silence: the store could not be read."""
        self._unobserved.update(self._observations)
