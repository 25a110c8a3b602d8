"""Goals: the user names the wanted results and the given facts, and Weft plans with the registered steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Raw

from weft.authoring.facts import Facts
from weft.authoring.graphs import Graph
from weft.authoring.runnable import Runnable, RunnableGroup
from weft.core import values
from weft.core.goal import plan as planning
from weft.core.goal.plan_text import render
from weft.errors import BadPlan
from weft.steps.codec import Codec

GoalName = "str | Step[..., Any] | Runnable[Any]"


class Plan:
    """The plan for some goals. ``print(plan)`` shows a tree with reasons. Starting the goals makes the same plan."""

    def __init__(self, plan: planning.GoalPlan, group: RunnableGroup) -> None:
        self.plan = plan
        self._group = group

    @property
    def goals(self) -> list[str]:
        """The goals, in the order given."""
        return list(self.plan.goals)

    @property
    def steps(self) -> list[str]:
        """The steps of the plan. A run performs those that turn out to be needed."""
        return list(self.plan.steps)

    @property
    def required(self) -> list[str]:
        """The facts that must be given at the start and are not."""
        return list(self.plan.required)

    @property
    def conditional(self) -> list[str]:
        """The facts that are missing only if a gate opens."""
        return list(self.plan.conditional)

    @property
    def missing(self) -> dict[str, list[str]]:
        """The facts that no step provides, each with the steps that need it."""
        return {name: list(steps) for name, steps in self.plan.missing.items()}

    @property
    def excluded(self) -> dict[str, planning.Excluded]:
        """The steps that are not part of the plan: whether each is blocked, missing or satisfied, and by what."""
        return dict(self.plan.excluded)

    @property
    def facts(self) -> dict[str, planning.FactUse]:
        """The steps that provide each fact, and the steps that read it."""
        return dict(self.plan.facts)

    def freeze(self, name: str) -> Graph:
        """Turn the plan into a graph that does the same without planning: ``app.graph(plan.freeze(name))``.

        Raises:
            BadPlan: the plan is incomplete, or a graph cannot express it; the message names the step and the reason.
        """
        from weft.authoring.freeze import freeze  # noqa: PLC0415 - rarely used, and slow to import

        return Graph.of(freeze(self.plan, name, self._group.root().step_parameters))

    def __str__(self) -> str:
        return render(self.plan)


class Goal(Runnable[Facts]):
    """A registered goal: ``invoicing = app.goal("invoicing", send_invoice)``."""

    style = "goal"
    version = "1"
    """Every run records its plan, so a goal needs no versions."""

    def __init__(
        self, group: RunnableGroup, name: str, goals: tuple[str, ...], *, review: tuple[str, ...] = ()
    ) -> None:
        self.review = review
        self.group = group
        self.name = name
        self.goals = goals

    @property
    def declared(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What was declared under the name: the goals, and who must agree to patches."""
        return self.goals, self.review

    @property
    def result(self) -> Codec[Facts]:
        return FACTS

    def plan_for(self, given: bytes) -> Raw:
        assert self.group is not None
        plan = self.group.root().make_plan(self.goals, list(values.decode(given)))
        planning.check_complete(plan)
        return Raw(planning.encode_plan(plan))

    def given(self, input: Mapping[str, Any]) -> bytes:
        return values.encode(dict(input), what=f"{self.name} got")

    def __repr__(self) -> str:
        return f"<weft goal {self.name}: {', '.join(self.goals)}>"


class _FactsCodec(Codec[Facts]):
    """The codec that reads the result of a goal run as ``Facts``."""

    def __init__(self) -> None:
        super().__init__(Any)
        self.read = lambda raw: Facts(values.decode(raw))

    def decode(self, raw: bytes, *, what: str = "got") -> Facts:
        return self.read(raw)

    def encode(self, value: Facts, *, what: str = "got") -> bytes:
        return values.encode(value.result, what=what)


FACTS: Codec[Facts] = _FactsCodec()


def goal_names(goals: Iterable[Any]) -> tuple[str, ...]:
    """Return the catalogue names of goals, which are names, steps or workflows. Raises BadPlan."""
    names = []
    for goal in goals:
        if isinstance(goal, str):
            names.append(goal)
        elif isinstance(goal, Goal):
            names += goal.goals
        elif isinstance(goal, Runnable):
            names.append(goal.name)
        else:
            body = getattr(goal, "body", None)
            if body is None:
                raise BadPlan(f"{goal!r} is not a goal.", hint="A goal is a step, a workflow or a graph, or its name.")
            names.append(body.name)
    return tuple(names)
