"""How each event changes a code run. Total over every event ever released; no cost grows with the size of the state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from weft.core import events as e
from weft.core.code.locations import readable
from weft.core.code.state import CodeIndex, CodeState, Entry
from weft.core.ids import CANCEL, EntryId
from weft.core.run import lifecycle, messages, questions, tasks, undo
from weft.core.run.state import Child, Held, Task, Wait
from weft.errors import Failure

_encode = msgspec.json.Encoder().encode
TIMED_OUT = "wait.timed_out"
_SILENT = ("now", "random", "uuid", "version", "map", "set", "answer")
"""What is recorded and done at once: the code is not told of it, so it is no fact."""


def _open(state: CodeState, index: CodeIndex, event: Any, kind: str) -> Entry:
    """A new entry at the event's place; its names join the registry."""
    for name in event.add:
        index.name_ids[name] = len(state.names)
        state.names.append(name)
    entry = Entry(id=EntryId(state.seq), key=readable(event.at, state.names), kind=kind)
    state.entries[state.seq] = entry
    index.add(entry)
    return entry


def _settle(state: CodeState, number: int, output: Raw) -> None:
    entry = state.entries.get(number)
    if entry is not None and entry.status == "open":
        entry.status = "done"
        entry.output = output
        state.facts.append(number)


def _fail(state: CodeState, number: int, failure: Failure) -> None:
    entry = state.entries.get(number)
    if entry is not None and entry.status == "open":
        entry.status = "failed"
        entry.failure = failure
        state.facts.append(number)


def _timed_out(what: str) -> Failure:
    return Failure(type="TimedOut", message=f"{what} did not come in time", code=TIMED_OUT)


def _key(state: CodeState, number: int) -> str:
    entry = state.entries.get(number)
    if entry is not None:
        return entry.key
    task = state.tasks.get(number)
    return task.place if task is not None else ""


# --- life --------------------------------------------------------------------------------------------------------


def _cancel_requested(state: CodeState, _: CodeIndex, event: e.CancelRequested, at: int) -> None:
    state.cancelled = event.reason
    state.cancelled_at = at
    state.held = None
    state.status = "cancelling"
    state.facts.append(CANCEL)


def _run_timed_out(state: CodeState, _: CodeIndex, event: e.RunTimedOut, at: int) -> None:
    state.timed_out = True
    state.facts.append(CANCEL)


def _run_ending(state: CodeState, _: CodeIndex, event: e.RunEnding, at: int) -> None:
    lifecycle.evolve_ended(state, event)


def _completed(state: CodeState, _: CodeIndex, event: e.RunCompleted, at: int) -> None:
    state.output = event.output
    state.status = "completed"
    lifecycle.evolve_over(state)


def _failed(state: CodeState, _: CodeIndex, event: e.RunFailed, at: int) -> None:
    state.failure = event.failure
    state.status = "failed"
    state.ended = True
    lifecycle.evolve_over(state)


def _cancelled(state: CodeState, _: CodeIndex, event: e.RunCancelled, at: int) -> None:
    state.status = "cancelled"
    state.ended = True
    lifecycle.evolve_over(state)


def _paused(state: CodeState, _: CodeIndex, event: e.RunPaused, at: int) -> None:
    state.status = "paused"


def _resumed(state: CodeState, _: CodeIndex, event: e.RunResumed, at: int) -> None:
    state.status = "running" if state.cancelled is None else "cancelling"
    state.held = None


def _held(state: CodeState, _: CodeIndex, event: e.RunHeld, at: int) -> None:
    state.status = "held"
    state.held = Held(code=event.code, message=event.message, location=event.location, since=at)


