"""Waiting for time and messages. A wait is an event; what ends it is an event; nothing is asked twice.

Messages belong to the run as soon as its log has them. A wait takes the oldest that fit, in order of arrival, and a
message is taken when that is recorded. While a wait is open nothing that it would take lies in the buffer.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.core import questions
from weft.core.commands import DeliverMessage, FireTimer
from weft.core.decider import Env
from weft.core.events import (
    AnyEvent,
    MessageAnswered,
    MessageReceived,
    MessagesTaken,
    RunTimedOut,
    TaskFailed,
    TimerFired,
    WaitTimedOut,
)
from weft.core.ids import CANCEL, EntryId
from weft.core.state import Message, State, Task
from weft.errors import Failure, Refused, RunFinished


def decide_message(state: State, command: DeliverMessage) -> Sequence[AnyEvent]:
    """The message is the run's; if somebody waits for it, it is taken at once."""
    if state.over:
        raise finished(state, f'the message "{command.name}" was not delivered')
    received = MessageReceived(
        id=command.id, name=command.name, body=command.body, sender=command.sender, answer=command.answer
    )
    for number, wait in state.waits.items():
        if not wait.names or command.name in wait.names:
            taken = MessagesTaken(wait=EntryId(number), ids=[command.id])
            if command.answer and not wait.answer:
                return (received, taken, MessageAnswered(message=command.id))
            return (received, taken)
    return (received,)


def decide_taken(number: EntryId, found: Sequence[Message], *, answer: bool) -> Sequence[AnyEvent]:
    """Take these messages out of the buffer. Unless the code will answer them, senders who wait get null."""
    taken = MessagesTaken(wait=number, ids=[message.id for message in found])
    if answer:
        return (taken,)
    return (taken, *(MessageAnswered(message=message.id) for message in found if message.answer))


def refusal(state: State, message: str, error: str) -> Sequence[AnyEvent]:
    """Tell a sender who waits for an answer that the message did not fit."""
    return (MessageAnswered(message=message, error=error),) if message in state.requests else ()


def waiting_messages(state: State, names: Sequence[str], most: int) -> list[Message]:
    """The oldest buffered messages of these names (none given: of any), at most that many."""
    pools = [state.messages[name] for name in (names or state.messages) if name in state.messages]
    if len(pools) == 1:
        return pools[0][:most]
    return sorted((message for pool in pools for message in pool[:most]), key=lambda message: message.n)[:most]


def evolve_message(state: State, event: MessageReceived, at: int) -> None:
    """Into the buffer, at the end."""
    state.arrived += 1
    message = Message(
        n=state.arrived,
        id=event.id,
        name=event.name,
        at=at,
        body=event.body,
        sender=event.sender,
        answer=event.answer,
    )
    state.messages.setdefault(event.name, []).append(message)
    if event.answer:
        state.requests[event.id] = at


def take_messages(state: State, ids: Sequence[str], names: Sequence[str]) -> list[Message]:
    """Out of the buffer: those with these ids, which stand at the heads of their queues."""
    taken = waiting_messages(state, names, len(ids))
    for message in taken:
        pool = state.messages[message.name]
        pool.remove(message)
        if not pool:
            del state.messages[message.name]
    return taken


def decide_timer(state: State, command: FireTimer, env: Env) -> Sequence[AnyEvent]:
    """A time has come. Too early, or for something that has ended: nothing."""
    number = command.entry
    if number == 0:
        due_run = (
            state.due and env.now >= state.due and not state.timed_out and state.cancelled is None and not state.ended
        )
        return (RunTimedOut(),) if due_run else ()
    if number < 0:
        return _task_due(state, EntryId(-number), env.now)
    if (due := state.timers.get(number)) is not None:
        return (TimerFired(timer=number),) if env.now >= due else ()
    if (wait := state.waits.get(number)) is not None:
        return (WaitTimedOut(wait=number),) if wait.due and env.now >= wait.due else ()
    if (ask := state.asks.get(number)) is not None:
        return questions.decide_due(number, ask, env.now)
    if (child := state.children.get(number)) is not None and child.due and not child.cancelled and env.now >= child.due:
        return (WaitTimedOut(wait=number, child=child.uid),)
    return ()


def task_due(task: Task) -> int:
    """When a task must have ended, whatever its attempts say (0: never)."""
    return task.since + task.policy.deadline_ms if task.policy.deadline_ms and not task.draining else 0


def _task_due(state: State, number: EntryId, now: int) -> Sequence[AnyEvent]:
    task = state.tasks.get(number)
    if task is None or not task_due(task) or now < task_due(task):
        return ()
    return (deadline_passed(number, task),)


def deadline_passed(number: EntryId, task: Task) -> TaskFailed:
    """The end of a task whose time is up."""
    unknown = task.policy.effect == "irreversible"
    failure = Failure(
        type="OutcomeUnknown" if unknown else "deadline",
        message=f"{task.step} did not end within {task.policy.deadline_ms} ms, all its attempts together",
        code="step.outcome_unknown" if unknown else "deadline",
        step=task.step,
        attempts=task.attempt,
    )
    return TaskFailed(task=number, failure=failure, attempt=task.attempt)


def due_of(state: State, number: int) -> int:
    """The time that something open waits for (0: none); number 0 is the run's own deadline."""
    if number == CANCEL:
        over = state.timed_out or state.cancelled is not None or state.ended
        return 0 if over else state.due
    if number < 0:
        task = state.tasks.get(-number)
        return task_due(task) if task is not None else 0
    if number in state.timers:
        return state.timers[number]
    child = state.children.get(number)
    if child is not None and child.cancelled:
        return 0
    question = state.asks.get(number)
    if question is not None:
        return questions.due_of(question)
    item = state.waits.get(number) or child
    return item.due if item is not None else 0


def finished(state: State, consequence: str) -> RunFinished:
    """The refusal of a command to a run that is over."""
    return RunFinished(f"{state.run_id} is {state.status}; {consequence}.", hint="", run_id=state.run_id)


def refuse_unless(allowed: bool, state: State, wish: str) -> None:  # noqa: FBT001 - reads as a sentence at its callers
    """Reject what the run's status does not allow."""
    if not allowed:
        hint = f"When its code is corrected: weft resume {state.run_id}" if state.status == "held" else ""
        raise Refused(f"{state.run_id} is {state.status}, so it cannot be {wish}.", hint=hint)
