"""How long to wait for a store: as long as it answers somebody. A burst that takes its time is no failure."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

START_SECONDS = 4.0
"""A start gives up when the store has answered nobody for this long."""


@asynccontextmanager
async def patience(answered_at: Callable[[], float]) -> AsyncIterator[None]:
    """Raise TimeoutError when ``answered_at`` (by the loop's clock) has not moved for ``START_SECONDS``."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as limit:
        looks: list[asyncio.TimerHandle] = []

        def look() -> None:
            if loop.time() - answered_at() < START_SECONDS:
                looks[:] = [loop.call_later(START_SECONDS, look)]
            else:
                limit.reschedule(loop.time())

        looks.append(loop.call_later(START_SECONDS, look))
        try:
            yield
        finally:
            looks[0].cancel()