def _retried(state: CodeState, index: CodeIndex, event: e.RunRetried, at: int) -> None:
    for number in event.dropped:
        entry = state.entries.get(number)
        if entry is not None and entry.kind == "child":
            state.reborn[entry.key] = state.reborn.get(entry.key, 0) + 1
        _drop(state, index, number)
    _make_optional(state, event.dropped)
    state.status = "running"
    state.ended = state.timed_out = False
    state.failure = state.held = state.cancelled = None
    state.facts = [fact for fact in state.facts if fact in state.entries]
    state.dropped = 0
    for place in state.undone:
        state.renewed[place] = state.renewed.get(place, 0) + 1
    state.undone, state.not_undone = [], []
    state.steps_done = sum(1 for entry in state.entries.values() if entry.kind == "step" and entry.status == "done")
    state.retries += 1
    state.due = 0


def _make_optional(state: CodeState, dropped: Sequence[int]) -> None:
    """Mark what was recorded after a dropped entry: the new result may lead the code past it."""
    first = min(dropped, default=state.seq)
    for number, entry in state.entries.items():
        if number > first:
            entry.optional = True


def _attributes(state: CodeState, index: CodeIndex, event: e.AttributesSet, at: int) -> None:
    _open(state, index, event, "set").status = "done"
    for name, value in event.attributes.items():
        if value is None:
            state.attributes.pop(name, None)
        else:
            state.attributes[name] = value


# --- tasks -------------------------------------------------------------------------------------------------------


def _task_scheduled(state: CodeState, index: CodeIndex, event: e.TaskScheduled, at: int) -> None:
    entry = _open(state, index, event, "step")
    entry.digest = event.digest
    entry.optional = event.policy.effect == "pure" or event.early
    state.tasks[state.seq] = Task(
        step=event.step,
        input=event.input,
        since=at,
        policy=event.policy,
        undo=event.undo,
        inline=event.inline,
        early=event.early,
    )


def _task_succeeded(state: CodeState, _: CodeIndex, event: e.TaskSucceeded, at: int) -> None:
    task = tasks.evolve_succeeded(state, event, _key(state, event.task))
    if not task.undo_of:
        if state.ended:
            entry = state.entries.get(event.task)
            if entry is not None and entry.status == "cancelled":
                entry.status = "open"  # it ended after the code did: a retry finds its result
        _settle(state, event.task, event.output)


def _task_failed(state: CodeState, _: CodeIndex, event: e.TaskFailed, at: int) -> None:
    task = tasks.evolve_failed(state, event, _key(state, event.task))
    if task is not None and not task.undo_of:
        _fail(state, event.task, event.failure)


def _task_lost(state: CodeState, _: CodeIndex, event: e.TaskLost, at: int) -> None:
    tasks.evolve_lost(state, event)


def _undo_scheduled(state: CodeState, _: CodeIndex, event: e.UndoScheduled, at: int) -> None:
    tasks.evolve_undo(state, event, at=at)


# --- waits -------------------------------------------------------------------------------------------------------


def _timer_set(state: CodeState, index: CodeIndex, event: e.TimerSet, at: int) -> None:
    _open(state, index, event, "sleep")
    state.timers[state.seq] = event.due


def _timer_fired(state: CodeState, _: CodeIndex, event: e.TimerFired, at: int) -> None:
    state.timers.pop(event.timer, None)
    _settle(state, event.timer, e.NULL)


def _message_received(state: CodeState, _: CodeIndex, event: e.MessageReceived, at: int) -> None:
    messages.evolve_message(state, event, at)


def _message_awaited(state: CodeState, index: CodeIndex, event: e.MessageAwaited, at: int) -> None:
    _open(state, index, event, "receive").due = event.due
    state.waits[state.seq] = Wait(names=event.names, since=at, most=event.most, due=event.due, answer=event.answer)


def _messages_taken(state: CodeState, _: CodeIndex, event: e.MessagesTaken, at: int) -> None:
    wait = state.waits.pop(event.wait)
    taken = messages.take_messages(state, event.ids, wait.names)
    _settle(state, event.wait, Raw(_encode(taken)))


