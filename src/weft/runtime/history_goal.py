"""What happens in a goal run, as marks: one per planned step, and below it one per work item of a fan-out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from weft.core import events as e
from weft.ports.store import StoredEvent
from weft.runtime.marks import Mark, end, marked

_encode = msgspec.json.Encoder().encode
_OPENING = (e.TaskScheduled, e.AskOpened, e.ChildStarted)


class GoalMarks:
    """Grows with the history that it belongs to. ``keep`` makes a mark the newest of its place."""

    def __init__(self, marks: dict[int, Mark], keep: Callable[[Mark], Mark]) -> None:
        self._marks = marks
        self._keep = keep
        self._steps: dict[str, Mark] = {}
        self._items: dict[str, list[Mark]] = {}
        self._started: set[str] = set()

    def take(self, event: Any, stored: StoredEvent) -> Mark | None:
        """The mark that an event of a goal run made or changed; None: it is like any other run's event."""
        match event:
            case e.StepStarted():
                return self._start(event, stored)
            case e.StepCompleted(step=step, outputs=outputs):
                mark = self._step(step, stored)
                end(mark, "done", stored.at, _encode(outputs))
                return mark
            case e.StepFailed(step=step, failure=failure):
                return self._over(step, "failed", stored, failure=failure)
            case e.StepSkipped(step=step, reason=reason):
                return self._over(step, "skipped", stored, why=reason)
            case e.WorkSkipped(step=step, item=index):
                mark = Mark(stored.seq, f"{step}/{index}", "item", "", stored.at, why="predicate returned false")
                end(mark, "skipped", stored.at)
                return self._keep(mark)
            case e.WorkAccepted(task=number, due=due):
                return self._noted(number, due, "accepted; its answer comes later")
            case e.WorkResumed(task=number):
                return self._noted(number, 0, "")
            case e.WorkRecalled(task=number, run_id=run_id):
                return self._noted(number, 0, f"as in {run_id}")
        if isinstance(event, _OPENING) and event.node:
            return self._item(event, event.node, event.item, stored)
        return None

    def _start(self, event: e.StepStarted, stored: StoredEvent) -> Mark:
        what = f"{event.work_items:,} item{'s' if event.work_items != 1 else ''}" if event.fan_out else event.step
        mark = self._steps[event.step] = self._keep(Mark(stored.seq, event.step, "step", what, stored.at))
        self._started.add(event.step)
        if event.fan_out:
            self._items[event.step] = []
        return mark

    def _step(self, step: str, stored: StoredEvent) -> Mark:
        """The mark of a step, also of one that never started."""
        if step not in self._steps:
            self._steps[step] = self._keep(Mark(stored.seq, step, "step", step, stored.at))
        return self._steps[step]

    def reopen(self, steps: Sequence[str]) -> list[int]:
        """A retry: steps that had started go on; of those that had not there is nothing to tell any more."""
        forgotten = []
        for step in steps:
            mark = self._steps.get(step)
            if mark is None:
                continue
            if step in self._started:
                mark.status, mark.ended, mark.failure, mark.why, mark.attempts = "open", None, None, "", 1
            else:
                del self._steps[step]
                forgotten.append(mark.number)
        return forgotten

    def _over(self, step: str, status: str, stored: StoredEvent, **fields: Any) -> Mark:
        mark = self._step(step, stored)
        for name, value in fields.items():
            setattr(mark, name, value)
        end(mark, status, stored.at)
        for item in self._items.get(step, ()):
            if item.status == "open":
                end(item, "cancelled", stored.at)
        return mark

    def _item(self, event: Any, step: str, index: int, stored: StoredEvent) -> Mark:
        """Work begins: of a step without fan-out it is the step itself."""
        items = self._items.get(step)
        if items is not None:
            item = self._keep(marked(event, f"{step}/{index}", stored))
            items.append(item)
            return item
        mark = self._steps[step]
        new = marked(event, step, stored)
        mark.kind, mark.what, mark.due = new.kind, new.what, new.due
        mark.attempts_max, mark.child = new.attempts_max, new.child
        self._marks[stored.seq] = mark  # its results name this number
        return mark

    def _noted(self, number: int, due: int, why: str) -> Mark | None:
        mark = self._marks.get(number)
        if mark is not None:
            mark.due, mark.why = due, why
        return mark
