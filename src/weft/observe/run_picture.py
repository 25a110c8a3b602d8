"""Read the picture of a run, its overview for a terminal, and its result for people."""

from __future__ import annotations

from weft.observe.pictures import Picture
from weft.observe.plan_tree import PlanTree
from weft.observe.styles import views_of
from weft.ports.store import RunRow
from weft.runtime.service import RunService


async def read_picture(service: RunService, row: RunRow) -> Picture | None:
    """Return the graph or plan of a run with its state; None for code. Raises NotFound, RunUnreadable."""
    return await views_of(row.style).picture(service, row)


async def read_overview(service: RunService, row: RunRow) -> Picture | PlanTree | None:
    """Return the overview of a run for a terminal; None for code. Raises NotFound, RunUnreadable."""
    return await views_of(row.style).overview(service, row)


async def shown_result(service: RunService, row: RunRow, raw: bytes) -> bytes:
    """Return the part of a run's result that is shown to people. Raises NotFound, RunUnreadable."""
    return await views_of(row.style).result(service, row, raw)
