"""Set the results of runs by hand."""

from __future__ import annotations

from typing import Any

from weft.observe.dry_runs import DryRun, dry_set, plan_or_refusal
from weft.ports.store import RunRow
from weft.runtime.by_hand import GivenResult, checked_command, set_result
from weft.runtime.service import RunService
from weft.server import views
from weft.server.endpoints.run_control import accepted
from weft.server.endpoints.runs import requested_run
from weft.server.request import ApiCall


class SetByHand(views.Form, frozen=True, kw_only=True):
    """A result for the work at ``place``: an output, which is null if it is left out, or an error.

    With ``performed`` somebody did the work, so it is undone if the run fails. While an irreversible step is in flight
    there, ``force`` is needed.
    """

    place: views.Text
    output: Any = None
    error: views.Text = ""
    performed: bool = False
    force: bool = False
    reason: views.Text = ""
    by: views.Text = ""
    dry_run: bool = False
    """Only return what would happen."""


async def set_by_hand(call: ApiCall) -> views.Accepted | DryRun:
    """End the work at a place with a result, or replace a recorded one."""
    body = call.body_as(SetByHand)
    given = GivenResult(
        output=body.output,
        error=body.error,
        performed=body.performed,
        force=body.force,
        reason=body.reason,
        by=call.by(body.by),
    )
    if body.dry_run:
        row = await requested_run(call)
        return await plan_or_refusal(lambda: _dry(call.service, row, body.place, given))
    await set_result(call.service, call.parameters["id"], body.place, given, key=call.key)
    return await accepted(call)


async def _dry(service: RunService, row: RunRow, place: str, given: GivenResult) -> DryRun:
    command, blobs = await checked_command(service, row.id, place, given)
    return await dry_set(service, row, command, blobs)
