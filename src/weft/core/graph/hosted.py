"""The interface of a program: what a graph run needs in addition to its graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from msgspec import Raw

from weft.core import events as e
from weft.core.budgets import BudgetLimits
from weft.core.graph.model import GraphModel
from weft.core.graph.route import ExpressionReader
from weft.core.graph.ways import Ways


@dataclass(slots=True)
class NodeTask:
    """The task of a node on one host, the same in every run."""

    policy: e.Policy
    """The retry policy: the document takes precedence over the step."""
    undo: e.UndoPlan | None = None
    """The step that undoes the node, if it can be undone."""
    takes: list[str] | None = None
    """The names of the parameters of the step, or None if the step is not known here."""
    arguments: Raw | None = None
    """The arguments of the step if they are the same in every run, once they have been computed."""


@dataclass(slots=True)
class AgentOrder:
    """What an agent node is asked in a run. ``config`` is what a blob says about the agent; None without one."""

    run_id: str
    node: str
    prompt: Any
    config: Any
    transitions: list[str] | None = None
    """The only nodes that may come next, if the rules of the run say so."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """Those of the run. They say who started it."""


@dataclass(slots=True)
class AgentCall:
    """The child run of an agent: its workflow and version, and its input as JSON."""

    workflow: str
    version: str
    input: bytes
    budget: BudgetLimits | None = None


class HostedGraph(Protocol):
    """A compiled graph with everything that its document does not contain."""

    graph: GraphModel
    ways: Ways
    reader: ExpressionReader

    def at(self, version: str) -> HostedGraph:
        """Return the program of another version of the same workflow. Raises MissingInputs."""
        ...

    def task(self, node: str) -> NodeTask:
        """Return the task of a node."""
        ...

    def version_of(self, workflow: str) -> tuple[str, e.Style]:
        """Return the version of a child workflow to start, and its style."""
        ...

    def agent_call(self, order: AgentOrder) -> AgentCall:
        """Return the child run of an agent node. Raises UsageError, BadValue, NotAllowed."""
        ...

    def plan(self, goals: Sequence[str], given: Sequence[str]) -> Raw:
        """Return the plan for these goals with these facts. Raises BadPlan, UnknownStep."""
        ...
