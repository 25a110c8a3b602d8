"""Graphs in Python: built node by node, or read from a file. Both produce the same document.

The methods of the builder only write the document. All its problems are reported at once when the graph is registered
or checked, as for a file.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from weft.authoring.policies import Duration
from weft.authoring.runnable import Runnable, RunnableGroup
from weft.authoring.steps import Step
from weft.authoring.unknown_work import KnownWork, unknown_work
from weft.authoring.workflows import Workflow
from weft.core.durations import duration_ms, format_ms
from weft.core.findings import Finding, document_error
from weft.errors import UsageError, WeftError
from weft.runtime.programs import check_graph_input, graph_version
from weft.steps.codec import Codec
from weft.steps.type_schemas import schema_of_object

if TYPE_CHECKING:
    from weft.graphs.load import DocumentContext, LoadedGraph

Shape = Mapping[str, Any] | type
"""The fields of an input or a state: a mapping from names to types, or a dataclass, TypedDict or model."""

Condition = str | bool | Mapping[str, Any]
"""CEL text, or a condition object as in a document."""


class Graph(Runnable[dict[str, Any]]):
    """A workflow made of nodes and edges: ``weft.Graph("leads", input={"company": str})``."""

    style = "graph"

    def __init__(
        self,
        name: str,
        *,
        input: Shape | None = None,
        state: Shape | None = None,
        output: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.gives: tuple[str, ...] = ()
        self._loaded: LoadedGraph | None = None
        self._version = ""
        self._performable: tuple[int, int] | None = None
        self._file: Path | None = None
        self._nodes: dict[str, dict[str, Any]] = {}
        self._document: dict[str, Any] = {"weft": "graph/1", "name": name}
        if input is not None:
            self._document["input"] = _schema(input, required=True)
        if state is not None:
            self._document["state"] = _schema(state, required=False)
        self._document["nodes"] = self._nodes
        if output is not None:
            self._document["output"] = copy.deepcopy(dict(output))

    @classmethod
    def of(
        cls,
        source: str | Path | Mapping[str, Any] | Graph,
        context: DocumentContext | None = None,
        *,
        beside: str | None = None,
    ) -> Graph:
        """Read a graph from a dict or a file. A file is looked for here, then next to the file ``beside``.

        Raises:
            BadGraph: the document is not valid; ``context["findings"]`` lists all problems.
            NotFound: there is no such file.
        """
        if isinstance(source, Graph):
            return source
        graph = cls("")
        graph._file = None if isinstance(source, Mapping) else here_or_beside(source, beside)
        graph._document = dict(source) if isinstance(source, Mapping) else {}
        graph.name = graph.load(context).graph.name
        return graph

    def load(self, context: DocumentContext | None = None) -> LoadedGraph:
        """Compile the current document.

        Raises:
            BadGraph: the document is not valid; ``context["findings"]`` lists all problems.
        """
        from weft.graphs.load import load_graph  # noqa: PLC0415 - slow to import, and only needed for graphs

        loaded = load_graph(self._file or self._document, context)
        if self._file is not None:
            self._document = loaded.source
        return loaded

    def check(self) -> list[Finding]:
        """List the problems of the graph: those that keep it from compiling, or else those that its runs can have.

        As far as possible, every path of a run is searched. Each error shows the shortest path to it.
        """
        # Slow to import, and most programs never need it.
        from weft.graphs.check import check_document, check_loaded  # noqa: PLC0415

        if self._loaded is not None:
            return check_loaded(self._loaded, self._file).findings
        return check_document(self._file or self._document).findings

    # --- running --------------------------------------------------------------------------------------------------

    def register(self, group: RunnableGroup, context: DocumentContext, gives: tuple[str, ...]) -> None:
        """Compile the current document for runs. Later changes have no effect on them. Raises BadGraph."""
        self._loaded = self.load(context)
        self._version = graph_version(self._loaded.hash)
        self.gives = gives
        self.group = group

    @property
    def loaded(self) -> LoadedGraph:
        """The graph as it was registered. Raises UsageError if it is not registered."""
        if self._loaded is None:
            raise UsageError(f"The graph {self.name} is not registered.", hint="Write: leads = app.graph(g)")
        return self._loaded

    @property
    def version(self) -> str:
        return self._version or graph_version(self.loaded.hash)

    @property
    def result(self) -> Codec[dict[str, Any]]:
        return Codec.of(dict[str, Any])

    def given(self, input: Mapping[str, Any]) -> bytes:
        return check_graph_input(self.loaded.graph, input)

    def refuse_unknown(self, group: KnownWork) -> None:
        """Refuse steps, workflows and arguments that are not registered here. Raises BadGraph.

        A node with a queue is not checked, because the workers of that queue may know its step.
        """
        if self._performable == (id(self.loaded), id(group)):
            return  # checked earlier, and registrations are never removed
        findings = unknown_work(self.loaded.graph, group)
        if findings:
            raise document_error(findings, name=self.name)
        self._performable = (id(self.loaded), id(group))

    def to_dict(self) -> dict[str, Any]:
        """Return the document, as it would be in a file."""
        return copy.deepcopy(self._document)

    # --- building -------------------------------------------------------------------------------------------------

    def node(
        self,
        name: str,
        run: Step[..., Any] | Workflow[..., Any] | Graph | str,
        *,
        args: Mapping[str, Any] | None = None,
        save: Mapping[str, Any] | None = None,
        timeout: Duration | None = None,
        undo: Callable[..., Any] | str | None = None,
    ) -> GraphNode:
        """Add a node that performs a step or workflow with ``args``, or else with the input that arrives at the node.

        ``save`` writes parts of the output: ``{"state.total": "${output.total}"}``. A string as ``run`` names a step.
        """
        fields = _work(run)
        if args is not None:
            fields["with"] = copy.deepcopy(dict(args))
        if save is not None:
            fields["save"] = copy.deepcopy(dict(save))
        if timeout is not None:
            fields["timeout"] = _duration_field(timeout)
        if undo is not None:
            fields["undo"] = undo if isinstance(undo, str) else _name_of_work(undo)
        return self._add(name, fields)

    def join(
        self,
        name: str,
        run: Step[..., Any] | Workflow[..., Any] | Graph | str | None = None,
        *,
        wait: Literal["all", "any", "edges"] | int = "all",
        of: GraphNode | None = None,
        merge: Mapping[str, Any] | None = None,
        timeout: Duration | None = None,
        on_timeout: Literal["fail", "proceed"] | None = None,
    ) -> GraphNode:
        """Add a node that joins the branches of a fan-out: the nearest one, or that of the node ``of``.

        ``wait="edges"`` waits for all incoming edges instead. ``timeout`` is counted from the first arrival. After the
        timeout the join fails or, with ``on_timeout="proceed"``, continues with the branches that have arrived.
        """
        fields: dict[str, Any] = {"join": _join_field(wait, timeout, on_timeout)}
        if of is not None:
            fields["of"] = self._name_of(of)
        if merge is not None:
            fields["merge"] = copy.deepcopy(dict(merge))
        return self._add(name, {**(_work(run) if run is not None else {}), **fields})

    def repeat(
        self,
        node: GraphNode,
        *,
        while_: Condition | None = None,
        at_most: int,
        back_to: GraphNode | None = None,
        exhausted: GraphNode | None = None,
    ) -> None:
        """Repeat a node, or the nodes from ``back_to`` to it, while the condition holds.

        The node runs at most ``at_most`` times, and exactly that often if there is no condition. If the condition still
        holds then, the run goes to the node ``exhausted``; without one, the node fails.
        """
        fields: dict[str, Any] = {"at_most": at_most}
        if while_ is not None:
            fields["while"] = copy.deepcopy(while_)
        if back_to is not None:
            fields["back_to"] = self._name_of(back_to)
        if exhausted is not None:
            fields["exhausted"] = self._name_of(exhausted)
        repeated = self._nodes[self._name_of(node)]
        if "repeat" in repeated:
            raise _bad_graph(
                "graph.two_spellings", f"nodes.{node.name}.repeat", "a node can be repeated by one loop only."
            )
        repeated["repeat"] = fields

    def _add(self, name: str, fields: dict[str, Any]) -> GraphNode:
        if self._document.get("nodes") is not self._nodes:
            raise UsageError(f"The graph {self.name} was read from a document, so add the node to the document.")
        if name in self._nodes:
            raise _bad_graph("graph.duplicate_node", f"nodes.{name}", f'two nodes are called "{name}".')
        self._nodes[name] = fields
        return GraphNode(self, name)

    def _name_of(self, node: GraphNode) -> str:
        if node.graph is not self:
            raise UsageError(f"{node.name} is a node of {node.graph.name}, not of {self.name}.")
        return node.name

    def __repr__(self) -> str:
        return f"<weft graph {self.name}>"


class GraphNode:
    """A node of a graph that is being built."""

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph = graph
        self.name = name

    def to(
        self,
        *nodes: GraphNode,
        when: Condition | None = None,
        for_each: str | None = None,
        as_: str | None = None,
        width: int | None = None,
    ) -> None:
        """Add an edge to a node, or to several at once. Edges are tried in the order of the calls until one matches.

        ``for_each="${input.domains}"`` starts a branch for each item, which is called ``as_``. At most ``width``
        branches work at once.
        """
        targets = [self.graph._name_of(node) for node in nodes]  # noqa: SLF001
        options = {"when": copy.deepcopy(when), "for_each": for_each, "as": as_, "width": width}
        entry: dict[str, Any] = {"to": targets[0] if len(targets) == 1 else targets}
        entry |= {key: value for key, value in options.items() if value is not None}
        self._fields().setdefault("next", []).append(entry)

    def catch(self, node: GraphNode, *, error: str | type[BaseException] | None = None) -> None:
        """Add an edge that is taken when this node fails for good: with this kind of error, or with any error."""
        entry: dict[str, Any] = {"to": self.graph._name_of(node)}  # noqa: SLF001
        if error is not None:
            entry["error"] = error if isinstance(error, str) else error.__name__
        self._fields().setdefault("catch", []).append(entry)

    def _fields(self) -> dict[str, Any]:
        return self.graph._nodes[self.name]  # noqa: SLF001

    def __repr__(self) -> str:
        return f"<node {self.name} of {self.graph!r}>"


def _join_field(wait: str | int, timeout: Duration | None, on_timeout: str | None) -> Any:
    """Return ``join`` as a document writes it: one word if that is enough, or else a mapping."""
    if timeout is None and on_timeout is None and not isinstance(wait, int):
        return wait
    fields: dict[str, Any] = {"at_least" if isinstance(wait, int) else "wait": wait}
    if timeout is not None:
        fields["timeout"] = _duration_field(timeout)
    if on_timeout is not None:
        fields["on_timeout"] = on_timeout
    return fields


def _work(run: Step[..., Any] | Workflow[..., Any] | Graph | str) -> dict[str, Any]:
    if isinstance(run, Workflow | Graph):
        return {"workflow": run.name}
    return {"step": run if isinstance(run, str) else _name_of_work(run)}


def _name_of_work(run: object) -> str:
    name = getattr(run, "name", None)
    if isinstance(run, Step) and isinstance(name, str):
        # ``Step.options`` may change the name of a step, but not that of its body, which is registered.
        return run.body.name
    raise UsageError(f"{run!r} is neither a step nor a workflow.", hint="Decorate it with @app.step first.")


def _schema(shape: Shape, *, required: bool) -> dict[str, Any]:
    """Return a shape as JSON Schema. A mapping as in a document is returned unchanged."""
    if not isinstance(shape, Mapping):
        return _inline_definition(dict(Codec.of(shape).schema()))
    if all(isinstance(part, str | Mapping) for part in shape.values()):
        return copy.deepcopy(dict(shape))
    typed = {name: dict(part) if isinstance(part, Mapping) else _field(part) for name, part in shape.items()}
    return dict(schema_of_object(typed, list(typed) if required else []))


def _field(part: Any) -> dict[str, Any]:
    if isinstance(part, str):
        raise UsageError(f"The type {part!r} is a string, but others are Python types.", hint="Use one kind for all.")
    return dict(Codec.of(part).schema())


def _inline_definition(schema: dict[str, Any]) -> dict[str, Any]:
    """Replace a schema that only refers to one of its definitions by that definition."""
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    defs = schema.get("$defs", {})
    return {**defs[name], "$defs": defs} if name in defs else schema


def _duration_field(duration: Duration) -> str | float:
    return format_ms(duration_ms(duration)) if isinstance(duration, timedelta) else duration


def here_or_beside(source: str | Path, beside: str | None) -> Path:
    """Return the path of a file in the current folder or, if it is not there, next to the file ``beside``."""
    path = Path(source)
    if beside is not None and not path.is_absolute() and not path.exists():
        other = Path(beside).parent / path
        if other.exists():
            return other
    return path


def _bad_graph(code: str, path: str, message: str) -> WeftError:
    return document_error([Finding(code, message, path)], name="the graph")
