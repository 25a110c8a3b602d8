"""What runs on a server have spent, and their budgets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

import msgspec

from weft.agents.budget import Budget, amounts_of
from weft.core.budget_text import budget_document
from weft.core.run_rules import run_rules_document
from weft.observe.usage import RunUsage
from weft.runtime.orders import StartOrder
from weft.server.endpoints.budgets import RaisedBudget

T = TypeVar("T")


class SendsRequests(Protocol):
    """A connection to a server."""

    async def get_view(self, path: str, of: type[T]) -> T: ...

    async def post(self, path: str, body: Any, of: type[T], *, key: str | None = None) -> T: ...


class RunOnServer(Protocol):
    """A run on a server: the connection, and the path of the run."""

    remote: Any
    path: str


async def remote_usage(run: RunOnServer) -> RunUsage:
    """Return what the run and everything below it have spent, and what is left of its budgets."""
    connection: SendsRequests = run.remote
    return await connection.get_view(f"{run.path}/usage", RunUsage)


async def raise_remote_budget(
    run: RunOnServer,
    added: Budget | Mapping[str, Any],
    *,
    reason: str = "",
    by: str = "",
    key: str | None = None,
) -> None:
    """Add amounts to the limits of the run's budget. An API key says who asks, and ``by`` is ignored."""
    connection: SendsRequests = run.remote
    body = RaisedBudget(add=dict(amounts_of(added)), reason=reason, by=by)
    await connection.post(f"{run.path}/budget", body, msgspec.Raw, key=key)


def start_options(order: StartOrder) -> dict[str, Any]:
    """Return the priority, the budget and the rules of a start, as a request has them."""
    found: dict[str, Any] = {"priority": order.priority} if order.priority else {}
    if order.rules is not None:
        found["run_policies"] = run_rules_document(order.rules)
    return found if order.budget is None else {**found, "budget": budget_document(order.budget)}
