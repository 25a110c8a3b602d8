"""How each event changes a goal run. The choices are in the event; the counts follow from them."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from typing import Any

from msgspec import Raw

from weft.core import events as e
from weft.core import life, tasks, waits
from weft.core.goal.flow import Flow, StepNode
from weft.core.goal.outputs import BAD_OUTPUT, is_deferred
from weft.core.goal.plan import Plan, decode_plan
from weft.core.goal.settle import RUN_OVER, given_values
from weft.core.goal.state import OVER_STEP, GoalState, Place, StepRun, Value, Window, item_token
from weft.core.state import Child, Held, Question, Task
from weft.core.values import is_ref, seal, unseal


class Fold:
    """Takes events in. ``flow`` is there from the plan on."""

    def __init__(self, state: GoalState) -> None:
        self.state = state
        self.flow: Flow | None = None
        if bytes(state.plan) != b"null":
            self.flow = Flow(decode_plan(state.plan), state)

    def evolve(self, event: e.AnyEvent, at: int) -> None:
        state = self.state
        state.seq += 1
        state.at = at
        if state.gone or state.gone_children:
            state.gone, state.gone_children = [], []
        _EVOLVE[type(event)](self, event, at)
        flow = self.flow
        if flow is not None and flow.settled_windows:
            for run, fact in flow.settled_windows:
                self._close_window(run, fact)
            flow.settled_windows = []

    # --- life -----------------------------------------------------------------------------------------------------

    def _started(self, event: e.RunStarted, at: int) -> None:
        life.evolve_started(self.state, event, at)

    def _planned(self, event: e.GoalPlanned, at: int) -> None:
        state = self.state
        state.plan = event.plan
        plan = decode_plan(event.plan)
        state.steps = {step: StepRun() for step in plan.steps}
        stored = bytes(state.input)
        if not is_ref(stored):
            given = given_values(unseal(stored))
            state.facts = {name: [Value(Raw(seal(raw)))] for name, raw in given.items()}
        state.begun = not is_ref(stored) and not _looks_into(plan, state)
        self.flow = Flow(plan, state, begins=state.begun)

    def _given(self, event: e.FactsGiven, at: int) -> None:
        state = self.state
        values = event.values or {name: found[0].value for name, found in state.facts.items()}
        state.facts = {
            name: [Value(value, matched=event.matched.get(name, []), broken=event.broken.get(name, {}))]
            for name, value in values.items()
        }
        state.begun = True
        self.flow = Flow(decode_plan(state.plan), state, begins=True)

    def _cancel_requested(self, event: e.CancelRequested, at: int) -> None:
        self.state.cancelled = event.reason
        self.state.held = None
        self.state.status = "cancelling"

    def _timed_out(self, event: e.RunTimedOut, at: int) -> None:
        self.state.timed_out = True

    def _code_ended(self, event: e.CodeEnded, at: int) -> None:
        state = self.state
        state.ended = True
        state.failure = event.failure
        state.status = "rolling_back"
        for step, run in state.steps.items():
            if run.status not in OVER_STEP:
                self._drop(step, run, at)
                state.undo.extend(run.undo)
                run.undo = []
                run.status, run.why = "skipped", RUN_OVER
                state.dropped.append(step)
        state.undo.extend(state.undo_steps)
        state.undo_steps = []

    def _completed(self, event: e.RunCompleted, at: int) -> None:
        self.state.output = event.output
        self._over("completed")

    def _run_failed(self, event: e.RunFailed, at: int) -> None:
        self.state.failure = event.failure
        self._over("failed")

    def _cancelled(self, event: e.RunCancelled, at: int) -> None:
        self._over("cancelled")

    def _over(self, status: Any) -> None:
        state = self.state
        state.status = status
        state.ended = status != "completed"
        life.evolve_over(state)
        state.parked, state.accepted, state.deadlines, state.places = {}, {}, {}, {}

    def _paused(self, event: e.RunPaused, at: int) -> None:
        self.state.status = "paused"

    def _resumed(self, event: e.RunResumed, at: int) -> None:
        self.state.status = "running"
        self.state.held = None

    def _held(self, event: e.RunHeld, at: int) -> None:
        self.state.status = "held"
        self.state.held = Held(code=event.code, message=event.message, location=event.location, since=at)

    # --- steps ----------------------------------------------------------------------------------------------------

    def _node(self, step: str) -> StepNode:
        assert self.flow is not None
        return self.flow.steps[step]

    def _step_started(self, event: e.StepStarted, at: int) -> None:
        assert self.flow is not None
        node = self._node(event.step)
        run = node.run
        run.status = "active"
        run.inputs = event.inputs
        run.items = run.left = event.work_items
        run.fan_out = event.fan_out
        for fact in list(run.windows):
            self._close_window(run, fact)
        self.flow.step_started(node)

    def _attribute_set(self, event: e.AttributeSet, at: int) -> None:
        assert self.flow is not None
        value = Value(event.value, event.provider, event.matched, event.broken)
        self.state.facts.setdefault(event.name, []).append(value)
        self.flow.value_set(event.name, value)

    def _step_completed(self, event: e.StepCompleted, at: int) -> None:
        node = self._node(event.step)
        run = node.run
        run.gave = sorted(event.outputs)
        if node.goal:
            run.outputs = event.outputs
        self.state.undo.extend(run.undo)
        self._leave(node, "completed")

    def _step_failed(self, event: e.StepFailed, at: int) -> None:
        node = self._node(event.step)
        run = node.run
        run.why = event.failure.message
        run.failure = event.failure
        if event.failure.code == "input_lost":
            run.lost = event.unsatisfied[0]
        self._drop(event.step, run, at)
        self.state.undo_steps.extend(run.undo)
        self._leave(node, "failed")

    def _step_skipped(self, event: e.StepSkipped, at: int) -> None:
        node = self._node(event.step)
        run = node.run
        run.why = event.reason
        self._drop(event.step, run, at)
        self.state.undo_steps.extend(run.undo)
        self._leave(node, "skipped")

    def _leave(self, node: StepNode, status: Any) -> None:
        assert self.flow is not None
        run = node.run
        run.status = status
        run.undo, run.due, run.inputs = [], [], e.NULL
        self.flow.judged.pop(node.id, None)
        if status != "completed" or not node.goal:
            run.results = {}
        self.flow.step_over(node)

    def _deadline_set(self, event: e.DeadlineSet, at: int) -> None:
        state = self.state
        state.timers[state.seq] = event.due
        state.deadlines[state.seq] = Window(event.step, event.name)
        state.steps[event.step].windows[event.name] = state.seq

    def _deadline_passed(self, event: e.DeadlinePassed, at: int) -> None:
        assert self.flow is not None
        node = self._node(event.step)
        need = next(need for need in node.needs if need.fact.name == event.name)
        self.flow.freeze(need, len(self.state.facts.get(event.name, ())))
        self._close_window(node.run, event.name)
        self.flow.work_through(decide_optionals=True)

    def _close_window(self, run: StepRun, fact: str) -> None:
        number = run.windows.get(fact, 0)
        if self.state.deadlines.pop(number, None) is not None:
            self.state.timers.pop(number, None)
            self.state.gone.append(number)

    # --- work items -----------------------------------------------------------------------------------------------

    def _begin_item(self, token: str) -> Place:
        """The item that the next token belongs to: steps hand out their items in order."""
        state = self.state
        place = self._next_place(token)
        run = state.steps[place.step]
        run.index_next = place.index + 1
        run.active += 1
        run.open[place.index] = state.seq
        state.places[state.seq] = place
        return place

    def _next_place(self, token: str) -> Place:
        assert self.flow is not None
        first = self.flow.first_working()
        for step in (*([first] if first is not None else []), *self.flow.by_index):
            if item_token(self.state.uid, step.id, step.run.index_next) == token:
                return Place(step.id, step.run.index_next)
        raise AssertionError(token)

    def _task_scheduled(self, event: e.TaskScheduled, at: int) -> None:
        place = self._begin_item(event.token)
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
        run.index_next = event.index + 1
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
        self.flow.pumping.add(self.flow.steps[step])

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
            self._file_undo(place, task)
            self._item_done(event.task, event.output)

    def _file_undo(self, place: Place, task: Task) -> None:
        """What can be taken back goes to its step, until that is over."""
        state = self.state
        if task.undo is None or state.ended:
            return
        run = state.steps[place.step]
        (run.undo if run.status == "active" else state.undo_steps).append(state.undo.pop())

    def _item_done(self, number: int, result: Raw) -> None:
        place = self._end_item(number)
        assert self.flow is not None
        node = self.flow.steps[place.step]
        if node.run.status == "active":
            node.run.results[place.index] = result
            if is_deferred(node.definition, bytes(result)):
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
        if event.failure.code in (tasks.UNKNOWN, BAD_OUTPUT):
            self._file_undo(place, task)
        self._end_item(event.task)

    def _task_lost(self, event: e.TaskLost, at: int) -> None:
        tasks.evolve_lost(self.state, event)

    def _undo_scheduled(self, event: e.UndoScheduled, at: int) -> None:
        state = self.state
        if state.undo_steps:
            state.undo.append(state.undo_steps.pop())
        tasks.evolve_undo(state, event, at=at)

    def _ask_opened(self, event: e.AskOpened, at: int) -> None:
        self._begin_item(event.token)
        self.state.asks[self.state.seq] = Question(
            title=event.title,
            since=at,
            form=event.form,
            about=event.about,
            of=event.of,
            quorum=event.quorum,
            due=event.due,
            on_timeout=event.on_timeout,
            escalate=event.escalate,
        )

    def _ask_answered(self, event: e.AskAnswered, at: int) -> None:
        answer = waits.evolve_answer(self.state, event, at)
        if answer is not None:
            self._item_done(event.ask, answer)

    def _ask_escalated(self, event: e.AskEscalated, at: int) -> None:
        waits.evolve_escalated(self.state, event)

    def _wait_timed_out(self, event: e.WaitTimedOut, at: int) -> None:
        state = self.state
        state.asks.pop(event.wait, None)
        child = state.children.get(event.wait)
        if child is not None:
            child.cancelled = True
        if event.wait in state.places:
            self._end_item(event.wait)

    def _child_started(self, event: e.ChildStarted, at: int) -> None:
        self._begin_item(event.token)
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
            self._end_item(event.child)

    def _nothing(self, event: e.AnyEvent, at: int) -> None:
        """An event that tells something and changes nothing here."""

    def _message(self, event: e.MessageReceived, at: int) -> None:
        waits.evolve_message(self.state, event, at)

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
                    state.undo_steps.append(state.undo.pop())
        run.active, run.due = 0, []

    def _drains(self, number: int, at: int) -> bool:
        state = self.state
        task = state.tasks.get(number)
        under_way = task is not None and task.due <= at
        if task is None and number in state.accepted:
            task, under_way = state.parked[number], True
        if task is None or not under_way or (task.undo is None and task.policy.effect != "irreversible"):
            return False
        task.draining = True
        return True


def _looks_into(plan: Plan, state: GoalState) -> bool:
    """Whether a match asks for a given value."""
    for definition in plan.steps.values():
        for fact, need in definition.needs.items():
            if need.match is not None and fact in state.facts:
                return True
    return False


_EVOLVE: dict[type, Callable[[Fold, Any, int], None]] = {
    e.RunStarted: Fold._started,
    e.GoalPlanned: Fold._planned,
    e.FactsGiven: Fold._given,
    e.CancelRequested: Fold._cancel_requested,
    e.RunTimedOut: Fold._timed_out,
    e.CodeEnded: Fold._code_ended,
    e.RunCompleted: Fold._completed,
    e.RunFailed: Fold._run_failed,
    e.RunCancelled: Fold._cancelled,
    e.RunPaused: Fold._paused,
    e.RunResumed: Fold._resumed,
    e.RunHeld: Fold._held,
    e.StepStarted: Fold._step_started,
    e.AttributeSet: Fold._attribute_set,
    e.StepCompleted: Fold._step_completed,
    e.StepFailed: Fold._step_failed,
    e.StepSkipped: Fold._step_skipped,
    e.DeadlineSet: Fold._deadline_set,
    e.DeadlinePassed: Fold._deadline_passed,
    e.WorkSkipped: Fold._work_skipped,
    e.WorkResumed: Fold._work_resumed,
    e.WorkAccepted: Fold._work_accepted,
    e.WorkRecalled: Fold._nothing,
    e.TaskScheduled: Fold._task_scheduled,
    e.TaskSucceeded: Fold._task_succeeded,
    e.TaskFailed: Fold._task_failed,
    e.TaskLost: Fold._task_lost,
    e.UndoScheduled: Fold._undo_scheduled,
    e.TimerFired: Fold._timer_fired,
    e.MessageReceived: Fold._message,
    e.AskOpened: Fold._ask_opened,
    e.AskAnswered: Fold._ask_answered,
    e.AskEscalated: Fold._ask_escalated,
    e.WaitTimedOut: Fold._wait_timed_out,
    e.ChildStarted: Fold._child_started,
    e.ChildEnded: Fold._child_ended,
}
