"""Explain what a run waits for, since when, and what would unblock it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from weft.core.durations import time_of
from weft.core.machine import Machine
from weft.core.run.state import State
from weft.errors import RunUnreadable
from weft.observe.diagnosis import Diagnosis, Hold, IdleTask, without_traceback
from weft.observe.explanation import Explanation
from weft.observe.progress import progress_of
from weft.observe.run_hosts import Hosting, hosting_of
from weft.observe.runs import try_read_run
from weft.observe.sentences import explanation_of
from weft.observe.start_wait import start_wait, starts_at
from weft.observe.styles import views_of
from weft.observe.usage import budget_sentences, usage_of
from weft.observe.waits import waits_of
from weft.ports.store import IMPORTED, RunRow
from weft.runtime.service import RunService
from weft.runtime.unreadable import NOT_UNDONE


async def explain(service: RunService, row: RunRow) -> Explanation:
    """Explain a run, in sentences and as data. Raises NotFound."""
    return await explain_read(service, row, *await try_read_run(service, row))


async def explain_read(
    service: RunService, row: RunRow, machine: Machine | None, problem: RunUnreadable | None
) -> Explanation:
    """Explain a run whose machine was read, or could not be read."""
    if problem is not None:
        summary = f"it was cancelled. {NOT_UNDONE} {row.fault}" if row.status == "cancelled" else problem.message
        hint = problem.hint
        return Explanation(row.id, row.workflow, row.status, summary, [], 0, hint, style=row.style, code=problem.code)
    found = explanation_of(await diagnose(service, row, machine))
    if machine is not None and machine.state.accounted:
        found = msgspec.structs.replace(found, budget=budget_sentences(await usage_of(service, row)))
    return found if row.status != IMPORTED else _explain_imported(row, found)


async def explain_past(service: RunService, row: RunRow, machine: Machine) -> Explanation:
    """Explain a run as it stood when its log ended with the events in ``machine``. Says nothing about hosts."""
    state = machine.state
    known = _known_fields(row, state.at, Hosting(is_owned=True, is_offered=True))
    return explanation_of(Diagnosis(**known, **await _begun_fields(service, row, machine, state.at, {})))


def _explain_imported(row: RunRow, found: Explanation) -> Explanation:
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
    known = _known_fields(row, now, hosting)
    if begun is None:
        later, wait = starts_at(row, now), await start_wait(service, row)
        return Diagnosis(**known, status=row.status, has_begun=False, starts_at=later, start_wait=wait)
    has_mail = begun.state.held is not None and bool(await service.store.log.inbox(row.uid))
    return Diagnosis(**known, **await _begun_fields(service, row, begun, now, hosting.idle), has_mail=has_mail)


def _known_fields(row: RunRow, at: int, hosting: Hosting) -> dict[str, Any]:
    return {
        "run": row.id,
        "workflow": row.workflow,
        "version": row.version,
        "style": row.style or "code",
        "at": time_of(at),
        "is_hosted": hosting.is_owned,
        "is_offered": hosting.is_offered,
        "missing_version": hosting.missing_version,
    }


async def _begun_fields(
    service: RunService, row: RunRow, machine: Machine, at: int, idle: Mapping[int, IdleTask]
) -> dict[str, Any]:
    """Return the fields of the diagnosis that only a run that has begun has."""
    held = machine.state.held
    return {
        **_state_fields(machine.state),
        "hold": Hold(held.code, held.message, held.location) if held is not None else None,
        "waits": waits_of(machine, at, idle),
        "progress": progress_of(machine),
        **await views_of(machine.style.name).details(service, row, machine),
    }


def _state_fields(state: State) -> dict[str, Any]:
    return {
        "status": state.status,
        "is_over": state.over,
        "steps_done": state.steps_done,
        "failure": without_traceback(state.failure) if state.failure is not None else None,
        "cancel_reason": state.cancelled or "",
        "moved_to": state.moved.to if state.moved is not None else "",
        "cancelled_at": time_of(state.cancelled_at) if state.cancelled_at else None,
    }
