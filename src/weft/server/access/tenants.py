"""An application as one tenant sees it: the same workflows, runs of its own."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weft.core.goal.plan import GoalPlan
from weft.runtime.service import RunService, StartResult
from weft.runtime.tenancy import TenantService
from weft.server.hosted import Hosted, Known, Order


def hosted_for(hosted: Hosted, tenant: str) -> Hosted:
    """Return the application as this tenant sees it."""
    return _TenantHosted(hosted, tenant)


class _TenantHosted:
    def __init__(self, hosted: Hosted, tenant: str) -> None:
        self._hosted = hosted
        self._tenant = tenant

    @property
    def service(self) -> RunService:
        return TenantService(self._hosted.service, self._tenant)

    def workflows(self) -> Sequence[Known]:
        return self._hosted.workflows()

    def plan(self, goals: Sequence[str], given: Sequence[str]) -> GoalPlan:
        return self._hosted.plan(goals, given)

    async def launch_named(self, order: Order) -> StartResult:
        service = TenantService(self._hosted.service, self._tenant)
        run_id = order.id if order.id is not None else f"{order.workflow}-{service.ids.new()}"
        started = await self._hosted.launch_named(msgspec.structs.replace(order, id=service.full(run_id)))
        return StartResult(started.uid, service.own(started.id), started.created)
