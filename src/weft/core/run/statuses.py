"""The commands that a run accepts in each status, and the changes of status that are possible.

The tables are data, read by ``decide`` and by the tests. Other commands do not depend on the status, but on whether
their task, timer, question or child is open.
"""

from __future__ import annotations

from typing import NamedTuple

from weft.core import commands as c
from weft.core.run.state import OVER, State, Status
from weft.errors import Refused, RunFinished

LIVE: frozenset[Status] = frozenset({"running", "paused", "cancelling", "rolling_back", "held"})
RESTING: frozenset[str] = frozenset({"paused", "held", *OVER})
"""The statuses in which nothing happens without a command."""


class StatusRule(NamedTuple):
    """The statuses in which a command acts, and those in which it has no effect. In all others, it is refused."""

    acts: frozenset[Status]
    ignored: frozenset[Status] = frozenset()
    action: str = ""
    """What cannot be done to the run, as a participle, for the error message."""
    over: str = ""
    """What does not happen because the run is over, for the error message. Empty: ``action`` says it."""


ALLOWED: dict[type, StatusRule] = {
    c.DeliverMessage: StatusRule(LIVE, over='the message "{0.name}" was not delivered'),
    c.PauseRun: StatusRule(frozenset({"running"}), frozenset({"paused"}), "paused", "there is nothing to pause"),
    c.ResumeRun: StatusRule(
        frozenset({"paused", "held"}), frozenset({"running"}), "resumed", "there is nothing to resume"
    ),
    c.CancelRun: StatusRule(LIVE - {"rolling_back"}, frozenset({"rolling_back"}), over="there is nothing to cancel"),
    c.HoldRun: StatusRule(LIVE - {"held"}, frozenset({"held", "completed", "failed", "cancelled", "moved"})),
    c.RetryRun: StatusRule(frozenset({"failed"}), action="retried"),
    c.RaiseBudget: StatusRule(
        LIVE | {"failed"}, action="given a larger budget", over="its budget cannot be raised any more"
    ),
    c.MoveRun: StatusRule(LIVE, action="moved", over="there is nothing to move; export it without --move"),
    c.AdoptRun: StatusRule(frozenset({"moved"}), action="adopted", over="there is nothing to adopt"),
    c.SetResult: StatusRule(
        frozenset({"running", "paused", "held", "failed"}), action="changed by hand", over="there is nothing to set"
    ),
    c.PatchRun: StatusRule(
        frozenset({"running", "paused", "held", "failed"}),
        action="patched",
        over="it cannot be patched; fork it instead",
    ),
}

TRANSITIONS: frozenset[tuple[str, Status]] = frozenset(
    {
        ("new", "running"),
        ("running", "paused"),
        ("running", "cancelling"),
        ("running", "held"),
        ("running", "rolling_back"),
        ("running", "completed"),
        ("running", "failed"),
        ("paused", "running"),
        ("paused", "cancelling"),
        ("paused", "held"),
        ("paused", "rolling_back"),  # the deadline of a run without code
        ("held", "running"),
        ("held", "cancelling"),
        ("held", "rolling_back"),
        ("cancelling", "rolling_back"),
        ("cancelling", "held"),
        ("cancelling", "cancelled"),  # before the run began
        ("rolling_back", "held"),
        ("rolling_back", "failed"),
        ("rolling_back", "cancelled"),
        ("failed", "running"),
        *((status, "moved") for status in LIVE),
        *(("moved", status) for status in LIVE),  # adopted
        ("cancelled", "running"),  # a schedule that was removed and is declared again
    }
)
"""Every change of status that an event can cause."""


def permits(state: State, command: c.AnyCommand) -> bool:
    """Return whether a command acts in the run's status (if not, it has no effect). Raises Refused, RunFinished."""
    rule = ALLOWED[type(command)]
    status = state.status
    if status in rule.acts:
        return True
    if status in rule.ignored:
        return False
    if rule.over and status in OVER:
        raise run_finished(state, rule.over.format(command))
    raise not_possible(state, rule.action)


def run_finished(state: State, consequence: str) -> RunFinished:
    """Make the error for a command to a run that is over."""
    return RunFinished(f"{state.run_id} is {state.status}; {consequence}.", hint="", run_id=state.run_id)


def not_possible(state: State, action: str) -> Refused:
    """Make the error for a command that the run's status does not allow."""
    hint = f"After fixing the code, run: weft resume {state.run_id}" if state.status == "held" else ""
    return Refused(f"{state.run_id} is {state.status}, so it cannot be {action}.", hint=hint)


def unknown_command(run_id: str, style: str, command: c.AnyCommand) -> Refused:
    """Make the error for a command that runs of this style do not support."""
    words = "".join(f" {char.lower()}" if char.isupper() else char for char in type(command).__name__)
    return Refused(f"{run_id} is a {style} run; it does not support{words}.")


def not_in_graph(state: State, place: str) -> Refused:
    """Make the error for a patch that is to wait for a place in a run that has no tokens."""
    return Refused(
        f"A patch can only wait at a node of a graph; {state.run_id} has no {place[:60]!r}.", hint="Leave at out."
    )
