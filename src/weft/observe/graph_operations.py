"""The operations of a graph run: one per visit of a node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.core import events as e
from weft.observe.operations import Keep, NoteChange, Operation, end, new_operation
from weft.ports.store import StoredEvent

_OPENING = (e.TaskScheduled, e.TimerSet, e.MessageAwaited, e.AskOpened, e.ChildStarted)


class GraphOperations:
    """The operations of one graph run. Each is work at a node, or a token that passes a node without work."""

    handles: frozenset[type] = frozenset((e.NodeRouted, e.NodeFailed, e.RunPatched, *_OPENING))

    def __init__(self, keep: Keep, note_change: NoteChange) -> None:
        self._keep = keep
        self._note_change = note_change
        self._visits: dict[str, int] = {}
        self._at_work: dict[str, Operation] = {}
        """The newest operation of each token."""

    def apply(self, event: Any, stored: StoredEvent) -> Operation | None:
        """Apply an event. Returns the operation that it began; None if it does not concern work at a node."""
        if isinstance(event, e.NodeRouted) and event.output:
            operation = Operation(stored.seq, self._visit(event.node), "pass", "", stored.at)
            end(operation, "done", stored.at, bytes(event.output))
            return self._keep(operation)
        if isinstance(event, e.NodeFailed):
            operation = Operation(stored.seq, self._visit(event.node), "node", "", stored.at, failure=event.failure)
            end(operation, "failed", stored.at)
            return self._keep(operation)
        if isinstance(event, _OPENING) and event.token:
            operation = self._at_work[event.token] = new_operation(event, self._visit(event.node), stored)
            return self._keep(operation)
        if isinstance(event, e.RunPatched):
            self._patch(event, stored)
        return None

    def _patch(self, event: e.RunPatched, stored: StoredEvent) -> None:
        """End the work of tokens that a patch moved or dropped. Their later outcome changes nothing."""
        for change in event.tokens:
            operation = self._at_work.get(change.token)
            if change.do in ("move", "drop") and operation is not None and operation.status == "open":
                operation.why = f"moved to {change.node}" if change.do == "move" else "dropped by a patch"
                end(operation, "cancelled", stored.at)
                self._note_change(operation)

    def reopen(self, steps: Sequence[str]) -> list[int]:
        """Return an empty list, because the event names all operations of a graph that are dropped."""
        return []

    def _visit(self, node: str) -> str:
        """Return the name of the next visit of a node. Visits after the first have a number."""
        self._visits[node] = count = self._visits.get(node, 0) + 1
        return node if count == 1 else f"{node}#{count}"
