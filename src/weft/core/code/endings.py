"""Commands from the code that end the run, cancel an entry, or refuse a message of the wrong type. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from weft.core import commands as c
from weft.core import events as e
from weft.core.code.asks import CodeRun
from weft.core.run import lifecycle, messages, undo
from weft.core.run.env import Env


def decide_complete(code: CodeRun, command: c.CompleteRun, _: Env) -> Sequence[e.AnyEvent]:
    """End the run after the code has returned. Dropped work is undone before the run completes."""
    state = code.state
    if state.reversals or state.undoing:
        return (*lifecycle.cancel_open(state), e.RunEnding(output=command.output))
    return (e.RunCompleted(output=command.output, not_undone=list(state.not_undone)),)


def decide_fail(code: CodeRun, command: c.FailRun, _: Env) -> Sequence[e.AnyEvent]:
    """End the run after the code has raised an exception: at once, if nothing is open or has to be undone."""
    state = code.state
    is_open = state.tasks or state.children or state.timers or state.waits or state.asks
    if not is_open and not state.undo and not undo.has_dropped(state):
        return (e.RunFailedEvent(failure=command.failure),)
    return lifecycle.begin_end(state, command.failure)


def decide_end_cancelled(code: CodeRun, _: c.EndCancelled, __: Env) -> Sequence[e.AnyEvent]:
    """End the run after the code has stopped because of a cancel."""
    return lifecycle.begin_end(code.state, None)


def decide_refuse_message(code: CodeRun, command: c.RefuseMessage, _: Env) -> Sequence[e.AnyEvent]:
    """Refuse a message of the wrong type, and answer its sender if the sender waits."""
    refused = e.MessageRefused(wait=command.wait, id=command.id, error=command.error)
    return (refused, *messages.refuse_message(code.state, command.id, command.error))


def decide_cancel_entry(code: CodeRun, command: c.CancelEntry, _: Env) -> Sequence[e.AnyEvent]:
    """Cancel an open entry that the code no longer waits for."""
    state = code.state
    entry = state.entries.get(command.entry)
    if entry is None or entry.status != "open":
        return ()
    child = state.children.get(command.entry)
    return (e.EntryCancelled(entry=command.entry, child=child.uid if child is not None else ""),)
