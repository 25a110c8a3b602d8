"""Decide which edges a token takes: first the loop, then the tiers. After a failure, only edges that mention an error.

Nothing is changed. An ``ExpressionReader`` evaluates the conditions, and the values that they read are recorded.

Rules: docs/internals/graph.md#routing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Raw

from weft.core.events import ABSENT, EdgeVerdict, Taken, Write
from weft.core.graph.merge import source_path
from weft.core.graph.model import Edge, Expr, GraphModel, Node, Save
from weft.core.graph.tokens import innermost_branch, seen_after
from weft.core.graph.view import View, with_writes
from weft.core.run.composites import compose, is_unmarked, leaf, literal, mark_on_path, open_parts, open_raw, part_at
from weft.core.values import encode, encode_trusted, is_ref
from weft.errors import BadValue, Failure, LimitExceeded, WeftError

ITEMS_BYTES_MAX = 3 * 1024 * 1024
INLINE_BYTES_MAX = 1024 * 1024


class ExpressionReader(Protocol):
    """Evaluates the expressions of a document.

    Each method raises a WeftError that names the expression and its values.
    """

    def condition(self, source: Any, bindings: Mapping[str, Any]) -> tuple[bool, dict[str, Any]]:
        """Return whether the condition is true, and the values that it used."""
        ...

    def expression(self, source: str, bindings: Mapping[str, Any]) -> Any: ...

    def template(self, source: Any, bindings: Mapping[str, Any]) -> Any: ...


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """Where a token goes next, or why it cannot."""

    taken: list[Taken] = []
    writes: list[Write] = []
    verdicts: list[EdgeVerdict] = []
    arrival: Raw = ABSENT
    skips: bool = True
    failure: Failure | None = None
    view: View | None = None
    """The view of the token after its writes, if it is known before they are recorded."""


def route(graph: GraphModel, view: View, reader: ExpressionReader) -> Route:
    """Route a node after a success: write, then decide the loop, then try the tiers."""
    node = graph.nodes[view.token.node]
    writes: list[Write] = []
    try:
        if node.remembered:
            view = _view_after_visit(view)
        writes = [_evaluate_save(view, save, reader) for save in node.save]
        view = _view_after_writes(view, writes)
        if node.repeat is not None:
            looped = _route_next_round(node, view, reader)
            if looped is not None:
                return msgspec.structs.replace(looped, writes=writes)
        taken, verdicts = _match_tiers(graph, node, node.tiers, view, reader)
        arrival = _arrival_value(graph, view, taken)
    except WeftError as error:
        return Route(writes=writes, failure=_route_failure(node.id, error.code, error.message))
    if not taken and not _may_end(graph, node):
        conditions = "; ".join(_describe_condition(graph.edges[verdict.edge], verdict) for verdict in verdicts)
        failure = _route_failure(node.id, "no_match", f"no edge of {node.id} matched: {conditions}")
        return Route(writes=writes, failure=failure)
    foreseen = view if all(is_unmarked(write.value) for write in writes) else None
    return Route(taken=taken, writes=writes, verdicts=verdicts, arrival=arrival, view=foreseen)


def route_failure(graph: GraphModel, view: View, reader: ExpressionReader) -> Route:
    """Route a node after a failure: try only edges that mention an error. If none is taken, the failure is raised."""
    node = graph.nodes[view.token.node]
    try:
        taken, verdicts = _match_tiers(graph, node, node.error_tiers, view, reader)
    except WeftError as error:
        return Route(failure=_route_failure(node.id, error.code, error.message))
    return Route(taken=taken, verdicts=verdicts, failure=None if taken else view.error)


def _view_after_visit(view: View) -> View:
    """Return the view in which the node's own expressions find its output under its name."""
    token = msgspec.structs.replace(view.token, seen=seen_after(view.token, view.output))
    return msgspec.structs.replace(view, token=token)