def _message_refused(state: CodeState, _: CodeIndex, event: e.MessageRefused, at: int) -> None:
    entry = state.entries.get(event.wait)
    if entry is not None:
        entry.round = 1


def _message_answered(state: CodeState, index: CodeIndex, event: e.MessageAnswered, at: int) -> None:
    state.requests.pop(event.message, None)
    if event.at:
        _open(state, index, event, "answer").status = "done"


def _wait_timed_out(state: CodeState, _: CodeIndex, event: e.WaitTimedOut, at: int) -> None:
    state.waits.pop(event.wait, None)
    state.asks.pop(event.wait, None)
    child = state.children.get(event.wait)
    if child is not None:
        child.cancelled = True
    _fail(state, event.wait, _timed_out(_key(state, event.wait)))


def _ask_opened(state: CodeState, index: CodeIndex, event: e.AskOpened, at: int) -> None:
    _open(state, index, event, "ask")
    state.asks[state.seq] = questions.opened(event, at)


def _ask_answered(state: CodeState, _: CodeIndex, event: e.AskAnswered, at: int) -> None:
    answer = questions.evolve_answer(state, event, at)
    if answer is not None:
        _settle(state, event.ask, answer)


# --- children, values, races, loops ------------------------------------------------------------------------------


def _child_started(state: CodeState, index: CodeIndex, event: e.ChildStarted, at: int) -> None:
    entry = _open(state, index, event, "child")
    entry.digest = event.digest
    entry.child = event.run_id
    if event.refused is not None:
        _fail(state, state.seq, event.refused)
        return
    state.children[state.seq] = Child(
        uid=event.uid, run_id=event.run_id, workflow=event.workflow, since=at, due=event.due, awaited=event.awaited
    )


def _child_ended(state: CodeState, _: CodeIndex, event: e.ChildEnded, at: int) -> None:
    child = state.children.pop(event.child)
    if event.status == "completed":
        _settle(state, event.child, event.output)
        return
    failure = event.failure or Failure(
        type="RunCancelled", message=f"{child.run_id} was cancelled", code="run.cancelled"
    )
    entry = state.entries.get(event.child)
    if entry is not None and entry.status == "open":
        # How it ended: a child's own failure may look like a wait of ours that timed out.
        entry.output = Raw(_encode(event.status))
    _fail(state, event.child, failure)


def _value_recorded(state: CodeState, index: CodeIndex, event: e.ValueRecorded, at: int) -> None:
    entry = _open(state, index, event, event.of)
    entry.status = "done"
    entry.output = event.value


def _race_decided(state: CodeState, index: CodeIndex, event: e.RaceDecided, at: int) -> None:
    entry = _open(state, index, event, "race")
    _settle(state, entry.id, Raw(_encode(event.winner)))
    _undo_losers(state, index, tuple(f"{entry.key}/{loser}/" for loser in event.losers))
    for loser in event.losers:
        _drop_scope(state, index, f"{entry.key}/{loser}/")


def _undo_losers(state: CodeState, index: CodeIndex, prefixes: tuple[str, ...]) -> None:
    """What the losers of a race have done is undone, once what they have under way has ended."""
    numbers = [number for prefix in prefixes for number in index.below(prefix)]
    if not numbers:
        return
    draining = [number for number in numbers if number in state.tasks and state.tasks[number].draining]
    undo.drop(state, draining, lambda undo: undo.location.startswith(prefixes), since=min(numbers))


def _loop(state: CodeState, index: CodeIndex, event: e.LoopTurned | e.LoopFinished) -> Entry:
    if not event.add:
        number = index.keys.get(readable(event.at, state.names))
        if number is not None:
            return state.entries[number]
    return _open(state, index, event, "loop")


def _loop_turned(state: CodeState, index: CodeIndex, event: e.LoopTurned, at: int) -> None:
    entry = _loop(state, index, event)
    entry.round = event.round
    entry.output = event.state
    past = event.round - event.keep - 1
    if past >= 0:
        _drop_scope(state, index, f"{entry.key}/~{past}/")


