"""What a command would do to a run as it stands, in one shape for all commands. Nothing is written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence

import msgspec

from weft.core import commands as c
from weft.core import events as e
from weft.core.ids import RunUid
from weft.core.machine import Machine
from weft.core.plurals import pluralize
from weft.errors import BadValue, Conflict, LimitExceeded, NotFound, Refused, RunFinished, UsageError, WeftError
from weft.observe.boxes import box_at
from weft.observe.place_log import PlaceLog
from weft.observe.sentences import wait_sentence
from weft.observe.waits import waits_of
from weft.ports.run_query import RunQuery
from weft.ports.store import OVER_STATUSES, PENDING, RunRow
from weft.runtime.decision_inputs import DecisionInputs
from weft.runtime.finished_error import finished_error
from weft.runtime.fork_log import ForkIdentity, ForkLog
from weft.runtime.fork_order import ForkOrder, check_order
from weft.runtime.forks import check_forkable
from weft.runtime.service import RunService
from weft.runtime.unreadable import NOT_UNDONE

PLACES_MAX = 200
CHILDREN_MAX = 1_000
REFUSALS = (Refused, RunFinished, NotFound, BadValue, UsageError, Conflict, LimitExceeded)
_BEGIN = (e.TaskScheduled, e.AskOpened, e.ChildStarted, e.TimerSet, e.MessageAwaited)


class DryPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A place to which something would happen. ``what`` names its step, or says what it waits for."""

    place: str
    box: str
    what: str = ""
    note: str = ""
    """What is special, such as an irreversible effect."""


class DryRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why the command would be refused."""

    code: str
    message: str
    hint: str = ""
    place: str = ""


class DryRun(msgspec.Struct, frozen=True, kw_only=True):
    """What a command would do. Lists are cut after 200 places; the summary counts all of them."""

    ok: bool
    summary: str
    undone: list[DryPlace] = []
    """Work that would be undone, in this order."""
    repeated: list[DryPlace] = []
    """Work that would be performed again."""
    cancelled: list[DryPlace] = []
    """What is open and would be given up."""
    children: int = 0
    """How many open runs below this one would be cancelled, or started again by a fork; counted up to 1,000."""
    refused: list[DryRefusal] = []


async def plan_or_refusal(plan: Callable[[], Awaitable[DryRun]]) -> DryRun:
    """Return the plan, or why the command would be refused."""
    try:
        return await plan()
    except REFUSALS as error:
        return refused(error)


def refused(error: WeftError) -> DryRun:
    """Return the dry run of a command that is refused."""
    reason = DryRefusal(code=error.code, message=error.message, hint=error.hint)
    return DryRun(ok=False, summary=error.message, refused=[reason])


# --- cancel ------------------------------------------------------------------------------------------------------


async def dry_cancel(service: RunService, row: RunRow, command: c.CancelRun) -> DryRun:
    """Return what a cancel would do. Raises the refusal."""
    if row.status in OVER_STATUSES:
        raise finished_error(row, command, service.clock.now_ms())
    if row.status == PENDING or not row.seq:
        return DryRun(ok=True, summary="It has not begun, so it ends at once.")
    children = await _open_children(service, row)
    if row.fault is not None:
        return DryRun(ok=True, summary=NOT_UNDONE, children=children)
    machine, inputs, decided = await service.judge(row, command)
    if not decided:
        return DryRun(ok=True, summary=f"It is {row.status} already, so nothing changes.")
    open_ = [
        DryPlace(place=wait.place, box=box_at(row.style, wait.place), what=wait_sentence(wait))
        for wait in waits_of(machine, inputs.env.now)
        if wait.kind != "child"
    ]
    _evolve(machine, inputs, decided)
    undone = [
        DryPlace(place=one.location, box=box_at(row.style, one.location), what=one.plan.step)
        for one in reversed(machine.state.undo)
    ]
    reacts = machine.style.has_code and not command.force and row.status != "held"
    summary = (
        f"Gives up {pluralize(len(open_), 'open place')}, undoes {pluralize(len(undone), 'step')} "
        f"and cancels {pluralize(children, 'run')} below it."
    )
    return DryRun(
        ok=True,
        summary=f"{summary} Its code may react to the cancel first." if reacts else summary,
        undone=undone[:PLACES_MAX],
        cancelled=open_[:PLACES_MAX],
        children=children,
    )


async def _open_children(service: RunService, row: RunRow) -> int:
    """Count the open runs below a run, reached through open runs."""
    found = 0
    left: list[RunUid] = [row.uid]
    while left and found < CHILDREN_MAX:
        after: str | None = None
        parent = left.pop()
        while True:
            page = await service.search(RunQuery(parent=parent, after=after, limit=200))
            open_ = [child.uid for child in page.rows if child.ended_at is None]
            found += len(open_)
            left += open_
            after = page.cursor
            if after is None or found >= CHILDREN_MAX:
                break
    return min(found, CHILDREN_MAX)


# --- retry and set -----------------------------------------------------------------------------------------------


async def dry_retry(service: RunService, row: RunRow, command: c.RetryRun) -> DryRun:
    """Return what a retry would do. Raises the refusal."""
    if row.status == PENDING:
        raise Refused(f"{row.id} is pending: no host has claimed it, so there is nothing to retry.")
    machine, inputs, decided = await service.judge(row, command)
    repeated = await _repeated_work(row, machine, inputs, decided)
    summary = f"Performs {pluralize(len(repeated), 'place')} again and keeps all other recorded results."
    return DryRun(ok=True, summary=summary, repeated=repeated[:PLACES_MAX])


async def dry_set(
    service: RunService, row: RunRow, command: c.SetResult, blobs: dict[str, bytes] | None = None
) -> DryRun:
    """Return what a result that is set by hand would do. Raises the refusal."""
    if row.status in (*OVER_STATUSES, PENDING) and row.status != "failed":
        raise finished_error(row, command, service.clock.now_ms())
    machine, inputs, decided = await service.judge(row, command, blobs)
    dropped = await _repeated_work(row, machine, inputs, [one for one in decided if isinstance(one, e.ResultSet)])
    summary = (
        f"Ends {command.place} with this {'error' if command.error else 'result'} "
        f"and performs {pluralize(len(dropped), 'later place')} again."
    )
    return DryRun(ok=True, summary=summary, repeated=dropped[:PLACES_MAX])


async def _repeated_work(
    row: RunRow, machine: Machine, inputs: DecisionInputs, decided: Sequence[e.AnyEvent]
) -> list[DryPlace]:
    """Return what is performed again: entries that code drops, and what runs without code begin next."""
    found: dict[str, DryPlace] = {}
    for event in decided:
        for number in getattr(event, "dropped", ()):
            place = machine.style.locate(number)
            if place:
                found[place] = DryPlace(place=place, box=box_at(row.style, place))
    if machine.style.has_code:
        return list(found.values())
    _evolve(machine, inputs, decided)
    while decided := await inputs.decided(machine.follow):
        for event in decided:
            _evolve(machine, inputs, [event])
            planned = _dry_place(row, machine, event)
            if planned is not None:
                found[planned.place] = planned
    return list(found.values())


def _dry_place(row: RunRow, machine: Machine, event: e.AnyEvent) -> DryPlace | None:
    """Return the place at which an event begins work or a wait; None if it begins neither."""
    task = getattr(event, "task", None)
    scheduled = task if isinstance(task, e.TaskScheduled) else event
    if not isinstance(scheduled, _BEGIN):
        return None
    place = machine.location(machine.state.seq)
    effect = scheduled.policy.effect if isinstance(scheduled, e.TaskScheduled) else ""
    note = "its effect is irreversible" if effect == "irreversible" else ""
    return DryPlace(place=place, box=box_at(row.style, place), what=getattr(scheduled, "step", ""), note=note)


def _evolve(machine: Machine, inputs: DecisionInputs, events: Iterable[e.AnyEvent]) -> None:
    kept = list(events)
    for event in kept:
        machine.evolve(event, at=inputs.env.now)
    inputs.record(kept)


# --- fork --------------------------------------------------------------------------------------------------------


async def dry_fork(service: RunService, row: RunRow, order: ForkOrder, log: PlaceLog) -> DryRun:
    """Return what a fork would take over and perform again. ``log`` has the places of the original.

    Raises the refusal.
    """
    check_order(order)
    check_forkable(row)
    append, point = await ForkLog(service, row, order, ForkIdentity(RunUid("fork"), row.id, is_dry=True)).append()
    later = [place for place in log.places if place.changes[-1].seq > point and place.standing(log.seq) is not None]
    repeated = [
        DryPlace(
            place=place.operation.location,
            box=place.box,
            what=place.operation.what,
            note="" if order.effects == "perform" else "its recorded result may be used",
        )
        for place in later
        if place.operation.kind in ("step", "ask", "child", "receive", "sleep")
    ]
    return DryRun(
        ok=True,
        summary=f"Takes over {point:,} of {row.seq:,} events; {pluralize(len(repeated), 'later place')} may run again.",
        repeated=repeated[:PLACES_MAX],
        children=len(append.children),
    )
