"""Begin, end, retry and drop the work items of a goal run."""

from __future__ import annotations

from bisect import insort
from heapq import heappush

from msgspec import Raw

from weft.core import events as e
from weft.core.goal.need_counts import NeedCounts
from weft.core.goal.outputs import BAD_OUTPUT, is_deferred
from weft.core.goal.plan import GoalPlan
from weft.core.goal.shape import PlanShape
from weft.core.goal.state import GoalState, Place, StepRun
from weft.core.run import tasks, undo
from weft.core.run.state import OpenTask
from weft.core.run.style import Ended


class Items:
    """The open items of a run, and its plan."""

    def __init__(self, state: GoalState) -> None:
        self.state = state
        self.shape: PlanShape | None = None
        """The plan. None until there is one."""
        self.counted: NeedCounts | None = None
        """The counts, if they were needed so far. They follow from plan and state."""

    @property
    def plan(self) -> GoalPlan | None:
        return self.shape.plan if self.shape is not None else None

    @property
    def flow(self) -> NeedCounts | None:
        """The counts of the run. None until there is a plan."""
        if self.counted is None and self.shape is not None:
            self.counted = NeedCounts(self.shape.plan, self.state)
        return self.counted

    def item_name(self, place: Place) -> str:
        """Return the name of a work item, for display and as the suffix of idempotency keys."""
        return f"{place.step}[{place.index}]" if self.state.steps[place.step].fan_out else place.step

    def begin(self, event: e.TaskScheduled | e.ChildStarted | e.AskOpened) -> None:
        """Begin an item."""
        state = self.state
        number, index = state.seq, event.item
        run = state.steps[event.node]
        if run.again:
            run.again.pop(0)
        else:
            run.index_next = index + 1
        run.active += 1
        run.open[index] = number
        place = state.places[number] = Place(event.node, index)
        task = state.tasks.get(number) or state.parked.get(number)
        if task is not None:
            task.place = self.item_name(place) if run.fan_out else event.node
            if state.earlier:
                state.earlier.pop(task.place, None)

    def skip(self, event: e.WorkSkipped) -> None:
        """Skip an item because its predicate is false."""
        run = self.state.steps[event.step]
        run.index_next = event.item + 1
        run.left -= 1
        self._note_work(event.step)

    def park(self, number: int, due: int) -> None:
        """Release the slot of an item until its retry is due."""
        state = self.state
        place = state.places.get(number)
        if place is None:
            return  # an undo has no slot
        state.parked[number] = state.tasks.pop(number)
        state.timers[number] = due
        state.steps[place.step].active -= 1
        self._note_work(place.step)

    def retry_due(self, number: int) -> None:
        """Let an item whose retry is due wait for a slot."""
        place = self.state.places.get(number)
        if place is not None and number in self.state.parked:
            insort(self.state.steps[place.step].due, place.index)
            self._note_work(place.step)

    def resume(self, event: e.WorkResumed) -> None:
        """Give an item whose retry is due a slot again."""
        state = self.state
        place = state.places[event.task]
        run = state.steps[place.step]
        run.due.remove(place.index)
        run.active += 1
        task = state.parked.pop(event.task)
        task.due = 0
        task.since = state.at
        state.tasks[event.task] = task

    def settled(self, ended: Ended) -> None:
        """End an item, with or without a result."""
        place = self.state.places.get(ended.number)
        if place is None:
            return
        if ended.task is not None:
            if ended.waited:
                self._take_slot(place)
            if ended.failure is not None and ended.failure.code == BAD_OUTPUT:
                tasks.remember_undo(self.state, ended.number, ended.task, e.NULL, ended.task.place)
            if self.state.undo:
                self._move_undo_to_step(place, ended.number)
        self._forget_ended(ended.number)
        if ended.how == "late" or ended.failure is not None:
            self.state.steps[place.step].ended.append(place.index)
        else:
            self._keep_result(place, ended.output)

    def _take_slot(self, place: Place) -> None:
        """Give a slot to an item that ended while it was parked, because every item that ends releases one."""
        run = self.state.steps[place.step]
        run.active += 1
        if place.index in run.due:
            run.due.remove(place.index)

    def _move_undo_to_step(self, place: Place, number: int) -> None:
        """Move the undo of an item to its step, until the step is over."""
        state = self.state
        if state.ended or state.undo[-1].task != number:
            return
        run = state.steps[place.step]
        if run.status == "active":
            run.undo.append(state.undo.pop())
        else:
            undo.add_reversal(state, (), [state.undo.pop()])

    def _keep_result(self, place: Place, result: Raw) -> None:
        assert self.flow is not None
        node = self.flow.steps[place.step]
        node.run.results[place.index] = result
        node.run.answered = self.state.seq
        if node.run.status == "active" and is_deferred(node.shape, bytes(result)):
            self.flow.unchecked.append((node, place.index))

    def _forget_ended(self, number: int) -> None:
        """Remove an item that is over from the counts."""
        place = self.state.places.pop(number)
        run = self.state.steps[place.step]
        run.open.pop(place.index, None)
        if run.status == "active":
            run.active -= 1
            run.left -= 1
            assert self.flow is not None
            heappush(self.flow.pumping, self.flow.steps[place.step].index)

    def _note_work(self, step: str) -> None:
        assert self.flow is not None
        self.flow.note_work(self.flow.steps[step])

    # --- dropping -------------------------------------------------------------------------------------------------

    def drop(self, run: StepRun) -> None:
        """Drop the work in progress of a step. Items that must not be interrupted drain; the others are stopped."""
        state = self.state
        for fact in list(run.windows):
            self.close_window(run, fact)
        for index, number in list(run.open.items()):
            if self._let_drain(number):
                continue
            del run.open[index]
            run.ended.append(index)
            del state.places[number]
            state.gone.append(number)
            task = state.tasks.pop(number, None) or state.parked.pop(number, None)
            state.timers.pop(number, None)
            state.accepted.pop(number, None)
            state.asks.pop(number, None)
            child = state.children.get(number)
            if child is not None and not child.cancelled:
                child.cancelled = True
                state.gone_children.append(child.uid)
            if task is not None and task.lost and task.undo is not None:
                # A lost delivery may have been performed.
                tasks.remember_undo(state, number, task, e.NULL, task.place)
                if not state.ended:
                    run.undo.append(state.undo.pop())
        run.active, run.due = 0, []

    def _let_drain(self, number: int) -> bool:
        state = self.state
        task: OpenTask | None = state.tasks.get(number)
        in_progress = task is not None and task.due <= state.at
        if task is None and number in state.accepted:
            task, in_progress = state.parked[number], True
        if task is None or not in_progress or not tasks.must_drain_task(task):
            return False
        task.draining = True
        return True

    def close_window(self, run: StepRun, fact: str) -> None:
        """Stop the wait for an optional fact."""
        number = run.windows.get(fact, 0)
        if self.state.deadlines.pop(number, None) is not None:
            self.state.timers.pop(number, None)
            self.state.gone.append(number)
