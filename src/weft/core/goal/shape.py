"""Plans prepared once for all runs that follow them: the inputs and outputs of each step, in order. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Raw

from weft.core.events import ABSENT, FactRef, TaskScheduled
from weft.core.goal.definitions import (
    INSIDE,
    AskWay,
    Give,
    GoalWay,
    HttpWay,
    Need,
    PipelineWay,
    ScriptWay,
    StepDef,
    StepWay,
    give_key,
    inner_name,
)
from weft.core.goal.plan import PLANS_KEPT, GoalPlan
from weft.core.goal.scripts import encode_json
from weft.core.goal.types import Type, normalize


class NeedShape:
    """A need with its fact and inner name. ``type`` is None if any value is allowed.

    ``trusted`` are the providers whose values were already checked against the same type. "" stands for given values.
    """

    __slots__ = ("fact", "gate", "name", "need", "trusted", "type")

    def __init__(self, fact: str, need: Need) -> None:
        self.fact = fact
        self.need = need
        self.name = inner_name(fact, need)
        self.gate = need.is_gate
        self.type = _declared_type(need.type)
        self.trusted: frozenset[str] = frozenset()


class GiveShape:
    """An output with its fact and its key in the raw result."""

    __slots__ = ("fact", "give", "key", "type")

    def __init__(self, fact: str, give: Give) -> None:
        self.fact = fact
        self.give = give
        self.key = give_key(fact, give)
        self.type = _declared_type(give.type)


class StepShape:
    """A step of a plan, with its needs and gives in order."""

    __slots__ = (
        "bound", "deferred", "definition", "each_needs", "gives", "id", "meta", "needs", "opaque", "takes", "whole",
    )  # fmt: skip

    def __init__(self, definition: StepDef) -> None:
        self.id = definition.id
        self.definition = definition
        self.bound = [NeedShape(fact, need) for fact, need in sorted(definition.needs.items(), key=_by_name)]
        """Every need, including constants."""
        self.needs = [shape for shape in self.bound if shape.need.role != "const"]
        self.each_needs = [shape for shape in self.bound if shape.need.each]
        self.meta = [shape for shape in self.bound if shape.need.meta]
        self.opaque = not self.each_needs and definition.when is None and not any(s.need.mapping for s in self.bound)
        """Whether the inputs are passed on as they are, without reading them."""
        self.gives = [GiveShape(fact, give) for fact, give in sorted(definition.gives.items(), key=_by_name)]
        self.deferred = isinstance(definition.way, AskWay) or any(
            give.mapping is not None and give.mapping.lang not in INSIDE for give in definition.gives.values()
        )
        """Whether the runtime has to evaluate something before the results can be checked."""
        direct = not isinstance(definition.way, AskWay | GoalWay) and not any(s.give.mapping for s in self.gives)
        self.takes = {shape.fact: "" if shape.give.whole else shape.key for shape in self.gives} if direct else None
        """By fact, the key in the raw result ("" for the whole result). None if some outputs are computed."""
        self.whole = direct and all(shape.give.whole for shape in self.gives)


def _by_name(item: tuple[str, object]) -> str:
    return item[0]


def _declared_type(declared: Type) -> str | dict[str, Any] | None:
    normal = normalize(declared)
    return None if normal == "any" else normal


class PlanShape:
    """A plan prepared for its runs."""

    __slots__ = ("goals", "matched", "plan", "simple", "steps")

    def __init__(self, plan: GoalPlan) -> None:
        self.plan = plan
        self.steps = [StepShape(definition) for definition in plan.steps.values()]
        """The steps, in order of their ids."""
        _mark_trusted_providers(plan, self.steps)
        self.goals = frozenset(plan.goals)
        self.matched = frozenset(need.fact for step in self.steps for need in step.needs if need.need.match is not None)
        """The facts on which a step of the plan has a ``match``."""
        self.simple = simple_plan(plan, self.steps)
        """Set if every step can start as soon as it has the first value of each fact that it needs."""


_known: dict[int, PlanShape] = {}
"""Prepared plans by the ``id`` of the plan. An entry keeps its plan alive, so that the ``id`` is not reused."""


def shape_of_plan(plan: GoalPlan) -> PlanShape:
    """Prepare a plan. Many runs follow the same plan, so the latest are cached."""
    known = _known.get(id(plan))
    if known is None:
        if len(_known) >= PLANS_KEPT:
            _known.clear()
        known = _known[id(plan)] = PlanShape(plan)
    return known


class SimpleStep:
    """A step of a simple plan."""

    __slots__ = ("facts", "inputs", "needs", "readers", "shape", "task")

    def __init__(self, shape: StepShape) -> None:
        self.shape = shape
        self.needs = frozenset(need.fact for need in shape.needs)
        self.facts = {need.name: FactRef(need.fact) for need in shape.needs}
        own = {need.name: need.need.value for need in shape.bound if need.need.role == "const"}
        self.inputs = Raw(encode_json(own)) if own or not self.facts else ABSENT
        self.readers: list[SimpleStep] = []
        """The steps that need a fact that this step gives, in order of their ids."""
        self.task: TaskScheduled | None = None
        """The task of the step, after its first start."""


class SimplePlan:
    """A plan in which every step needs the first value of some facts, and every fact has one provider at most."""

    __slots__ = ("_first", "provided", "steps")

    def __init__(self, steps: dict[str, SimpleStep], provided: frozenset[str]) -> None:
        self.steps = steps
        self.provided = provided
        self._first: dict[frozenset[str], list[SimpleStep]] = {}

    def first(self, given: Iterable[str]) -> list[SimpleStep]:
        """Return the steps that can start with the given facts."""
        key = frozenset(given)
        found = self._first.get(key)
        if found is None:
            if len(self._first) >= PLANS_KEPT:
                self._first.clear()
            found = self._first[key] = [step for step in self.steps.values() if step.needs <= key]
        return found


def simple_plan(plan: GoalPlan, shapes: Sequence[StepShape]) -> SimplePlan | None:
    """Return the steps of a plan with their readers, if the plan is simple."""
    provided = [give.fact for shape in shapes for give in shape.gives]
    if len(set(provided)) < len(provided) or not all(goal in plan.steps for goal in plan.goals):
        return None
    if not all(_is_simple(shape) for shape in shapes):
        return None
    steps = {shape.id: SimpleStep(shape) for shape in shapes}
    provider = {give.fact: steps[shape.id] for shape in shapes for give in shape.gives}
    for step in steps.values():
        for giver in dict.fromkeys(provider[fact] for fact in sorted(step.needs) if fact in provider):
            giver.readers.append(step)
    needed = {goal: steps[goal] for goal in plan.goals}
    left = list(needed.values())
    while left:
        givers = [provider[fact] for fact in left.pop().needs if fact in provider]
        fresh = {giver.shape.id: giver for giver in givers if giver.shape.id not in needed}
        needed.update(fresh)
        left += fresh.values()
    return SimplePlan(steps, frozenset(provider)) if len(needed) == len(steps) else None


def _is_simple(shape: StepShape) -> bool:
    definition = shape.definition
    if (
        not isinstance(definition.way, StepWay | HttpWay | ScriptWay | PipelineWay)
        or shape.takes is None
        or shape.deferred
    ):
        return False
    if not shape.opaque or shape.meta or definition.undo is not None or definition.policy.deadline_ms:
        return False
    return all(
        need.need.role == "required" and need.need.collect == "first" and need.need.match is None
        for need in shape.needs
    )


def _mark_trusted_providers(plan: GoalPlan, shapes: list[StepShape]) -> None:
    """Mark the providers whose values were already checked against the type of the reader."""
    checked: dict[str, list[tuple[str, Type]]] = {name: [("", _declared_type(plan.types[name]))] for name in plan.types}
    for step in shapes:
        for give in step.gives if not step.each_needs else ():
            checked.setdefault(give.fact, []).append((step.id, give.type))
    for step in shapes:
        for need in step.needs:
            found = checked.get(need.fact, ())
            need.trusted = frozenset(provider for provider, declared in found if declared == need.type)
