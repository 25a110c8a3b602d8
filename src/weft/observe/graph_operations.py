"""The operations of a graph run: one per visit of a node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.core import events as e
from weft.observe.operations import Keep, Operation, end, new_operation
from weft.ports.store import StoredEvent

_OPENING = (e.TaskScheduled, e.TimerSet, e.MessageAwaited, e.AskOpened, e.ChildStarted)


class GraphOperations:
    """The operations of one graph run: work that begins at a node, or a token that leaves a node without any."""

    def __init__(self, keep: Keep) -> None:
        self._keep = keep
        self._visits: dict[str, int] = {}

    def take(self, event: Any, stored: StoredEvent) -> Operation | None:
        """Take in an event. Returns the operation that it began; None: it is not about work at a node."""
        if isinstance(event, e.NodeRouted) and event.output:
            operation = Operation(stored.seq, self._visit(event.node), "pass", "", stored.at)
            end(operation, "done", stored.at, bytes(event.output))
            return self._keep(operation)
        if isinstance(event, e.NodeFailed):
            operation = Operation(stored.seq, self._visit(event.node), "node", "", stored.at, failure=event.failure)
            end(operation, "failed", stored.at)
            return self._keep(operation)
        if isinstance(event, _OPENING) and event.token:
            return self._keep(new_operation(event, self._visit(event.node), stored))
        return None

    def reopen(self, steps: Sequence[str]) -> list[int]:
        """Return nothing: a graph forgets no operation that the event does not name."""
        return []

    def _visit(self, node: str) -> str:
        """Name a visit of a node. From the second on it has a number."""
        self._visits[node] = count = self._visits.get(node, 0) + 1
        return node if count == 1 else f"{node}#{count}"
