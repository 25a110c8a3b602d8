"""Describe nodes and edges in a few words, for the labels of pictures. Pure."""

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
    PipelineWork,
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
"""Conditions that are nested deeper are written as JSON."""


def short(text: str, chars_max: int = CHARS_MAX) -> str:
    """Shorten a text to one line of at most ``chars_max`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= chars_max else f"{line[: chars_max - 1].rstrip()}…"


def node_label(node: Node) -> str:
    """Describe what a node does: how it joins branches, and its work."""
    parts = [join_label(node), _work_or_step(node)]
    return " · ".join(part for part in parts if part) or "pass"


def _work_or_step(node: Node) -> str:
    """Return the name of the node's step if it differs from that of the node, or else describe its work."""
    if isinstance(node.work, StepWork):
        return node.work.step if node.work.step != node.id else "step"
    return work_label(node.work)


def join_label(node: Node) -> str:
    """Describe what a join waits for; empty for other nodes."""
    if node.fan_in is not None:
        return f"join {_need_label(node.fan_in)}"
    return "join edges" if node.join == "edges" else ""


def _need_label(fan_in: FanIn) -> str:
    """Describe how many branches must arrive."""
    need = fan_in.need
    if need.kind == "all":
        return "all"
    if need.kind == "percent":
        return f"{need.percent:g}%"
    return "any" if need.count == 1 else f"at least {need.count}"


def work_label(work: Work) -> str:
    """Describe the work of a node; empty for a node without work."""
    match work:
        case StepWork():
            return f"step {work.step}"
        case HttpWork():
            return short(_request(work.request.source))
        case ScriptWork():
            return f"{work.language} script"
        case PipelineWork():
            return "pipeline"
        case WorkflowWork():
            return f"workflow {work.workflow}"
        case GoalWork():
            return f"goal {', '.join(work.goals)}"
        case AskWork():
            return f"ask {', '.join(work.of)}" if work.of else "ask"
        case AgentWork():
            return f"agent {work.agent}" if work.agent else "agent"
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
    """Return the lines of a tooltip: the details for which a box has no room."""
    found = [part for part in (join_label(node), work_label(node.work)) if part] or ["pass"]
    if isinstance(node.work, AskWork):
        found.append(f"asks: {node.work.title.source}")
    if node.retry.attempts is not None:
        found.append(pluralize(node.retry.attempts, "attempt"))
    if node.timeout_ms:
        found.append(f"timeout {format_ms(node.timeout_ms)}")
    if node.deadline is not None:
        then = "continues" if node.deadline.proceeds else "fails"
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


def edge_label(graph: GraphModel, edge: Edge) -> str:
    """Describe when and how an edge is taken; empty if it is always taken."""
    node = graph.nodes.get(edge.source)
    if edge.kind == "back":
        return _repeat_label(node.repeat) if node is not None and node.repeat is not None else ""
    if edge.kind == "timeout":
        repeat = node.repeat if node is not None else None
        return f"after {pluralize(repeat.at_most, 'round')}" if repeat is not None else "exhausted"
    parts = []
    if edge.errors is not None:
        parts.append(f"on {' or '.join(edge.errors)}" if edge.errors else "on any error")
    elif edge.when is not None:
        parts.append(condition(edge.when.source))
    elif node is not None and _is_fallback(node, edge):
        parts.append("otherwise")
    if edge.each is not None:
        width = f", {edge.width} at once" if edge.width else ""
        parts.append(f"for each {edge.each.name} in {edge.each.collection.source}{width}")
    elif edge.copies:
        parts.append(f"{edge.copies} copies")
    return ": ".join(parts)


def _repeat_label(repeat: Repeat) -> str:
    if repeat.condition is None:
        return f"{repeat.at_most} times"
    return f"{'until' if repeat.until else 'while'} {condition(repeat.condition.source)}, at most {repeat.at_most}"


def _is_fallback(node: Node, edge: Edge) -> bool:
    """Return whether the edge is tried only after other edges."""
    firsts = [tier for tier in node.tiers if tier not in node.error_tiers]
    return node.fan_out != "all" and len(firsts) > 1 and edge.name not in firsts[0]


def condition(source: Any, depth: int = 0) -> str:
    """Write a condition in a readable form."""
    if isinstance(source, str):
        return " ".join(source.split())
    match source:
        case {"all": list(parts)} | {"any": list(parts)} if depth < DEPTH_MAX:
            word = " and " if "all" in source else " or "
            texts = [condition(part, depth + 1) for part in parts]
            return word.join(f"({text})" if len(parts) > 1 and " " in text and depth else text for text in texts)
        case {"not": part} if depth < DEPTH_MAX:
            return f"not ({condition(part, depth + 1)})"
        case {"jsonpath": path, **rest}:
            value = _label_value(rest["value"]) if "value" in rest else ""
            return " ".join(str(part) for part in (rest.get("agg"), path, rest.get("is"), value) if part)
        case {"schema": _}:
            return "matches its schema"
        case {"not_schema": _}:
            return "does not match its schema"
        case {"python": _}:
            return "python condition holds"
        case _:
            return msgspec.json.encode(source).decode()


def _label_value(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
