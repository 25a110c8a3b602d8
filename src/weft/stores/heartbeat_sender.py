"""The heartbeat sender of stores that any thread may use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from weft.core.ids import HostId


class SharedHeartbeatSender:
    """Sends heartbeats through the store's own ``Hosts.beat``, without a separate connection."""

    def __init__(self, beat: Callable[[HostId], Awaitable[None]]) -> None:
        self._beat = beat

    async def beat(self, host: HostId) -> None:
        await self._beat(host)

    async def close(self) -> None:
        """Do nothing: there is no connection to close."""
