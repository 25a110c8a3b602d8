"""The state of the steps of a goal run: their outputs, what pending steps wait for, and which steps are excluded."""

from __future__ import annotations

from collections.abc import Mapping

from weft.core.goal.catalogue import Checkup
from weft.core.goal.machine import GoalMachine
from weft.core.goal.nodes import NeedNode, StepNode
from weft.core.goal.state import OVER_STEP
from weft.observe.diagnosis import ExcludedStep, PendingNeed, StepStanding


def step_standings(machine: GoalMachine, health: Mapping[str, Checkup]) -> list[StepStanding]:
    """Return the state of all steps of the plan, in the order of the plan."""
    flow = machine.flow
    return [_standing(step, health.get(step.id)) for step in flow.by_index[:]] if flow is not None else []


def excluded_steps(machine: GoalMachine) -> list[ExcludedStep]:
    """Return the steps that were not planned, with the reason."""
    flow = machine.flow
    excluded = flow.plan.excluded if flow is not None else {}
    return [ExcludedStep(step, one.why, list(one.by)) for step, one in excluded.items()]


def _standing(step: StepNode, health: Checkup | None) -> StepStanding:
    run = step.run
    why = run.why
    if run.status == "failed" and not why and run.failure is not None:
        why = run.failure.message
    is_unhealthy = run.status == "active" and health is not None and health.status == "unhealthy"
    return StepStanding(
        step=step.id,
        status=run.status,
        why=why,
        gave=sorted(run.gave),
        lacks=[fact.name for fact in step.gives if fact.name not in run.gave] if run.status == "completed" else [],
        fan_out=bool(run.fan_out),
        items=run.items,
        items_over=run.items - run.left,
        items_active=run.active,
        needs=_needs(step) if run.status == "pending" else [],
        needed_now=bool(step.needed_now),
        unhealthy=health.error if is_unhealthy and health is not None else "",
    )


def _needs(step: StepNode) -> list[PendingNeed]:
    """Return the needs that keep a step from starting."""
    waits = [need for need in step.needs if need.undecided and not (need.need.role == "optional" and step.unmet)]
    return [_need(need) for need in waits]


def _need(need: NeedNode) -> PendingNeed:
    match = need.need.match.source if need.gate and need.need.match is not None else ""
    open_: dict[str, str] = {
        step.id: step.run.status for step in need.fact.providers if step.run.status not in OVER_STEP
    }
    return PendingNeed(need.fact.name, need.need.role, match, open_)
