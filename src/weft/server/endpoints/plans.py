"""Preview the plan of goals with its picture, and freeze a plan into a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from weft.core import values
from weft.core.goal.plan import GoalPlan
from weft.core.goal.types import type_error, type_text
from weft.observe.pictures.catalogue import picture_of_catalogue
from weft.observe.pictures.drawn import DrawnPicture
from weft.runtime.goal_language import GOAL_LANGUAGES
from weft.runtime.offered_versions import check_graph_name
from weft.runtime.programs import StoredGraph, graph_definition, store_definition
from weft.server.endpoints.goals import current_steps, planning_steps
from weft.server.request import ApiCall
from weft.server.views import Form, Name

StepRole = Literal["goal", "plan", "conditional", "satisfied", "blocked", "missing", "idle"]


class PlanRequest(Form, frozen=True, kw_only=True):
    """Goals to plan, and the facts that will be given."""

    goals: Annotated[list[Name], Meta(min_length=1, max_length=100)]
    given: Annotated[list[Name], Meta(max_length=1_000)] = msgspec.field(default_factory=list)
    """The names of facts whose values are not known yet."""
    values: Annotated[dict[str, Any], Meta(max_length=1_000)] = msgspec.field(default_factory=dict)
    """Facts with their values, which are checked."""
    picture: bool = False
    """Whether to draw the steps of the plan."""


class PlannedStep(msgspec.Struct, frozen=True):
    """What a step of the catalogue is to a plan, and because of which facts."""

    role: StepRole
    by: list[str] = []


class MissingFact(msgspec.Struct, frozen=True):
    """A fact that nothing gives: the steps that need it, and all steps that could give it."""

    needed_by: list[str]
    could_give: list[str]
    type: str


class FactFinding(msgspec.Struct, frozen=True):
    """A value that does not have the type of its fact."""

    path: str
    message: str


class PlanView(msgspec.Struct, frozen=True, kw_only=True):
    """A plan. ``missing`` has the facts that no step gives, with the steps that need them."""

    goals: list[str]
    steps: list[str]
    required: list[str]
    conditional: list[str]
    missing: dict[str, list[str]]
    excluded: dict[str, Any]
    roles: dict[str, PlannedStep]
    """What each step of the catalogue is to this plan."""
    missing_facts: dict[str, MissingFact]
    types: dict[str, str]
    """The declared types of the given facts."""
    findings: list[FactFinding]
    picture: DrawnPicture | None


class NewFrozenPlan(Form, frozen=True, kw_only=True):
    """A plan to store as a graph under a name."""

    name: Name
    goals: Annotated[list[Name], Meta(min_length=1, max_length=100)]
    given: Annotated[list[Name], Meta(max_length=1_000)] = msgspec.field(default_factory=list)


class FrozenPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The graph that does what the plan does."""

    workflow: str
    version: str
    nodes: int


async def draw_catalogue(call: ApiCall) -> DrawnPicture:
    """Return the picture of all steps that goals are planned with. Raises LimitExceeded."""
    steps = sorted((await current_steps(call)).planned(), key=lambda step: step.id)
    return await call.services.viewed.drawn(picture_of_catalogue(steps, "Steps"))


async def plan_goals(call: ApiCall) -> PlanView:
    """Plan goals as a start would. Raises UnknownStep, LimitExceeded."""
    wanted = call.body_as(PlanRequest)
    values.encode([*wanted.goals, *wanted.given, wanted.values], what="the plan has")
    keeper = await current_steps(call)
    given = list(dict.fromkeys([*wanted.given, *wanted.values]))
    plan = call.services.hosted.plan(wanted.goals, given)
    drawn = picture_of_catalogue(list(plan.steps.values()), ", ".join(plan.goals)) if wanted.picture else None
    return PlanView(
        goals=plan.goals,
        steps=sorted(plan.steps),
        required=plan.required,
        conditional=plan.conditional,
        missing=plan.missing,
        excluded=msgspec.to_builtins(plan.excluded),
        roles={step.id: _role(plan, step.id) for step in keeper.planned()},
        missing_facts=_missing_facts(plan, call),
        types={fact: type_text(declared) for fact, declared in plan.types.items()},
        findings=list(_findings(plan, wanted.values)),
        picture=await call.services.viewed.drawn(drawn) if drawn is not None else None,
    )


def _role(plan: GoalPlan, step: str) -> PlannedStep:
    excluded = plan.excluded.get(step)
    if step in plan.goals and excluded is None:
        return PlannedStep("goal")
    planned = plan.steps.get(step)
    if planned is not None:
        is_conditional = planned.when is not None or any(need.is_gate for need in planned.needs.values())
        return PlannedStep("conditional" if is_conditional else "plan")
    return PlannedStep(excluded.why, excluded.by) if excluded is not None else PlannedStep("idle")


def _missing_facts(plan: GoalPlan, call: ApiCall) -> dict[str, MissingFact]:
    steps = planning_steps(call).planned()
    types = {fact: need.type for step in steps for fact, need in step.needs.items()}
    return {
        fact: MissingFact(
            needed_by, sorted(step.id for step in steps if fact in step.gives), type_text(types.get(fact))
        )
        for fact, needed_by in plan.missing.items()
    }


def _findings(plan: GoalPlan, given: dict[str, Any]) -> Sequence[FactFinding]:
    found: list[FactFinding] = []
    for fact, value in given.items():
        wrong = type_error(plan.types.get(fact), value, msgspec.json.encode(value), GOAL_LANGUAGES.fits)
        if wrong is not None:
            found.append(FactFinding(fact, wrong))
    return found


async def freeze_plan(call: ApiCall) -> FrozenPlan:
    """Store a plan as a graph. Raises UnknownStep, BadPlan, BadGraph, BadValue, NameTaken."""
    wanted = call.body_as(NewFrozenPlan)
    values.encode([wanted.name, *wanted.goals, *wanted.given], what="the plan has")
    await check_graph_name(call.service, wanted.name)
    await current_steps(call)
    loaded = call.services.hosted.freeze(wanted.goals, wanted.given, wanted.name)
    stored = StoredGraph(loaded.source, loaded.graph)
    definition = graph_definition(stored, now=call.service.clock.now_ms())
    await store_definition(call.service.store.definitions, definition)
    return FrozenPlan(workflow=wanted.name, version=definition.version, nodes=len(loaded.graph.nodes))
