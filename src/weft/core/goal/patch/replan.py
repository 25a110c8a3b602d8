"""Plan a run again from where it stands: what has begun needs nothing more, and values count as given.

Rules: docs/internals/goal.md#9-patches.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import msgspec

from weft.core.findings import Finding
from weft.core.goal.catalogue import Catalogue
from weft.core.goal.definitions import GoalWay, StepDef
from weft.core.goal.need_counts import NeedCounts
from weft.core.goal.patch.pool import StepPool, staying_steps
from weft.core.goal.patch.standing import gives_of
from weft.core.goal.plan import Excluded, FactUse, GoalPlan
from weft.core.goal.planner import KnownFacts, plan_again
from weft.core.goal.state import OVER_STEP, GoalState
from weft.errors import LimitExceeded, UnknownStep


def replan(state: GoalState, plan: GoalPlan, pool: StepPool, known: KnownFacts, found: list[Finding]) -> GoalPlan:
    """Return the new plan. Adds to ``found`` why the run cannot follow it."""
    as_it_stands = {step: _definition_for_planner(state, pool, step) for step in pool.steps}
    goals = [goal for goal in pool.goals if goal in pool.steps and goal not in pool.fixed]
    kept = {step: child for step, child in plan.children.items() if step in pool.fixed}
    inner = _inner_catalogue(plan, pool)
    try:
        made = plan_again(Catalogue(list(as_it_stands.values())), goals, known, inner, kept)
    except (UnknownStep, LimitExceeded) as error:
        found.append(Finding("missing", error.message, suggestion=error.hint))
        return plan
    names = {*made.steps, *pool.fixed, *staying_steps(state, plan)}
    steps = {step: pool.steps[step] for step in sorted(names)}
    satisfied = {goal: why for goal, why in pool.satisfied.items() if goal in pool.goals and goal not in pool.steps}
    excluded = {**made.excluded, **satisfied}
    again = msgspec.structs.replace(
        made,
        goals=pool.goals,
        steps=steps,
        facts=fact_uses(steps),
        given=sorted(known.given),
        excluded={step: why for step, why in sorted(excluded.items()) if step not in steps},
        children=dict(sorted({**kept, **made.children}.items())),
    )
    found += _missing_facts(state, again, pool, made.excluded)
    found += _blocked_goals(again)
    found += _find_clashes({step: as_it_stands[step] for step in steps}, plan)
    return again


def _definition_for_planner(state: GoalState, pool: StepPool, step: str) -> StepDef:
    """Return a definition as the planner sees it. A step that stays as it is needs nothing, and gives what it can."""
    definition = pool.steps[step]
    if step not in pool.fixed:
        return definition
    gives = gives_of(definition, state.steps[step], failed=state.status == "failed")
    return msgspec.structs.replace(
        definition, needs={}, gives={fact: definition.gives[fact] for fact in gives}, when=None
    )


def _inner_catalogue(plan: GoalPlan, pool: StepPool) -> Catalogue:
    """Return the steps from which child plans are made."""
    if not any(isinstance(definition.way, GoalWay) for definition in pool.steps.values()):
        return Catalogue()
    if pool.today is not None:
        return Catalogue(list({**pool.steps, **pool.today}.values()))
    return Catalogue(list({**dict(_inner_steps(plan)), **pool.steps}.values()))


def _inner_steps(plan: GoalPlan) -> Iterator[tuple[str, StepDef]]:
    for child in plan.children.values():
        yield from child.steps.items()
        yield from _inner_steps(child)


def dead_needs(flow: NeedCounts, pool: StepPool, plan: GoalPlan) -> frozenset[tuple[str, str]]:
    """Return the needs that can no longer be met, of pending steps whose definition stays, as step and fact."""
    return frozenset(
        (step.id, need.fact.name)
        for step in flow.by_index
        if step.run.status == "pending" and pool.steps.get(step.id) == plan.steps[step.id]
        for need in step.needs
        if need.state == "dead"
    )


def awaited_needs(flow: NeedCounts, pool: StepPool, plan: GoalPlan) -> dict[tuple[str, str], list[str]]:
    """Return the needs that wait for steps although their fact was given before, of steps whose definition stays.

    The given value does not pass their match, and the steps were planned for another need.
    """
    return {
        (step.id, fact): [
            one.id
            for one in need.fact.providers
            if one.run.status not in OVER_STEP and fact in _facts_given_by(pool, one.id)
        ]
        for step in flow.by_index
        if step.run.status == "pending" and pool.steps.get(step.id) == plan.steps[step.id]
        for need in step.needs
        if need.wanted and (fact := need.fact.name) in plan.given
    }


def goals_left(flow: NeedCounts, pool: StepPool, plan: GoalPlan) -> frozenset[str]:
    """Return the pending goals that are planned although their outputs were given before: another step needs them."""
    given = set(plan.given)
    return frozenset(
        step.id
        for step in flow.by_index
        if step.goal and step.run.status == "pending" and pool.steps.get(step.id) == plan.steps[step.id]
        if given.issuperset(plan.steps[step.id].gives)
    )


def fact_uses(steps: Mapping[str, StepDef]) -> dict[str, FactUse]:
    """Return the providers and readers of each fact."""
    given_by: dict[str, list[str]] = {}
    read_by: dict[str, list[str]] = {}
    for step, definition in steps.items():
        for fact in definition.gives:
            given_by.setdefault(fact, []).append(step)
        for fact, need in definition.needs.items():
            if need.role != "const":
                read_by.setdefault(fact, []).append(step)
    names = sorted({*given_by, *read_by})
    return {fact: FactUse(given_by.get(fact, []), read_by.get(fact, [])) for fact in names}


# --- findings ----------------------------------------------------------------------------------------------------


def _missing_facts(
    state: GoalState, plan: GoalPlan, pool: StepPool, excluded: Mapping[str, Excluded]
) -> Iterator[Finding]:
    for name in plan.required:
        lost = [
            step for step, run in state.steps.items() if run.status in OVER_STEP and name in _facts_given_by(pool, step)
        ]
        blocked = [
            step for step, why in excluded.items() if why.why == "blocked" and name in _facts_given_by(pool, step)
        ]
        message = f"nothing can give {name}, which {_join_names(plan.missing[name])} needs."
        notes = [f"{_join_names(steps)} {why}" for steps, why in ((lost, "is over"), (blocked, "is blocked")) if steps]
        hint = f"Give {name}, or add a step that gives it."
        yield Finding("missing", " ".join([message, *(f"({note})" for note in notes)]), path=name, suggestion=hint)


def _facts_given_by(pool: StepPool, step: str) -> Collection[str]:
    definition = pool.steps.get(step)
    return definition.gives if definition is not None else ()


def _join_names(names: list[str]) -> str:
    return ", ".join(names)


def _blocked_goals(plan: GoalPlan) -> Iterator[Finding]:
    for goal in plan.goals:
        why = plan.excluded.get(goal)
        if why is not None and why.why == "blocked":
            by = _join_names(why.by)
            message = f"{goal} requires that {by} is absent, and {by} is given."
            yield Finding("blocked", message, path=goal, suggestion="Remove the goal, or leave the fact out.")


def _find_clashes(steps: Mapping[str, StepDef], before: GoalPlan) -> Iterator[Finding]:
    """Yield the facts that are declared with different types, and a cycle of steps."""
    catalogue = Catalogue(list(steps.values()))
    reported: set[str] = set()
    changed = [step for step in steps if before.steps.get(step) != steps[step]]
    for step in changed:
        for clash in catalogue.type_conflicts(steps[step]):
            fact = clash.path.split(".")[1]
            if fact not in reported:
                reported.add(fact)
                message = f"step {step}: {clash.message}"
                yield Finding("type_clash", message, path=fact, suggestion=clash.suggestion)
    cycle = catalogue.find_cycle()
    if cycle:
        path = " -> ".join(cycle)
        hint = "Break the cycle: remove a need, or rename one of the facts."
        yield Finding("cycle", f"step {cycle[0]} would need itself: {path}.", path=cycle[0], suggestion=hint)
