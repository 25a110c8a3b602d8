"""A slow and plain planner and need table, to check the real ones against.

The rules are docs/internals/goal.md#2-the-planner and docs/internals/goal.md#3-run-state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from weft.core.goal.definitions import Need, StepDef
from weft.core.goal.plan import GoalPlan
from weft.core.goal.state import OVER_STEP, GoalState

# --- planning ----------------------------------------------------------------------------------------------------


def naive_plan(steps: Sequence[StepDef], goals: Sequence[str], given: Iterable[str]) -> dict[str, Any]:
    given = set(given)
    table = {step.id: step for step in steps}
    providers: dict[str, list[str]] = {}
    for step in sorted(table):
        for fact in table[step].gives:
            providers.setdefault(fact, []).append(step)
    blocked = {s: _blocked(table[s], given) for s in table if _blocked(table[s], given)}
    satisfiable: set[str] = set()
    grown = True
    while grown:
        grown = False
        for step, definition in table.items():
            could = step in blocked or _lacks(definition, given, providers, satisfiable, blocked)
            if step not in satisfiable and not could:
                satisfiable.add(step)
                grown = True
    lacks = {s: _lacks(table[s], given, providers, satisfiable, blocked) for s in table}
    known = {"given": given, "blocked": blocked, "satisfiable": satisfiable, "lacks": lacks}
    return _Walk(table, providers, known).run(goals)


def _blocked(step: StepDef, given: set[str]) -> list[str]:
    return sorted(f for f, n in step.needs.items() if n.role == "required" and n.collect == "none" and f in given)


def _lacks(
    step: StepDef, given: set[str], providers: dict[str, list[str]], satisfiable: set[str], blocked: dict[str, Any]
) -> set[str]:
    found = set()
    for fact, need in step.needs.items():
        if need.role != "required" or need.collect == "none":
            continue
        open_ones = [p for p in providers.get(fact, []) if p not in blocked]
        if need.collect == "all":
            helped = all(p in satisfiable for p in open_ones) if open_ones else fact in given
        else:
            helped = fact in given or any(p in satisfiable for p in open_ones)
        if not helped:
            found.add(fact)
    return found


class _Walk:
    def __init__(self, table: dict[str, StepDef], providers: dict[str, list[str]], known: dict[str, Any]) -> None:
        self.table, self.providers = table, providers
        self.given, self.blocked = known["given"], known["blocked"]
        self.satisfiable, self.lacks = known["satisfiable"], known["lacks"]
        self.steps: set[str] = set()
        self.met: dict[str, dict[str, list[str]]] = {"blocked": {}, "missing": {}, "satisfied": {}}
        self.missing: dict[str, set[str]] = {}
        self.required: set[str] = set()

    def run(self, goals: Sequence[str]) -> dict[str, Any]:
        todo = set()
        for goal in goals:
            gives = self.table[goal].gives
            if goal in self.blocked:
                self.met["blocked"][goal] = self.blocked[goal]
            elif gives and all(f in self.given for f in gives):
                self.met["satisfied"][goal] = sorted(gives)
            else:
                todo.add(goal)
        put_off = self._phase(todo, certain=True)
        later: set[str] = set()
        for step, fact in put_off:
            later |= self._look(step, fact, certain=False)
        self._phase(later, certain=False)
        excluded: dict[str, dict[str, list[str]]] = {"blocked": {}, "missing": {}, "satisfied": {}}
        taken = set(self.steps)
        for why in ("blocked", "missing", "satisfied"):
            for step, by in self.met[why].items():
                if step not in taken:
                    excluded[why][step] = by
                    taken.add(step)
        return {
            "steps": sorted(self.steps),
            "required": sorted(self.required),
            "conditional": sorted(set(self.missing) - self.required),
            "missing": {fact: sorted(by) for fact, by in self.missing.items()},
            "excluded": excluded,
        }

    def _phase(self, todo: set[str], *, certain: bool) -> list[tuple[str, str]]:
        put_off = []
        while todo - self.steps:
            step = min(todo - self.steps)
            self.steps.add(step)
            needs = self.table[step].needs
            gates = any(need.is_gate for need in needs.values())
            for fact, need in needs.items():
                if need.role == "const":
                    continue
                if certain and gates and not need.is_gate:
                    put_off.append((step, fact))
                else:
                    todo |= self._look(step, fact, certain=certain)
        return put_off

    def _look(self, step: str, fact: str, *, certain: bool) -> set[str]:
        need = self.table[step].needs[fact]
        everyone = self.providers.get(fact, [])
        for provider in everyone:
            if provider in self.blocked:
                self.met["blocked"][provider] = self.blocked[provider]
        others = [p for p in everyone if p not in self.blocked]
        if need.collect == "first" and fact in self.given:
            for provider in others:
                self.met["satisfied"][provider] = sorted(f for f in self.table[provider].gives if f in self.given)
            return set()
        if need.role == "required" and fact in self.lacks[step]:
            if not others:
                self.missing.setdefault(fact, set()).add(step)
                if certain:
                    self.required.add(fact)
            return set(others)
        for provider in others:
            if provider not in self.satisfiable:
                self.met["missing"][provider] = sorted(self.lacks[provider])
        return {p for p in others if p in self.satisfiable}


# --- running -----------------------------------------------------------------------------------------------------


def need_states(plan: GoalPlan, state: GoalState) -> dict[tuple[str, str], str]:
    """Follow the table in docs/internals/goal.md#states-of-a-need, cell by cell."""
    return {
        (step, fact): _need_state(plan, state, step, fact, need)
        for step, definition in plan.steps.items()
        for fact, need in definition.needs.items()
        if need.role != "const"
    }


