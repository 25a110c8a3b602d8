"""Raise the budget of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.core import values
from weft.core.budget_text import read_added
from weft.core.commands import RaiseBudget
from weft.core.ids import RunId
from weft.runtime.service import RunService


async def raise_command(
    service: RunService, run_id: str, added: Mapping[str, Any], reason: str, by: str
) -> RaiseBudget:
    """Return the command that adds amounts to the limits of a run's budget. Raises BadValue, NotFound."""
    values.encode([reason, by], what="the reason has")
    row = await service.row(RunId(run_id))
    currency = (await service.reader.machine(row)).state.currency if row.seq else ""
    return RaiseBudget(added=read_added(added, currency), reason=reason, by=by)
