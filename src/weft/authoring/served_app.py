"""An app as the server sees it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from weft.authoring.graphs import Graph
from weft.authoring.registrations import Registrations
from weft.authoring.runnable import Invocation, Runnable
from weft.authoring.workflows import Workflow, check_run_id, plain_attributes
from weft.core import commands as c
from weft.core import values
from weft.core.goal.plan import GoalPlan
from weft.errors import BadPlan, BadValue, UnknownStep, UnknownWorkflow
from weft.observe.definitions import stored_workflow
from weft.ports.store import Definition
from weft.runtime.programs import read_graph
from weft.runtime.schemas import check_schema
from weft.runtime.service import RunService, StartResult
from weft.server.hosted import Known, Order


class LaunchingApp(Protocol):
    """What the server uses of an app."""

    registered: Registrations

    @property
    def service(self) -> RunService: ...

    async def launch(
        self,
        invocation: Invocation,
        run_id: str | None,
        *,
        existing: str = "attach",
        attributes: Mapping[str, Any] | None = None,
        delay_ms: int = 0,
    ) -> StartResult: ...


class Served:
    """Starts and lists the workflows of an app for the server."""

    def __init__(self, app: LaunchingApp) -> None:
        self._app = app

    @property
    def service(self) -> RunService:
        return self._app.service

    def workflows(self) -> Sequence[Known]:
        registered = self._app.registered
        found = [registered.known(*key) for key in registered.workflow_versions()]
        return [_known(one) for one in [*found, *registered.graphs()] if one is not None]

    def plan(self, goals: Sequence[str], given: Sequence[str]) -> GoalPlan:
        return self._app.registered.make_plan(goals, given)

    async def launch_named(self, order: Order) -> StartResult:
        app = self._app
        if order.goals:
            return await self._achieve(order)
        if order.version is None:
            return await self._launch(app.registered.runnable_named(order.workflow), order)
        stored = await stored_workflow(app.service.store.definitions, order.workflow, order.version)
        known = app.registered.known(order.workflow, stored.version if stored is not None else order.version)
        if known is not None:
            return await self._launch(known, order)
        if stored is None:
            raise UnknownWorkflow(f'No version "{order.version}" of "{order.workflow}" is known here.')
        return await self._launch_stored(stored, order)

    async def _achieve(self, order: Order) -> StartResult:
        """Plan with what is known here; if that is not enough, with what was registered in the store meanwhile."""
        goal = self._app.registered.achievement(order.goals, order.input).workflow
        try:
            return await self._launch(goal, order)
        except (UnknownStep, BadPlan):
            local = self._app.service.local
            if local is None or not await local.steps.refresh():
                raise
        return await self._launch(goal, order)

    async def _launch(self, workflow: Runnable[Any], order: Order) -> StartResult:
        invocation = Invocation(workflow, workflow.given(order.input))
        return await self._app.launch(
            invocation,
            order.id,
            existing=order.existing,
            attributes=order.attributes,
            delay_ms=order.delay_ms,
        )

    async def _launch_stored(self, stored: Definition, order: Order) -> StartResult:
        """Start a graph in a version that the app no longer has: it is data in the store and can still run."""
        service = self._app.service
        graph = read_graph(stored).graph
        raw = values.encode(dict(order.input), what=f"{stored.name} got")
        wrong = check_schema(graph.input, raw) if graph.input is not None else None
        if wrong is not None:
            raise BadValue(f"The input of {stored.name} does not fit: {wrong}.", code="value.wrong_type")
        if service.local is not None:
            service.local.catalogue.learn(stored)
        start = c.StartRun(
            run_id=check_run_id(order.id) if order.id is not None else f"{stored.name}-{service.ids.new()}",
            workflow=stored.name,
            version=stored.version,
            style="graph",
            input=msgspec.Raw(raw),
            attributes=plain_attributes(order.attributes),
        )
        return await service.start(start, chosen=order.id is not None, existing=order.existing, delay_ms=order.delay_ms)


def _known(workflow: Runnable[Any]) -> Known:
    return Known(
        name=workflow.name,
        version=workflow.version,
        style=workflow.style,
        description=inspect.cleandoc(workflow.__doc__ or "") if isinstance(workflow, Workflow) else "",
        input=_input(workflow),
    )


def _input(workflow: Runnable[Any]) -> Mapping[str, Any] | None:
    """Return the JSON Schema of its input; None for goals, which take any facts."""
    if isinstance(workflow, Graph):
        return workflow.loaded.graph.input
    if not isinstance(workflow, Workflow):
        return None
    parameters = workflow.signature.parameters
    properties: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    for parameter in parameters:
        schema = dict(parameter.codec.schema())
        definitions.update(schema.pop("$defs", {}))  # type: ignore[call-overload]
        properties[parameter.name] = schema
    found: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": [parameter.name for parameter in parameters if parameter.required],
        "additionalProperties": False,
    }
    return {**found, "$defs": definitions} if definitions else found
