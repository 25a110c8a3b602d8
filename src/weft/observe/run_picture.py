"""The picture of a run, and what a terminal shows of it."""

from __future__ import annotations

from weft.observe.pictures import Picture
from weft.observe.plan_tree import PlanTree
from weft.observe.styles import views_of
from weft.ports.store import RunRow
from weft.runtime.service import RunService


async def read_picture(service: RunService, row: RunRow) -> Picture | None:
    """Return the graph or the plan of a run with where it stands; None for code. Raises NotFound, RunUnreadable."""
    return await views_of(row.style).picture(service, row)


async def read_overview(service: RunService, row: RunRow) -> Picture | PlanTree | None:
    """Return what a terminal shows of a run; None: the list of its operations. Raises NotFound, RunUnreadable."""
    return await views_of(row.style).overview(service, row)


async def shown_result(service: RunService, row: RunRow, raw: bytes) -> bytes:
    """Return the part of a run's result that people are shown. Raises NotFound, RunUnreadable."""
    return await views_of(row.style).result(service, row, raw)
