"""What a graph run needs beside its graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Raw

from weft.core import events as e
from weft.core.graph.model import Graph
from weft.core.graph.route import ExpressionReader
from weft.core.graph.ways import Ways


class HostedGraph(Protocol):
    """A compiled graph with all that its document leaves to others."""

    graph: Graph
    ways: Ways
    reader: ExpressionReader

    def policy(self, node: str) -> e.Policy:
        """How a node's task is tried: the document's words over the step's own."""
        ...

    def undo(self, node: str) -> e.UndoPlan | None:
        """The step that takes a node's work back, if it can be taken back."""
        ...

    def takes(self, step: str) -> list[str] | None:
        """The names of a step's parameters, if the step is known here."""
        ...

    def version_of(self, workflow: str) -> tuple[str, e.Style]:
        """Which version of a child workflow is started, and its style."""
        ...

    def plan(self, goals: Sequence[str], given: Sequence[str]) -> Raw:
        """The plan for these goals from these facts. Raises BadPlan, UnknownStep."""
        ...
