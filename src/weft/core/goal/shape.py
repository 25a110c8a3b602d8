"""A plan prepared once for all runs that follow it: the inputs and outputs of each step, in order. Pure."""

from __future__ import annotations

from typing import Any

from weft.core.goal.definitions import INSIDE, AskWay, Give, GoalWay, Need, StepDef, give_key, inner_name
from weft.core.goal.plan import PLANS_KEPT, GoalPlan
from weft.core.goal.types import Type, normal


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
    """A step of a plan."""

    __slots__ = ("apart", "bound", "definition", "gives", "id", "late", "meta", "needs", "opaque", "takes", "whole")

    def __init__(self, definition: StepDef) -> None:
        self.id = definition.id
        self.definition = definition
        self.bound = [NeedShape(fact, need) for fact, need in sorted(definition.needs.items(), key=_by_name)]
        """Every need, including constants."""
        self.needs = [shape for shape in self.bound if shape.need.role != "const"]
        self.apart = [shape for shape in self.bound if shape.need.each]
        self.meta = [shape for shape in self.bound if shape.need.meta]
        self.opaque = not self.apart and definition.when is None and not any(s.need.mapping for s in self.bound)
        """Whether the inputs are passed on as they are, without reading them."""
        self.gives = [GiveShape(fact, give) for fact, give in sorted(definition.gives.items(), key=_by_name)]
        self.late = isinstance(definition.way, AskWay) or any(
            give.mapping is not None and give.mapping.lang not in INSIDE for give in definition.gives.values()
        )
        """Whether the shell must supply something before the results can be checked."""
        plain = not isinstance(definition.way, AskWay | GoalWay) and not any(s.give.mapping for s in self.gives)
        self.takes = {shape.fact: "" if shape.give.whole else shape.key for shape in self.gives} if plain else None
        """For each fact the part of the raw result that it is ("": the whole). None if some outputs are computed."""
        self.whole = plain and all(shape.give.whole for shape in self.gives)


def _by_name(item: tuple[str, object]) -> str:
    return item[0]


def _declared_type(declared: Type) -> str | dict[str, Any] | None:
    plain = normal(declared)
    return None if plain == "any" else plain


_known: dict[int, tuple[GoalPlan, list[StepShape], frozenset[str]]] = {}
"""By identity. The entry keeps the plan alive so that its id is not reused."""


def shapes_of(plan: GoalPlan) -> list[StepShape]:
    """Return the steps of a plan, by id."""
    return _shapes(plan)[1]


def matched_facts(plan: GoalPlan) -> frozenset[str]:
    """Return the facts that a step of the plan reads with a match."""
    return _shapes(plan)[2]


def _shapes(plan: GoalPlan) -> tuple[GoalPlan, list[StepShape], frozenset[str]]:
    known = _known.get(id(plan))
    if known is None:
        if len(_known) >= PLANS_KEPT:
            _known.clear()
        shapes = [StepShape(definition) for definition in plan.steps.values()]
        _trust(plan, shapes)
        matched = frozenset(need.fact for step in shapes for need in step.needs if need.need.match is not None)
        known = _known[id(plan)] = (plan, shapes, matched)
    return known


def _trust(plan: GoalPlan, shapes: list[StepShape]) -> None:
    """Mark the providers whose values were already checked against the type of the reader."""
    checked: dict[str, list[tuple[str, Type]]] = {name: [("", _declared_type(plan.types[name]))] for name in plan.types}
    for step in shapes:
        for give in step.gives if not step.apart else ():
            checked.setdefault(give.fact, []).append((step.id, give.type))
    for step in shapes:
        for need in step.needs:
            found = checked.get(need.fact, ())
            need.trusted = frozenset(provider for provider, declared in found if declared == need.type)
