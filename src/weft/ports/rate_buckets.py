"""Token buckets that several processes share. They are an aid: who gets no answer counts by itself."""

from __future__ import annotations

from typing import Protocol


class RateBuckets(Protocol):
    """Token buckets by name."""

    async def take(self, name: str, *, wanted: int, per_second: float, burst: float) -> int | None:
        """Take up to ``wanted`` tokens from a bucket. Returns how many it had; None if nobody answers in time.

        A bucket holds ``burst`` tokens at most, begins full, and gets ``per_second`` new ones.
        """
        ...

    async def close(self) -> None:
        """Disconnect."""
        ...