def _loop_finished(state: CodeState, index: CodeIndex, event: e.LoopFinished, at: int) -> None:
    entry = _loop(state, index, event)
    _drop_scope(state, index, f"{entry.key}/")
    entry.round = event.rounds
    _settle(state, entry.id, event.output)


def _entry_cancelled(state: CodeState, _: CodeIndex, event: e.EntryCancelled, at: int) -> None:
    place = _key(state, event.entry)
    lifecycle.evolve_cancelled_entry(state, event, place)
    entry = state.entries.get(event.entry)
    if entry is not None and entry.status == "open":
        entry.status = "cancelled"
    task = state.tasks.get(event.entry)
    if task is not None and task.draining:
        task.place = place
        if state.cancelled is None and not state.timed_out and not state.ended:
            undo.add(state, [event.entry], ())  # the code gave it up; what it does after all is undone


def _drop_scope(state: CodeState, index: CodeIndex, prefix: str) -> None:
    for number in index.drop(prefix):
        _drop(state, index, number)
    if state.dropped > 256 and state.dropped * 2 > len(state.facts):
        state.facts = [fact for fact in state.facts if fact == CANCEL or fact in state.entries]
        state.dropped = 0


def _drop(state: CodeState, index: CodeIndex, number: int) -> None:
    """An entry leaves the state. Its undo stays, and so does a child that was told to stop."""
    entry = state.entries.pop(number, None)
    if entry is None:
        return
    if index.keys.get(entry.key) == number:
        del index.keys[entry.key]
    task = state.tasks.get(number)
    if task is not None and not task.draining:
        del state.tasks[number]
    state.timers.pop(number, None)
    state.waits.pop(number, None)
    state.asks.pop(number, None)
    state.dropped += entry.status in ("done", "failed") and entry.kind not in _SILENT


Evolve = Callable[[CodeState, CodeIndex, Any, int], None]
EVOLVE: dict[type, Evolve] = {
    e.RunStarted: lambda state, _, event, at: lifecycle.evolve_started(state, event, at),
    e.CancelRequested: _cancel_requested,
    e.RunTimedOut: _run_timed_out,
    e.RunEnding: _run_ending,
    e.RunCompleted: _completed,
    e.RunFailed: _failed,
    e.RunCancelled: _cancelled,
    e.RunPaused: _paused,
    e.RunResumed: _resumed,
    e.RunHeld: _held,
    e.RunRetried: _retried,
    e.AttributesSet: _attributes,
    e.TaskScheduled: _task_scheduled,
    e.TaskSucceeded: _task_succeeded,
    e.TaskFailed: _task_failed,
    e.TaskLost: _task_lost,
    e.UndoScheduled: _undo_scheduled,
    e.TimerSet: _timer_set,
    e.TimerFired: _timer_fired,
    e.MessageReceived: _message_received,
    e.MessageAwaited: _message_awaited,
    e.MessagesTaken: _messages_taken,
    e.MessageRefused: _message_refused,
    e.MessageAnswered: _message_answered,
    e.WaitTimedOut: _wait_timed_out,
    e.AskOpened: _ask_opened,
    e.AskAnswered: _ask_answered,
    e.AskEscalated: lambda state, _, event, __: questions.evolve_escalated(state, event),
    e.AskReminded: lambda state, _, event, at: questions.evolve_reminded(state, event, at),
    e.AskTold: lambda state, _, event, __: questions.evolve_told(state, event),
    e.ChildStarted: _child_started,
    e.ChildEnded: _child_ended,
    e.ValueRecorded: _value_recorded,
    e.RaceDecided: _race_decided,
    e.LoopTurned: _loop_turned,
    e.LoopFinished: _loop_finished,
    e.EntryCancelled: _entry_cancelled,
}