def _evaluate_save(view: View, save: Save, reader: ExpressionReader) -> Write:
    value = reader.template(save.value.source, view.bind(save.value))
    path = list(save.to.path)
    here = save.to.scope == "here" and innermost_branch(view.token.path) is not None
    place = _branch_writes(view) if here else view.data
    depth = mark_on_path(place, path) if place else 0
    if depth:
        # A value in a blob cannot be changed in place, so all of it is written again.
        whole = open_parts(part_at(place, path[:depth]), view.env.blob)
        value = with_writes(whole if isinstance(whole, dict) else {}, [(path[depth:], value)])
        path = path[:depth]
    if not here:
        check_field(view, path, value)
    return Write(save.to.scope, path, view.env.keep(encode(value, what=f"{view.token.node} saves")))


def check_field(view: View, path: Sequence[str], value: Any) -> None:
    """Check a value for a declared field of the state. Raises BadValue."""
    schema = ((view.graph.state or {}).get("properties") or {}).get(path[0])
    if not isinstance(schema, dict) or not schema:
        return
    whole = value if len(path) == 1 else with_writes(view.data, [(path, value)])[path[0]]
    wrong = None if whole is None else view.env.check(_with_defs(view.graph.state or {}, schema), encode(whole))
    if wrong is not None:
        raise BadValue(f"{view.token.node} saves state.{'.'.join(path)}, which does not fit: {wrong}", code="bad_state")


