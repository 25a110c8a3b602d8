"""The relatives of a run: the runs above it, and those that it started, in pages and counted by workflow."""

from __future__ import annotations

from collections import Counter

import msgspec

from weft.ports.run_query import RunQuery
from weft.ports.store import RunRow
from weft.runtime.service import RunService
from weft.server import views
from weft.server.endpoints.run_detail import ancestors_of
from weft.server.endpoints.runs import requested_run
from weft.server.request import ApiCall

COUNTED_MAX = 2_000


class FamilyQuery(views.Form, frozen=True, kw_only=True):
    """Which of the runs that a run started are wanted."""

    workflow: views.Name | None = None
    status: views.Status | None = None
    limit: views.Limit = 50
    cursor: views.Cursor | None = None


class FamilyMember(msgspec.Struct, frozen=True, kw_only=True):
    """A run as a tree shows it."""

    id: str
    workflow: str
    version: str
    style: str
    status: views.Status
    created_at: views.Moment
    ended_at: views.Moment | None
    has_children: bool | None = None
    """Whether it has started runs; null if that was not asked, as for the runs above."""


class FamilyGroup(msgspec.Struct, frozen=True, kw_only=True):
    """How many runs of one workflow the run has started, by status."""

    workflow: str
    total: int
    by_status: dict[str, int]


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """A run, the runs above it, the root first, and a page of those that it started, newest first."""

    run: FamilyMember
    ancestors: list[FamilyMember]
    groups: list[FamilyGroup]
    """The children by workflow, whatever the filter."""
    is_counted: bool
    """Whether the groups have all children; if not, they have the newest 2,000."""
    children: list[FamilyMember]
    cursor: str | None


async def family(call: ApiCall) -> Family:
    """Return the relatives of a run."""
    asked = call.query_as(FamilyQuery)
    row = await requested_run(call)
    service = call.service
    wanted = RunQuery(
        parent=row.uid, workflow=asked.workflow, status=asked.status, limit=asked.limit, after=asked.cursor
    )
    page = await service.search(wanted)
    groups, is_counted = await _groups(service, row)
    return Family(
        run=_member(row, has_children=bool(groups)),
        ancestors=[_member(one) for one in await ancestors_of(service, row)],
        groups=groups,
        is_counted=is_counted,
        children=[_member(one, has_children=await _has_children(service, one)) for one in page.rows],
        cursor=page.cursor,
    )


async def _groups(service: RunService, row: RunRow) -> tuple[list[FamilyGroup], bool]:
    counts: dict[str, Counter[str]] = {}
    after: str | None = None
    counted = 0
    while counted < COUNTED_MAX:
        page = await service.search(RunQuery(parent=row.uid, limit=500, after=after))
        for child in page.rows:
            counts.setdefault(child.workflow, Counter())[child.status] += 1
        counted += len(page.rows)
        after = page.cursor
        if after is None:
            break
    groups = [
        FamilyGroup(workflow=name, total=found.total(), by_status=dict(found)) for name, found in sorted(counts.items())
    ]
    return groups, after is None


async def _has_children(service: RunService, row: RunRow) -> bool:
    return bool((await service.search(RunQuery(parent=row.uid, limit=1))).rows)


def _member(row: RunRow, *, has_children: bool | None = None) -> FamilyMember:
    return FamilyMember(
        id=row.id,
        workflow=row.workflow,
        version=row.version,
        style=row.style,
        status=row.status,  # type: ignore[arg-type]  # stores keep statuses as text
        created_at=views.required_time(row.created_at),
        ended_at=views.api_time(row.ended_at),
        has_children=has_children,
    )
