"""The decider of goal runs: facts enter by commands, and all that follows from them by `settle`.

``decide`` records what came from outside and, where an item fails for good, that its step has. ``follow`` works out
everything else, one thing at a time; only ``follow`` may ask the shell for something (``MissingInputs``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import msgspec

from weft.core import commands as c
from weft.core import events as e
from weft.core.effects import AnyEffect, ArmTimer, DisarmTimer, EndRun, OutgoingMail, PerformTask, StopTask
from weft.core.goal import answers
from weft.core.goal.binding import Bound
from weft.core.goal.definitions import AskWay, GoalWay, StepDef
from weft.core.goal.fold import Fold
from weft.core.goal.plan import Plan, decode_plan, encode_plan, refuse_incomplete
from weft.core.goal.reading import GoalProgram
from weft.core.goal.reopening import decide_retry
from weft.core.goal.settle import begin, given_values, misfit_of_given, next_events
from weft.core.goal.starting import Turn
from weft.core.goal.state import GoalState, encode_state, restore_state
from weft.core.ids import CANCEL, EntryId
from weft.core.run import lifecycle, messages, questions, statuses, tasks, timers
from weft.core.run.env import Env
from weft.core.run.statuses import unknown_command
from weft.core.values import is_ref, parse_ref, unseal
from weft.errors import BadPlan, BadValue, Failure, UsageError


class GoalMachine:
    """One goal run."""

    def __init__(self, program: GoalProgram, state: GoalState) -> None:
        self.program = program
        self.state = state
        self.fold = Fold(state)
        self._bound: dict[str, Bound] = {}
        self._turn: Turn | None = None

    @classmethod
    def restore(cls, program: GoalProgram, snapshot: bytes) -> Self:
        """A run from a snapshot of this fold."""
        return cls(program, restore_state(snapshot))

    @property
    def plan(self) -> Plan | None:
        return self.fold.flow.plan if self.fold.flow is not None else None

    def snapshot(self) -> bytes:
        return encode_state(self.state)

    # --- deciding -------------------------------------------------------------------------------------------------

    def decide(self, command: c.AnyCommand, env: Env) -> Sequence[e.AnyEvent]:
        decide = _DECIDE.get(type(command))
        if decide is None:
            raise unknown_command(self.state.run_id, "goal", command)
        return decide(self, command, env)

    def follow(self, env: Env) -> Sequence[e.AnyEvent]:
        """The next thing that must happen by itself. Raises MissingInputs."""
        state, flow = self.state, self.fold.flow
        if flow is None or state.over or state.status in ("paused", "held"):
            return ()
        if state.ended:
            return () if state.parked else lifecycle.follow_for_good(state)
        turn = self._turn
        if turn is None or turn.flow is not flow:
            turn = self._turn = Turn(self.program, flow, env, self._bound)
        turn.env = env
        return next_events(turn) if state.begun else begin(turn)

    # --- evolving -------------------------------------------------------------------------------------------------

    def evolve(self, event: e.AnyEvent, *, at: int) -> None:
        self.fold.evolve(event, at)
        if self._bound and isinstance(event, e.StepCompleted | e.StepFailed | e.StepSkipped):
            self._bound.pop(event.step, None)
        elif self._bound and isinstance(event, e.RunEnding):
            self._bound.clear()

    # --- the world ------------------------------------------------------------------------------------------------

    def effects(self, event: e.AnyEvent) -> Sequence[AnyEffect]:
        make = _EFFECTS.get(type(event))
        found = () if make is None else make(self, event)
        if not self.state.gone:
            return found
        return [*(stop for n in self.state.gone for stop in (StopTask(EntryId(n)), DisarmTimer(EntryId(n)))), *found]

    def mail(self, event: e.AnyEvent) -> Sequence[OutgoingMail]:
        make = _MAIL.get(type(event))
        letters = () if make is None else make(self, event)
        if not self.state.gone_children:
            return letters
        return [*letters, *(self._stop(uid) for uid in self.state.gone_children)]

    def _stop(self, uid: str) -> OutgoingMail:
        return OutgoingMail(to=uid, command=c.CancelRun(reason=f"{self.state.run_id} no longer waits for it"))

    def outstanding(self) -> Sequence[AnyEffect]:
        state = self.state
        if state.over:
            return ()
        found: list[AnyEffect] = [] if state.status == "paused" else [self.perform(number) for number in state.tasks]
        found += [ArmTimer(EntryId(number), due) for number, due in state.timers.items()]
        found += [timer for number, ask in state.asks.items() for timer in questions.armed(number, ask)]
        found += [
            ArmTimer(EntryId(n), child.due, mailed=True)
            for n, child in state.children.items()
            if child.due and not child.cancelled
        ]
        if timers.due_of(state, CANCEL):
            found.append(ArmTimer(CANCEL, state.due))
        return found

    def due_of(self, number: int) -> int:
        return timers.due_of(self.state, number)

    def perform(self, number: int) -> PerformTask:
        return tasks.perform(self.state, number, self.state.tasks[number], self.location(number))

    def definition(self, number: int) -> StepDef | None:
        """What an open task is an item of; None for an undo."""
        place = self.state.places.get(number)
        plan = self.plan
        return plan.steps.get(place.step) if place is not None and plan is not None else None

    def undone(self, number: int) -> StepDef | None:
        """What an open undo takes back."""
        task = self.state.tasks.get(number)
        plan = self.plan
        if task is None or not task.undo_of or plan is None:
            return None
        return plan.steps.get(task.undoes.partition("[")[0])

    def location(self, number: int) -> str:
        """Where something stands: its step, with the item of a fan-out; an undo stands where its task did."""
        place = self.state.places.get(number)
        if place is not None:
            return self.fold.shown(place)
        window = self.state.deadlines.get(number)
        if window is not None:
            return f"{window.step}.{window.fact}"
        task = self.state.tasks.get(number)
        if task is None:
            return f"!{number}"
        return f"{task.undoes or f'!{task.undo_of}'}!undo" if task.undo_of else task.place or f"!{number}"


# --- what comes from outside -------------------------------------------------------------------------------------


def _decide_start(machine: GoalMachine, command: c.StartGoal, env: Env) -> Sequence[e.AnyEvent]:
    state = machine.state
    if not bytes(command.plan) and not state.started and not command.refused:
        return _decide_plain_start(machine, command, env)
    command = msgspec.structs.replace(command, style="goal")
    started = lifecycle.decide_start(state, command, env.now)
    if not started or command.refused:
        return started
    try:
        _refuse_start(command, env)
    except UsageError as error:
        if command.parent is None:
            raise
        # A start that is refused makes a child that failed, so that its parent hears of it.
        failure = Failure(type=type(error).__name__, message=str(error), code=error.code)
        return (*started, e.RunFailed(failure=lifecycle.never_began(failure, command.run_id), never_begun=True))
    return (*started, e.GoalPlanned(plan=command.plan))


def _refuse_start(command: c.StartGoal, env: Env) -> None:
    try:
        plan = decode_plan(command.plan)
    except msgspec.DecodeError as error:
        raise BadPlan(f"The plan cannot be read: {error}.", code="goal.bad_plan") from error
    refuse_incomplete(plan)
    stored = bytes(command.input)
    body = env.blob(parse_ref(stored).digest) if is_ref(stored) else unseal(stored)
    if body is None:
        return  # it is looked into when it is there, before anything begins
    given = given_values(body)
    lacking = [name for name in plan.given if name not in given]
    if lacking:
        raise BadPlan(
            f"The plan was made with {', '.join(lacking)} given, and the run is not.",
            hint="Plan again from what is given.",
            code="goal.missing",
        )
    wrong = misfit_of_given(plan, given, env)
    if wrong is not None:
        raise BadValue(f"{wrong[0].upper()}{wrong[1:]}.", code="value.wrong_type")


def _decide_plain_start(machine: GoalMachine, command: c.StartRun, env: Env) -> Sequence[e.AnyEvent]:
    """A start that was made where the goals are not known: it is planned here."""
    if machine.state.started or command.refused:
        return lifecycle.decide_start(machine.state, command, env.now)
    stored = bytes(command.input)
    body = env.blob(parse_ref(stored).digest) if is_ref(stored) else unseal(stored)
    goals = command.goals if isinstance(command, c.StartGoal) else ()
    plan = machine.program.plan(list(given_values(body)), goals) if body is not None else None
    if plan is None:
        raise BadPlan(
            f"{command.run_id} is a goal run and comes without a plan.",
            hint="Start it with a plan.",
            code="goal.no_goal",
        )
    fields = {field: getattr(command, field) for field in c.StartRun.__struct_fields__}
    return _decide_start(machine, c.StartGoal(**fields, plan=msgspec.Raw(encode_plan(plan))), env)


def _decide_cancel(machine: GoalMachine, command: c.CancelRun, _: Env) -> Sequence[e.AnyEvent]:
    state = machine.state
    if state.over:
        raise statuses.finished(state, "there is nothing to cancel")
    if state.ended or state.cancelled is not None:
        return ()
    return (e.CancelRequested(reason=command.reason), e.RunEnding())


def _decide_ask(machine: GoalMachine, command: c.DecideAsk, env: Env) -> Sequence[e.AnyEvent]:
    number = command.ask if isinstance(command.ask, int) else _ask_named(machine, command.ask)
    return questions.decide_ask(machine.state, command, number, env)


def _ask_named(machine: GoalMachine, name: str) -> int | None:
    """The question of a step, or of one item of its fan-out as ``location`` gives it."""
    state = machine.state
    places = {number: machine.location(number) for number in state.asks}
    places = {n: place for n, place in places.items() if name in (place, state.places[n].step)}
    if not places and not state.over and _was_asked(machine, name):
        raise questions.already_decided(state, name)
    return questions.find_open(state, name, places)


def _was_asked(machine: GoalMachine, name: str) -> bool:
    """Whether a step, or this item of its fan-out, has asked a question."""
    step, _, item = name.partition("[")
    run, flow = machine.state.steps.get(step), machine.fold.flow
    if run is None or flow is None or not isinstance(flow.steps[step].definition.way, AskWay):
        return False
    index = int(item[:-1]) if item[:-1].isdecimal() else 0
    return index < run.index_next


def _decide_hold(machine: GoalMachine, command: c.HoldRun, _: Env) -> Sequence[e.AnyEvent]:
    if machine.state.over or machine.state.status == "held":
        return ()
    return (e.RunHeld(code=command.code, message=command.message, location=command.location),)


_Decide = Callable[[GoalMachine, Any, Env], Sequence[e.AnyEvent]]
_DECIDE: dict[type, _Decide] = {
    c.StartGoal: _decide_start,
    c.StartRun: _decide_plain_start,
    c.ReportTaskSucceeded: lambda m, command, env: answers.succeeded(m.fold, m.program, command, env),
    c.ReportTaskFailed: lambda m, command, env: answers.failed(m.fold, command, env),
    c.ReportTaskLost: lambda m, command, env: answers.lost(m.fold, command, env),
    c.ReportWorkAccepted: lambda m, command, env: answers.accepted(m.fold, command, env),
    c.AnswerWork: lambda m, command, env: answers.answered(m.fold, m.program, command, env),
    c.RecallWork: lambda m, command, env: answers.recalled(m.fold, m.program, command, env),
    c.ReportChildEnded: lambda m, command, env: answers.child_ended(m.fold, m.program, command, env),
    c.FireTimer: lambda m, command, env: answers.timer(m.fold, command, env),
    c.DeliverMessage: lambda m, command, _: messages.decide_message(m.state, command),
    c.DecideAsk: _decide_ask,
    c.NoteTold: lambda m, command, _: questions.decide_told(m.state, command),
    c.CancelRun: _decide_cancel,
    c.PauseRun: lambda m, _, __: lifecycle.decide_pause(m.state),
    c.ResumeRun: lambda m, _, __: lifecycle.decide_resume(m.state),
    c.HoldRun: _decide_hold,
    c.RetryRun: lambda m, command, _: decide_retry(m.state, m.plan, command),
}


# --- what events ask of the world --------------------------------------------------------------------------------


def _again(machine: GoalMachine, event: e.TaskFailed | e.TaskLost) -> Sequence[AnyEffect]:
    """A retry of an item is a time to come, after which it takes a slot again; everything else is handed out as is."""
    state = machine.state
    if event.task in state.parked:
        return (ArmTimer(event.task, state.timers[event.task]),)
    if event.task not in state.tasks or state.status == "paused":
        return ()
    return (machine.perform(event.task),)


def _armed(machine: GoalMachine, event: e.DeadlineSet | e.ChildStarted) -> Sequence[AnyEffect]:
    if not event.due:
        return ()
    return (ArmTimer(EntryId(machine.state.seq), event.due, mailed=not isinstance(event, e.DeadlineSet)),)


_EFFECTS: dict[type, Callable[[GoalMachine, Any], Sequence[AnyEffect]]] = {
    e.RunStarted: lambda _, event: (ArmTimer(CANCEL, event.due),) if event.due else (),
    e.TaskScheduled: lambda m, _: (m.perform(m.state.seq),),
    e.UndoScheduled: lambda m, _: (m.perform(m.state.seq),),
    e.WorkResumed: lambda m, event: (m.perform(event.task),),
    e.WorkAccepted: lambda _, event: (ArmTimer(event.task, event.due),),
    e.TaskSucceeded: tasks.stop_later,
    e.TaskFailed: _again,
    e.TaskLost: _again,
    e.DeadlineSet: _armed,
    e.AskOpened: lambda m, _: questions.armed_new(m.state),
    e.ChildStarted: _armed,
    e.AskAnswered: lambda m, event: questions.armed_again(m.state, event),
    e.AskEscalated: lambda m, event: questions.armed_again(m.state, event),
    e.AskReminded: lambda m, event: questions.armed_again(m.state, event),
    e.ChildEnded: lambda _, event: (DisarmTimer(event.child),),
    e.RunResumed: lambda m, _: m.outstanding(),
    e.RunRetried: lambda m, _: (DisarmTimer(CANCEL), *m.outstanding()),
    # A pause may end like this too: what must not be interrupted is handed out.
    e.CancelRequested: lambda m, _: m.outstanding(),
    e.RunCompleted: lambda _, __: (EndRun(),),
    e.RunFailed: lambda _, __: (EndRun(),),
    e.RunCancelled: lambda _, __: (EndRun(),),
}


def _start_child(machine: GoalMachine, event: e.ChildStarted) -> Sequence[OutgoingMail]:
    start = lifecycle.child_start(machine.state, event)
    place = machine.state.places[machine.state.seq]
    plan = machine.plan
    assert plan is not None
    if isinstance(plan.steps[place.step].way, GoalWay):
        inside = msgspec.Raw(encode_plan(plan.children[place.step]))
        start = c.StartGoal(**{field: getattr(start, field) for field in start.__struct_fields__}, plan=inside)
    return (OutgoingMail(to=event.uid, command=start, create=True),)


def _stop_child(machine: GoalMachine, event: e.WaitTimedOut) -> Sequence[OutgoingMail]:
    return (machine._stop(event.child),) if event.child else ()  # noqa: SLF001


def _tell_parent(machine: GoalMachine, _: e.AnyEvent) -> Sequence[OutgoingMail]:
    report = lifecycle.parent_report(machine.state)
    if report is None or machine.state.parent is None:
        return ()
    return (OutgoingMail(to=machine.state.parent.uid, command=report),)


_MAIL: dict[type, Callable[[GoalMachine, Any], Sequence[OutgoingMail]]] = {
    e.ChildStarted: _start_child,
    e.WaitTimedOut: _stop_child,
    e.RunCompleted: _tell_parent,
    e.RunFailed: _tell_parent,
    e.RunCancelled: _tell_parent,
}
