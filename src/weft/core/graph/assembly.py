"""Assemble the compiled graph from the results of the analyses. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from weft.core.findings import At
from weft.core.graph.derived_names import Names
from weft.core.graph.dominators import Flow
from weft.core.graph.expressions import DocumentReader
from weft.core.graph.folded import FoldedGraph, FoldedNode, Source
from weft.core.graph.frames import Frames
from weft.core.graph.loops import Loops, Ring
from weft.core.graph.model import (
    ALL,
    ITEM,
    NO_LIMITS,
    NO_RETRY,
    START,
    Delivery,
    Edge,
    Expr,
    FanIn,
    ForEach,
    Loop,
    Node,
    Repeat,
    Save,
    Target,
    UndoRule,
    Work,
)
from weft.core.graph.scopes import Scopes
from weft.core.graph.shape import Arc, Shape

T = TypeVar("T")


@dataclass(slots=True)
class Analysis:
    """Everything known about a valid graph. ``parts`` are its nodes without their place in the graph."""

    shape: Shape
    flow: Flow
    loops: Loops
    frames: Frames
    scopes: Scopes
    names: Names
    remembered: set[str]
    parts: list[Node]
    output: Expr | None

    def completed_node(self, index: int, part: Node) -> Node:
        """Return a node with its place in the graph."""
        shape = self.shape
        main = [arc for arc in shape.out[index] if arc.kind == "main"]
        closer = self.frames.closer.get(index)
        failing = [arc for arc in main if arc.mentions_error]
        return msgspec.structs.replace(
            part,
            fan_in=self._assemble_fan_in(index),
            repeat=self._assemble_repeat(index, part),
            main=self._edge_names(main),
            tiers=self._edge_names_by_tier(main),
            error_tiers=self._edge_names_by_tier(failing),
            incoming=self._edge_names(arc for arc in shape.into[index] if self.flow.reached(arc.source)),
            waits=self._edges_to_wait_for(index),
            opening=self._edge_names(arc for arc in shape.out[index] if arc.opens),
            closed_by=shape.names[closer] if closer is not None else START,
            heads=[self.names.loops[ring] for ring in self.loops.heads[index]],
            loop=self.names.loop(self.loops.around[index]),
            scopes=[self.names.scopes[scope] for scope in self.scopes.works[index]],
            terminal=len(failing) == len(main),
            remembered=part.id in self.remembered,
            save=[Save(self._resolve_here(save.to, index), save.value) for save in part.save],
        )

    def _resolve_here(self, target: Target, index: int) -> Target:
        """Replace ``here`` by the state for a node outside every branch."""
        return target if self.scopes.in_branch(index) else Target("state", target.path)

    def _assemble_fan_in(self, index: int) -> FanIn | None:
        join = self.shape.node(index).fan_in
        # A fan-in that cannot be reached closes nothing and never runs.
        if join is None or index not in self.frames.opener:
            return None
        opener = self.shape.names[self.frames.opener[index]]
        merge = join.merge
        if merge is not None:
            merge = msgspec.structs.replace(merge, into=self._resolve_here(merge.into, index))
        return FanIn(opener, _share_default(ALL, join.need), merge, join.early)

    def _assemble_repeat(self, index: int, part: Node) -> Repeat | None:
        if part.repeat is None:
            return None
        back = self.shape.back[index]
        return msgspec.structs.replace(
            part.repeat,
            loop=self.names.loop(back.loop),
            back=self.names.edges[back.ordinal],
            exhausted=self._edge_names(arc for arc in self.shape.out[index] if arc.kind == "timeout"),
        )

    def _edges_to_wait_for(self, index: int) -> list[Delivery]:
        if index in self.frames.opener:
            return []  # a fan-in waits for branches, not for edges
        delivered = self.scopes.delivers[index]
        if len(delivered) < 2:
            return []
        everything = {ordinal for ordinals in delivered.values() for ordinal in ordinals}
        partly = any(len(ordinals) < len(everything) for ordinals in delivered.values())
        if not partly:
            return []
        return [
            Delivery(self.names.scopes[scope], [self.names.edges[ordinal] for ordinal in sorted(ordinals)])
            for scope, ordinals in delivered.items()
        ]

    def _edge_names(self, arcs: Iterable[Arc]) -> list[str]:
        return [self.names.edges[arc.ordinal] for arc in arcs]

    def _edge_names_by_tier(self, arcs: list[Arc]) -> list[list[str]]:
        if len(arcs) < 2:
            return [self._edge_names(arcs)] if arcs else []
        tiers: dict[int, list[str]] = {}
        for arc in arcs:
            tiers.setdefault(arc.tier, []).append(self.names.edges[arc.ordinal])
        return [tiers[tier] for tier in sorted(tiers)]

    def edges(self) -> dict[str, Edge]:
        """Return all edges with the results of the analyses."""
        return {
            name: self._assemble_edge(name, arc) for name, arc in zip(self.names.edges, self.shape.arcs, strict=True)
        }

    def _assemble_edge(self, name: str, arc: Arc) -> Edge:
        route = arc.route
        return Edge(
            name=name,
            ordinal=arc.ordinal,
            source=self.shape.names[arc.source],
            to=self.shape.names[arc.to],
            kind=arc.kind,
            tier=arc.tier,
            when=arc.when,
            errors=route.errors if route is not None else None,
            each=ForEach(arc.each, _share_default(ITEM, route.each_name))
            if arc.each is not None and route is not None
            else None,
            copies=route.copies if route is not None else 0,
            width=route.width if route is not None else 0,
            mentions_error=arc.mentions_error,
            opens=arc.opens,
            exits=[self.names.loops[ring] for ring in arc.exits],
            loop=self.names.loop(arc.loop),
        )

    def rings(self) -> dict[str, Loop]:
        """Return all loops. Their bodies are stored in the nodes."""
        return {name: self._assemble_loop(ring) for name, ring in zip(self.names.loops, self.loops.rings, strict=True)}

    def _assemble_loop(self, ring: Ring) -> Loop:
        names = self.shape.names
        return Loop(
            header=names[ring.header],
            latches=[names[arc.source] for arc in ring.latches],
            parent=self.names.loop(ring.parent),
            exits=[self.names.edges[ordinal] for ordinal in sorted(ring.exits)],
        )


def node_part(node: FoldedNode, reader: DocumentReader) -> Node:
    """Return a node with its work, policies and parsed expressions. The rest is filled in when the graph is known."""
    repeat = None
    if node.repeat is not None:
        source = node.repeat.condition
        condition = reader.read("condition", source, node.id)[0] if source is not None else None
        fails = node.repeat.exhausted is None
        repeat = Repeat(condition, node.repeat.at_most, until=node.repeat.until, fails=fails)
    return Node(
        id=node.id,
        work=_read_work(node, reader),
        input=reader.template(node.input, node.id),
        save=[Save(save.to, reader.read("template", save.value, node.id)[0]) for save in node.save],
        retry=_share_default(NO_RETRY, node.retry),
        timeout_ms=node.timeout_ms,
        queue=node.queue,
        limits=_share_default(NO_LIMITS, node.limits),
        undo=_read_undo(node, reader),
        on_failure=node.on_failure,
        requires_approval=node.requires_approval,
        join=node.join,
        deadline=node.deadline,
        fan_out=node.fan_out,
        on_no_match=node.on_no_match,
        repeat=repeat,
    )


def output_part(folded: FoldedGraph, reader: DocumentReader) -> Expr | None:
    """Return the template for the output of a run."""
    return reader.template(folded.output, START)


def _read_undo(node: FoldedNode, reader: DocumentReader) -> UndoRule | None:
    undo = node.undo
    if undo is None:
        return None
    return UndoRule(
        undo.step, reader.template(undo.input, node.id), _share_default(NO_RETRY, undo.retry), undo.timeout_ms
    )


def _read_work(node: FoldedNode, reader: DocumentReader) -> Work:
    """Parse the templates in the work of a node."""
    changed: dict[str, Expr | None] = {}
    for name in node.work.__struct_fields__:
        part = getattr(node.work, name)
        if isinstance(part, Expr):
            at: At = node.work_at if name in ("request", "config") else (*node.work_at, name)
            changed[name] = reader.template(Source(part.source, at), node.id)
    return msgspec.structs.replace(node.work, **changed) if changed else node.work


def _share_default(default: T, value: T) -> T:
    """Return the default itself if the value equals it, so that it is left out of the JSON."""
    return default if value == default else value
