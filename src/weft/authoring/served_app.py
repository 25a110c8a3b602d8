"""The workflows of an app, as the server shows them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from weft.authoring.graphs import Graph
from weft.authoring.registrations import Registrations
from weft.authoring.runnable import Runnable
from weft.authoring.workflows import Workflow
from weft.core.goal.plan import GoalPlan
from weft.server.hosted_app import HostedWorkflow


class Served:
    """The workflows and goals of an app, for the server."""

    def __init__(self, registered: Registrations) -> None:
        self._registered = registered

    def workflows(self) -> Sequence[HostedWorkflow]:
        registered = self._registered
        found = [registered.known(*key) for key in registered.workflow_versions()]
        return [_known(one) for one in [*found, *registered.graphs(), *registered.goals()] if one is not None]

    def plan(self, goals: Sequence[str], given: Sequence[str]) -> GoalPlan:
        return self._registered.make_plan(goals, given)


def _known(workflow: Runnable[Any]) -> HostedWorkflow:
    return HostedWorkflow(
        name=workflow.name,
        version=workflow.version,
        style=workflow.style,
        description=inspect.cleandoc(workflow.__doc__ or "") if isinstance(workflow, Workflow) else "",
        input=_input(workflow),
    )


def _input(workflow: Runnable[Any]) -> Mapping[str, Any] | None:
    """Return the JSON Schema of a workflow's input; None for goals, which take any facts."""
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
