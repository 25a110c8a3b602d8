"""A faulty store that also runs out of room: for a while it answers, and takes nothing."""

from __future__ import annotations

from typing import Any

from tests.sim.swarm import Swarm
from weft.errors import Full
from weft.stores.memory import MemoryStore
from weft.testing.faults import FaultyStore, StoreCall
from weft.testing.loop import SimLoop


class FullStore(FaultyStore):
    """Reads go on while it is full."""

    def __init__(self, inner: MemoryStore, loop: SimLoop, swarm: Swarm) -> None:
        super().__init__(inner, loop, swarm)
        self._swarm = swarm

    async def _carry(self, call: StoreCall) -> Any:
        if self._swarm.full and call.is_write and self._swarm.is_full(self._loop.time()):
            self._swarm.seen["full"] += 1
            raise Full(f"{call.what}: no room is left (simulated).")
        return await super()._carry(call)
