"""What nodes do and when edges are taken, in a few words. Pure."""

from __future__ import annotations

from typing import Any, assert_never

import msgspec

from weft.core.durations import format_ms
from weft.core.graph.model import (
    AgentWork,
    AskWork,
    Edge,
    FanIn,
    GoalWork,
    GraphModel,
    HttpWork,
    Node,
    PassWork,
    ReceiveWork,
    Repeat,
    ReplyWork,
    ScriptWork,
    StepWork,
    TypeWork,
    WaitWork,
    Work,
    WorkflowWork,
)
from weft.core.plurals import pluralize

CHARS_MAX = 80
DEPTH_MAX = 4
"""How deep conditions inside conditions are told."""


def short(text: str, chars_max: int = CHARS_MAX) -> str:
    """Shorten a text to one line of so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= chars_max else f"{line[: chars_max - 1].rstrip()}…"


def doing(node: Node) -> str:
    """Say what a node does: how it joins branches, then its work."""
    parts = [meeting(node), _named(node)]
    return " · ".join(part for part in parts if part) or "pass"


def _named(node: Node) -> str:
    """Name a step, unless the node has that name already."""
    if isinstance(node.work, StepWork):
        return node.work.step if node.work.step != node.id else "step"
    return working(node.work)


def meeting(node: Node) -> str:
    """Say what a join waits for; empty for other nodes."""
    if node.fan_in is not None:
        return f"join {needed(node.fan_in)}"
    return "join edges" if node.join == "edges" else ""


def needed(fan_in: FanIn) -> str:
    """Say how many branches must arrive."""
    need = fan_in.need
    if need.kind == "all":
        return "all"
    if need.kind == "percent":
        return f"{need.percent:g}%"
    return "any" if need.count == 1 else f"at least {need.count}"


def working(work: Work) -> str:
    """Say what work a node does; empty for a node that only passes on."""
    match work:
        case StepWork():
            return f"step {work.step}"
        case HttpWork():
            return short(_request(work.request.source))
        case ScriptWork():
            return f"{work.language} script"
        case WorkflowWork():
            return f"workflow {work.workflow}"
        case GoalWork():
            return f"goal {', '.join(work.goals)}"
        case AskWork():
            return f"ask {', '.join(work.of)}" if work.of else "ask"
        case AgentWork():
            return f"agent {work.agent}" if isinstance(work.agent, str) else "agent"
        case WaitWork():
            return f"wait {format_ms(work.ms)}"
        case ReceiveWork():
            return f"receive {work.name}"
        case ReplyWork():
            return f"answer {work.to}"
        case PassWork():
            return ""
        case TypeWork():
            return work.type
        case _:
            assert_never(work)


def _request(source: Any) -> str:
    if not isinstance(source, dict):
        return "http"
    return " ".join(str(source[key]) for key in ("method", "url") if key in source) or "http"


def details(node: Node) -> list[str]:
    """Return the lines that a box has no room for."""
    found = [part for part in (meeting(node), working(node.work)) if part] or ["pass"]
    if isinstance(node.work, AskWork):
        found.append(f"asks: {node.work.title.source}")
    if node.retry.attempts is not None:
        found.append(pluralize(node.retry.attempts, "attempt"))
    if node.timeout_ms:
        found.append(f"timeout {format_ms(node.timeout_ms)}")
    if node.deadline is not None:
        then = "goes on" if node.deadline.proceeds else "fails"
        found.append(f"waits at most {format_ms(node.deadline.ms)} after the first arrival, then {then}")
    if node.queue:
        found.append(f"queue {node.queue}")
    if node.undo is not None:
        found.append(f"undone by {node.undo.step}")
    if node.fan_in is not None and node.fan_in.opener:
        found.append(f"closes the fan-out of {node.fan_in.opener}")
    if node.fan_in is not None and node.fan_in.merge is not None:
        merge = node.fan_in.merge
        found.append(f"merges ({merge.how}) into {'.'.join(merge.into.path)}")
    return found


# --- edges -------------------------------------------------------------------------------------------------------


def taking(graph: GraphModel, edge: Edge) -> str:
    """Say when and how an edge is taken; empty if it always is."""
    node = graph.nodes.get(edge.source)
    if edge.kind == "back":
        return _again(node.repeat) if node is not None and node.repeat is not None else ""
    if edge.kind == "timeout":
        repeat = node.repeat if node is not None else None
        return f"after {pluralize(repeat.at_most, 'round')}" if repeat is not None else "exhausted"
    parts = []
    if edge.errors is not None:
        parts.append(f"on {' or '.join(edge.errors)}" if edge.errors else "on any error")
    elif edge.when is not None:
        parts.append(condition(edge.when.source))
    elif node is not None and _is_last_resort(node, edge):
        parts.append("otherwise")
    if edge.each is not None:
        width = f", {edge.width} at once" if edge.width else ""
        parts.append(f"for each {edge.each.name} in {edge.each.collection.source}{width}")
    elif edge.copies:
        parts.append(f"{edge.copies} copies")
    return ": ".join(parts)


def _again(repeat: Repeat) -> str:
    if repeat.condition is None:
        return f"{repeat.at_most} times"
    return f"{'until' if repeat.until else 'while'} {condition(repeat.condition.source)}, at most {repeat.at_most}"


def _is_last_resort(node: Node, edge: Edge) -> bool:
    """Return whether other edges are tried first."""
    firsts = [tier for tier in node.tiers if tier not in node.error_tiers]
    return node.fan_out != "all" and len(firsts) > 1 and edge.name not in firsts[0]


def condition(source: Any, depth: int = 0) -> str:
    """Write a condition as a person would say it."""
    if isinstance(source, str):
        return " ".join(source.split())
    match source:
        case {"all": list(parts)} | {"any": list(parts)} if depth < DEPTH_MAX:
            word = " and " if "all" in source else " or "
            told = [condition(part, depth + 1) for part in parts]
            return word.join(f"({part})" if len(parts) > 1 and " " in part and depth else part for part in told)
        case {"not": part} if depth < DEPTH_MAX:
            return f"not ({condition(part, depth + 1)})"
        case {"jsonpath": path, **rest}:
            value = _value(rest["value"]) if "value" in rest else ""
            return " ".join(str(part) for part in (rest.get("agg"), path, rest.get("is"), value) if part)
        case {"schema": _}:
            return "fits its schema"
        case {"not_schema": _}:
            return "does not fit its schema"
        case {"python": _}:
            return "python says yes"
        case _:
            return msgspec.json.encode(source).decode()


def _value(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