def _with_defs(around: Mapping[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return a part of a schema with the definitions that it may refer to."""
    defs = {key: around[key] for key in ("$defs", "definitions") if key in around}
    return {**defs, **schema} if defs else schema


def _branch_writes(view: View) -> Mapping[str, Any] | None:
    seg = innermost_branch(view.token.path)
    frame = view.state.frames.get(seg.id) if seg is not None else None
    return frame.branches[seg.n].writes if seg is not None and frame is not None else None


def _view_after_writes(view: View, writes: Sequence[Write]) -> View:
    """Return the view after these writes."""
    if not writes:
        return view
    in_branch = innermost_branch(view.token.path) is not None
    here = [(write.path, leaf(write.value)) for write in writes if write.scope == "here" and in_branch]
    rest = [(write.path, leaf(write.value)) for write in writes if not (write.scope == "here" and in_branch)]
    known = _branch_writes(view)
    return msgspec.structs.replace(
        view, data=with_writes(view.data, rest), branch_writes=with_writes(known or {}, here) if here else known
    )


def _arrival_value(graph: GraphModel, view: View, taken: Sequence[Taken]) -> Raw:
    """Return the part of an output in a blob that a merge will read, so that firing the fan-in loads nothing."""
    if is_unmarked(view.output) or view.branch_writes is not None or _branch_writes(view) is not None:
        return ABSENT
    for one in taken:
        fan_in = graph.nodes[graph.edges[one.edge].to].fan_in
        merge = fan_in.merge if fan_in is not None else None
        if merge is None or (not source_path(merge) and merge.how != "merge_object"):
            continue
        words = source_path(merge)
        found = open_raw(view.output, view.env.blob)
        for word in words:
            found = found.get(word) if isinstance(found, dict) else None
        raw = encode(found)
        if merge.how != "merge_object":
            return compose(_nest_value(words, leaf(view.env.keep(raw))))
        if len(raw) > INLINE_BYTES_MAX:
            raise LimitExceeded(
                f"{view.token.node} contributes {len(raw):,} bytes to a merge_object; the limit is 1 MiB."
            )
        return compose(_nest_value(words, literal(found)))
    return ABSENT


def _nest_value(words: Sequence[str], value: Any) -> Any:
    for word in reversed(words):
        value = {word: value}
    return value


def _route_next_round(node: Node, view: View, reader: ExpressionReader) -> Route | None:
    """Return the next round, or the timeout edges at the limit, or None if the loop ends."""
    repeat = node.repeat
    assert repeat is not None
    if repeat.condition is None:
        again = _executions_in_loop(view, repeat.loop) < repeat.at_most
        verdict = EdgeVerdict(repeat.back, again)
        return Route(taken=[Taken(repeat.back)], verdicts=[verdict], skips=False) if again else None
    holds, seen = reader.condition(repeat.condition.source, view.bind(repeat.condition))
    verdicts = [EdgeVerdict(repeat.back, holds is not repeat.until, seen)]
    if holds is repeat.until:
        return None
    if _executions_in_loop(view, repeat.loop) < repeat.at_most:
        return Route(taken=[Taken(repeat.back)], verdicts=verdicts, skips=False)
    if repeat.fails:
        message = f"{node.id} was executed {repeat.at_most} times, its limit, and its condition still holds"
        return Route(failure=_route_failure(node.id, "loop_limit", message))
    return Route(taken=[Taken(name) for name in repeat.exhausted], verdicts=verdicts)


def _executions_in_loop(view: View, loop: str) -> int:
    for seg in reversed(view.token.path):
        if seg.kind == "l" and view.state.loops[seg.id].loop == loop:
            return seg.n + 1
    return 1


def _match_tiers(
    graph: GraphModel, node: Node, tiers: Sequence[Sequence[str]], view: View, reader: ExpressionReader
) -> tuple[list[Taken], list[EdgeVerdict]]:
    taken: list[Taken] = []
    verdicts: list[EdgeVerdict] = []
    for tier in tiers:
        for name in tier:
            edge = graph.edges[name]
            verdict = _evaluate_edge(edge, view, reader)
            if edge.when is not None or edge.errors is not None:
                verdicts.append(verdict)
            if verdict.taken:
                taken.append(Taken(name, _for_each_items(edge, view, reader)))
                if node.fan_out == "first_match":
                    return taken, verdicts
        if taken and node.fan_out != "all":
            break
    return taken, verdicts


def _evaluate_edge(edge: Edge, view: View, reader: ExpressionReader) -> EdgeVerdict:
    if edge.errors is not None and (view.error is None or not _is_caught(edge.errors, view.error)):
        return EdgeVerdict(edge.name, taken=False)
    if edge.when is None:
        return EdgeVerdict(edge.name, taken=True)
    try:
        holds, seen = reader.condition(edge.when.source, view.bind(edge.when))
    except WeftError:
        if edge.mentions_error and view.error is None:
            return EdgeVerdict(edge.name, taken=False)  # nothing failed, so there is no error to read
        raise
    return EdgeVerdict(edge.name, holds, seen)


def _is_caught(errors: Sequence[str], failure: Failure) -> bool:
    return not errors or failure.type in errors or failure.code in errors


def _for_each_items(edge: Edge, view: View, reader: ExpressionReader) -> list[Raw] | None:
    if edge.each is None:
        return None
    found = reader.expression(edge.each.collection.source, view.bind(edge.each.collection))
    if not isinstance(found, list):
        raise WeftError(
            f"for_each of {edge.source} -> {edge.to} needs a list, got {type(found).__name__}",
            code="for_each_needs_a_list",
        )
    kept = [view.env.keep(encode(item)) for item in found]
    size = sum(len(bytes(item)) for item in kept)
    if size > ITEMS_BYTES_MAX:
        raise LimitExceeded(
            f"for_each of {edge.source} -> {edge.to} has items of {size:,} bytes in all; the limit is 3 MiB.",
            hint="Store the items elsewhere and iterate over references to them.",
        )
    return kept


def _may_end(graph: GraphModel, node: Node) -> bool:
    if node.on_no_match == "end":
        return True
    return all(graph.edges[name].mentions_error for tier in node.tiers for name in tier)


def _describe_condition(edge: Edge, verdict: EdgeVerdict) -> str:
    source = edge.when.source if edge.when is not None else "catch"
    return f"{source} (saw {msgspec.json.encode(verdict.seen).decode()[:200]})"


def _route_failure(node: str, code: str, message: str) -> Failure:
    return Failure(type=code, message=message, code=code, step=node)


def node_input(view: View, expr: Expr | None, reader: ExpressionReader) -> Raw:
    """Return the input of a node: its mapped input, or else the value that arrived."""
    if expr is not None:
        value = reader.template(expr.source, view.bind(expr))
    elif is_unmarked(view.output) or is_ref(bytes(view.output)):
        return view.output
    else:
        value = open_raw(view.output, view.env.blob)
    return view.env.keep(encode_trusted(value, what=f"{view.token.node} is given"))
