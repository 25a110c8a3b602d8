"""Show what runs have spent, and raise their budgets."""

from __future__ import annotations

from typing import Any

from weft.core.ids import RunId
from weft.observe.usage import RunUsage, usage_of
from weft.runtime.raise_budget import raise_command
from weft.server import views
from weft.server.endpoints.run_control import accepted
from weft.server.endpoints.runs import requested_run
from weft.server.request import ApiCall


class RaisedBudget(views.Form, frozen=True, kw_only=True):
    """Amounts that are added to the limits of a budget, such as ``{"money": "1 USD", "tokens": 10000}``."""

    add: dict[str, Any]
    reason: views.Text = ""
    by: views.Text = ""


async def usage(call: ApiCall) -> RunUsage:
    """Return what a run and everything below it have spent, and what is left of its budgets."""
    return await usage_of(call.service, await requested_run(call))


async def raise_limits(call: ApiCall) -> views.Accepted:
    """Raise limits of the run's budget."""
    body = call.body_as(RaisedBudget)
    run = RunId(call.parameters["id"])
    command = await raise_command(call.service, run, body.add, body.reason, call.by(body.by))
    await call.service.tell(run, command, key=call.key)
    return await accepted(call)
