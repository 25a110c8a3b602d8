"""Apply a patch to the state of a goal run. The event has the plan and its consequences, so nothing is planned here."""

from __future__ import annotations

from weft.core.events import GoalChange
from weft.core.goal.definitions import StepDef
from weft.core.goal.items import Items
from weft.core.goal.need_counts import NeedCounts
from weft.core.goal.patch.pool import definitions_of, undefined_goals
from weft.core.goal.patch.standing import facts_read, failed_without_item, has_begun
from weft.core.goal.patch.values import decode_definitions, patched_values
from weft.core.goal.plan import GoalPlan, decode_plan
from weft.core.goal.state import GoalState, PlanRevision, StepRun


def apply_change(items: Items, change: GoalChange) -> GoalPlan:
    """Apply a change and return the new plan. The caller counts the needs anew, and then closes the deadlines."""
    state, before = items.state, items.plan
    assert before is not None
    note_read(state, before)
    known = definitions_of(state, before)
    plan = decode_plan(change.plan)
    for step in change.gone:
        _close_windows(items, state.steps[step])
    state.plan = change.plan
    state.definitions = decode_definitions(change.definitions)
    state.plan_revisions.append(_plan_revision(before, known, definitions_of(state, plan)))
    state.steps = {step: state.steps.get(step) or StepRun() for step in plan.steps}
    for step, run in state.steps.items():
        if step in before.steps and before.steps[step] != plan.steps[step]:
            _note_replaced_definition(run, before.steps[step], plan.steps[step])
    for step in change.taken_up:
        run = state.steps[step]
        run.status, run.why, run.windows = "pending", "", {}
    for step, facts in change.forgotten.items():
        _forget_deadlines(items, state.steps[step], facts)
    _set_values(state, plan, change)
    return plan


def note_read(state: GoalState, plan: GoalPlan) -> None:
    """Record the facts that were read, before the steps that read them change."""
    state.read = sorted(facts_read(state, plan.steps, NeedCounts(plan, state)))


def _plan_revision(plan: GoalPlan, before: dict[str, StepDef], after: dict[str, StepDef]) -> PlanRevision:
    changed = {step: definition for step, definition in before.items() if after.get(step) != definition}
    new = [step for step in after if step not in before]
    return PlanRevision(plan.goals, changed, new, undefined_goals(plan, before))


def _note_replaced_definition(run: StepRun, before: StepDef, after: StepDef) -> None:
    """Note the definition under which a step began, so that a retry begins it anew, unless the patch is undone."""
    if not has_begun(run) or failed_without_item(run):
        return
    original = run.replaced or before
    run.replaced = original if after != original else None


def _forget_deadlines(items: Items, run: StepRun, facts: list[str]) -> None:
    for fact in facts:
        items.close_window(run, fact)
        run.windows.pop(fact, None)
        run.decided.pop(fact, None)


def _close_windows(items: Items, run: StepRun) -> None:
    for fact in list(run.windows):
        items.close_window(run, fact)


def _set_values(state: GoalState, plan: GoalPlan, change: GoalChange) -> None:
    for fact, filled in change.filled.items():
        state.facts[fact] = list(patched_values(filled, state.facts.get(fact, []), change.given.get(fact)))
    for fact in change.given:
        readers = plan.facts[fact].consumers if fact in plan.facts else []
        state.unread[fact] = [step for step in readers if has_begun(state.steps[step])]
    for goal, outcome in change.recalled.items():
        run = state.steps[goal]
        run.outputs, run.results = dict(outcome.outputs), dict(outcome.results)


def close_decided_windows(items: Items, flow: NeedCounts) -> None:
    """Stop the deadlines of needs that are decided now, so that a need which is open again gets a new one."""
    for step in flow.by_index:
        run = step.run
        if not run.windows:
            continue
        undecided = {need.fact.name for need in step.needs if need.undecided} if run.status == "pending" else set()
        for fact in [fact for fact in run.windows if fact not in undecided]:
            items.close_window(run, fact)
        run.windows = {fact: number for fact, number in run.windows.items() if number in items.state.deadlines}
