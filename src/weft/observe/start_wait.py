"""Why a run that has not begun waits: the rule of its workflow about starts, its limit, or a delay."""

from __future__ import annotations

from datetime import datetime

from weft.core.durations import time_of
from weft.core.start_rules import StartRule, decode_rule, key_of_slot, kind_of_slot
from weft.observe.diagnosis import StartWait
from weft.observe.limit_views import describe_standing
from weft.ports.store import NEVER, RunRow
from weft.ports.tasks import RUN_TASK, WORKFLOW_LIMIT
from weft.runtime.service import RunService


async def start_wait(service: RunService, row: RunRow) -> StartWait | None:
    """Return why a run that has not begun waits for its start; None if neither a rule nor a limit makes it wait."""
    if row.seq or row.owner is not None:
        return None
    if row.wake_at == NEVER:
        return StartWait(kind="limit", key="", standing=await _limit_standing(service, row))
    if row.slot is None:
        return None
    kind, key = kind_of_slot(row.slot), key_of_slot(row.slot)
    if kind == "singleton":
        found = await service.store.starts.with_slot(row.slot)
        behind = [other for uid, other in found.items() if uid != row.uid]
        return StartWait(kind=kind, key=key, behind=behind[0]) if behind else None
    if row.wake_at is None or row.wake_at <= service.clock.now_ms():
        return None
    body = await service.store.starts.rule(row.workflow)
    rule = decode_rule(body) if body is not None else StartRule(kind=kind)
    latest = row.created_at + rule.at_most_ms if rule.at_most_ms else 0
    return StartWait(
        kind=kind,
        key=key,
        latest=time_of(latest) if latest else None,
        inputs=row.inputs,
        size=rule.size,
    )


async def _limit_standing(service: RunService, row: RunRow) -> str:
    """Say what the limit of a run's workflow allows, and where the run stands; empty if it is about to begin.

    Also empty for a tenant, which is not told of the runs ahead.
    """
    if service.tenant:
        return ""
    limit = (await service.store.tasks.declared()).get(f"{WORKFLOW_LIMIT}{row.workflow}")
    found = await service.store.tasks.standing(row.uid, RUN_TASK)
    return describe_standing(limit, found) if limit is not None and found is not None else ""


def starts_at(row: RunRow, now: int) -> datetime | None:
    """Return when a run that has not begun starts by itself; None if it is due, or waits for something else."""
    if row.wake_at is None or not now < row.wake_at < NEVER:
        return None
    return time_of(row.wake_at)
