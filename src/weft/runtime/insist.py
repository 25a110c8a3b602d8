"""Asking the store until it answers.

Only for questions that may be put twice: reads, and writes that know themselves again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from weft.errors import Corrupt, NewerSchema, StoreError

if TYPE_CHECKING:
    from weft.runtime.engine import Engine

log = logging.getLogger("weft")

T = TypeVar("T")

PAUSE_SECONDS_FIRST = 0.05
PAUSE_SECONDS_MAX = 2.0


async def insist(engine: Engine, ask: Callable[[], Awaitable[T]]) -> T:
    """The answer, however long the store is away.

    Raises what no waiting can change, and everything once the engine stops.
    """
    pause = PAUSE_SECONDS_FIRST
    while True:
        try:
            return await ask()
        except (Corrupt, NewerSchema):
            raise
        except StoreError as error:
            if not engine.running:
                raise
            engine.complaints.say("weft: the store does not answer (%s); asking again", error)
        await asyncio.sleep(pause)
        pause = min(2 * pause, PAUSE_SECONDS_MAX)
