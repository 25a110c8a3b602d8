"""The style of goal runs: commands record what happened, and ``settle`` decides what follows.

A command records what came from outside and, if an item fails for good, the failure of its step. ``follow`` returns all
other events, a few per call. Only ``follow`` may request inputs from the runtime (``MissingInputs``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from msgspec import Raw

from weft.core import commands as c
from weft.core import events as e
from weft.core.goal import edits, task_results
from weft.core.goal.definitions import AskWay, GoalWay, StepWay
from weft.core.goal.inputs import BoundInputs, assemble_inputs, given_values
from weft.core.goal.items import Items
from weft.core.goal.need_counts import NeedCounts
from weft.core.goal.nodes import StepNode
from weft.core.goal.outputs import BAD_OUTPUT, ITEM
from weft.core.goal.patch.apply import apply_change, close_decided_windows, note_read
from weft.core.goal.patch.decide import judge_patch
from weft.core.goal.plan import GoalPlan, decode_plan, encode_plan
from weft.core.goal.retry import decide_retry, reopen
from weft.core.goal.scripts import HostedGoals, TrialGoals
from weft.core.goal.settle import RUN_OVER, begin_with_given, completed_event, next_events
from weft.core.goal.shape import PlanShape, SimplePlan, shape_of_plan
from weft.core.goal.simple import STARTS_MAX, start_simple
from weft.core.goal.start import decide_goal_start
from weft.core.goal.state import OVER_STEP, GoalState, StepRun, Value, Window, copy_state
from weft.core.goal.turn import Turn
from weft.core.run import asked_patches, by_hand, patches, questions, tasks, undo
from weft.core.run.children import start_for_child
from weft.core.run.decide import DECIDE, DECIDE_ANSWERS
from weft.core.run.effects import EFFECTS, arm_opened, dispatch_opened, perform_open_task
from weft.core.run.env import Env
from weft.core.run.evolve import with_style_rows
from weft.core.run.kernel import Kernel
from weft.core.run.mail import MAIL
from weft.core.run.state import Status, Undo
from weft.core.run.statuses import not_in_graph
from weft.core.run.style import DecideRows, EffectRows, Ended, EvolveRows, JudgedPatch, MailRows
from weft.core.unfold import step_outputs
from weft.core.values import is_ref, seal, unseal


class GoalStyle:
    """The plan, the facts and the steps of one goal run."""

    name = "goal"
    has_code = False
    retried_from: ClassVar[frozenset[Status]] = frozenset({"failed"})
    repeats_undone = False
    unanswered = "timed_out"
    mail: ClassVar[MailRows] = MAIL
    effects: ClassVar[EffectRows] = {
        **EFFECTS,
        e.RunPatched: asked_patches.disarm,
        e.WorkResumed: lambda run, event: (perform_open_task(run, event.task),),
        e.DeadlineSet: arm_opened,
        e.StepStarted: lambda run, event: dispatch_opened(run, event) if event.task is not None else (),
    }

    def __init__(self, program: HostedGoals, state: GoalState) -> None:
        self.program = program
        self.state = state
        self.items = Items(state)
        if bytes(state.plan) != b"null":
            self.items.shape = shape_of_plan(decode_plan(state.plan))
        self._bound: dict[str, BoundInputs] = {}
        self._turn: Turn | None = None
        self._simple_at = 0
        """The number of the last event after which the run was still simple."""
        self._starting = ("", 0)
        """The step that starts next, and the number that its ``StepStarted`` event will have."""
        self.recalled: dict[str, e.RecalledStep] | None = None
        """The outcomes of completed steps in order, if they are collected while the log is folded once more."""

    @property
    def flow(self) -> NeedCounts | None:
        """The counts of the run. None until there is a plan."""
        return self.items.flow

    # --- queries from the kernel ----------------------------------------------------------------------------------

    def begin(self, command: c.StartRun, env: Env) -> Sequence[e.AnyEvent]:
        return decide_goal_start(self.program, self.state, command, env)

    def consequences(self, events: Sequence[e.AnyEvent], env: Env) -> Sequence[e.AnyEvent]:
        return task_results.consequences(self.items, self.program, events, env)

    def follow(self, env: Env) -> Sequence[e.AnyEvent]:
        if self.items.shape is None:
            return ()
        simple = self.simple
        events = self._follow_simple(simple, env) if simple is not None else None
        if events is not None:
            return events
        turn = self.turn(env)
        return next_events(turn) if self.state.begun else begin_with_given(turn)

    @property
    def simple(self) -> SimplePlan | None:
        """The plan, if it is simple and nothing has happened since except that its steps started and completed.

        Such a run does not need the counts.
        """
        items = self.items
        if self._simple_at != self.state.seq or items.counted is not None or items.shape is None:
            return None
        return items.shape.simple

    def stay_simple(self) -> None:
        """Record that the run is still simple after the last event."""
        self._simple_at = self.state.seq

    def _follow_simple(self, simple: SimplePlan, env: Env) -> Sequence[e.AnyEvent] | None:
        """Start the next of the first steps, or end the run. Returns None if the counts are needed for that."""
        state, plan = self.state, self.items.plan
        assert plan is not None
        if not state.steps_done:
            first = simple.first(state.facts)
            if len(first) > STARTS_MAX:
                return None
            if len(state.tasks) < len(first):
                event = start_simple(first[len(state.tasks)], state, self.program, env)
                if event is not None:
                    self._starting = (event.step, state.seq + 1)
                return None if event is None else (event,)
        if state.tasks:
            return ()
        if any(state.steps[goal].status != "completed" for goal in plan.goals):
            return None
        return (completed_event(plan, state, env),)

    def turn(self, env: Env) -> Turn:
        """Return the ``Turn`` of a decision: the program, the counts, the environment and the bound inputs."""
        flow, turn = self.items.flow, self._turn
        assert flow is not None
        if turn is None or turn.flow is not flow:
            turn = self._turn = Turn(self.program, flow, env, self._bound)
        turn.env = env
        return turn

    def locate(self, number: int) -> str:
        """Return where an open entry is: ``step``, ``step[index]`` in a fan-out, ``step.fact`` for a deadline."""
        place = self.state.places.get(number)
        if place is not None:
            return self.items.item_name(place)
        window = self.state.deadlines.get(number)
        return f"{window.step}.{window.fact}" if window is not None else ""

    def question(self, name: int | str) -> int | None:
        """Return the number of the open question of a step, or of one item as named by ``locate``."""
        if isinstance(name, int):
            return name
        state = self.state
        places = {number: self.locate(number) for number in state.asks}
        places = {number: place for number, place in places.items() if name in (place, state.places[number].step)}
        if not places and not state.over and self._was_asked(name):
            raise questions.already_decided(state, name)
        return questions.find_open_question(state, name, places)

    def _was_asked(self, name: str) -> bool:
        """Return whether a step, or this item of its fan-out, has asked a question or was skipped."""
        step, _, item = name.partition("[")
        run, plan = self.state.steps.get(step), self.items.plan
        if run is None or plan is None or not isinstance(plan.steps[step].way, AskWay):
            return False
        index = int(item[:-1]) if item[:-1].isdecimal() else 0
        return index < run.index_next

    def set_ended(self, command: c.SetResult) -> Sequence[e.AnyEvent]:
        raise by_hand.nothing_open(self.state, command.place)

    def result_error(self, number: int, output: Raw, env: Env) -> str | None:
        return task_results.result_error(self.items, self.program, number, bytes(output), env)

    def needs_log(self, command: c.PatchRun | c.RetryRun) -> bool:
        return isinstance(command, c.PatchRun)

    def retry(self, command: c.RetryRun, env: Env) -> Sequence[e.AnyEvent]:
        return decide_retry(self.state, self.items.plan, command)

    def judge_patch(self, command: c.PatchRun, env: Env) -> JudgedPatch:
        return judge_patch(self.items, self.program.reader, self.trial(), command, env)

    @property
    def review(self) -> Sequence[str]:
        return self.state.review

    def no_work_at(self, place: str) -> str:
        plan = self.items.plan
        return "" if plan is None or place.partition("[")[0] in plan.steps else f"the plan has no step {place[:60]}"

    def step_at(self, place: str) -> str:
        plan = self.items.plan
        step = plan.steps.get(place.partition("[")[0]) if plan is not None else None
        return step.way.step if step is not None and isinstance(step.way, StepWay) else ""

    def named_places(self) -> Sequence[str]:
        return list(self.items.plan.steps) if self.items.plan is not None else []

    def is_all_at(self, place: str) -> bool:
        raise not_in_graph(self.state, place)

    def cancel_open(self) -> Sequence[e.AnyEvent]:
        """Return no events, because open entries are dropped together with their steps."""
        return ()

    def undo(self, done: Undo, env: Env) -> Sequence[e.AnyEvent]:
        return (undo.schedule_undo(done),)

    def join_undo(self, dropped: list[Undo]) -> None:
        """Drop the steps that are not over. Dropped work is undone first, then completed steps, each newest first."""
        state = self.state
        for step, run in state.steps.items():
            if run.status not in OVER_STEP:
                self.items.drop(run)
                dropped += run.undo
                run.undo = []
                run.status, run.why = "skipped", RUN_OVER
                state.dropped.append(step)
        state.undo.extend(sorted(dropped, key=lambda undo: undo.done))
        self._bound.clear()

    def start_for_child(self, event: e.ChildStarted) -> c.StartRun:
        start = start_for_child(self.state, event)
        place = self.state.places[self.state.seq]
        plan = self.items.plan
        assert plan is not None
        if not isinstance(plan.steps[place.step].way, GoalWay):
            return start
        child_plan = Raw(encode_plan(plan.children[place.step]))
        return c.StartGoal(**{field: getattr(start, field) for field in start.__struct_fields__}, plan=child_plan)

    # --- notifications from the kernel ----------------------------------------------------------------------------

    def opened(self, event: Any) -> None:
        self.items.begin(event)

    def settled(self, ended: Ended) -> None:
        if ended.how == "timer":
            self.items.retry_due(ended.number)
        else:
            self.items.settled(ended)

    def retry_later(self, number: int, due: int) -> None:
        self.items.park(number, due)

    # --- events ---------------------------------------------------------------------------------------------------

    def _evolve_planned(self, event: e.GoalPlanned) -> None:
        state = self.state
        state.plan = event.plan
        plan = decode_plan(event.plan)
        state.steps = {step: StepRun() for step in plan.steps}
        self._take_given(plan)

    def _take_given(self, plan: GoalPlan) -> None:
        """Take the facts from the input, before the run begins."""
        state = self.state
        stored = bytes(state.input)
        state.facts = {}
        if not is_ref(stored):
            given = given_values(unseal(stored))
            state.facts = {name: [Value(Raw(seal(raw)))] for name, raw in given.items()}
        shape = self._renew_shape(plan)
        state.begun = not is_ref(stored) and shape.matched.isdisjoint(state.facts)
        if shape.simple is not None and state.begun and shape.simple.provided.isdisjoint(state.facts):
            self.stay_simple()

    def _evolve_forked(self, event: e.RunForked) -> None:
        """Forget the undos of steps, and items whose tasks were left to the original."""
        state = self.state
        for run in state.steps.values():
            run.undo = []
            run.open = {index: number for index, number in run.open.items() if self._is_open(number)}
        state.places = {number: place for number, place in state.places.items() if self._is_open(number)}
        if self.items.shape is not None:
            self.items.counted = None

    def _is_open(self, number: int) -> bool:
        state = self.state
        return any(number in table for table in (state.tasks, state.parked, state.asks, state.children))

    def _evolve_edited(self, event: e.RunEdited) -> None:
        if bytes(event.input):
            self._take_given(decode_plan(self.state.plan))

    def _evolve_facts_given(self, event: e.FactsGiven) -> None:
        state = self.state
        values = event.values or {name: found[0].value for name, found in state.facts.items()}
        state.facts = {
            name: [Value(value, matched=event.matched.get(name, []), broken=event.broken.get(name, {}))]
            for name, value in values.items()
        }
        state.begun = True
        self._renew_shape(decode_plan(state.plan))

    def _renew_shape(self, plan: GoalPlan) -> PlanShape:
        shape = self.items.shape = shape_of_plan(plan)
        self.items.counted = None
        return shape

    def _evolve_over(self, event: e.RunCompleted | e.RunFailedEvent | e.RunCancelledEvent) -> None:
        self.state.deadlines, self.state.places = {}, {}
        if self.items.counted is not None:
            self.items.counted.break_cycles()

    def _evolve_retried(self, event: e.RunRetried) -> None:
        state = self.state
        state.dropped = []
        plan = decode_plan(state.plan)
        note_read(state, plan)
        for step in event.steps:
            reopen(state, step)
        self._renew_shape(plan)

    # --- patches --------------------------------------------------------------------------------------------------

    def trial(self) -> Kernel:
        """Return a copy of the run, to try something on."""
        state = copy_state(self.state)
        state.asked, state.reviews = {}, {}  # or the trial would try them
        return Kernel(state, GoalStyle(TrialGoals(self.program), state))

    def from_the_beginning(self) -> Kernel:
        """Return the run before its first event. It keeps the outputs of every step that completes."""
        state = GoalState(uid=self.state.uid)
        style = GoalStyle(self.program, state)
        style.recalled = {}
        return Kernel(state, style)

    def _evolve_patched(self, event: e.RunPatched) -> None:
        assert event.goal is not None
        patches.evolve_patched(self.state, event)
        self.apply_change(event.goal)

    def apply_change(self, change: e.GoalChange) -> None:
        """Apply the changes of a patch, and count the needs of the new plan."""
        self._renew_shape(apply_change(self.items, change))
        self._bound.clear()
        if not self.state.over:
            assert self.items.flow is not None
            close_decided_windows(self.items, self.items.flow)

    def _step_node(self, step: str) -> StepNode:
        assert self.items.flow is not None
        return self.items.flow.steps[step]

    def _evolve_step_started(self, event: e.StepStarted) -> None:
        if self._starting == (event.step, self.state.seq):
            self.begin_step(event, None)
            self.stay_simple()
        else:
            self.begin_step(event, self.items.flow)

    def begin_step(self, event: e.StepStarted, flow: NeedCounts | None) -> None:
        """Start a step. If ``flow`` is None, the run is simple and nothing is counted."""
        state = self.state
        run = state.steps[event.step]
        run.status = "active"
        run.inputs = assemble_inputs(event.inputs, event.facts, state.facts)
        run.items = run.left = event.work_items
        if run.fan_out != event.fan_out:
            run.fan_out = event.fan_out
        if run.windows:
            for fact in list(run.windows):
                self.items.close_window(run, fact)
        if flow is not None:
            flow.step_started(flow.steps[event.step], pumped=event.task is not None)
            self._close_settled()
        if event.task is not None:
            tasks.evolve_scheduled(state, event.task, run.inputs)
            self.items.begin(event.task)

    def _evolve_step_completed(self, event: e.StepCompleted) -> None:
        self.complete(event, self.items.flow)

    def complete(self, event: e.StepCompleted, flow: NeedCounts | None) -> None:
        """Complete a step. If ``flow`` is None, the run is simple and nothing is counted."""
        state = self.state
        run = state.steps[event.step]
        outputs = step_outputs(event, run.results[0] if event.takes else e.NULL)
        run.gave = sorted(outputs) if len(outputs) > 1 else list(outputs)
        if self.recalled is not None:
            self.recalled[event.step] = e.RecalledStep(outputs, dict(run.results))
        assert self.items.shape is not None
        if event.step in self.items.shape.goals:
            run.outputs = outputs
        else:
            run.results = {}
        run.inputs = e.NULL
        if run.ended:
            run.ended = []
        if flow is None:
            run.status = "completed"
            for fact, raw in outputs.items():
                state.facts[fact] = [Value(raw, event.step)]
            return
        given: dict[str, Value] = {}
        for fact, raw in outputs.items():
            if fact not in event.unread:
                value = Value(raw, event.step, event.matched.get(fact, []), event.broken.get(fact, {}))
                state.facts.setdefault(fact, []).append(value)
                given[fact] = value
        state.undo.extend(run.undo)
        self._mark_step_ended(run, event.step, "completed")
        flow.step_over(flow.steps[event.step], given)
        self._close_settled()

    def _evolve_step_failed(self, event: e.StepFailedEvent) -> None:
        node = self._step_node(event.step)
        run = node.run
        run.why = event.failure.message
        run.failure = event.failure
        if event.failure.code == "input_lost":
            run.lost = event.unsatisfied[0]
        bad = event.failure.attributes.get(ITEM) if event.failure.code == BAD_OUTPUT else None
        if isinstance(bad, int) and run.results.pop(bad, None) is not None:
            run.ended.append(bad)
        self._undo_items(run)
        self._end_step(node, "failed")

    def _evolve_step_skipped(self, event: e.StepSkipped) -> None:
        node = self._step_node(event.step)
        node.run.why = event.reason
        self._undo_items(node.run)
        self._end_step(node, "skipped")

    def _undo_items(self, run: StepRun) -> None:
        """Undo the items of a step, once those in progress have ended."""
        self.items.drop(run)
        undo.add_reversal(self.state, run.open.values(), run.undo)

    def _end_step(self, node: StepNode, status: Any) -> None:
        self._mark_step_ended(node.run, node.id, status)
        assert self.items.counted is not None
        self.items.counted.step_over(node)
        self._close_settled()

    def _mark_step_ended(self, run: StepRun, step: str, status: Any) -> None:
        run.status = status
        run.undo, run.due = [], []
        assert self.items.counted is not None
        self.items.counted.checked.pop(step, None)
        self._bound.pop(step, None)

    def _evolve_deadline_set(self, event: e.DeadlineSet) -> None:
        state = self.state
        state.timers[state.seq] = event.due
        state.deadlines[state.seq] = Window(event.step, event.name)
        state.steps[event.step].windows[event.name] = state.seq

    def _evolve_deadline_passed(self, event: e.DeadlinePassed) -> None:
        assert self.items.flow is not None
        node = self._step_node(event.step)
        need = next(need for need in node.needs if need.fact.name == event.name)
        self.items.flow.freeze(need, len(self.state.facts.get(event.name, ())))
        self.items.close_window(node.run, event.name)
        self.items.flow.propagate()
        self._close_settled()

    def _close_settled(self) -> None:
        """Stop the deadlines of optional needs that have now been decided."""
        flow = self.items.counted
        if flow is not None and flow.settled_windows:
            for run, fact in flow.settled_windows:
                self.items.close_window(run, fact)
            flow.settled_windows = []

    def _evolve_work_skipped(self, event: e.WorkSkipped) -> None:
        self.items.skip(event)

    def _evolve_work_resumed(self, event: e.WorkResumed) -> None:
        self.items.resume(event)

    def _evolve_work_recalled(self, event: e.WorkRecalled) -> None:
        """Change nothing. The event only records which run the result in the following event came from."""

    evolve: ClassVar[EvolveRows] = with_style_rows(
        {
            e.RunCompleted: _evolve_over,
            e.RunFailedEvent: _evolve_over,
            e.RunCancelledEvent: _evolve_over,
            e.RunRetried: _evolve_retried,
            e.RunPatched: _evolve_patched,
            e.GoalPlanned: _evolve_planned,
            e.FactsGiven: _evolve_facts_given,
            e.StepStarted: _evolve_step_started,
            e.StepCompleted: _evolve_step_completed,
            e.StepFailedEvent: _evolve_step_failed,
            e.StepSkipped: _evolve_step_skipped,
            e.DeadlineSet: _evolve_deadline_set,
            e.DeadlinePassed: _evolve_deadline_passed,
            e.WorkSkipped: _evolve_work_skipped,
            e.WorkResumed: _evolve_work_resumed,
            e.WorkRecalled: _evolve_work_recalled,
            e.RunForked: _evolve_forked,
            e.RunEdited: _evolve_edited,
        }
    )

    decide: ClassVar[DecideRows] = {
        **DECIDE,
        **DECIDE_ANSWERS,
        c.StartGoal: DECIDE[c.StartRun],
        c.RecallWork: task_results.decide_memo_hit,
        c.EditRun: lambda run, command, env: edits.decide_edit(run.style.items.plan, run.state, command, env),
    }
