"""Compile a folded document into a verified graph. Pure.

``compile_graph`` returns a graph whose scopes are proved to nest, or reports all errors in the document: the
analyses continue after an error as far as they can. Their order is fixed: expressions, edges, cycles, dominators,
loops, which fan-out each fan-in closes, scopes, then the checks that need the scopes.
"""

from __future__ import annotations

import msgspec

from weft.core.findings import Problems, did_you_mean
from weft.core.graph.assembly import Analysis, node_part, output_part
from weft.core.graph.derived_names import derive_names
from weft.core.graph.dominators import Flow, cut_cycles
from weft.core.graph.expressions import DocumentReader
from weft.core.graph.folded import FoldedGraph
from weft.core.graph.frames import find_frames
from weft.core.graph.language import ExpressionLanguage
from weft.core.graph.loops import find_exits, find_loops
from weft.core.graph.model import (
    NO_LIMITS,
    START,
    GraphModel,
    Node,
    ReceiveWork,
    ReplyWork,
)
from weft.core.graph.replies import check_replies
from weft.core.graph.scopes import Scopes
from weft.core.graph.shape import Shape, build_shape
from weft.core.graph.static_checks import (
    check_fan_in_needs,
    report_unbound_names,
    warn_of_lost_work,
    warn_of_unknown_fields,
)
from weft.core.graph.writes import check_writes


def compile_graph(folded: FoldedGraph, language: ExpressionLanguage, problems: Problems) -> GraphModel | None:
    """Return the graph, or None if ``problems`` has errors. Errors that were in it before the call count too."""
    if not folded.nodes:
        problems.add("no_nodes", ("nodes",), "a graph needs at least one node.")
        return None
    reader = DocumentReader(language, folded.nodes, problems)
    shape = build_shape(folded, reader, problems)
    if problems.full:
        return None
    analysis = _analyse_graph(folded, shape, reader, problems)
    return None if analysis is None or problems.has_errors else _assemble_model(analysis)


def _analyse_graph(folded: FoldedGraph, shape: Shape, reader: DocumentReader, problems: Problems) -> Analysis | None:
    parts = [node_part(node, reader) for node in folded.nodes.values()]
    parts = _settle_answers(parts, folded, reader, problems)
    output = output_part(folded, reader)
    cut_cycles(shape, problems)
    flow = Flow(shape)
    loops = find_loops(shape, flow, problems)
    if loops.steps_left <= 0 or not find_exits(shape, loops, problems):
        return None
    frames = find_frames(shape, flow, problems)
    scopes = Scopes(shape, flow, loops, frames)
    if not scopes.prove(problems):
        return None
    check_fan_in_needs(shape, frames, scopes, problems)
    check_writes(shape, scopes, frames, problems)
    report_unbound_names(reader.mentions, shape, scopes, problems)
    warn_of_unknown_fields(reader.mentions, shape, scopes, problems)
    warn_of_lost_work(shape, flow, frames, problems)
    check_replies(parts, shape, flow, problems)
    names = derive_names(shape, loops.rings, scopes)
    return Analysis(shape, flow, loops, frames, scopes, names, reader.remembered, parts, output)


def _settle_answers(parts: list[Node], folded: FoldedGraph, reader: DocumentReader, problems: Problems) -> list[Node]:
    """Mark the nodes whose messages get a reply. Report reply nodes that do not name such a node."""
    receiving = {part.id for part in parts if isinstance(part.work, ReceiveWork)}
    answered: set[str] = set()
    for part in parts:
        if not isinstance(part.work, ReplyWork):
            continue
        to = part.work.to
        answered.add(to)
        if to not in receiving:
            wrong = f'"{to}" receives no message.' if to in folded.nodes else f'there is no node "{to}".'
            at = (*folded.nodes[part.id].work_at, "to")
            problems.add("unknown_node", at, wrong, did_you_mean(to, sorted(receiving)))
    reader.remembered |= answered & receiving
    return [
        msgspec.structs.replace(part, work=msgspec.structs.replace(part.work, answered=True))
        if isinstance(part.work, ReceiveWork) and part.id in answered
        else part
        for part in parts
    ]


def _assemble_model(done: Analysis) -> GraphModel:
    folded = done.shape.folded
    nodes = {part.id: done.completed_node(index, part) for index, part in enumerate(done.parts, 1)}
    return GraphModel(
        name=folded.name,
        nodes=nodes,
        edges=done.edges(),
        start=[done.names.edges[arc.ordinal] for arc in done.shape.out[0]],
        loops=done.rings(),
        start_closed_by=done.shape.names[done.frames.closer[0]] if 0 in done.frames.closer else START,
        terminals=[name for name, node in nodes.items() if node.terminal and node.scopes],
        limits=NO_LIMITS if folded.limits == NO_LIMITS else folded.limits,
        review=folded.review,
        input=folded.input,
        state=folded.state,
        result=folded.result,
        output=done.output,
    )
