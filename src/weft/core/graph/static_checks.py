"""Check a graph before any run: fan-ins that need too many branches, unbound names, lost work. Pure."""

from __future__ import annotations

from typing import Any

from weft.core.findings import Problems, did_you_mean
from weft.core.graph.dominators import Flow
from weft.core.graph.expressions import BOUND, Mention
from weft.core.graph.frames import Frames
from weft.core.graph.model import START
from weft.core.graph.scopes import Scopes
from weft.core.graph.shape import Arc, Shape
from weft.core.plurals import pluralize


def check_fan_in_needs(shape: Shape, frames: Frames, scopes: Scopes, problems: Problems) -> None:
    """Report fan-ins that need more branches than their fan-outs can open."""
    for fan_in, opener in frames.opener.items():
        join = shape.node(fan_in).fan_in
        assert join is not None
        if join.need.kind != "count":
            continue
        # Only branches that arrive here count. An opening edge may lead elsewhere.
        arriving_edges = {scopes.all[scope].edge for scope in scopes.delivers[fan_in]}
        arcs = [arc for arc in shape.out[opener] if arc.ordinal in arriving_edges]
        if any(arc.each is not None for arc in arcs):
            continue
        most = _max_branches(arcs, shape.node(opener).fan_out if opener else "tiers")
        if join.need.count > most:
            name, source = shape.names[fan_in], shape.names[opener] or "start"
            problems.add(
                "m_above_n",
                join.at,
                f"{name} needs {pluralize(join.need.count, 'branch')}, but {source} opens at most {most}.",
            )


def _max_branches(arcs: list[Arc], fan_out: str) -> int:
    """Return how many branches these edges can open at once."""
    counts = [(arc.route.copies if arc.route is not None else 0) or 1 for arc in arcs]
    if fan_out == "all":
        return sum(counts)
    if fan_out == "first_match":
        return max(counts, default=0)
    tiers: dict[tuple[str, int], int] = {}
    for arc, count in zip(arcs, counts, strict=True):
        tiers[arc.kind, arc.tier] = tiers.get((arc.kind, arc.tier), 0) + count
    return max(tiers.values(), default=0)


def report_unbound_names(mentions: list[Mention], shape: Shape, scopes: Scopes, problems: Problems) -> None:
    """Report names that are not bound, and ``as`` names outside their branches."""
    binders: dict[str, str] = {}
    for arc in shape.arcs:
        if arc.each is not None and arc.route is not None:
            binders[arc.route.each_name] = f"{shape.names[arc.source]} -> {shape.names[arc.to]}"
    number = {name: index for index, name in enumerate(shape.names)}
    bound_at: dict[str, set[str]] = {}
    for mention in mentions:
        if mention.node == START and {"nodes", "ctx"} & set(mention.names):
            message = "the output of a graph can use the input and the state, not the outputs of nodes."
            problems.add(
                "unknown_name", mention.at, message, "Save the output in its node: save: {state.x: ${output}}."
            )
        unbound = [name for name in mention.names if name not in BOUND]
        if not unbound:
            continue
        if mention.node not in bound_at:
            bound_at[mention.node] = _bound_item_names(number[mention.node], shape, scopes)
        for name in unbound:
            if name in bound_at[mention.node]:
                continue
            if name in binders:
                message = f'"{name}" is bound only in the branches of {binders[name]}.'
                problems.add("unknown_name", mention.at, message)
            else:
                known = [*BOUND[:7], *binders]
                problems.add("unknown_name", mention.at, f'nothing is called "{name}" here.', did_you_mean(name, known))


def warn_of_unknown_fields(mentions: list[Mention], shape: Shape, scopes: Scopes, problems: Problems) -> None:
    """Warn about input fields that nothing declares, and state fields that nothing declares or writes."""
    known = {"input": _declared_fields(shape.folded.input), "state": _state_fields(shape, scopes)}
    for mention in mentions:
        for root, field in mention.fields:
            names = known[root]
            if names is None or field in names:
                continue
            what = "declares" if root == "input" else "declares or writes"
            near = did_you_mean(field, names)
            message = f"nothing {what} {root}.{field}, which is read here."
            problems.warn(f"unknown_{root}", mention.at, f"{message} {near}" if near else message)


def _declared_fields(schema: dict[str, Any] | None) -> set[str] | None:
    """Return the fields of a closed schema, or None if there may be others."""
    if schema is None or schema.get("additionalProperties") is not False or "patternProperties" in schema:
        return None
    return set(schema.get("properties") or {})


def _state_fields(shape: Shape, scopes: Scopes) -> set[str]:
    fields = {"_last_error", *((shape.folded.state or {}).get("properties") or {})}
    for index in range(1, len(shape.names)):
        node = shape.node(index)
        targets = [save.to for save in node.save]
        if node.fan_in is not None and node.fan_in.merge is not None:
            targets.append(node.fan_in.merge.into)
        fields |= {to.path[0] for to in targets if to.scope == "state" or not scopes.in_branch(index)}
    return fields


def _bound_item_names(node: int, shape: Shape, scopes: Scopes) -> set[str]:
    """Return the ``as`` names that a token at the node may use."""
    found = set()
    for scope in scopes.works[node]:
        for level in scopes.levels(scope):
            arc = shape.arcs[level.edge] if level.edge >= 0 else None
            if arc is not None and arc.each is not None and arc.route is not None:
                found.add(arc.route.each_name)
    return found


def warn_of_lost_work(shape: Shape, flow: Flow, frames: Frames, problems: Problems) -> None:
    """Warn about nodes that never run and fan-outs whose outputs are lost."""
    for node in range(1, len(shape.names)):
        if not flow.reached(node):
            problems.warn(
                "unreachable", shape.node(node).at, f"{shape.names[node]} can never run: no path leads to it."
            )
    for arc in shape.arcs:
        if arc.multiplies and arc.source not in frames.closer and shape.names[arc.source] != START:
            problems.warn(
                "open_fan_out",
                arc.at,
                f"no join closes the fan-out of {shape.names[arc.source]}: everything that its branches write is lost.",
            )
