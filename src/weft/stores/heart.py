"""A heart for stores whose beat may come from any thread as it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from weft.core.ids import HostId


class SameHeart:
    """Beats as the host itself does."""

    def __init__(self, beat: Callable[[HostId], Awaitable[None]]) -> None:
        self._beat = beat

    async def beat(self, host: HostId) -> None:
        await self._beat(host)

    async def close(self) -> None:
        """It has nothing of its own."""
