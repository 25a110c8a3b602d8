"""The end of background tasks that talk to Redis."""

from __future__ import annotations

import asyncio
from typing import Any, Final

CANCEL_SECONDS: Final = 0.1
"""How long to wait for the end of tasks before they are cancelled again."""


async def end_tasks(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks until they are over.

    Once is not enough: the client library may take a cancellation for its own time limit, and ``asyncio.wait_for`` of
    Python 3.11 drops one that comes together with what it waits for. The task would go on, and its owner wait for ever.
    """
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=CANCEL_SECONDS)
    for task in tasks:
        if not task.cancelled():
            task.exception()  # nobody asks how it ended
