"""Check the places that an order of a fork names: steps whose results it sets, and work that it approves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from weft.core import commands as c
from weft.core import values
from weft.core.machine import Machine
from weft.core.run import fork
from weft.errors import Refused
from weft.ports.store import RunRow
from weft.runtime.fork_order import ForkOrder
from weft.runtime.offered_versions import offered_steps
from weft.runtime.programs import code_program
from weft.runtime.service import RunService
from weft.runtime.worker.given_results import check_result


async def steps_ahead(service: RunService, row: RunRow, edits: c.EditRun) -> list[str] | None:
    """Return the names of steps to which only the fork may come, because it goes another way; None for any."""
    is_same = row.status == "completed" and not bytes(edits.input) and len(edits.results) < 2
    return [] if is_same and not edits.version else await _possible_steps(service, row, edits.version)


async def _possible_steps(service: RunService, row: RunRow, to: str) -> list[str] | None:
    """Return the names of steps to which code may come; None for any. Inline steps are known where the code is."""
    offered = None if to else await offered_steps(service)
    if offered is None:
        return None
    code = service.known_code
    program = code_program(code.program(row.workflow, row.version)) if code is not None else None
    texts = program.texts() if program is not None else ()
    return [*offered, *texts] if texts is not None else None


@contextmanager
def hint_at_code(service: RunService, more: Sequence[str] | None) -> Iterator[None]:
    """Say in a refusal that more steps are known where the code is, if it is not here and the fork may come to more."""
    try:
        yield
    except Refused as error:
        if service.known_code is not None or not more:
            raise
        hint = f"{error.hint} Steps of ctx.step to which it has not come are known with the code: --app app.py."
        raise Refused(error.message, hint=hint, code=error.code, **error.context) from None


def check_results(service: RunService, machine: Machine, order: ForkOrder) -> None:
    """Check the types of results that are set, if the code is here. Raises BadValue."""
    if service.known_code is None:
        return
    for place, value in order.set.items():
        check_result(service.known_code, machine.style.step_at(place), values.encode(value, what="a result has"))


async def check_approved(
    service: RunService, row: RunRow, machine: Machine, order: ForkOrder, steps: Sequence[str]
) -> None:
    """Refuse approvals of work to which the fork cannot come: nothing would ever use them. Raises Refused."""
    unknown = []
    for place in order.approved:
        if machine.style.has_code:
            more = await _possible_steps(service, row, order.to)
            problem = fork.never_reached(place, c.EditRun(steps=list(steps), more=more))
        else:
            problem = machine.style.no_work_at(place)
        unknown += [problem] if problem else []
    if unknown:
        raise fork.bad_edit(unknown, hint=fork.places_hint(machine.style.named_places() or steps))
