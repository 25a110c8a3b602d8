"""The operations of a goal run: one per planned step, and below it one per work item of a fan-out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from weft.core import events as e
from weft.observe.operations import Keep, NoteChange, Operation, end, new_operation
from weft.ports.store import StoredEvent

_encode = msgspec.json.Encoder().encode
_OPENING = (e.TaskScheduled, e.AskOpened, e.ChildStarted)


class GoalOperations:
    """The operations of one goal run."""

    handles: frozenset[type] = frozenset(
        (
            e.StepStarted,
            e.StepCompleted,
            e.StepFailedEvent,
            e.StepSkipped,
            e.WorkSkipped,
            e.WorkAccepted,
            e.WorkResumed,
            e.WorkRecalled,
            *_OPENING,
        )
    )

    def __init__(self, operations: dict[int, Operation], keep: Keep, note_change: NoteChange) -> None:
        self._operations = operations
        self._keep = keep
        self._note_change = note_change
        self._steps: dict[str, Operation] = {}
        self._items: dict[str, list[Operation]] = {}
        self._started: set[str] = set()

    def apply(self, event: Any, stored: StoredEvent) -> Operation | None:
        """Apply an event. Returns the operation that it began or changed; None if it is not an event of goals."""
        match event:
            case e.StepStarted():
                return self._start(event, stored)
            case e.StepCompleted(step=step, outputs=outputs):
                operation = self._step(step, stored)
                end(operation, "done", stored.at, _encode(outputs))
                return operation
            case e.StepFailedEvent(step=step, failure=failure):
                return self._end_operation(step, "failed", stored, failure=failure)
            case e.StepSkipped(step=step, reason=reason):
                return self._end_operation(step, "skipped", stored, why=reason)
            case e.WorkSkipped(step=step, item=index):
                operation = Operation(
                    stored.seq, f"{step}/{index}", "item", "", stored.at, why="predicate returned false"
                )
                end(operation, "skipped", stored.at)
                return self._keep(operation)
            case e.WorkAccepted(task=number, due=due):
                return self._note(number, due, "accepted; its answer comes later")
            case e.WorkResumed(task=number):
                return self._note(number, 0, "")
            case e.WorkRecalled(task=number, run_id=run_id):
                return self._note(number, 0, f"as in {run_id}")
        if isinstance(event, _OPENING) and event.node:
            return self._item(event, event.node, event.item, stored)
        return None

    def _start(self, event: e.StepStarted, stored: StoredEvent) -> Operation:
        what = f"{event.work_items:,} item{'s' if event.work_items != 1 else ''}" if event.fan_out else event.step
        operation = self._steps[event.step] = self._keep(Operation(stored.seq, event.step, "step", what, stored.at))
        self._started.add(event.step)
        if event.fan_out:
            self._items[event.step] = []
        return operation

    def _step(self, step: str, stored: StoredEvent) -> Operation:
        """Return the operation of a step. For a step that never started, it is created here."""
        if step not in self._steps:
            self._steps[step] = self._keep(Operation(stored.seq, step, "step", step, stored.at))
        return self._steps[step]

    def reopen(self, steps: Sequence[str]) -> list[int]:
        """Reopen steps for a retry. Returns the operations to drop: those of steps that had not started."""
        dropped = []
        for step in steps:
            operation = self._steps.get(step)
            if operation is None:
                continue
            if step in self._started:
                operation.status, operation.ended, operation.failure, operation.why, operation.attempts = (
                    "open",
                    None,
                    None,
                    "",
                    1,
                )
                self._note_change(operation)
            else:
                del self._steps[step]
                dropped.append(operation.number)
        return dropped

    def _end_operation(self, step: str, status: str, stored: StoredEvent, **fields: Any) -> Operation:
        operation = self._step(step, stored)
        for name, value in fields.items():
            setattr(operation, name, value)
        end(operation, status, stored.at)
        for item in self._items.get(step, ()):
            if item.status == "open":
                end(item, "cancelled", stored.at)
                self._note_change(item)
        return operation

    def _item(self, event: Any, step: str, index: int, stored: StoredEvent) -> Operation:
        """Begin a work item. The only work item of a step without fan-out is shown as the step itself."""
        items = self._items.get(step)
        if items is not None:
            item = self._keep(new_operation(event, f"{step}/{index}", stored))
            items.append(item)
            return item
        operation = self._steps[step]
        new = new_operation(event, step, stored)
        operation.kind, operation.what, operation.due = new.kind, new.what, new.due
        operation.attempts_max, operation.child = new.attempts_max, new.child
        self._operations[stored.seq] = operation  # the result of the work refers to this number
        return operation

    def _note(self, number: int, due: int, why: str) -> Operation | None:
        operation = self._operations.get(number)
        if operation is not None:
            operation.due, operation.why = due, why
        return operation
