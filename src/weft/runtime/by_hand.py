"""Set the results of runs by hand. A result is checked against the type of its step: by this process if it has the
code, and by the host of the run.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from msgspec import Raw

from weft.core import commands as c
from weft.core import values
from weft.core.events import ABSENT
from weft.core.ids import RunId
from weft.core.run.by_hand import find_open, step_at
from weft.core.run.env import Env, MissingInputs
from weft.errors import BadValue, UsageError, WeftError
from weft.ports.hosts import Hosts
from weft.ports.store import RunRow
from weft.runtime.schema_check import check_schema
from weft.runtime.service import RunService
from weft.runtime.worker.given_results import check_result

PATIENCE_SECONDS = 10.0
POLL_SECONDS = 0.02


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
    command, blobs = await checked_command(service, run_id, place, given)
    for raw in blobs.values():
        await service.values.keep(raw)
    await _tell_run(service, RunId(run_id), command, key or f"set-{service.ids.new()}")


async def checked_command(
    service: RunService, run_id: str, place: str, given: GivenResult
) -> tuple[c.SetResult, dict[str, bytes]]:
    """Return the command that sets a result, and the blobs that must be stored before. Raises as ``set_result``."""
    if given.error and given.output is not None:
        raise UsageError("Give either an output or an error, not both.")
    values.encode([place, given.error, given.reason, given.by], what="the result has")
    output, blobs = ABSENT, {}
    if not given.error:
        raw = values.encode(given.output, what=f"the result for {place[:60]} has")
        await _check_type(service, run_id, place, raw)
        sealed = values.seal_inline(raw)
        if sealed is None:
            digest, sealed = service.values.hold(raw)
            blobs = {digest: raw}
        output = Raw(sealed)
    command = c.SetResult(
        place=place,
        output=output,
        error=given.error,
        performed=given.performed,
        force=given.force,
        reason=given.reason,
        by=given.by,
    )
    return command, blobs


async def _check_type(service: RunService, run_id: str, place: str, raw: bytes) -> None:
    """Check a result with the code of this process, if it has any. The host of the run checks it too."""
    row = await service.row(RunId(run_id))
    if service.known_code is None or not row.seq or row.fault is not None:
        return
    machine = await service.reader.machine(row)
    number = None if machine.state.over else find_open(machine, place)
    check_result(service.known_code, step_at(machine.state, place, number), raw)


async def _tell_run(service: RunService, run_id: RunId, command: c.SetResult, key: str) -> None:
    """Give the result to the run, and wait until its host has decided, if there is a host. Raises its refusal."""
    await service.tell(run_id, command, key=key)
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while True:
        row = await service.row(run_id)
        known = await service.store.directory.key(row.uid, key)
        if known is None:
            raise await _refusal_by_hand(service, row, command)
        if known.seq or asyncio.get_running_loop().time() > deadline or not await _has_host(service):
            return
        await asyncio.sleep(POLL_SECONDS)


async def _has_host(service: RunService) -> bool:
    """Return whether a process hosts the store. A tenant cannot see that."""
    hosts: Hosts | None = getattr(service.store, "hosts", None)
    return hosts is None or any(not host.gone for host in await hosts.list_all())


async def _refusal_by_hand(service: RunService, row: RunRow, command: c.SetResult) -> WeftError:
    """Return why the host of a run has refused a result: what the run says now, or else the type."""
    machine = await service.reader.machine(row)
    try:
        machine.decide(command, Env(now=service.clock.now_ms(), check=check_schema))
    except WeftError as error:
        return error
    except MissingInputs:
        pass  # only its type can be wrong
    return BadValue(
        f"The host of {row.id} has refused the result for {command.place[:60]!r}: the step does not return this type.",
        hint=f"Nothing was changed. To see the type: weft set {row.id} {command.place[:60]} --app FILE --output JSON",
        code="value.wrong_type",
    )
