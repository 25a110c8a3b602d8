"""The clock, the ids and the executor of a simulated process. They depend only on the seed and the virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any, TypeVar

from weft.core.ids import Millis
from weft.testing.loop import SimLoop

T = TypeVar("T")

EPOCH_MS = 1_767_225_600_000
"""The time at which every world begins: 2026-01-01, midnight UTC."""


class SimClock:
    """The clocks of one process. The wall clock may be wrong and may jump; the monotonic clock only moves forward."""

    def __init__(self, loop: SimLoop, *, skew_ms: int = 0) -> None:
        self.skew_ms = skew_ms
        self._loop = loop

    def now_ms(self) -> Millis:
        return Millis(EPOCH_MS + self.skew_ms + int(self._loop.time() * 1000 + 1e-6))

    def monotonic(self) -> float:
        return self._loop.time()

    def jump(self, ms: int) -> None:
        """Set the clock forward or back, as an operator would."""
        self.skew_ms += ms


class SeededIds:
    """Ids that are unique in this world and sort by time."""

    def __init__(self, loop: SimLoop, seed: int) -> None:
        self._loop = loop
        self._random = random.Random(seed)  # noqa: S311 - it must be repeatable, not secret

    def new(self) -> str:
        return f"{EPOCH_MS + int(self._loop.time() * 1000):012x}{self._random.getrandbits(80):020x}"


class InlineExecutor:
    """Runs functions on the event loop, because a world has no threads or other processes."""

    async def in_thread(self, body: Callable[[], T]) -> T:
        await asyncio.sleep(0)
        return body()

    async def in_process(self, body: Callable[..., T], *arguments: Any) -> T:
        await asyncio.sleep(0)
        return body(*arguments)
