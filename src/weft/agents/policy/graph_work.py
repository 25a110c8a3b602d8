"""Check the nodes of a graph against the policy. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from weft.agents.policy.defaults import default_for
from weft.agents.policy.policy_rules import PolicyRules
from weft.agents.policy.verdicts import Action, Asked, PolicyVerdict
from weft.core.findings import Finding
from weft.core.graph.model import GraphModel, Node, StepWork, TypeWork, WorkflowWork

_CHECKED: tuple[Action, ...] = ("step", "workflow", "tool", "model", "route")


def denied_work(graph: GraphModel, rules: PolicyRules, asked: Asked) -> Iterator[tuple[str, Asked, PolicyVerdict]]:
    """Yield what the policy denies to the nodes of a graph, with the path in the document.

    ``asked`` says who runs the graph. Rules about the arguments of a step are left out: they are checked when the step
    is dispatched.
    """
    rules = rules.without_conditions_on("args", "spent")
    if not any(rules.governs(action) for action in _CHECKED):
        return
    for node in graph.nodes.values():
        for field, action, name in _wanted(node):
            one = msgspec.structs.replace(asked, action=action, name=name, args={}, workflow=graph.name, node=node.id)
            verdict = rules.verdict(one, default_for(action, agent=one.agent))
            if verdict.permission == "deny":
                yield f"nodes.{node.id}.{field}", one, verdict


def policy_findings(graph: GraphModel, rules: PolicyRules | None) -> list[Finding]:
    """Return a finding for everything in a graph that the policy denies to everybody."""
    if rules is None:
        return []
    asked = Asked(action="workflow", name=graph.name)
    return [
        Finding("policy.denied", f"the {one.action} {one.name} is not permitted: {verdict.rule}.", path)
        for path, one, verdict in denied_work(graph, rules.without_conditions_on("tenant", "attributes"), asked)
    ]


def _wanted(node: Node) -> Iterator[tuple[str, Action, str]]:
    work = node.work
    match work:
        case StepWork():
            yield "step", "step", work.step
        case TypeWork():
            yield "type", "step", work.type
        case WorkflowWork():
            yield "workflow", "workflow", work.workflow
    if node.undo is not None:
        yield "undo", "step", node.undo.step
