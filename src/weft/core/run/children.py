"""The children of a run: their starts and reports, and the position of a run in its tree. Pure."""

from __future__ import annotations

from weft.core.commands import ReportChildEnded, StartGoal, StartRun
from weft.core.events import ChildStarted, Parent
from weft.core.ids import HOOK_CHAIN, EntryId
from weft.core.run.questions import STARTED_BY, STARTED_ROLES
from weft.core.run.state import Child, State
from weft.errors import Failure, LimitExceeded

_INHERITED = (STARTED_BY, STARTED_ROLES, HOOK_CHAIN)
"""Attributes that children have too: the person who started a run also counts as the starter of its children."""

AGENTS_MAX = 8
"""How many agents may be above each other. Runs of workflows between them do not count."""


def root_of(state: State) -> str:
    """Return the uid of the run at the root."""
    return state.root or state.uid


def depth_of(state: State) -> int:
    """Return the number of runs from the root to this one, including both."""
    return state.parent.depth if state.parent is not None else 1


def agent_depth_of(state: State) -> int:
    """Return how many of the runs from the root to this one, including both, are runs of agents."""
    above = state.parent.agents if state.parent is not None else 0
    return above + state.is_agent


def caller_of(state: State) -> Parent | None:
    """Return who asked the agent whose run this is; None if it is not the run of an agent, or was started by itself."""
    return state.parent if state.is_agent else None


def agent_too_deep(agent: str) -> LimitExceeded:
    """Return the error for an agent that would be below too many others."""
    return LimitExceeded(
        f"The agent {agent} is not run: {AGENTS_MAX} agents above it have called each other, which is the limit.",
        hint="Check for an agent that calls itself endlessly.",
        code="limit.agent_depth",
    )


def parent_report(state: State, parent: Parent) -> ReportChildEnded:
    """Return the report to the parent of a run that is over."""
    return ReportChildEnded(
        child=EntryId(parent.entry), status=state.status, output=state.output, failure=state.failure
    )


def cancelled_child(child: Child) -> Failure:
    """Return the failure of a cancelled child, for its parent."""
    return Failure(type="RunCancelled", message=f"{child.run_id} was cancelled", code="run.cancelled")


def start_for_child(state: State, event: ChildStarted, *, facts: bool = False) -> StartRun:
    """Return the first command of the child that the last event started.

    With ``facts``, its output is only the facts.
    """
    caller = caller_of(state)
    start = StartRun(
        run_id=event.run_id,
        workflow=event.workflow,
        input=event.input,
        version=event.version,
        style=event.style,
        timeout_ms=event.timeout_ms,
        parent=Parent(
            uid=state.uid,
            entry=state.seq,
            run_id=state.run_id,
            facts=facts,
            depth=depth_of(state) + 1,
            agents=agent_depth_of(state),
            workflow=caller.workflow if caller is not None else state.workflow,
            node=caller.node if caller is not None else event.node,
        ),
        root=root_of(state),
        trace=state.trace,
        priority=state.priority,
        budgets=list(state.scopes),
        currency=state.currency,
        budget=event.budget,
        attributes={name: value for name, value in state.attributes.items() if name in _INHERITED},
    )
    if not bytes(event.plan):
        return start
    return StartGoal(**{field: getattr(start, field) for field in start.__struct_fields__}, plan=event.plan)
