"""What a graph run needs in addition to its graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Raw

from weft.core import events as e
from weft.core.graph.model import GraphModel
from weft.core.graph.route import ExpressionReader
from weft.core.graph.ways import Ways


class HostedGraph(Protocol):
    """A compiled graph with everything that its document does not contain."""

    graph: GraphModel
    ways: Ways
    reader: ExpressionReader

    def policy(self, node: str) -> e.Policy:
        """Return the retry policy of a node: the document takes precedence over the step."""
        ...

    def undo(self, node: str) -> e.UndoPlan | None:
        """Return the step that undoes a node, if it can be undone."""
        ...

    def takes(self, step: str) -> list[str] | None:
        """Return the names of the parameters of a step, or None if the step is not known here."""
        ...

    def version_of(self, workflow: str) -> tuple[str, e.Style]:
        """Return the version of a child workflow to start, and its style."""
        ...

    def plan(self, goals: Sequence[str], given: Sequence[str]) -> Raw:
        """Return the plan for these goals with these facts. Raises BadPlan, UnknownStep."""
        ...
