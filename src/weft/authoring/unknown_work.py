"""Find the steps, workflows and arguments in a graph that are not registered."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol, cast

from weft.authoring.steps import Step
from weft.core.findings import Finding
from weft.core.goal.definitions import StepDef
from weft.core.graph.model import AgentWork, GraphModel, Node, StepWork, WorkflowWork
from weft.steps.catalogued import why_planned
from weft.steps.definition import DEFINED
from weft.steps.step_arguments import given_arguments, wrong_arguments

if TYPE_CHECKING:
    from weft.authoring.agents.workflow import AgentGroup


class KnownWork(Protocol):
    """The steps and workflows that are registered."""

    def callable_names(self) -> list[str]: ...

    def runnable_names(self) -> list[str]: ...

    def find_step(self, name: str) -> Step[Any, Any] | None: ...

    def planned_step(self, name: str) -> StepDef | None: ...


def unknown_work(graph: GraphModel, known: KnownWork) -> list[Finding]:
    """Return a finding for every step, workflow and argument in the graph that is not registered here."""
    findings: list[Finding] = []
    for node in graph.nodes.values():
        work = node.work
        if isinstance(work, StepWork) and not node.queue and work.step != DEFINED:
            findings += _check_step(node, work.step, known)
        if node.undo is not None:
            findings += _check_name(node, "undo", node.undo.step, known.callable_names(), "step")
        if isinstance(work, WorkflowWork):
            findings += _check_name(node, "workflow", work.workflow, [*known.runnable_names(), graph.name], "workflow")
    if any(isinstance(node.work, AgentWork) for node in graph.nodes.values()):
        from weft.authoring.agents.documents import unknown_parts  # noqa: PLC0415 - only graphs with agents need it

        findings += unknown_parts(graph, cast("AgentGroup", known))
    return findings


def _check_name(node: Node, field: str, name: str, names: Iterable[str], kind: str) -> list[Finding]:
    registered = list(names)
    if name in registered:
        return []
    close = difflib.get_close_matches(name, registered, n=1)
    message = f'no {kind} "{name}" is registered.'
    suggestion = f'Did you mean "{close[0]}"?' if close else f"Import the module that defines the {kind}."
    return [Finding(f"graph.unknown_{kind}", message, f"nodes.{node.id}.{field}", suggestion=suggestion)]


def _check_step(node: Node, name: str, known: KnownWork) -> list[Finding]:
    step = known.find_step(name)
    if step is None:
        return _check_planned(node, name, known) or _check_name(node, "step", name, known.callable_names(), "step")
    given = given_arguments(node)
    return wrong_arguments(node, name, given, step.signature.arguments()) if given is not None else []


def _check_planned(node: Node, name: str, known: KnownWork) -> list[Finding]:
    """Return a finding if the step is in the catalogue but can be performed only as part of a plan."""
    definition = known.planned_step(name)
    why = why_planned(definition) if definition is not None else ""
    if not why:
        return []
    hint = f"Write goal: {name}"
    message = f"{name} can only run as part of a plan: {why}."
    return [Finding("graph.unknown_step", message, f"nodes.{node.id}.step", suggestion=hint)]
