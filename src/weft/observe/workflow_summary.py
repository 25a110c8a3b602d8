"""Workflows by name, as a list shows them: what runs of them did in the last day, and how long they take."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import msgspec

from weft.core.ids import Millis
from weft.ports.run_query import RunCount, RunQuery
from weft.ports.store import OPEN_STATUSES, RunRow
from weft.runtime.service import RunService
from weft.runtime.versions import WorkflowVersion

DAY_MS = 86_400_000
COUNT_MAX = 10_000
MEASURED_MAX = 50
"""From how many of the newest completed runs the median duration is taken."""
SCAN = 20_000


class NamedWorkflow(msgspec.Struct, frozen=True):
    """A workflow and its versions, oldest first."""

    name: str
    versions: Sequence[WorkflowVersion]
    newest: WorkflowVersion
    """The version that a start by name takes; without a host, the youngest."""


class RecentRuns(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of a workflow: how many are open, and began or failed within a day."""

    open: RunCount
    day: RunCount
    failed: RunCount
    median_seconds: float | None
    """How long the newest completed runs took; None if there are none."""
    last: RunRow | None


def by_name(versions: Sequence[WorkflowVersion], started: dict[str, str]) -> list[NamedWorkflow]:
    """Group versions by the name of their workflow. ``started`` has the versions that starts by name take."""
    groups: dict[str, list[WorkflowVersion]] = {}
    for one in versions:
        groups.setdefault(one.name, []).append(one)
    return [NamedWorkflow(name, found, _newest(found, started.get(name, ""))) for name, found in groups.items()]


def _newest(versions: Sequence[WorkflowVersion], started: str) -> WorkflowVersion:
    hosted = [one for one in versions if one.hosted]
    return next((one for one in versions if one.version == started), (hosted or versions)[-1])


async def recent_runs(service: RunService, workflow: str) -> RecentRuns:
    """Return what the runs of a workflow did lately."""
    since = Millis(service.clock.now_ms() - DAY_MS)
    query = RunQuery(workflow=workflow, scan=SCAN)
    opened = msgspec.structs.replace(query, statuses=OPEN_STATUSES)
    today = msgspec.structs.replace(query, since=since)
    failed = msgspec.structs.replace(today, status="failed")
    counts = await service.store.directory.count([opened, today, failed], limit=COUNT_MAX)
    completed = msgspec.structs.replace(query, status="completed", limit=MEASURED_MAX)
    durations = [
        (row.ended_at - row.created_at) / 1000
        for row in (await service.search(completed)).rows
        if row.ended_at is not None
    ]
    newest = (await service.search(msgspec.structs.replace(query, limit=1))).rows
    return RecentRuns(
        open=counts[0],
        day=counts[1],
        failed=counts[2],
        median_seconds=round(median(durations), 3) if durations else None,
        last=newest[0] if newest else None,
    )
