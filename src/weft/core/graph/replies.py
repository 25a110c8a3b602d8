"""Check that a node that replies to a message comes after the node that receives it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from weft.core.findings import Problems
from weft.core.graph.dominators import Flow
from weft.core.graph.model import Node, ReplyWork
from weft.core.graph.shape import Shape


def check_replies(parts: Sequence[Node], shape: Shape, flow: Flow, problems: Problems) -> None:
    """Refuse a reply that no path from its ``receive`` leads to. Warn if another path leads to it as well."""
    number = {name: index for index, name in enumerate(shape.names)}
    for index, part in enumerate(parts, 1):
        if not isinstance(part.work, ReplyWork) or part.work.to not in number or not flow.reached(index):
            continue
        to = part.work.to
        at = (*shape.node(index).work_at, "to")
        if not _has_path(shape, number[to], index):
            problems.add(
                "answer_without_message",
                at,
                f"{part.id} answers {to}, but no path leads from {to} to it: there is no message to answer.",
                f"Put {part.id} after {to}, or after a join of the branch that contains {to}.",
            )
        elif not _always_after(shape, flow, number[to])[index]:
            message = f"{part.id} fails on paths that do not pass through {to}: there is no message to answer."
            problems.warn("answer_without_message", at, message)


def _has_path(shape: Shape, source: int, to: int) -> bool:
    """Return whether there is a path, possibly through another round of a loop."""
    seen = {source}
    stack = [source]
    while stack:
        node = stack.pop()
        arcs = [*shape.out[node], *([shape.back[node]] if node in shape.back else [])]
        for arc in arcs:
            if arc.to == to:
                return True
            if arc.to not in seen:
                seen.add(arc.to)
                stack.append(arc.to)
    return False


def _always_after(shape: Shape, flow: Flow, source: int) -> list[bool]:
    """Return for each node whether its tokens have passed ``source``. At a join for all, one path is enough."""
    after = [False] * len(shape.names)
    for node in flow.order:
        if node == source:
            after[node] = True
        elif node:
            before = [after[arc.source] for arc in shape.into[node] if flow.reached(arc.source)]
            after[node] = any(before) if _joins_all_branches(shape, node) else all(before)
    return after


def _joins_all_branches(shape: Shape, node: int) -> bool:
    folded = shape.node(node)
    return folded.join == "edges" or (folded.fan_in is not None and folded.fan_in.need.kind == "all")
