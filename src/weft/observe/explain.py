"""Explain what a run waits for, since when, and what would unblock it."""

from __future__ import annotations

from typing import Any

import msgspec

from weft.core.decider import Machine
from weft.core.run.state import State
from weft.observe.diagnosis import Diagnosis, Hold, brief, time_of
from weft.observe.explanation import Explanation
from weft.observe.progress import progress_of
from weft.observe.run_hosts import hosting_of
from weft.observe.runs import try_read_run
from weft.observe.sentences import explanation_of
from weft.observe.styles import views_of
from weft.observe.waits import waits_of
from weft.ports.store import IMPORTED, RunRow
from weft.runtime.service import RunService
from weft.runtime.unreadable import NOT_UNDONE


async def explain(service: RunService, row: RunRow) -> Explanation:
    """Explain a run, in sentences and as data. Raises NotFound."""
    machine, problem = await try_read_run(service, row)
    if problem is not None:
        summary = f"it was cancelled. {NOT_UNDONE} {row.fault}" if row.status == "cancelled" else problem.message
        hint = problem.hint
        return Explanation(row.id, row.workflow, row.status, summary, [], 0, hint, style=row.style, code=problem.code)
    found = explanation_of(await diagnose(service, row, machine))
    return found if row.status != IMPORTED else _of_imported(row, found)


def _of_imported(row: RunRow, found: Explanation) -> Explanation:
    """Return how a run stood when it was exported. Nothing that would unblock it can be done here."""
    return msgspec.structs.replace(
        found,
        status=row.status,
        summary=f"it was imported, so nothing goes on with it. When it was exported: {found.summary}",
        waiting=[msgspec.structs.replace(one, unblock="") for one in found.waiting],
        hint=f"Fork it: weft fork {row.id}",
    )


async def diagnose(service: RunService, row: RunRow, machine: Machine | None) -> Diagnosis:
    """Collect everything that is known about a run. ``machine`` is its state, ignored if the run has not begun."""
    now = service.clock.now_ms()
    begun = machine if row.seq else None
    hosting = await hosting_of(service, row, begun)
    known: dict[str, Any] = {
        "run": row.id,
        "workflow": row.workflow,
        "version": row.version,
        "style": row.style or "code",
        "at": time_of(now),
        "is_hosted": hosting.is_owned,
        "is_offered": hosting.is_offered,
        "missing_version": hosting.missing_version,
    }
    if begun is None:
        is_later = row.wake_at is not None and row.wake_at > now
        starts_at = time_of(row.wake_at) if is_later and row.wake_at is not None else None
        return Diagnosis(**known, status=row.status, has_begun=False, starts_at=starts_at)
    held = begun.state.held
    return Diagnosis(
        **known,
        **_state_fields(begun.state),
        hold=Hold(held.code, held.message, held.location) if held is not None else None,
        has_mail=held is not None and bool(await service.store.log.inbox(row.uid)),
        waits=waits_of(begun, now, hosting.idle),
        progress=progress_of(begun),
        **await views_of(begun.style.name).details(service, row, begun),
    )


def _state_fields(state: State) -> dict[str, Any]:
    return {
        "status": state.status,
        "is_over": state.over,
        "steps_done": state.steps_done,
        "failure": brief(state.failure) if state.failure is not None else None,
        "cancel_reason": state.cancelled or "",
        "cancelled_at": time_of(state.cancelled_at) if state.cancelled_at else None,
    }
