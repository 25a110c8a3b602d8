"""The decider of code runs: entries found by location, facts in the order of the log.

An *ask* of the code is looked up by its location first; only one that is not recorded comes here as a command. What
ends an entry (a result, a time, a message, a child's end) appends its number to ``facts``: live and on replay the code
is told in exactly this order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import msgspec

from weft.core import commands as c
from weft.core import events as e
from weft.core.code import asks, fold
from weft.core.code.state import CodeIndex, CodeState, Entry
from weft.core.effects import AnyEffect, ArmTimer, DisarmTimer, EndRun, OutgoingMail, PerformTask, StopTask
from weft.core.ids import CANCEL, EntryId
from weft.core.run import lifecycle, messages, questions, tasks, timers, undo
from weft.core.run.env import Env
from weft.core.run.statuses import unknown_command

_decoder: msgspec.json.Decoder[CodeState] = msgspec.json.Decoder(CodeState)
_encode = msgspec.json.Encoder().encode


class CodeMachine:
    """One code run."""

    __slots__ = ("index", "state")

    def __init__(self, state: CodeState) -> None:
        self.state = state
        self.index = CodeIndex(state)

    @classmethod
    def fresh(cls, uid: str) -> Self:
        """A run with an empty log."""
        return cls(CodeState(uid=uid))

    @classmethod
    def restore(cls, snapshot: bytes) -> Self:
        """A run from a snapshot of this fold."""
        return cls(_decoder.decode(snapshot))

    def snapshot(self) -> bytes:
        return _encode(self.state)

    def lookup(self, key: str) -> Entry | None:
        """What is recorded at a location."""
        number = self.index.keys.get(key)
        return None if number is None else self.state.entries[number]

    # --- deciding -------------------------------------------------------------------------------------------------

    def decide(self, command: c.AnyCommand, env: Env) -> Sequence[e.AnyEvent]:
        if isinstance(command, c.Ask):
            return asks.decide(self.state, self.index, command, env)
        decide = _DECIDE.get(type(command))
        if decide is None:
            raise unknown_command(self.state.run_id, "code", command)
        return decide(self, command, env)

    def follow(self, env: Env) -> Sequence[e.AnyEvent]:
        state = self.state
        if state.ended:
            return () if state.returned and _idle(state) else lifecycle.follow(state)
        if not state.reversals or state.status in ("paused", "held"):
            return ()
        return lifecycle.follow_dropped(state)

    # --- evolving -------------------------------------------------------------------------------------------------

    def evolve(self, event: e.AnyEvent, *, at: int) -> None:
        state = self.state
        state.seq += 1
        state.at = at
        fold.EVOLVE[type(event)](state, self.index, event, at)

    # --- the world ------------------------------------------------------------------------------------------------

    def effects(self, event: e.AnyEvent) -> Sequence[AnyEffect]:
        make = _EFFECTS.get(type(event))
        return () if make is None else make(self, event)

    def mail(self, event: e.AnyEvent) -> Sequence[OutgoingMail]:
        make = _MAIL.get(type(event))
        return () if make is None else make(self, event)

    def outstanding(self) -> Sequence[AnyEffect]:
        state = self.state
        if state.over:
            return ()
        found: list[AnyEffect] = []
        if state.tasks and not _idle(state):
            found += [self.perform(number) for number in state.tasks]
        for number, due in state.timers.items():
            found.append(ArmTimer(EntryId(number), due))
        for number, wait in state.waits.items():
            if wait.due:
                found.append(ArmTimer(EntryId(number), wait.due, mailed=True))
        for number, ask in state.asks.items():
            found += questions.armed(number, ask)
        for number, child in state.children.items():
            if child.due and not child.cancelled:
                found.append(ArmTimer(EntryId(number), child.due, mailed=True))
        if state.due and not state.timed_out and state.cancelled is None and not state.ended:
            found.append(ArmTimer(CANCEL, state.due))
        return found

    def due_of(self, number: int) -> int:
        return timers.due_of(self.state, number)

    def perform(self, number: int) -> PerformTask:
        task = self.state.tasks[number]
        return tasks.perform(self.state, number, task, self.location(number))

    def location(self, number: int) -> str:
        """Where a task stands; an undo stands where its task did."""
        entry = self.state.entries.get(number)
        if entry is not None:
            return entry.key
        task = self.state.tasks.get(number)
        if task is None or not task.undo_of:
            return task.place if task is not None and task.place else f"!{number}"
        return f"{task.undoes or f'!{task.undo_of}'}!undo"


def _idle(state: CodeState) -> bool:
    return state.status == "paused"


# --- what comes from outside -------------------------------------------------------------------------------------


def _decide_ask(machine: CodeMachine, command: c.DecideAsk, env: Env) -> Sequence[e.AnyEvent]:
    number = command.ask if isinstance(command.ask, int) else machine.index.keys.get(command.ask)
    entry = machine.state.entries.get(number) if number is not None else None
    known = number if entry is not None and entry.kind == "ask" else None
    return questions.decide_ask(machine.state, command, known, env)


def _decide_child(machine: CodeMachine, command: c.ReportChildEnded, _: Env) -> Sequence[e.AnyEvent]:
    if command.child not in machine.state.children:
        return ()
    ended = e.ChildEnded(child=command.child, status=command.status, output=command.output, failure=command.failure)
    return (ended,)


def _decide_retry(machine: CodeMachine, command: c.RetryRun, _: Env) -> Sequence[e.AnyEvent]:
    return asks.decide_retry(machine.state, machine.index, command)


def _decide_complete(machine: CodeMachine, command: c.CompleteRun, _: Env) -> Sequence[e.AnyEvent]:
    state = machine.state
    if state.reversals or state.undoing:
        return (*lifecycle.let_go(state), e.RunEnding(output=command.output))
    return (e.RunCompleted(output=command.output, not_undone=list(state.not_undone)),)


def _decide_fail(machine: CodeMachine, command: c.FailRun, _: Env) -> Sequence[e.AnyEvent]:
    state = machine.state
    if (
        not state.undo
        and not undo.pending(state)
        and not state.tasks
        and not state.children
        and not state.timers
        and not state.waits
        and not state.asks
    ):
        return (e.RunFailed(failure=command.failure),)
    return lifecycle.end_of_run(state, command.failure)


def _decide_hold(machine: CodeMachine, command: c.HoldRun, _: Env) -> Sequence[e.AnyEvent]:
    if machine.state.over or machine.state.status == "held":
        return ()
    return (e.RunHeld(code=command.code, message=command.message, location=command.location),)


def _decide_refusal(machine: CodeMachine, command: c.RefuseMessage, _: Env) -> Sequence[e.AnyEvent]:
    refused = e.MessageRefused(wait=command.wait, id=command.id, error=command.error)
    return (refused, *messages.refusal(machine.state, command.id, command.error))


def _decide_cancel_entry(machine: CodeMachine, command: c.CancelEntry, _: Env) -> Sequence[e.AnyEvent]:
    state = machine.state
    entry = state.entries.get(command.entry)
    if entry is None or entry.status != "open":
        return ()
    child = state.children.get(command.entry)
    return (e.EntryCancelled(entry=command.entry, child=child.uid if child is not None else ""),)


_Decide = Callable[[CodeMachine, Any, Env], Sequence[e.AnyEvent]]
_DECIDE: dict[type, _Decide] = {
    c.StartRun: lambda m, command, env: lifecycle.decide_start(m.state, command, env.now),
    c.ReportTaskSucceeded: lambda m, command, _: tasks.decide_succeeded(m.state, command),
    c.ReportTaskFailed: lambda m, command, env: tasks.decide_failed(m.state, command, env.now),
    c.ReportTaskLost: lambda m, command, env: tasks.decide_lost(m.state, command, env.now),
    c.FireTimer: lambda m, command, env: timers.decide_timer(m.state, command, env),
    c.DeliverMessage: lambda m, command, _: messages.decide_message(m.state, command),
    c.DecideAsk: _decide_ask,
    c.NoteTold: lambda m, command, _: questions.decide_told(m.state, command),
    c.ReportChildEnded: _decide_child,
    c.CancelRun: lambda m, command, _: lifecycle.decide_cancel(m.state, command),
    c.PauseRun: lambda m, _, __: lifecycle.decide_pause(m.state),
    c.ResumeRun: lambda m, _, __: lifecycle.decide_resume(m.state),
    c.RetryRun: _decide_retry,
    c.RefuseMessage: _decide_refusal,
    c.CancelEntry: _decide_cancel_entry,
    c.CompleteRun: _decide_complete,
    c.FailRun: _decide_fail,
    c.EndCancelled: lambda m, _, __: lifecycle.end_of_run(m.state, None),
    c.HoldRun: _decide_hold,
}


# --- what events ask of the world --------------------------------------------------------------------------------


def _task_effects(machine: CodeMachine, event: e.TaskScheduled | e.UndoScheduled) -> Sequence[AnyEffect]:
    return (machine.perform(machine.state.seq),)


def _again(machine: CodeMachine, event: e.TaskFailed | e.TaskLost) -> Sequence[AnyEffect]:
    if event.task not in machine.state.tasks or _idle(machine.state):
        return ()
    return (machine.perform(event.task),)


def _armed(machine: CodeMachine, event: e.TimerSet | e.MessageAwaited | e.ChildStarted) -> Sequence[AnyEffect]:
    return (
        (ArmTimer(EntryId(machine.state.seq), event.due, mailed=not isinstance(event, e.TimerSet)),)
        if event.due
        else ()
    )


def _entry_cancelled(machine: CodeMachine, event: e.EntryCancelled) -> Sequence[AnyEffect]:
    return () if event.entry in machine.state.tasks else (StopTask(event.entry), DisarmTimer(event.entry))


def _over(machine: CodeMachine, event: e.AnyEvent) -> Sequence[AnyEffect]:
    return (EndRun(),)


_EFFECTS: dict[type, Callable[[CodeMachine, Any], Sequence[AnyEffect]]] = {
    e.RunStarted: lambda m, event: (ArmTimer(CANCEL, event.due),) if event.due else (),
    e.TaskScheduled: _task_effects,
    e.UndoScheduled: _task_effects,
    e.TaskSucceeded: tasks.stop_later,
    e.TaskFailed: _again,
    e.TaskLost: _again,
    e.TimerSet: _armed,
    e.MessageAwaited: _armed,
    e.AskOpened: lambda m, event: questions.armed_new(m.state),
    e.ChildStarted: _armed,
    e.MessagesTaken: lambda m, event: (DisarmTimer(event.wait),),
    e.AskAnswered: lambda m, event: questions.armed_again(m.state, event),
    e.AskEscalated: lambda m, event: questions.armed_again(m.state, event),
    e.AskReminded: lambda m, event: questions.armed_again(m.state, event),
    e.ChildEnded: lambda m, event: (DisarmTimer(event.child),),
    e.EntryCancelled: _entry_cancelled,
    e.RunResumed: lambda m, event: m.outstanding(),
    # A pause may end like this too: what came due meanwhile is handed out.
    e.CancelRequested: lambda m, event: m.outstanding(),
    e.RunRetried: lambda m, event: (DisarmTimer(CANCEL), *m.outstanding()),
    e.RunCompleted: _over,
    e.RunFailed: _over,
    e.RunCancelled: _over,
}


def _stop_child(machine: CodeMachine, event: e.EntryCancelled | e.WaitTimedOut) -> Sequence[OutgoingMail]:
    if not event.child:
        return ()
    return (OutgoingMail(to=event.child, command=c.CancelRun(reason=f"{machine.state.run_id} no longer waits for it")),)


def _start_child(machine: CodeMachine, event: e.ChildStarted) -> Sequence[OutgoingMail]:
    if event.refused is not None:
        return ()
    return (OutgoingMail(to=event.uid, command=lifecycle.child_start(machine.state, event), create=True),)


def _tell_parent(machine: CodeMachine, event: e.RunCompleted | e.RunFailed | e.RunCancelled) -> Sequence[OutgoingMail]:
    report = lifecycle.parent_report(machine.state)
    if report is None or machine.state.parent is None:
        return ()
    return (OutgoingMail(to=machine.state.parent.uid, command=report),)


_MAIL: dict[type, Callable[[CodeMachine, Any], Sequence[OutgoingMail]]] = {
    e.ChildStarted: _start_child,
    e.EntryCancelled: _stop_child,
    e.WaitTimedOut: _stop_child,
    e.RunCompleted: _tell_parent,
    e.RunFailed: _tell_parent,
    e.RunCancelled: _tell_parent,
}
