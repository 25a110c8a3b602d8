"""The routes for what runs spend, and for their budgets."""

from __future__ import annotations

from weft.errors import BadValue, NotFound, Refused, RunFinished, UsageError
from weft.observe.usage import RunUsage
from weft.server import views
from weft.server.endpoints import budgets
from weft.server.identity import AccessScope
from weft.server.router import API, ApiRoute

BUDGETS = (
    ApiRoute(
        name="getUsage",
        method="GET",
        path=f"{API}/runs/{{id}}/usage",
        summary="What a run and everything below it have spent, and what is left of its budgets",
        endpoint=budgets.usage,
        scope=AccessScope.READ,
        answer=RunUsage,
        errors=(NotFound,),
    ),
    ApiRoute(
        name="raiseBudget",
        method="POST",
        path=f"{API}/runs/{{id}}/budget",
        summary="Raise limits of a run's budget",
        endpoint=budgets.raise_limits,
        scope=AccessScope.OPERATE,
        body=budgets.RaisedBudget,
        answer=views.Accepted,
        errors=(NotFound, Refused, RunFinished, BadValue, UsageError),
    ),
)
