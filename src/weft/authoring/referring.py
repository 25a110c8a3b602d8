"""What a graph refers to, against what is registered: steps, workflows, and the arguments they are given."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from weft.core.findings import Finding
from weft.core.graph.model import Graph, Node, StepWork, WorkflowWork
from weft.steps.catalogued import why_planned
from weft.steps.definition import DEFINED
from weft.steps.signature import Signature

if TYPE_CHECKING:
    from weft.authoring.group import Group


def unknown_work(graph: Graph, group: Group) -> list[Finding]:
    """Everything in the graph that nobody here could perform as it is written."""
    found: list[Finding] = []
    for node in graph.nodes.values():
        work = node.work
        if isinstance(work, StepWork) and not node.queue and work.step != DEFINED:
            found += _step(node, work.step, group)
        if node.undo is not None:
            found += _known(node, "undo", node.undo.step, group.callable_names(), "step")
        if isinstance(work, WorkflowWork):
            found += _known(node, "workflow", work.workflow, group.runnable_names(), "workflow")
    return found


def _known(node: Node, field: str, name: str, names: Iterable[str], kind: str) -> list[Finding]:
    known = list(names)
    if name in known:
        return []
    close = difflib.get_close_matches(name, known, n=1)
    message = f'no {kind} "{name}" is registered.'
    suggestion = f'Did you mean "{close[0]}"?' if close else "Import the module that has it."
    return [Finding(f"graph.unknown_{kind}", message, f"nodes.{node.id}.{field}", suggestion=suggestion)]


def _step(node: Node, name: str, group: Group) -> list[Finding]:
    step = group.find_step(name)
    if step is None:
        return _planned(node, name, group) or _known(node, "step", name, group.callable_names(), "step")
    given = node.input.source if node.input is not None else None
    if not isinstance(given, dict) or (isinstance(node.work, StepWork) and node.work.config_ref):
        return []
    return _arguments(node, name, given, step.signature)


def _planned(node: Node, name: str, group: Group) -> list[Finding]:
    """A step of the catalogue that only a plan can perform."""
    definition = group.planned_step(name)
    why = why_planned(definition) if definition is not None else ""
    if not why:
        return []
    hint = f"Write goal: {name}"
    return [Finding("graph.unknown_step", f"{name} takes a plan: {why}.", f"nodes.{node.id}.step", suggestion=hint)]


def _arguments(node: Node, name: str, given: dict[str, object], signature: Signature) -> list[Finding]:
    takes = [parameter.name for parameter in signature.parameters]
    if takes == ["input"] and "input" not in given:
        return []
    at = f"nodes.{node.id}.with"
    found = []
    for key in given:
        if key not in takes:
            close = difflib.get_close_matches(key, takes, n=1)
            hint = f'Did you mean "{close[0]}"?' if close else f"It takes {', '.join(takes) or 'nothing'}."
            found.append(Finding("graph.unknown_argument", f"{name} takes no {key}.", f"{at}.{key}", suggestion=hint))
    missing = [
        parameter.name for parameter in signature.parameters if parameter.required and parameter.name not in given
    ]
    if missing:
        found.append(Finding("graph.missing_argument", f"{name} needs {', '.join(missing)}.", at))
    return found
