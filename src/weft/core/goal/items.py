"""How events change the work items of a goal run: begun, answered, tried again, dropped, undone."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from typing import ClassVar

from msgspec import Raw

from weft.core import events as e
from weft.core.goal.flow import Flow
from weft.core.goal.outputs import BAD_OUTPUT, is_deferred
from weft.core.goal.state import GoalState, Place, StepRun
from weft.core.run import messages, questions, tasks, undo
from weft.core.run.state import Child, Task


class Items:
    """The part of the fold that knows tasks, children and questions. ``flow`` is there from the plan on."""

    def __init__(self, state: GoalState) -> None:
        self.state = state
        self.flow: Flow | None = None

    def _begin_item(self, event: e.TaskScheduled | e.ChildStarted | e.AskOpened) -> Place:
        """An item is handed out."""
        state = self.state
        place = Place(event.node, event.item)
        run = state.steps[place.step]
        if run.again:
            run.again.pop(0)
        else:
            run.index_next = place.index + 1
        run.active += 1
        run.open[place.index] = state.seq
        state.places[state.seq] = place
        return place

    def _task_scheduled(self, event: e.TaskScheduled, at: int) -> None:
        place = self._begin_item(event)
        self.state.tasks[self.state.seq] = Task(
            step=event.step,
            input=event.input,
            since=at,
            policy=event.policy,
            undo=event.undo,
            place=self.shown(place),
        )

    def shown(self, place: Place) -> str:
        """A work item for people, and as the end of idempotency keys."""
        return f"{place.step}[{place.index}]" if self.state.steps[place.step].fan_out else place.step

    def _work_skipped(self, event: e.WorkSkipped, at: int) -> None:
        run = self.state.steps[event.step]
        run.index_next = event.item + 1
        run.left -= 1
        self._look_again(event.step)

    def _work_resumed(self, event: e.WorkResumed, at: int) -> None:
        state = self.state
        place = state.places[event.task]
        run = state.steps[place.step]
        run.due.remove(place.index)
        run.active += 1
        task = state.parked.pop(event.task)
        task.due = 0
        task.since = at
        state.tasks[event.task] = task

    def _work_accepted(self, event: e.WorkAccepted, at: int) -> None:
        state = self.state
        state.parked[event.task] = state.tasks.pop(event.task)
        state.accepted[event.task] = event.due
        state.timers[event.task] = event.due

    def _timer_fired(self, event: e.TimerFired, at: int) -> None:
        self.state.timers.pop(event.timer, None)
        place = self.state.places.get(event.timer)
        if place is not None and event.timer in self.state.parked:
            insort(self.state.steps[place.step].due, place.index)
            self._look_again(place.step)

    def _look_again(self, step: str) -> None:
        assert self.flow is not None
        self.flow.look_at_work(self.flow.steps[step])

    def _unpark(self, number: int) -> None:
        """An answer came for a task that was in nobody's hands."""
        state = self.state
        task = state.parked.pop(number, None)
        if task is None:
            return
        state.tasks[number] = task
        if state.timers.pop(number, None) is not None:
            state.gone.append(number)
        if state.accepted.pop(number, None) is None:  # it had given up its slot
            place = state.places[number]
            run = state.steps[place.step]
            run.active += 1
            if place.index in run.due:
                run.due.remove(place.index)

    def _task_succeeded(self, event: e.TaskSucceeded, at: int) -> None:
        self._unpark(event.task)
        place = self.state.places.get(event.task)
        task = tasks.evolve_succeeded(self.state, event, self.shown(place) if place is not None else f"!{event.task}")
        if place is not None and not task.undo_of:
            self._file_undo(place, event.task)
            self._item_done(event.task, event.output)

    def _file_undo(self, place: Place, number: int) -> None:
        """What can be taken back goes to its step, until that is over."""
        state = self.state
        if state.ended or not state.undo or state.undo[-1].task != number:
            return
        run = state.steps[place.step]
        if run.status == "active":
            run.undo.append(state.undo.pop())
        else:
            undo.add(state, (), [state.undo.pop()])

    def _item_done(self, number: int, result: Raw) -> None:
        place = self._end_item(number)
        assert self.flow is not None
        node = self.flow.steps[place.step]
        node.run.results[place.index] = result
        if node.run.status == "active" and is_deferred(node.shape, bytes(result)):
            self.flow.unjudged.append((node, place.index))

    def _end_item(self, number: int) -> Place:
        """The item is over, one way or the other."""
        place = self.state.places.pop(number)
        run = self.state.steps[place.step]
        run.open.pop(place.index, None)
        if run.status == "active":
            run.active -= 1
            run.left -= 1
            self._look_again(place.step)
        return place

    def _lose_item(self, number: int) -> None:
        """The item is over and has no result."""
        place = self._end_item(number)
        self.state.steps[place.step].ended.append(place.index)

    def _task_failed(self, event: e.TaskFailed, at: int) -> None:
        state = self.state
        self._unpark(event.task)
        place = state.places.get(event.task)
        where = self.shown(place) if place is not None else f"!{event.task}"
        task = tasks.evolve_failed(state, event, where)
        if place is None:
            return
        if task is None:
            state.parked[event.task] = state.tasks.pop(event.task)
            state.timers[event.task] = event.retry_at
            state.steps[place.step].active -= 1
            self._look_again(place.step)
            return
        if event.failure.code == BAD_OUTPUT:
            tasks.remember_undo(state, event.task, task, e.NULL, where)
        self._file_undo(place, event.task)
        self._lose_item(event.task)

    def _task_lost(self, event: e.TaskLost, at: int) -> None:
        tasks.evolve_lost(self.state, event)

    def _undo_scheduled(self, event: e.UndoScheduled, at: int) -> None:
        tasks.evolve_undo(self.state, event, at=at)

    def _ask_opened(self, event: e.AskOpened, at: int) -> None:
        self._begin_item(event)
        self.state.asks[self.state.seq] = questions.opened(event, at)

    def _ask_answered(self, event: e.AskAnswered, at: int) -> None:
        answer = questions.evolve_answer(self.state, event, at)
        if answer is not None:
            self._item_done(event.ask, answer)

    def _ask_escalated(self, event: e.AskEscalated, at: int) -> None:
        questions.evolve_escalated(self.state, event)

    def _ask_reminded(self, event: e.AskReminded, at: int) -> None:
        questions.evolve_reminded(self.state, event, at)

    def _ask_told(self, event: e.AskTold, at: int) -> None:
        questions.evolve_told(self.state, event)

    def _wait_timed_out(self, event: e.WaitTimedOut, at: int) -> None:
        state = self.state
        state.asks.pop(event.wait, None)
        child = state.children.get(event.wait)
        if child is not None:
            child.cancelled = True
        if event.wait in state.places:
            self._lose_item(event.wait)

    def _child_started(self, event: e.ChildStarted, at: int) -> None:
        self._begin_item(event)
        self.state.children[self.state.seq] = Child(
            uid=event.uid, run_id=event.run_id, workflow=event.workflow, since=at, due=event.due
        )

    def _child_ended(self, event: e.ChildEnded, at: int) -> None:
        self.state.children.pop(event.child, None)
        if event.child not in self.state.places:
            return
        if event.status == "completed":
            self._item_done(event.child, event.output)
        else:
            self._lose_item(event.child)

    def _nothing(self, event: e.AnyEvent, at: int) -> None:
        """An event that tells something and changes nothing here."""

    def _message(self, event: e.MessageReceived, at: int) -> None:
        messages.evolve_message(self.state, event, at)

    # --- dropping -------------------------------------------------------------------------------------------------

    def _drop(self, step: str, run: StepRun, at: int) -> None:
        """Nobody reads what a step has under way. What must not be interrupted drains; the rest is told to stop."""
        state = self.state
        for fact in list(run.windows):
            self._close_window(run, fact)
        for index, number in list(run.open.items()):
            if self._drains(number, at):
                continue
            del run.open[index]
            run.ended.append(index)
            place = state.places.pop(number)
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
                # A hand-out that was lost may have happened.
                tasks.remember_undo(state, number, task, e.NULL, self.shown(place))
                if not state.ended:
                    run.undo.append(state.undo.pop())
        run.active, run.due = 0, []

    def _drains(self, number: int, at: int) -> bool:
        state = self.state
        task = state.tasks.get(number)
        under_way = task is not None and task.due <= at
        if task is None and number in state.accepted:
            task, under_way = state.parked[number], True
        if task is None or not under_way or not tasks.must_end(task):
            return False
        task.draining = True
        return True

    def _close_window(self, run: StepRun, fact: str) -> None:
        number = run.windows.get(fact, 0)
        if self.state.deadlines.pop(number, None) is not None:
            self.state.timers.pop(number, None)
            self.state.gone.append(number)

    EVOLVE_ITEMS: ClassVar[dict[type, Callable[..., None]]] = {
        e.WorkSkipped: _work_skipped,
        e.WorkResumed: _work_resumed,
        e.WorkAccepted: _work_accepted,
        e.WorkRecalled: _nothing,
        e.TaskScheduled: _task_scheduled,
        e.TaskSucceeded: _task_succeeded,
        e.TaskFailed: _task_failed,
        e.TaskLost: _task_lost,
        e.UndoScheduled: _undo_scheduled,
        e.TimerFired: _timer_fired,
        e.MessageReceived: _message,
        e.AskOpened: _ask_opened,
        e.AskAnswered: _ask_answered,
        e.AskEscalated: _ask_escalated,
        e.AskReminded: _ask_reminded,
        e.AskTold: _ask_told,
        e.WaitTimedOut: _wait_timed_out,
        e.ChildStarted: _child_started,
        e.ChildEnded: _child_ended,
    }
