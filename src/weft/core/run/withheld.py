"""Tasks that are held back until it is known whether they may be performed, by the contracts of their effects. Pure.

A task is held back if performing it could repeat an irreversible effect. In a fork it is also held back if the original
may have a result for it. ``follow_withheld`` decides what happens: the known result is used, the task is dispatched,
people are asked, or the run is held. A task that people are asked about is *parked*, with a question that has the same
number. The answer dispatches it, or fails it.

Rules: docs/internals/engine.md#rule-35, docs/internals/engine.md#rule-36.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec
from msgspec import Raw

from weft.core import commands as c
from weft.core import events as e
from weft.core import values
from weft.core.ids import EntryId
from weft.core.run.contracts import Situation, judge_effect
from weft.core.run.env import Env
from weft.core.run.places import is_at
from weft.core.run.state import Fork, OpenTask, Question, State
from weft.core.run.style import AnyRun
from weft.errors import Failure, Refused

WOULD_PERFORM = "fork.would_perform"
REJECTED = "step.rejected"
IN_FORK = "Its effect is irreversible, and it may have been performed before."
SITUATIONS: dict[e.Effects, Situation] = {"perform": "forked", "reuse": "reused", "none": "shadowed"}
_encode = msgspec.json.Encoder().encode


class DecidingRun(AnyRun, Protocol):
    """A run that decides a command itself."""

    def decide(self, command: c.AnyCommand, env: Env) -> Sequence[e.AnyEvent]: ...


def work_key(step: str, digest: str) -> str:
    """Return the key of a step with an input."""
    return f"{step} {digest}"


def hold_back_if_needed(state: State, task: OpenTask, again: e.Repetition | None) -> None:
    """Give the task that was just opened the key of earlier work, and hold it back if its contract needs a decision."""
    if again is None:
        if state.fork is not None:
            hold_back_in_fork(state, state.fork, state.seq, task)
        return
    task.again = again
    if again.n:
        state.renewed[again.place] = max(again.n, state.renewed.get(again.place, 0))
    if again.confirm:
        hold_back(state, state.seq, task)


def hold_back_in_fork(state: State, fork: Fork, number: int, task: OpenTask) -> None:
    """Hold a new task of a fork back if its contract needs a decision."""
    task.digest = values.digest(bytes(task.input))
    key = work_key(task.step, task.digest)
    task.use = fork.uses[key] = fork.uses.get(key, 0) + 1
    if fork.effects == "none":
        task.undo = None
    known: Sequence[e.KnownResult | None] = fork.known.get(key) or (None,)
    if fork.set_results or any(_judge_withheld(fork, task, one) != "perform" for one in known):
        hold_back(state, number, task)


def hold_back(state: State, number: int, task: OpenTask) -> None:
    """Hold a task back, until ``follow_withheld`` decides about it."""
    task.withheld = True
    waiting = [one for one in state.withheld if one in state.tasks and state.tasks[one].withheld and one != number]
    state.withheld = [*waiting, number]


def follow_withheld(run: DecidingRun, env: Env) -> Sequence[e.AnyEvent]:
    """Return the events that decide about the first task that is held back, if there is one."""
    state = run.state
    for number in state.withheld:
        task = state.tasks.get(number)
        if task is not None and task.withheld:
            return _decide_withheld(run, number, task, env)
    return ()


def _decide_withheld(run: DecidingRun, number: int, task: OpenTask, env: Env) -> Sequence[e.AnyEvent]:
    fork, place = run.state.fork, run.location(number)
    if fork is None or (task.again is not None and number > fork.point):
        again = task.again
        return _ask_about_withheld(run.state, number, task, again.confirm if again is not None else "", place)
    for name, value in fork.set_results.items():
        if is_at(place, name):
            return _keep_known_result(run, number, task, value, env)
    known = find_known(fork, task, place)
    match _judge_withheld(fork, task, known):
        case "keep" if known is not None:
            return _keep_known_result(run, number, task, known.output, env)
        case "ask":
            return _ask_about_withheld(run.state, number, task, IN_FORK, place)
        case "hold":
            message = (
                f"{run.state.run_id} has no effects, and {place} would perform {task.step}, for which its original has "
                f"no result. Give it one: weft set {run.state.run_id} {place} --output JSON, then: weft resume "
                f"{run.state.run_id}. {_with_effects(run.state)}"
            )
            return (e.RunHeld(code=WOULD_PERFORM, message=message, location=place),)
    return (e.TaskReleased(task=EntryId(number)),)


def find_known(fork: Fork, task: OpenTask, place: str) -> e.KnownResult | None:
    """Return the result of the original for equal work: at this place, or for the same use of step and input."""
    equal = fork.known.get(work_key(task.step, task.digest), [])
    exact = next((one for one in equal if one.place == place), None)
    return exact or next((one for one in equal if one.use == task.use), None)


def _judge_withheld(fork: Fork, task: OpenTask, known: e.KnownResult | None) -> str:
    """Return what happens to a task. Work that was irreversible when it was performed stays so."""
    effect = "irreversible" if known is not None and known.once else task.policy.effect
    return judge_effect(SITUATIONS[fork.effects], effect, equal=known is not None, has_undo=task.undo is not None)


def _keep_known_result(run: DecidingRun, number: int, task: OpenTask, output: Raw, env: Env) -> Sequence[e.AnyEvent]:
    """End a task with a result that nobody performed here."""
    report = c.ReportTaskSucceeded(EntryId(number), task.attempt, task.delivery, output)
    return [
        msgspec.structs.replace(event, copied=True) if isinstance(event, e.TaskSucceeded) else event
        for event in run.decide(report, env)
    ]


def check_child(state: State, workflow: str) -> None:
    """Refuse a child of a fork without effects. Raises Refused."""
    if state.fork is not None and state.fork.effects == "none":
        text = f"{state.run_id} has no effects, and it would start {workflow}. {_with_effects(state)}"
        raise Refused(text, code=WOULD_PERFORM)


def _with_effects(state: State) -> str:
    """Say how to perform what a fork without effects does not."""
    original = state.forked_from.run if state.forked_from is not None else "RUN"
    return f"To perform such work, fork the original with effects: weft fork {original} --effects perform"


def without_children(run: AnyRun, events: Sequence[e.AnyEvent]) -> Sequence[e.AnyEvent]:
    """Return the events of a fork. One without effects is held instead of starting a child."""
    for event in events:
        if isinstance(event, e.ChildStarted):
            try:
                check_child(run.state, event.workflow)
            except Refused as refused:
                return (e.RunHeld(code=WOULD_PERFORM, message=refused.message, location=event.node),)
    return events


# --- questions ---------------------------------------------------------------------------------------------------


def _ask_about_withheld(state: State, number: int, task: OpenTask, why: str, place: str) -> Sequence[e.AnyEvent]:
    """Ask people whether a task may be performed, unless somebody has approved it beforehand."""
    approved = next((name for name in state.approvals if is_at(place, name)), "")
    if approved or not why:
        return (e.TaskReleased(task=EntryId(number), approved=approved),)
    about: dict[str, object] = {"run": state.run_id, "step": task.step, "place": place}
    if state.forked_from is not None:
        about["original"] = state.forked_from.run
    plain = values.inline_json(bytes(task.input))
    if plain is not None:
        about["input"] = Raw(plain)
    title = f"Perform {task.step} in {state.run_id}? {why}"
    return (e.PerformAsked(task=EntryId(number), title=title, about=Raw(values.seal(_encode(about)))),)


def evolve_perform_asked(state: State, event: e.PerformAsked) -> None:
    """Park a task, with a question that has the same number. The answer dispatches it, or fails it."""
    task = state.parked[event.task] = state.tasks.pop(event.task)
    task.withheld = False
    state.asks[event.task] = Question(title=event.title, since=state.at, about=event.about)
    state.withheld = [number for number in state.withheld if number != event.task]


def evolve_released(state: State, event: e.TaskReleased) -> None:
    """Let a task be dispatched. An approval that was given beforehand is used up."""
    task = state.tasks[event.task]
    task.withheld = False
    task.since = state.at
    state.withheld = [number for number in state.withheld if number != event.task]
    if event.approved:
        state.approvals.remove(event.approved)


def is_unconfirmed(state: State, number: int) -> bool:
    """Return whether people are asked about a task."""
    return number in state.parked and number in state.asks


def decide_confirmed(state: State, answer: e.AskAnswered) -> Sequence[e.AnyEvent]:
    """Return the events of an answer. If a person rejects a task, the task fails."""
    if answer.approved or not answer.decided or not is_unconfirmed(state, answer.ask):
        return (answer,)
    step = state.parked[answer.ask].step
    who = f" by {answer.by}" if answer.by else ""
    reason = f": {answer.reason}" if answer.reason else ""
    failure = Failure(
        type="Rejected", message=f"performing {step} again was rejected{who}{reason}", code=REJECTED, step=step
    )
    return (answer, e.TaskFailed(task=answer.ask, failure=failure))


def evolve_confirmed(state: State, number: int) -> None:
    """Open a task that a person has decided about. Its deadline counts from now."""
    task = state.tasks[number] = state.parked.pop(number)
    task.since = state.at


def drop_unconfirmed(state: State, number: int) -> None:
    """Drop a task that people are asked about, with its question."""
    del state.parked[number], state.asks[number]
