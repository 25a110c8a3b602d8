"""What a run waits for: steps, retries, time, answers, messages, people, child runs, optional facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from weft.core.decider import Machine
from weft.core.goal.machine import GoalMachine
from weft.core.graph.tokens import GraphState
from weft.core.run.questions import asked
from weft.core.run.state import Task
from weft.observe.diagnosis import PendingWait, WaitKind, brief, time_of


def waits_of(machine: Machine, now: int, idle: Mapping[int, str] | None = None) -> list[PendingWait]:
    """Return what the run waits for. ``idle``: tasks that nobody performs, with the queue that they wait in."""
    return [
        *_tasks(machine, now, idle or {}),
        *(_of_goal(machine, now) if isinstance(machine, GoalMachine) else _timers(machine)),
        *_messages(machine),
        *_questions(machine),
        *_children(machine),
    ]


def _tasks(machine: Machine, now: int, idle: Mapping[int, str]) -> Iterator[PendingWait]:
    for number, task in machine.state.tasks.items():
        if task.due > now and task.last is not None:
            yield _of_task(machine, "retry", number, task, task.due)
            continue
        wait = _of_task(machine, "step", number, task)
        yield replace(wait, is_performed=False, queue=idle[number]) if number in idle else wait


def _of_task(machine: Machine, kind: WaitKind, number: int, task: Task, due: int = 0) -> PendingWait:
    return PendingWait(
        kind=kind,
        place=machine.location(number),
        number=number,
        since=time_of(task.since),
        due=time_of(due) if due else None,
        step=task.step,
        attempt=task.attempt,
        attempts_max=task.policy.attempts_max,
        timeout_ms=task.policy.timeout_ms,
        failure=brief(task.last) if task.last is not None else None,
    )


def _timers(machine: Machine) -> Iterator[PendingWait]:
    """Sleeps, and in graphs accepted work whose answer comes later and joins with a time limit."""
    state = machine.state
    parked = state.parked if isinstance(state, GraphState) else {}
    joins = state.deadlines if isinstance(state, GraphState) else {}
    for number, due in state.timers.items():
        place = machine.location(number)
        if number in joins:
            yield PendingWait(kind="join", place=place, number=number, since=time_of(state.at), due=time_of(due))
        elif number in parked:
            yield _of_task(machine, "answer", number, parked[number], due)
        else:
            yield PendingWait(kind="sleep", place=place, number=number, since=time_of(state.at), due=time_of(due))


def _of_goal(machine: GoalMachine, now: int) -> Iterator[PendingWait]:
    """Retries, answers that come later, and optional facts that are given some time."""
    state = machine.state
    for number, task in state.parked.items():
        if number not in state.accepted:
            yield _of_task(machine, "retry", number, task, state.timers.get(number, now))
    for number, due in state.accepted.items():
        yield _of_task(machine, "answer", number, state.parked[number], due)
    for number, window in state.deadlines.items():
        due = state.timers.get(number, state.at)
        yield PendingWait(
            kind="fact",
            place=window.step,
            number=number,
            since=time_of(state.at),
            due=time_of(due),
            step=window.step,
            fact=window.fact,
        )


def _messages(machine: Machine) -> Iterator[PendingWait]:
    for number, wait in machine.state.waits.items():
        yield PendingWait(
            kind="message",
            place=machine.location(number),
            number=number,
            since=time_of(wait.since),
            due=time_of(wait.due) if wait.due else None,
            names=list(wait.names),
        )


def _questions(machine: Machine) -> Iterator[PendingWait]:
    for number, question in machine.state.asks.items():
        yield PendingWait(
            kind="ask",
            place=machine.location(number),
            number=number,
            since=time_of(question.since),
            due=time_of(question.due) if question.due else None,
            title=question.title,
            asked=asked(question),
        )


def _children(machine: Machine) -> Iterator[PendingWait]:
    for number, child in machine.state.children.items():
        yield PendingWait(
            kind="child",
            place=machine.location(number),
            number=number,
            since=time_of(child.since),
            due=time_of(child.due) if child.due else None,
            run=child.run_id,
            workflow=child.workflow,
        )
