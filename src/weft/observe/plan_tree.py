"""The plan of a goal run as a tree from its goals down, and the known facts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from weft.core.goal.machine import GoalMachine
from weft.core.goal.plan import GoalPlan

FACTS_MAX = 40


class PlanLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A step in the tree. ``kind`` says which of the other fields are set."""

    step: str
    depth: int
    kind: Literal["planned", "excluded", "repeated"] = "planned"
    why: str = ""
    """Why the step is excluded."""
    lacks: list[str] = []
    """The facts that the step waits for."""
    fan_out: bool = False
    items: int = 0
    items_over: int = 0
    items_active: int = 0


class KnownFact(msgspec.Struct, frozen=True):
    """The first value of a fact, and the step that provided it; empty if the fact was given at the start."""

    name: str
    value: bytes
    provider: str


class PlanTree(msgspec.Struct, frozen=True):
    """The plan of a goal run and its known facts. ``facts`` has only the first of ``facts_total`` facts."""

    lines: list[PlanLine]
    facts: list[KnownFact]
    facts_total: int


def plan_tree(machine: GoalMachine) -> PlanTree:
    """Return the plan with the state of its steps. It has no lines before the run is planned."""
    facts = [(name, values[0]) for name, values in sorted(machine.state.facts.items()) if values]
    return PlanTree(
        lines=list(_lines(machine, machine.plan)) if machine.plan is not None else [],
        facts=[KnownFact(name, bytes(first.value), first.provider) for name, first in facts[:FACTS_MAX]],
        facts_total=len(facts),
    )


def _lines(machine: GoalMachine, plan: GoalPlan) -> Iterator[PlanLine]:
    shown: set[str] = set()
    # An explicit stack, because plans may be deeper than Python's recursion limit.
    stack = [(goal, 0) for goal in reversed(plan.goals)]
    while stack:
        step, depth = stack.pop()
        excluded = plan.excluded.get(step)
        if excluded is not None:
            why = f"{excluded.why}: {', '.join(excluded.by)} given"
            yield PlanLine(step=step, depth=depth, kind="excluded", why=why)
            continue
        if step in shown:
            yield PlanLine(step=step, depth=depth, kind="repeated")
            continue
        shown.add(step)
        yield _plan_line(machine, step, depth)
        stack += [(provider, depth + 1) for provider in reversed(_providers(plan, step))]


def _plan_line(machine: GoalMachine, step: str, depth: int) -> PlanLine:
    run = machine.state.steps.get(step)
    lacks = _lacks(machine, step)
    if run is None:
        return PlanLine(step=step, depth=depth, lacks=lacks)
    return PlanLine(
        step=step,
        depth=depth,
        lacks=lacks,
        fan_out=bool(run.fan_out),
        items=run.items,
        items_over=run.items - run.left,
        items_active=run.active,
    )


def _providers(plan: GoalPlan, step: str) -> list[str]:
    """Return the steps that may provide the needs of a step, without duplicates."""
    return list(
        dict.fromkeys(
            provider
            for fact, need in sorted(plan.steps[step].needs.items())
            if need.role != "const" and not (need.collect == "first" and fact in plan.given)
            for provider in (plan.facts[fact].providers if fact in plan.facts else ())
        )
    )


def _lacks(machine: GoalMachine, step: str) -> list[str]:
    node = machine.flow.steps.get(step) if machine.flow is not None else None
    return [need.fact.name for need in node.needs if need.undecided] if node is not None else []
