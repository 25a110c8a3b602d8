"""Fold a raw document from any accepted spelling into the form that the compiler reads.

The source is not changed. Invalid parts are reported and omitted, so that all problems are reported at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from weft.core.code.locations import check_name
from weft.core.findings import At, Problems
from weft.core.graph.folded import FoldedGraph, FoldedNode, FoldedRepeat, Source
from weft.core.graph.model import AskWork, FanOut, WorkflowWork
from weft.documents.fields import NAME, Fields
from weft.documents.policies import read_retry
from weft.documents.schema_words import is_json_schema, is_schema_word, object_schema
from weft.documents.source import DocumentKind, check_format, listed_items
from weft.documents.spellings import fold_mapping
from weft.errors import BadGraph, BadValue
from weft.graphs.capabilities import check_targets, fold_capabilities
from weft.graphs.data import fold_input, fold_writes
from weft.graphs.joins import fold_join
from weft.graphs.policies import fold_limits, fold_review, fold_undo
from weft.graphs.routes import Inline, NodeRoutes
from weft.graphs.work import WORDS, HasBlob, NodeTypes, NodeWork

NODES_MAX = 10_000
DOCUMENT = (
    "weft", "name", "description", "input", "state", "output", "start", "nodes", "limits", "changes", "transitions",
    "edges", "input_schema", "context_schema", "output_schema", "output_mapping",
)  # fmt: skip
NODE_IDS = ("id", "node_id", "ref")
NODE = (
    *WORDS, "type", "config", "config_ref", "agent_config", "human_config", "inherit_artifacts", "name", "description",
    "with", "input_mapping", "save", "output_mapping", "retry", "timeout", "queue", "limits", "undo", "compensator",
    "on_failure", "next", "catch", "branch", "dependents", "dependencies", "fan_out", "on_no_match", "rejection_path",
    "repeat", "loop", "join", "fan_in", "wait_for_all", "of", "joins_node", "merge", "late", "on_early_complete",
    "choose", "node_capabilities",
)  # fmt: skip
GRAPH_DOCUMENT = DocumentKind(
    area="graph",
    format="graph/1",
    error=BadGraph,
    items="nodes",
    noun="node",
    ids=NODE_IDS,
    repeated="duplicate_node",
)
PLAIN_NODE = frozenset({"step", "ask", "wait", "pass", "with", "save", "timeout", "next", "id", "description"})
"""A node with no other fields has no join, no policy but its timeout, and no undo. Most nodes are like this."""
FAN_OUT: dict[str, FanOut] = {"first_match": "first_match", "all": "all"}


@dataclass(slots=True)
class Rules:
    """What a document may use: registered node types, and how blobs are inlined and found."""

    types: NodeTypes = field(default_factory=dict)
    inline: Inline = lambda condition: condition
    has_blob: HasBlob = lambda _: True


def fold_document(raw: Any, name: str, rules: Rules, problems: Problems) -> FoldedGraph | None:
    """Fold a document. ``name`` is used if it has none. Returns None if it has no nodes, or too many."""
    document = Fields(raw, (), problems, DOCUMENT)
    graph = FoldedGraph(
        _graph_name(document, name), limits=fold_limits(document, of_run=True), review=fold_review(document)
    )
    _fold_schemas(document, graph)
    nodes = _named_nodes(document, problems)
    if nodes is None:
        return None
    if len(nodes) > NODES_MAX:
        message = f"the graph has {len(nodes):,} nodes; the limit is {NODES_MAX:,}."
        problems.add("too_many_nodes", ("nodes",), message, "Move parts of it into separate graphs (workflow).")
        return None
    known = (*NODE, *rules.types)
    fields = {name: Fields(raw, at, problems, (*known, *NODE_IDS) if isinstance(at[1], int) else known)
              for name, (raw, at) in nodes.items()}  # fmt: skip
    transitions = _by_source(document, fields, problems)
    routes = {name: NodeRoutes(name, node, rules.inline) for name, node in fields.items()}
    for node_name, node in fields.items():
        repeat = routes[node_name].read(transitions.get(node_name, []))
        folded = graph.nodes[node_name] = _fold_node(node_name, node, rules, (routes[node_name], repeat))
        fold_capabilities(node, folded)
    _fold_dependencies(fields, routes, problems)
    for node_name, ways in routes.items():
        ways.add_plain()
        graph.nodes[node_name].routes = ways.routes
        check_targets(fields[node_name], graph.nodes[node_name], fields)
        graph.targets |= ways.targets
    graph.entries = _start_entries(document)
    return graph


def _graph_name(document: Fields, default: str) -> str:
    name = document.text("name") or default
    try:
        check_name(name)
    except BadValue as error:
        document.problems.add("bad_name", document.place("name"), error.message, error.hint)
    check_format(document, GRAPH_DOCUMENT)
    return name


def _fold_schemas(document: Fields, graph: FoldedGraph) -> None:
    problems = document.problems
    for key, old in (("input", "input_schema"), ("state", "context_schema")):
        spelled = document.spelling(key, old)
        if document.raw.get(spelled) is not None:
            required = key == "input"
            schema = object_schema(document.raw[spelled], document.place(spelled), problems, required=required)
            setattr(graph, key, schema)
    if "output_schema" in document:
        at = document.place("output_schema")
        graph.result = object_schema(document.raw["output_schema"], at, problems, required=True)
    key = document.spelling("output", "output_mapping")
    raw = document.raw.get(key)
    if raw is None:
        return
    if not isinstance(raw, dict):
        document.wrong(key, "a mapping of names to ${…}")
    elif key == "output_mapping":
        graph.output = Source({name: fold_mapping(value) for name, value in raw.items()}, document.place(key))
    elif raw and all(is_schema_word(part) or is_json_schema(part) for part in raw.values()):
        # If there are types instead of values, the output is the fields of the state with these names.
        graph.result = object_schema(raw, document.place(key), problems, required=True)
        graph.output = Source({name: f"${{state.{name}}}" for name in raw}, document.place(key))
    else:
        graph.output = Source(raw, document.place(key))


def _named_nodes(document: Fields, problems: Problems) -> dict[str, tuple[Any, At]] | None:
    """Return the raw nodes by name, from a mapping or from a list."""
    raw = document.raw.get("nodes")
    if "nodes" not in document:
        if document.raw:
            document.needed("nodes")
        return None
    if isinstance(raw, dict):
        found: dict[str, tuple[Any, At]] = {name: (node, ("nodes", name)) for name, node in raw.items()}
    elif isinstance(raw, list):
        found = {name: (node, at) for name, node, at in listed_items(raw, problems, GRAPH_DOCUMENT)}
    else:
        document.wrong("nodes", "a mapping of names to nodes, or a list")
        return None
    for name, (_, at) in found.items():
        if not NAME.fullmatch(name):
            problems.add("bad_name", at, f'"{name[:60]}" cannot name a node.', "Use letters, digits, _ and -.")
    return found


def _by_source(document: Fields, nodes: Mapping[str, Any], problems: Problems) -> dict[str, list[tuple[Any, At]]]:
    """Return the transitions of each node, in document order."""
    key = document.spelling("transitions", "edges")
    raw = document.raw.get(key, [])
    found: dict[str, list[tuple[Any, At]]] = {}
    if not isinstance(raw, list):
        document.wrong(key, "a list")
        return found
    for index, transition in enumerate(raw):
        at = (*document.place(key), index)
        source = transition.get("from") if isinstance(transition, dict) else None
        if not isinstance(source, str):
            problems.add("missing_field", at, "a transition needs from, the name of a node.")
        elif source not in nodes:
            problems.add("unknown_node", (*at, "from"), f'no node "{source}".', problems.near(source, nodes))
        else:
            found.setdefault(source, []).append((transition, at))
    return found


def _fold_node(name: str, node: Fields, rules: Rules, ways: tuple[NodeRoutes, FoldedRepeat | None]) -> FoldedNode:
    routes, repeat = ways
    reader = NodeWork(name, node, rules.types, rules.has_blob)
    work = reader.read()
    given = fold_input(node)
    if reader.input is not None:
        # Everything in the configuration of a task except its action is an argument. The input mapping overrides it.
        mapped = given.text if given is not None and isinstance(given.text, dict) else {}
        given = Source({**reader.input, **mapped}, given.at if given is not None else reader.at)
    if isinstance(work, AskWork) and (node.raw.get("type") == "human" or "human" in node):
        routes.plain_when = "output.approved"
        work = msgspec.structs.replace(work, enriches=True)
    if node.raw.keys() <= PLAIN_NODE:
        timeout_ms = node.duration("timeout")
        on_no_match: Any = "end" if routes.ends_unmatched else "fail"
        return FoldedNode(
            name, node.at, work, reader.at, given, fold_writes(node), timeout_ms=timeout_ms, on_no_match=on_no_match
        )
    joining = fold_join(node)
    no_match = {"end": "end", "fail": "fail"}
    return FoldedNode(
        id=name,
        at=node.at,
        work=work,
        work_at=reader.at,
        input=given,
        save=fold_writes(node),
        retry=read_retry(node),
        timeout_ms=node.duration("timeout"),
        queue=node.text("queue"),
        limits=fold_limits(node),
        undo=fold_undo(node),
        on_failure=_on_failure(node, isinstance(work, WorkflowWork)),
        join=joining.join,
        fan_in=joining.fan_in,
        deadline=joining.deadline,
        fan_out=node.choice("fan_out", FAN_OUT, "tiers"),
        on_no_match=node.choice("on_no_match", no_match, "end" if routes.ends_unmatched else "fail"),  # type: ignore[arg-type]
        repeat=repeat,
    )


def _on_failure(node: Fields, runs_workflow: bool) -> Any:  # noqa: FBT001  # a fact about the node, not a switch
    words = {"propagate": "propagate", "route": "route"}
    call = node.raw.get("workflow_call")
    if isinstance(call, dict) and "on_failure" in call and "on_failure" not in node:
        node = Fields(call, node.place("workflow_call"), Problems(), call)
    if "on_failure" in node and not runs_workflow:
        node.problems.add("wrong_type", node.place("on_failure"), "on_failure belongs to a workflow.")
    return node.choice("on_failure", words, "propagate")


def _fold_dependencies(fields: dict[str, Fields], routes: dict[str, NodeRoutes], problems: Problems) -> None:
    """Add an edge for each listed dependency, unless another field of that node says where it leads."""
    for name, node in fields.items():
        for index, source in enumerate(node.texts("dependencies")):
            at = (*node.place("dependencies"), index)
            routes_of = routes.get(source)
            if routes_of is None:
                problems.add("unknown_node", at, f'no node "{source}".', problems.near(source, routes))
                continue
            routes_of.targets.add(name)
            routes_of.plain_at.setdefault(name, at)
            elsewhere = routes_of.way in ("next", "transitions")
            if elsewhere and all(route.to != name for route in routes_of.routes):
                problems.add("two_spellings", at, f"{routes_of.way} of {source} does not lead to {name}.")


def _start_entries(document: Fields) -> list[tuple[str, At]] | None:
    if "start" not in document:
        return None
    raw = document.raw["start"]
    names = document.texts("start")
    if raw == []:
        document.wrong("start", "at least one node")
    return [(name, (*document.place("start"), i) if isinstance(raw, list) else document.place("start"))
            for i, name in enumerate(dict.fromkeys(names))]  # fmt: skip
