"""Refusals by status: what a run that is over, held or of another style cannot be told to do."""

from __future__ import annotations

from weft.core.commands import AnyCommand
from weft.core.run.state import State
from weft.errors import Refused, RunFinished


def finished(state: State, consequence: str) -> RunFinished:
    """The refusal of a command to a run that is over."""
    return RunFinished(f"{state.run_id} is {state.status}; {consequence}.", hint="", run_id=state.run_id)


def refuse_unless(allowed: bool, state: State, wish: str) -> None:  # noqa: FBT001 - reads as a sentence at its callers
    """Reject what the run's status does not allow."""
    if not allowed:
        hint = f"When its code is corrected: weft resume {state.run_id}" if state.status == "held" else ""
        raise Refused(f"{state.run_id} is {state.status}, so it cannot be {wish}.", hint=hint)


def unknown_command(run_id: str, style: str, command: AnyCommand) -> Refused:
    """The refusal of a command that runs of this style do not know."""
    words = "".join(f" {char.lower()}" if char.isupper() else char for char in type(command).__name__)
    return Refused(f"{run_id} is a {style} run; it cannot be told to{words}.")
