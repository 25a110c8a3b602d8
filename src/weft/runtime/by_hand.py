"""Set the results of runs by hand. A result is checked against the type of its step, if this process has the step."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from weft.core import commands as c
from weft.core import values
from weft.core.decider import Machine
from weft.core.events import ABSENT
from weft.core.ids import RunId
from weft.core.run.by_hand import find_open
from weft.errors import UsageError
from weft.runtime.service import RunService
from weft.steps.python import PythonStep


class GivenResult(msgspec.Struct, frozen=True, kw_only=True):
    """A result that a person gives: an output, or an error."""

    output: Any = None
    error: str = ""
    performed: bool = False
    force: bool = False
    reason: str = ""
    by: str = ""


async def set_result(
    service: RunService, run_id: str, place: str, given: GivenResult, *, key: str | None = None
) -> None:
    """End the work at a place with a result, or replace the result of a code run that is paused, held or failed.

    Raises:
        NotFound: there is no such run, or nothing is open there.
        Refused: the status of the run or the kind of the work does not allow it, or an irreversible task is in flight.
        BadValue: the result has the wrong type.
    """
    if given.error and given.output is not None:
        raise UsageError("Give either an output or an error, not both.")
    values.encode([place, given.error, given.reason, given.by], what="the result has")
    output = ABSENT
    if not given.error:
        raw = values.encode(given.output, what=f"the result for {place} has")
        await _check_type(service, run_id, place, raw)
        output = Raw(await service.values.keep(raw))
    command = c.SetResult(
        place=place,
        output=output,
        error=given.error,
        performed=given.performed,
        force=given.force,
        reason=given.reason,
        by=given.by,
    )
    await service.tell(RunId(run_id), command, key=key)


async def _check_type(service: RunService, run_id: str, place: str, raw: bytes) -> None:
    row = await service.row(RunId(run_id))
    if service.local is None or not row.seq or row.fault is not None:
        return
    body = service.local.catalogue.step(_step_at(await service.reader.machine(row), place))
    if isinstance(body, PythonStep):
        body.check_result(raw)


def _step_at(machine: Machine, place: str) -> str:
    """Return the step of the open task at a place, or else the name at the end of the place."""
    number = None if machine.state.over else find_open(machine, place)
    task = machine.state.tasks.get(number) or machine.state.parked.get(number) if number is not None else None
    return task.step if task is not None else place.rpartition("/")[2].partition("#")[0]