def _need_state(plan: GoalPlan, state: GoalState, step: str, fact: str, need: Need) -> str:
    values = state.facts.get(fact, [])
    providers = [p for p, definition in plan.steps.items() if fact in definition.gives]
    all_over = all(state.steps[p].status in OVER_STEP for p in providers)
    empty = [p for p in providers if state.steps[p].status in OVER_STEP and fact not in state.steps[p].gave]
    candidates = [v for v in values if need.match is None or step in v.matched]
    match need.collect:
        case "first":
            if candidates:
                return "met"
            return "open" if not all_over else "closed" if values else "dead"
        case "last" | "some":
            if not all_over:
                return "open"
            return "met" if candidates else "closed" if values else "dead"
        case "all":
            if need.match is None and empty:
                return "dead"
            if not all_over:
                return "open"
            if empty or not values:
                return "dead"
            return "met" if len(candidates) == len(values) else "closed"
        case "none":
            if candidates:
                return "closed"
            return "met" if all_over else "open"


def needed(plan: GoalPlan, state: GoalState, *, now: bool) -> set[str]:
    """Who is needed, traced from the goals that are not settled."""
    states = need_states(plan, state)
    found = {goal for goal in plan.goals if goal in state.steps and state.steps[goal].status not in OVER_STEP}
    todo = list(found)
    while todo:
        step = todo.pop()
        if state.steps[step].status != "pending":
            continue
        for fact in _wanted(plan, state, states, step, now=now):
            for provider, definition in plan.steps.items():
                over = state.steps[provider].status in OVER_STEP
                if fact in definition.gives and not over and provider not in found:
                    found.add(provider)
                    todo.append(provider)
    return found


def _wanted(plan: GoalPlan, state: GoalState, states: Any, step: str, *, now: bool) -> list[str]:
    needs = {fact: need for fact, need in plan.steps[step].needs.items() if need.role != "const"}
    required = [fact for fact, need in needs.items() if need.role == "required"]
    if any(states[step, fact] == "closed" for fact in required):
        return []
    dead = any(states[step, fact] == "dead" for fact in required)
    gate_open = any(needs[fact].is_gate and states[step, fact] == "open" for fact in required)
    found = []
    for fact, need in needs.items():
        if states[step, fact] != "open" or (need.role == "optional" and fact in state.steps[step].decided):
            continue
        if dead and not need.is_gate:
            continue
        if need.role == "optional" and need.deadline is None and all(states[step, r] == "met" for r in required):
            continue  # nobody waits for it: it is taken as it is when the step starts
        if now and gate_open and not need.is_gate:
            continue
        found.append(fact)
    return found


def inputs_of(plan: GoalPlan, state: GoalState, step: str) -> dict[str, Any]:
    """What a step is handed that starts now, by inner name."""
    states = need_states(plan, state)
    found: dict[str, Any] = {}
    for fact, need in plan.steps[step].needs.items():
        if need.role == "const":
            found[need.name or fact] = need.value
            continue
        values = state.facts.get(fact, [])
        limit = state.steps[step].decided.get(fact)
        if limit is not None or (need.role == "optional" and need.deadline is None and states[step, fact] == "open"):
            values = values[:limit] if need.collect in ("last", "some") else []
        elif states[step, fact] != "met":
            values = []
        taken = [v for v in values if need.match is None or step in v.matched]
        if taken and need.collect != "none":
            taken = sorted(taken, key=lambda v: v.provider) if need.is_list else taken
            parts = [msgspec.json.decode(v.value) for v in taken]
            found[need.name or fact] = parts if need.is_list else parts[0 if need.collect == "first" else -1]
        elif need.default is not msgspec.UNSET:
            found[need.name or fact] = need.default
    return found
