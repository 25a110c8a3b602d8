"""Move a run to another store: it ends here with everything open, and goes on there as it was. Pure.

The two events frame a time in which no store performs the run. A run that has work in flight is not moved, because its
result would come to a store that no longer has the run.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.core.commands import AdoptRun, MoveRun
from weft.core.events import AnyEvent, RunAdopted, RunMoved
from weft.core.run.env import Env
from weft.core.run.state import Departure, State
from weft.core.run.statuses import permits
from weft.core.run.style import AnyRun
from weft.errors import Refused


def work_in_flight(run: AnyRun) -> list[str]:
    """Return the places of tasks that a worker or an external service may be performing."""
    state = run.state
    numbers = [number for number, task in state.tasks.items() if not task.withheld]
    return [run.location(number) for number in sorted({*numbers, *state.accepted})]


def decide_move(run: AnyRun, command: MoveRun, _: Env) -> Sequence[AnyEvent]:
    """End the run here. Raises Refused while work is in flight, RunFinished if the run is over."""
    permits(run.state, command)
    places = work_in_flight(run)
    if places:
        raise Refused(
            f"{run.state.run_id} has work in flight ({', '.join(places[:5])}), so it cannot be moved.",
            hint=move_hint(run.state.run_id),
            code="bundle.in_flight",
        )
    return (RunMoved(digest=command.digest, to=command.to, reason=command.reason, by=command.by),)


def move_hint(run_id: str) -> str:
    """Return what to do before a run can be moved."""
    return f"Pause it, so that no new work begins, and move it when that work has ended: weft pause {run_id}"


def decide_adopt(run: AnyRun, command: AdoptRun, _: Env) -> Sequence[AnyEvent]:
    """Go on with a run that was moved with this bundle. Raises Refused if it was moved with another one."""
    permits(run.state, command)
    moved = run.state.moved
    if moved is None or moved.digest != command.digest:
        raise Refused(f"{run.state.run_id} was moved with another bundle.")
    return (RunAdopted(digest=command.digest, by=command.by),)


def evolve_moved(state: State, event: RunMoved) -> None:
    """End the run here. Unlike other ends, this one leaves everything open in the state."""
    state.moved = Departure(digest=event.digest, status=state.status, to=event.to)
    state.status = "moved"


def evolve_adopted(state: State) -> None:
    """Go on with the status before the move."""
    if state.moved is not None:
        state.status = state.moved.status
        state.moved = None
