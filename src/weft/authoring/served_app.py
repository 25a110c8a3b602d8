"""The workflows of an app, as the server shows them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.authoring.goals import Goal, Plan
from weft.authoring.graphs import Graph
from weft.authoring.registrations import Registrations
from weft.authoring.runnable import Runnable
from weft.authoring.workflows import Workflow
from weft.core.goal.plan import GoalPlan
from weft.graphs.load import LoadedGraph
from weft.server.hosted_app import HostedWorkflow


class Served:
    """The workflows and goals of an app, for the server."""

    def __init__(self, registered: Registrations) -> None:
        self._registered = registered

    def workflows(self) -> Sequence[HostedWorkflow]:
        registered = self._registered
        found = [registered.known(*key) for key in registered.workflow_versions()]
        return [_known(one) for one in [*found, *registered.graphs(), *registered.goals()] if one is not None]

    def result_schema(self, workflow: HostedWorkflow) -> Mapping[str, Any] | None:
        found = self._registered.known(workflow.name, workflow.version)
        return found.signature.result.schema() if isinstance(found, Workflow) else None

    def plan(self, goals: Sequence[str], given: Sequence[str]) -> GoalPlan:
        return self._registered.make_plan(goals, given)

    def freeze(self, goals: Sequence[str], given: Sequence[str], name: str) -> LoadedGraph:
        return Plan(self._registered.make_plan(goals, given), self._registered).freeze(name).load()


def _known(workflow: Runnable[Any]) -> HostedWorkflow:
    return HostedWorkflow(
        name=workflow.name,
        version=workflow.version,
        style=workflow.style,
        description=inspect.cleandoc(workflow.__doc__ or "") if isinstance(workflow, Workflow) else "",
        input=_input(workflow),
        where=_where(workflow),
        goals=workflow.goals if isinstance(workflow, Goal) else (),
        offered=isinstance(workflow, Workflow) and workflow.mcp,
    )


def _where(workflow: Runnable[Any]) -> str:
    """Return the file and line of a workflow's code, below the current directory if it is there."""
    code = getattr(inspect.unwrap(workflow.fn), "__code__", None) if isinstance(workflow, Workflow) else None
    if code is None:
        return ""
    path = Path(code.co_filename)
    here = Path.cwd()
    shown = path.relative_to(here) if path.is_relative_to(here) else path
    return f"{shown}:{code.co_firstlineno}"


def _input(workflow: Runnable[Any]) -> Mapping[str, Any] | None:
    """Return the JSON Schema of a workflow's input; None for goals, which take any facts."""
    if isinstance(workflow, Graph):
        return workflow.loaded.graph.input
    if not isinstance(workflow, Workflow):
        return None
    return workflow.signature.schema()
