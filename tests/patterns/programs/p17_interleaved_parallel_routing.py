"""Two lines of tasks: within a line one after the other, between the lines in any order, and never two at once."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import weft

app = weft.App("memory://")


@app.step
async def examine(what: str) -> str:
    return what


@app.workflow
async def health_check() -> list[str]:
    patient = asyncio.Lock()
    seen: list[str] = []

    async def line(*calls: Coroutine[Any, Any, str]) -> None:
        for call in calls:
            async with patient:
                seen.append(await call)

    await asyncio.gather(
        line(examine("blood"), examine("blood again")),
        line(examine("eyes"), examine("glasses")),
    )
    return seen
