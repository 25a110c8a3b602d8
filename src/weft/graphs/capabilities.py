"""Read what a node may do at most: ``node_capabilities``. It limits what the rest of its document says."""

from __future__ import annotations

import msgspec

from weft.core.graph.folded import FoldedNode
from weft.core.graph.model import AgentWork
from weft.documents.fields import Fields

KEY = "node_capabilities"
CAPABILITIES = ("can_emit_to", "max_fanout", "requires_approval", "allowed_tools")


def fold_capabilities(node: Fields, folded: FoldedNode) -> None:
    """Apply the capabilities of a node to what was read of it: its limits, its agent, and whether people are asked."""
    if KEY not in node:
        return
    given = Fields(node.raw[KEY], node.place(KEY), node.problems, CAPABILITIES)
    folded.requires_approval = given.flag("requires_approval", default=False)
    most = given.integer("max_fanout")
    if most is not None:
        own = folded.limits.fan_out or most
        folded.limits = msgspec.structs.replace(folded.limits, fan_out=min(own, most))
    work = folded.work
    if not isinstance(work, AgentWork):
        if "allowed_tools" in given:
            given.problems.add("wrong_type", given.place("allowed_tools"), "only an agent has tools.")
        return
    choose = work.choose
    if choose is not None and most is not None:
        choose = msgspec.structs.replace(choose, at_most=min(choose.at_most, most))
    tools = given.texts("allowed_tools") if "allowed_tools" in given else None
    folded.work = msgspec.structs.replace(work, choose=choose, allowed_tools=tools)


def check_targets(node: Fields, folded: FoldedNode, nodes: dict[str, Fields]) -> None:
    """Report every edge of a node that its capabilities do not allow, and names that no node has."""
    raw = node.raw.get(KEY)
    if not isinstance(raw, dict) or "can_emit_to" not in raw:
        return
    given = Fields(raw, node.place(KEY), node.problems, raw)
    allowed, problems, at = given.texts("can_emit_to"), node.problems, given.place("can_emit_to")
    for name in allowed:
        if name not in nodes:
            problems.add("unknown_node", at, f'no node "{name}".', problems.near(name, nodes))
    routes = [*folded.routes, *((folded.repeat.exhausted or []) if folded.repeat is not None else [])]
    for to, place in {route.to: route.at for route in routes}.items():
        if to not in allowed:
            listed = ", ".join(allowed) or "no node"
            problems.add("cannot_emit_to", place, f"{folded.id} leads to {to}, and may lead to {listed}.")
