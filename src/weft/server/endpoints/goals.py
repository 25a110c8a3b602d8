"""Register the steps for goals in the store, and plan goals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from weft.core.goal.catalogue import AnyCatalogueEvent, Checkup, StepRegistered, StepUpdated
from weft.core.goal.definitions import StepDef
from weft.errors import NotFound
from weft.goals.load import LoadedSteps
from weft.runtime.step_keeper import StepKeeper
from weft.runtime.store_steps import StoreSteps
from weft.server.cursors import cut_page
from weft.server.request import ApiCall
from weft.server.views import Form, PageQuery


class StepView(msgspec.Struct, frozen=True, kw_only=True):
    """A step and its health: healthy, unhealthy or unknown. ``stored`` says whether the API can change it."""

    id: str
    stored: bool
    health: str
    error: str
    definition: dict[str, Any]


class StepViews(msgspec.Struct, frozen=True):
    steps: list[StepView]
    cursor: str | None


class StepsDocument(Form, frozen=True, kw_only=True):
    """The content of a file of steps (``weft: steps/1``)."""

    document: Annotated[
        dict[str, Any],
        Meta(
            description="The content of a file of steps, as JSON.",
            examples=[
                {
                    "weft": "steps/1",
                    "steps": {"rate": {"http": {"url": "https://rates.example.com"}, "gives": ["rate"]}},
                }
            ],
        ),
    ]


class Changed(msgspec.Struct, frozen=True):
    """The steps that changed."""

    steps: list[str]


async def list_steps(call: ApiCall) -> StepViews:
    """Return a page of the steps that goals are planned with, by id."""
    query = call.query_as(PageQuery)
    steps = await current_steps(call)
    stored = await steps.stored.catalogue()
    planned = sorted(steps.planned(), key=lambda step: step.id)
    page, cursor = cut_page(planned, query.limit, query.cursor)
    return StepViews([_step_view(step, stored.health.get(step.id), step.id in stored) for step in page], cursor)


async def show_step(call: ApiCall) -> StepView:
    """Return one step and its health. Raises NotFound."""
    steps = await current_steps(call)
    stored = await steps.stored.catalogue()
    name = call.parameters["step"]
    for step in steps.planned():
        if step.id == name:
            return _step_view(step, stored.health.get(name), name in stored)
    raise NotFound(f"There is no step {name[:60]!r} that goals are planned with.")


def _step_view(step: StepDef, health: Checkup | None, stored: bool) -> StepView:  # noqa: FBT001 - a fact, not a choice
    checkup = health or Checkup()
    definition: dict[str, Any] = msgspec.to_builtins(step)
    return StepView(id=step.id, stored=stored, health=checkup.status, error=checkup.error or "", definition=definition)


async def register_steps(call: ApiCall) -> Changed:
    """Add the steps of a document, all or none. Raises NameTaken, BadStep."""
    loaded = await _load(call)
    return await _refresh(call, await planning_steps(call).stored.register(loaded))


async def update_steps(call: ApiCall) -> Changed:
    """Replace steps that exist, all or none. Raises UnknownStep, BadStep."""
    loaded = await _load(call)
    return await _refresh(call, await planning_steps(call).stored.update(loaded))


async def unregister_step(call: ApiCall) -> Changed:
    """Remove a step. Runs in progress keep it. Raises UnknownStep."""
    return await _refresh(call, await planning_steps(call).stored.unregister(call.parameters["step"]))


async def _load(call: ApiCall) -> LoadedSteps:
    return await planning_steps(call).load(call.body_as(StepsDocument).document)


def planning_steps(call: ApiCall) -> StepKeeper | StoreSteps:
    """Return the steps that this server plans with, as far as it has learned them."""
    steps = call.services.hosting().steps
    assert steps is not None, "a host has steps, and so has a server without a host"
    return steps


async def current_steps(call: ApiCall) -> StepKeeper | StoreSteps:
    """Return the steps that this server plans with, after it has learned what is new. Raises Refused."""
    steps = planning_steps(call)
    await steps.refresh()
    return steps


async def _refresh(call: ApiCall, events: Sequence[AnyCatalogueEvent]) -> Changed:
    await planning_steps(call).refresh()
    return Changed([e.step.id if isinstance(e, StepRegistered | StepUpdated) else e.step_id for e in events])
