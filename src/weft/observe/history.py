"""The history of a run, read from its log: every recorded operation with its location, attempts and times.

The state of a run drops what it no longer needs, such as old rounds of loops and losers of races. The history keeps it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from weft.core import events as e
from weft.core.code.locations import readable_path
from weft.core.unfold import ViewEvent
from weft.errors import Failure, RunUnreadable
from weft.observe.event_parts import EventPart, Unfolding
from weft.observe.operations import NoOperations, Operation, StyleOperations, end, new_operation
from weft.observe.styles import views_of
from weft.ports.store import RunRow, StoredEvent
from weft.runtime.service import RunService

__all__ = ["OVER", "History", "Operation"]

OVER = ("completed", "failed", "cancelled", "moved")


EVENTS_PER_TURN = 500
_NUMBER_FIELDS: dict[type, str] = {
    e.TaskSucceeded: "task",
    e.TaskFailed: "task",
    e.TaskLost: "task",
    e.TimerFired: "timer",
    e.AskAnswered: "ask",
    e.ChildEnded: "child",
    e.MessagesTaken: "wait",
    e.MessageRefused: "wait",
    e.WaitTimedOut: "wait",
    e.EntryCancelled: "entry",
}
"""For events that change an operation, the field with its number."""


async def read_history(service: RunService, row: RunRow) -> History:
    """Read the history of a run from its log. It ends at an event that cannot be read."""
    history = History()
    with contextlib.suppress(RunUnreadable):
        async for stored in service.reader.events(row):
            history.add(stored)
            if not stored.seq % EVENTS_PER_TURN:
                await asyncio.sleep(0)  # a long log must not block the loop
    return history


class History:
    """The history of one run, built from its events in order."""

    def __init__(self) -> None:
        self.operations: dict[int, Operation] = {}
        self.status = "running"
        self.seq = 0
        self.started: int | None = None
        self.ended: int | None = None
        self.input = b"null"
        self.output = b"null"
        self.failure: Failure | None = None
        self.reason = ""
        self.retries = 0
        self.held = ""
        self.not_undone: list[str] = []
        self.dropped: set[int] = set()
        """The numbers of operations that a retry, an edit or a result set by hand removed. They are performed anew."""
        self._before_move = "running"
        self._is_cancelled = self._rolls_back = False
        self._names = ["~", "&"]
        self._newest: dict[str, int] = {}
        self._messages: dict[str, bytes] = {}
        self.also_changed: list[Operation] = []
        """The operations that the last event changed in addition to the one that it is about."""
        self._style: StyleOperations = NoOperations()
        self._unfolding = Unfolding()

    def current(self) -> list[Operation]:
        """Return the newest operation of every location, in the order in which they began."""
        return [self.operations[number] for number in sorted(self._newest.values())]

    def open(self) -> list[Operation]:
        """Return the operations that have not ended."""
        return [operation for operation in self.current() if operation.status == "open"]

    def add(self, stored: StoredEvent) -> list[tuple[EventPart, Operation | None]]:
        """Add the next record. Returns its events, each with the operation that it began or changed."""
        return [(part, self.apply(part.event, stored)) for part in self._unfolding.add(stored)]

    def unfold(self, stored: StoredEvent) -> Sequence[ViewEvent]:
        """Return the events of the next record. Each of them must be applied."""
        return self._unfolding.events(stored)

    def apply(self, event: ViewEvent, stored: StoredEvent) -> Operation | None:
        """Apply the next event of a record. Returns the operation that it began or changed."""
        self.seq = stored.seq
        if self.also_changed:
            self.also_changed = []
        kind = type(event)
        if isinstance(event, e.RunStarted):
            views = views_of(event.style)
            self._style = views.operations(self.operations, self._keep, self._note_change)
            self._unfolding.keeps_results = views.refers_to_results
        if kind in self._style.handles:
            style_operation = self._style.apply(event, stored)
            if style_operation is not None:
                return style_operation
        at = getattr(event, "at", None)
        if kind is e.MessageAnswered and not at:
            return None  # a message was refused, or received without an answer, which is not an operation of the run
        if at is not None:
            return self._begin(event, at, stored)
        operation = self._operation_of(event, stored)
        if operation is None:
            self._change_run(event, stored.at)
        else:
            self._change(operation, event, stored.at)
        return operation

    # --- beginnings -----------------------------------------------------------------------------------------------

    def _begin(self, event: Any, path: e.Path, stored: StoredEvent) -> Operation:
        if event.add:
            self._names += event.add
        location = readable_path(path, self._names)
        if type(event) is e.TaskScheduled:
            return self._keep(new_operation(event, location, stored))
        if isinstance(event, (e.LoopTurned, e.LoopFinished)):
            return self._loop(event, location, stored)
        operation = new_operation(event, location, stored)
        if isinstance(event, e.ValueRecorded):
            end(operation, "done", stored.at, bytes(event.value))
        elif isinstance(event, (e.RaceDecided, e.AttributesSet, e.MessageAnswered)):
            end(operation, "done", stored.at)
        return self._keep(operation)

    def _keep(self, operation: Operation) -> Operation:
        self.operations[operation.number] = operation
        self._newest[operation.location] = operation.number
        return operation

    def _loop(self, event: e.LoopTurned | e.LoopFinished, location: str, stored: StoredEvent) -> Operation:
        known = self._newest.get(location)
        if known is None:
            operation = self._keep(Operation(stored.seq, location, "loop", "", stored.at))
        else:
            operation = self.operations[known]
        if isinstance(event, e.LoopFinished):
            operation.rounds = event.rounds
            end(operation, "done", stored.at, bytes(event.output))
        else:
            operation.rounds = event.round
        return operation

    def _operation_of(self, event: ViewEvent, stored: StoredEvent) -> Operation | None:
        """Return the operation that an event changes, or the undo that it begins; None for other events."""
        field = _NUMBER_FIELDS.get(type(event))
        if field is not None:
            return self.operations.get(getattr(event, field))
        if isinstance(event, e.UndoScheduled):
            undone = self.operations.get(event.of)
            location = f"{undone.location if undone is not None else event.of}!undo"
            return self._keep(Operation(stored.seq, location, "undo", event.step, stored.at))
        return None

    # --- changes --------------------------------------------------------------------------------------------------

    def _change(self, operation: Operation, event: ViewEvent, at: int) -> None:
        match event:
            case e.TaskSucceeded(output=output, attempt=attempt):
                operation.attempts = attempt
                end(operation, "done", at, bytes(output))
            case e.TaskFailed(failure=failure, attempt=attempt, retry_at=retry_at):
                operation.failure = failure
                operation.attempts, operation.due = (attempt + 1, retry_at) if retry_at else (attempt, 0)
                if not retry_at:
                    end(operation, "failed", at)
            case e.TaskLost(retry_at=retry_at):
                operation.due = retry_at
            case e.TimerFired() if operation.kind == "sleep":
                end(operation, "done", at)
            case e.MessagesTaken(ids=ids):
                bodies = [self._messages.pop(message, b"null") for message in ids]
                end(operation, "done", at, bodies[0] if len(bodies) == 1 else b"[" + b",".join(bodies) + b"]")
            case e.MessageRefused(error=error):
                operation.failure = Failure("BadValue", error)
                end(operation, "failed", at, operation.output)
            case e.WaitTimedOut():
                operation.failure = Failure("TimedOut", "nothing arrived in time")
                end(operation, "failed", at)
            case e.AskAnswered(decided=True) if operation.kind == "step":
                operation.why = ""  # a person has decided whether to perform the step
            case e.AskAnswered(decided=True):
                end(operation, "done", at, _recorded_answer(event))
            case e.ChildEnded(status=status, output=output, failure=failure):
                operation.failure = failure
                end(operation, "done" if status == "completed" else status, at, bytes(output))
            case e.EntryCancelled():
                end(operation, "cancelled", at)

    def _change_run(self, event: ViewEvent, at: int) -> None:
        """Apply an event that concerns the run as a whole."""
        match event:
            case e.RunStarted(input=input):
                self.started, self.input = at, bytes(input)
            case e.RunEdited(input=input) if bytes(input):
                self.input = bytes(input)
            case e.MessageReceived(id=id, body=body):
                self._messages[id] = bytes(body)
            case e.RunCompleted(output=output, not_undone=places):
                self.output, self.not_undone = bytes(output), list(places)
                self._end_open("completed", at)
            case e.RunFailedEvent(failure=failure, not_undone=places):
                self.failure, self.not_undone = failure, list(places)
                self._end_open("failed", at)
            case e.RunCancelledEvent(reason=reason, not_undone=places):
                self.reason, self.not_undone = reason, list(places)
                self._end_open("cancelled", at)
            case e.CancelRequested(reason=reason):
                self.status, self.reason, self.held = "cancelling", reason, ""
                self._is_cancelled = True
            case e.RunEnding(output=output) if not output:
                self.status, self._rolls_back = "rolling_back", True
            case e.RunPaused():
                self.status = "paused"
            case e.RunResumed():
                self.status, self.held = "cancelling" if self._is_cancelled else "running", ""
                if self._rolls_back:
                    self.status = "rolling_back"
            case e.RunHeld(message=message):
                self.status, self.held = "held", message
            case e.RunMoved():
                self._before_move, self.status, self.ended = self.status, "moved", at
            case e.RunAdopted():
                self.status, self.ended = self._before_move, None
            case e.RunRetried(dropped=dropped, steps=steps):
                self._reopen()
                self._drop([*dropped, *self._style.reopen(steps)])
            case e.EntriesDropped(dropped=dropped):
                self._drop(dropped)
            case e.ResultSet():
                self._set(event, at)

    def _end_open(self, status: str, at: int) -> None:
        self.status, self.ended, self.held = status, at, ""
        for operation in self.open():
            end(operation, "cancelled", at)
            self._note_change(operation)

    def _note_change(self, operation: Operation) -> None:
        self.also_changed.append(operation)

    def _reopen(self) -> None:
        self.status, self.ended, self.failure, self.held = "running", None, None, ""
        self._is_cancelled = self._rolls_back = False
        self.retries += 1

    def _drop(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            operation = self.operations.get(number)
            if operation is not None and self._newest.get(operation.location) == number:
                del self._newest[operation.location]
                self.dropped.add(number)
                self._note_change(operation)

    def is_dropped(self, operation: Operation) -> bool:
        """Return whether an operation was removed from the run and is performed anew."""
        number = operation.number
        return number in self.dropped and self.operations.get(number) is operation

    def _set(self, event: e.ResultSet, at: int) -> None:
        """Apply a result set by hand. The result of open work comes with the next event."""
        operation = self.operations.get(event.entry)
        if operation is not None and operation.status != "open":
            operation.failure = event.failure
            end(operation, "failed" if event.failure is not None else "done", at, bytes(event.output) or b"null")
            self._note_change(operation)
        self._drop(event.dropped)


def _recorded_answer(event: e.AskAnswered) -> bytes:
    answer: dict[str, Any] = {"approved": event.approved, "by": event.by, "reason": event.reason}
    kept = {name: part for name, part in answer.items() if part != ""}
    return msgspec.json.encode(kept if bytes(event.form) == b"null" else {**kept, "form": event.form})
