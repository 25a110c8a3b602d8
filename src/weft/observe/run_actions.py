"""What can be done to a run now, and why the rest cannot. The table of statuses in the core decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import msgspec

from weft.core import commands as c
from weft.core.events import NULL
from weft.core.run.state import State
from weft.core.run.statuses import permits
from weft.errors import WeftError
from weft.ports.store import IMPORTED, OVER_STATUSES, PENDING, RunRow
from weft.runtime.finished_error import imported_error
from weft.runtime.forks import check_forkable
from weft.runtime.service import RunService

_COMMANDS: Mapping[str, c.AnyCommand] = {
    "pause": c.PauseRun(),
    "resume": c.ResumeRun(),
    "cancel": c.CancelRun(),
    "retry": c.RetryRun(),
    "send": c.DeliverMessage("", "message"),
    "set": c.SetResult(place=""),
    "change": c.PatchRun(patch=NULL),
    "move": c.MoveRun(digest=""),
}


class RunAction(msgspec.Struct, frozen=True):
    """Whether something can be done to a run now, and if not, why not."""

    allowed: bool
    why_not: str = ""


class RunActions(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller may do to a run now. ``change`` is a patch; ``keep`` protects the run from deletion."""

    pause: RunAction
    resume: RunAction
    cancel: RunAction
    retry: RunAction
    fork: RunAction
    change: RunAction
    send: RunAction
    set: RunAction
    export: RunAction
    move: RunAction
    delete: RunAction
    keep: RunAction


ALLOWED = RunAction(allowed=True)


async def actions_of(service: RunService, row: RunRow, state: State | None) -> RunActions:
    """Return what can be done to a run. ``state`` is None if the run has not begun or cannot be read."""
    found = {name: _action(partial(_why_without_effect, row, state, command)) for name, command in _COMMANDS.items()}
    if found["retry"].allowed:
        try:
            await service.judge(row, c.RetryRun())
        except WeftError as error:
            found["retry"] = _refused_action(error)
    is_over = row.status in OVER_STATUSES
    return RunActions(
        **found,
        fork=_action(lambda: check_forkable(row)),
        export=ALLOWED if row.seq else RunAction(allowed=False, why_not=f"{row.id} has not begun."),
        delete=ALLOWED if is_over else RunAction(allowed=False, why_not=f"{row.id} is {row.status}; cancel it first."),
        keep=ALLOWED,
    )


def _action(check: Callable[[], str | None]) -> RunAction:
    try:
        why_not = check()
    except WeftError as error:
        return _refused_action(error)
    return RunAction(allowed=False, why_not=why_not) if why_not else ALLOWED


def _refused_action(error: WeftError) -> RunAction:
    return RunAction(allowed=False, why_not=f"{error.message} {error.hint or ''}".strip())


def _why_without_effect(row: RunRow, state: State | None, command: c.AnyCommand) -> str:
    """Return why a command has no effect on a run; empty if it has one. Raises the refusal."""
    if row.status == IMPORTED:
        raise imported_error(row)
    if row.fault is not None:
        is_way_out = isinstance(command, c.CancelRun | c.ResumeRun) and row.status not in OVER_STATUSES
        return "" if is_way_out else f"The log of {row.id} cannot be read."
    if row.status == PENDING or state is None:
        can_wait = isinstance(command, c.CancelRun | c.DeliverMessage)
        return "" if can_wait else f"{row.id} is pending: no host has claimed it."
    return "" if permits(state, command) else f"{row.id} is {row.status} already."
