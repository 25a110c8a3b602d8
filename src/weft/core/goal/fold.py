"""How each event changes a goal run. The choices are in the event; the counts follow from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from msgspec import Raw

from weft.core import events as e
from weft.core.goal.flow import Flow
from weft.core.goal.items import Items
from weft.core.goal.nodes import StepNode
from weft.core.goal.outputs import BAD_OUTPUT, ITEM
from weft.core.goal.plan import Plan, decode_plan
from weft.core.goal.reopening import reopen
from weft.core.goal.settle import RUN_OVER, given_values
from weft.core.goal.state import OVER_STEP, GoalState, StepRun, Value, Window
from weft.core.run import lifecycle, undo
from weft.core.run.state import Held
from weft.core.values import is_ref, seal, unseal


class Fold(Items):
    """Takes events in."""

    def __init__(self, state: GoalState) -> None:
        super().__init__(state)
        if bytes(state.plan) != b"null":
            self.flow = Flow(decode_plan(state.plan), state)

    def evolve(self, event: e.AnyEvent, at: int) -> None:
        state = self.state
        state.seq += 1
        state.at = at
        if state.gone or state.gone_children:
            state.gone, state.gone_children = [], []
        self.EVOLVE[type(event)](self, event, at)
        flow = self.flow
        if flow is not None and flow.settled_windows:
            for run, fact in flow.settled_windows:
                self._close_window(run, fact)
            flow.settled_windows = []

    # --- life -----------------------------------------------------------------------------------------------------

    def _started(self, event: e.RunStarted, at: int) -> None:
        lifecycle.evolve_started(self.state, event, at)

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
        self.flow = Flow(plan, state)

    def _given(self, event: e.FactsGiven, at: int) -> None:
        state = self.state
        values = event.values or {name: found[0].value for name, found in state.facts.items()}
        state.facts = {
            name: [Value(value, matched=event.matched.get(name, []), broken=event.broken.get(name, {}))]
            for name, value in values.items()
        }
        state.begun = True
        self.flow = Flow(decode_plan(state.plan), state)

    def _cancel_requested(self, event: e.CancelRequested, at: int) -> None:
        self.state.cancelled = event.reason
        self.state.cancelled_at = at
        self.state.held = None
        self.state.status = "cancelling"

    def _timed_out(self, event: e.RunTimedOut, at: int) -> None:
        self.state.timed_out = True

    def _run_ending(self, event: e.RunEnding, at: int) -> None:
        state = self.state
        left = undo.end_all(state)
        lifecycle.evolve_ended(state, event)
        for step, run in state.steps.items():
            if run.status not in OVER_STEP:
                self._drop(step, run, at)
                state.undo.extend(run.undo)
                run.undo = []
                run.status, run.why = "skipped", RUN_OVER
                state.dropped.append(step)
        state.undo.extend(left)

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
        lifecycle.evolve_over(state)
        state.parked, state.accepted, state.deadlines, state.places = {}, {}, {}, {}
        if self.flow is not None:
            self.flow.let_go()

    def _paused(self, event: e.RunPaused, at: int) -> None:
        self.state.status = "paused"

    def _resumed(self, event: e.RunResumed, at: int) -> None:
        self.state.status = "running"
        self.state.held = None

    def _held(self, event: e.RunHeld, at: int) -> None:
        self.state.status = "held"
        self.state.held = Held(code=event.code, message=event.message, location=event.location, since=at)

    def _retried(self, event: e.RunRetried, at: int) -> None:
        state = self.state
        state.status = "running"
        state.ended = False
        state.timed_out = False
        state.due = 0
        state.failure = None
        state.retries += 1
        state.not_undone, state.dropped = [], []
        for step in event.steps:
            reopen(state.steps[step])
        self.flow = Flow(decode_plan(state.plan), state)

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
        bad = event.failure.attributes.get(ITEM) if event.failure.code == BAD_OUTPUT else None
        if isinstance(bad, int) and run.results.pop(bad, None) is not None:
            run.ended.append(bad)
        self._take_back(event.step, run, at)
        self._leave(node, "failed")

    def _step_skipped(self, event: e.StepSkipped, at: int) -> None:
        node = self._node(event.step)
        run = node.run
        run.why = event.reason
        self._take_back(event.step, run, at)
        self._leave(node, "skipped")

    def _take_back(self, step: str, run: StepRun, at: int) -> None:
        """Undo what the items of a step have done, once those under way have ended."""
        self._drop(step, run, at)
        undo.add(self.state, run.open.values(), run.undo)

    def _leave(self, node: StepNode, status: Any) -> None:
        assert self.flow is not None
        run = node.run
        run.status = status
        run.undo, run.due = [], []
        self.flow.judged.pop(node.id, None)
        if status == "completed":
            run.inputs, run.ended = e.NULL, []
            if not node.goal:
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
        self.flow.work_through()

    EVOLVE: ClassVar[dict[type, Callable[..., None]]] = {
        **Items.EVOLVE_ITEMS,
        e.RunStarted: _started,
        e.GoalPlanned: _planned,
        e.FactsGiven: _given,
        e.CancelRequested: _cancel_requested,
        e.RunTimedOut: _timed_out,
        e.RunEnding: _run_ending,
        e.RunCompleted: _completed,
        e.RunFailed: _run_failed,
        e.RunCancelled: _cancelled,
        e.RunPaused: _paused,
        e.RunResumed: _resumed,
        e.RunHeld: _held,
        e.RunRetried: _retried,
        e.StepStarted: _step_started,
        e.AttributeSet: _attribute_set,
        e.StepCompleted: _step_completed,
        e.StepFailed: _step_failed,
        e.StepSkipped: _step_skipped,
        e.DeadlineSet: _deadline_set,
        e.DeadlinePassed: _deadline_passed,
    }


def _looks_into(plan: Plan, state: GoalState) -> bool:
    """Whether a match asks for a given value."""
    for definition in plan.steps.values():
        for fact, need in definition.needs.items():
            if need.match is not None and fact in state.facts:
                return True
    return False
