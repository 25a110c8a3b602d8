"""The goals and the definitions that a run has after a patch: what can be planned, and what stays as it is."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable

import msgspec

from weft.core.findings import Finding, did_you_mean
from weft.core.goal.definitions import StepDef
from weft.core.goal.patch.request import GoalRequest
from weft.core.goal.patch.standing import failed_without_item, has_begun, may_be_planned_again, may_replace
from weft.core.goal.plan import Excluded, GoalPlan
from weft.core.goal.state import GoalState, StepRun


class StepPool(msgspec.Struct, frozen=True):
    """The goals and definitions of a run after a patch."""

    goals: list[str]
    steps: dict[str, StepDef]
    """Every step that can be planned."""
    kept: frozenset[str]
    """Steps that a later patch can plan, even if this one does not."""
    fixed: frozenset[str]
    """Steps of the plan that stay as they are."""
    satisfied: dict[str, Excluded] = {}
    """Goals of this plan or an earlier one that have no definition, because given facts satisfy them."""
    today: dict[str, StepDef] | None = None
    """The registered steps, if the patch asks for them."""


def definitions_of(state: GoalState, plan: GoalPlan) -> dict[str, StepDef]:
    """Return the newest definition of every step that the run knows."""
    return {**state.definitions, **plan.steps}


def undefined_goals(plan: GoalPlan, steps: Container[str]) -> dict[str, Excluded]:
    """Return the goals of a plan that have no definition. A fact that was given stays given, so they stay satisfied."""
    return {goal: why for goal, why in plan.excluded.items() if goal in plan.goals and goal not in steps}


def requested_pool(state: GoalState, plan: GoalPlan, request: GoalRequest, found: list[Finding]) -> StepPool:
    """Return the goals and definitions that a request asks for. Adds what is wrong with it to ``found``."""
    failed = state.status == "failed"
    before = definitions_of(state, plan)
    steps, kept = dict(before), set(before)
    today = {step.id: step for step in request.registered} if request.catalogue == "now" else None
    if today is not None:
        for step in before:
            run = state.steps.get(step) if step in plan.steps else None
            if run is not None and not may_be_planned_again(run, failed=failed):
                continue
            if step in today:
                steps[step] = today[step]
            elif run is None or not _must_stay(run):
                del steps[step]
                kept.remove(step)
        steps = {**today, **steps}
    for step, definition in request.steps.items():
        if step in plan.steps and not may_replace(state.steps[step], failed=failed):
            if definition != plan.steps[step]:
                found.append(_step_begun_finding(step, state.steps[step]))
            continue
        steps[step] = definition
        kept.add(step)
    satisfied = undefined_goals(plan, steps)
    goals = _requested_goals(plan.goals, request, {**steps, **satisfied}, found)
    pool = StepPool(goals, steps, frozenset(kept), frozenset(), satisfied, today)
    return _fix_unchanged(state, plan, pool)


def earlier_pool(state: GoalState, plan: GoalPlan, rev: int) -> StepPool:
    """Return the goals and definitions before a patch. Patches are numbered from 1."""
    goals, steps = plan.goals, definitions_of(state, plan)
    satisfied = undefined_goals(plan, steps)
    for revision in reversed(state.plan_revisions[rev - 1 :]):
        goals = revision.goals
        satisfied.update(revision.satisfied)
        for step in revision.new:
            steps.pop(step, None)
        steps.update(revision.steps)
    return _fix_unchanged(state, plan, StepPool(list(goals), steps, frozenset(steps), frozenset(), satisfied))


def _fix_unchanged(state: GoalState, plan: GoalPlan, pool: StepPool) -> StepPool:
    """Find the steps that stay as they are, and give them the definition that they have."""
    failed = state.status == "failed"
    steps, fixed = dict(pool.steps), set[str]()
    for step, present in plan.steps.items():
        run = state.steps[step]
        after = steps.get(step)
        if failed and run.status != "completed" and _must_stay(run):  # it has begun, and may begin anew
            original = run.replaced or present
            steps[step] = after = after or original
            if after == original:
                fixed.add(step)
        elif not may_be_planned_again(run, failed=failed):
            steps[step] = present
            fixed.add(step)
    return msgspec.structs.replace(pool, steps=steps, fixed=frozenset(fixed))


def _must_stay(run: StepRun) -> bool:
    """Return whether a step has begun so that it may not leave the plan."""
    return has_begun(run) and not failed_without_item(run)


def staying_steps(state: GoalState, plan: GoalPlan) -> list[str]:
    """Return the steps that have begun and do not leave the plan, even if they are replaced and not needed."""
    return [step for step in plan.steps if _must_stay(state.steps[step])]


def _step_begun_finding(step: str, run: StepRun) -> Finding:
    return Finding(
        "step_begun",
        f"{step} has begun and is {run.status}, so its definition stays.",
        path=step,
        suggestion="Give the new definition another id, or fork the run before the step.",
    )


def _requested_goals(
    present: list[str], request: GoalRequest, steps: Collection[str], found: list[Finding]
) -> list[str]:
    for goal in dict.fromkeys(request.remove):
        if goal not in present:
            hint = did_you_mean(goal, present)
            found.append(Finding("unknown_goal", f"{goal} is not a goal of the run.", path=goal, suggestion=hint))
    goals = [goal for goal in present if goal not in request.remove]
    goals += [goal for goal in dict.fromkeys(request.add) if goal not in goals]
    if not goals:
        message = "no goal would be left."
        found.append(Finding("no_goals", message, suggestion="Keep one goal, add another, or cancel the run."))
    return [goal for goal in goals if goal in steps or _add_unknown_goal(goal, steps, request, found)]


def _add_unknown_goal(goal: str, steps: Iterable[str], request: GoalRequest, found: list[Finding]) -> bool:
    hint = did_you_mean(goal, steps)
    if not hint:
        known = request.catalogue == "now"
        hint = "Register the step." if known else 'Add its definition to "steps", or use "catalogue: now".'
    found.append(Finding("unknown_goal", f"the run knows no step {goal}.", path=goal, suggestion=hint))
    return False
