"""How each event changes a graph run: the choices are in the event, the token game does the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from weft.core import events as e
from weft.core.graph import answers, keeping
from weft.core.graph.binding import View
from weft.core.graph.board import is_open
from weft.core.graph.game import Game
from weft.core.graph.model import START, Graph
from weft.core.graph.starting import SCRIPT
from weft.core.graph.tokens import DeadLetter, GraphState, Token, branch_keys, seen_after
from weft.core.ids import derive
from weft.core.run import lifecycle, messages, questions, tasks
from weft.core.run.composites import leaf
from weft.core.run.env import Env
from weft.core.run.state import Child, Held, Task, Wait
from weft.errors import Failure

_NOWHERE = Env(now=0, check=lambda *_: None)
"""Nothing is loaded or checked while an event is taken in."""


def _token_of(state: GraphState, number: int) -> Token | None:
    return state.tokens.get(state.by_task.pop(number, ""))


def _attach(state: GraphState, token_id: str) -> Token:
    """The token works: what it waits for has the number of this event."""
    token = state.tokens[token_id]
    token.mode = "working"
    token.task = state.seq
    state.by_task[state.seq] = token_id
    leave_agenda(state, token_id)
    return token


def leave_agenda(state: GraphState, token_id: str) -> None:
    """It is the first of the agenda that still lives; those before it are gone."""
    if token_id in state.agenda:
        del state.agenda[: state.agenda.index(token_id) + 1]


def _done(state: GraphState, number: int, output: Raw) -> None:
    token = _token_of(state, number)
    if token is not None:
        token.task = 0
        token.output = output
        token.mode = "routing"
        state.agenda.append(token.id)
        state.executed[token.node] = state.executed.get(token.node, 0) + 1


def _failed(state: GraphState, number: int, failure: Failure) -> None:
    token = _token_of(state, number)
    if token is not None:
        token.task = 0
        # Requests and scripts are performed by steps that nobody has written: their node is what failed.
        step = token.node if failure.step.startswith("weft.") else failure.step or token.node
        where = "" if failure.step == SCRIPT else failure.where
        token.failure = msgspec.structs.replace(failure, step=step, where=where)
        token.mode = "failing"
        state.agenda.append(token.id)


def _stopped(state: GraphState, number: int) -> None:
    """What a token waited for was stopped before it had a result: a retry begins it anew."""
    token = _token_of(state, number)
    if token is not None:
        token.task = 0
        token.mode = "ready"


# --- life --------------------------------------------------------------------------------------------------------


def _started(graph: Graph, state: GraphState, event: e.RunStarted, at: int) -> None:
    lifecycle.evolve_started(state, event, at)
    for name in (graph.state or {}).get("properties") or {}:
        state.data[name] = None


def _cancel_requested(_: Graph, state: GraphState, event: e.CancelRequested, at: int) -> None:
    state.cancelled = event.reason
    state.cancelled_at = at
    state.held = None
    state.status = "cancelling"


def _timed_out(_: Graph, state: GraphState, event: e.RunTimedOut, at: int) -> None:
    state.timed_out = True


def _run_ending(_: Graph, state: GraphState, event: e.RunEnding, at: int) -> None:
    lifecycle.evolve_ended(state, event)


def _completed(_: Graph, state: GraphState, event: e.RunCompleted, at: int) -> None:
    state.output = event.output
    state.status = "completed"
    _over(state)


def _run_failed(_: Graph, state: GraphState, event: e.RunFailed, at: int) -> None:
    state.failure = event.failure
    state.status = "failed"
    state.ended = True
    _over(state)


def _cancelled(_: Graph, state: GraphState, event: e.RunCancelled, at: int) -> None:
    state.status = "cancelled"
    state.ended = True
    _over(state)


def _over(state: GraphState) -> None:
    lifecycle.evolve_over(state)
    state.parked = {}


def _paused(_: Graph, state: GraphState, event: e.RunPaused, at: int) -> None:
    state.status = "paused"


def _resumed(_: Graph, state: GraphState, event: e.RunResumed, at: int) -> None:
    state.status = "running"
    state.held = None


def _held(_: Graph, state: GraphState, event: e.RunHeld, at: int) -> None:
    state.status = "held"
    state.held = Held(code=event.code, message=event.message, location=event.location, since=at)


# --- the game ----------------------------------------------------------------------------------------------------


def _routed(graph: Graph, state: GraphState, event: e.NodeRouted, at: int) -> None:
    game = Game(graph, state, event.arrival)
    state.hops += 1
    if not event.token:
        state.begun = True
        state.input = event.output or state.input
        origin = Token(id=derive(state.line, "start"), node=START, path=[], value=state.input)
        game.emit(origin, None, event.taken, state.input, skips=event.skips)
        game.settle()
        return
    token = state.tokens[event.token]
    leave_agenda(state, token.id)
    node = graph.nodes[token.node]
    output = event.output or token.output
    if event.caught:
        output = token.value
        token.error = token.failure
    else:
        token.error = None
        if event.output and token.mode != "routing":
            state.executed[node.id] = state.executed.get(node.id, 0) + 1
        if node.remembered:
            token.seen = seen_after(token, output)
    for write in event.writes:
        game.write_here(token.path, write.path, leaf(write.value), anywhere=write.scope == "state")
    game.emit(token, node, event.taken, output, skips=event.skips)
    game.settle()


def _node_failed(graph: Graph, state: GraphState, event: e.NodeFailed, at: int) -> None:
    token = state.tokens[event.token]
    leave_agenda(state, token.id)
    if token.mode == "routing" or event.output:
        # Its work was done: only its routing failed.
        if token.mode != "routing":
            state.executed[token.node] = state.executed.get(token.node, 0) + 1
        if graph.nodes[token.node].remembered:
            token.seen = seen_after(token, event.output or token.output)
        game = Game(graph, state)
        for write in event.writes:
            game.write_here(token.path, write.path, leaf(write.value), anywhere=write.scope == "state")
    token.failure = event.failure
    token.mode = "failing"
    state.agenda.append(token.id)


def _raised(graph: Graph, state: GraphState, event: e.FailureRaised, at: int) -> None:
    game = Game(graph, state)
    token = state.tokens[event.token]
    leave_agenda(state, token.id)
    given = token.input if bytes(token.input) != b"null" else token.value
    state.letters[token.id] = DeadLetter(node=token.node, input=given, failure=event.failure, at=at)
    raised = event.raised or event.failure
    if event.taker:
        index = next(seg.n for seg in token.path if seg.id == event.taker)
        game.take_failure(state.frames[event.taker], index, raised)
        game.settle()
        return
    lifecycle.evolve_ended(state, e.RunEnding(failure=raised))
    for other in list(state.tokens.values()):
        game.let_go(other)
    game.stop_waiting()


def _retried(graph: Graph, state: GraphState, event: e.RunRetried, at: int) -> None:
    """The failed tokens work again, and with them all that was stopped when the run ended."""
    state.status = "running"
    state.ended = False
    state.timed_out = False
    state.due = 0
    state.failure = None
    state.retries += 1
    state.not_undone = []
    for token_id in event.tokens:
        state.letters.pop(token_id, None)
    mended = keeping.mend(graph, state, event.tokens)
    Game(graph, state).wait_again(mended)
    failed = []
    moving = []
    for token in state.tokens.values():
        if token.mode == "failing" and _works_again(token, event.tokens):
            token.mode = "ready"
            token.failure = None
        if keeping.waits_for_width(state, token):
            continue
        if token.mode == "failing":
            failed.append(token.id)
        elif token.mode in ("ready", "routing"):
            token.due = 0
            moving.append(token.id)
    state.agenda = [*failed, *moving]


def _works_again(token: Token, asked: Sequence[str]) -> bool:
    """Whether a failed token repeats its work.

    A fan-in that too few branches can reach has nothing to work with. Work that may not be performed twice and whose
    outcome is unknown is repeated only if that was asked for.
    """
    if token.frame:
        return False
    unknown = token.failure is not None and token.failure.code == tasks.UNKNOWN
    return token.id in asked or not unknown


def _discarded(_: Graph, state: GraphState, event: e.LetterDiscarded, at: int) -> None:
    state.letters.pop(event.token, None)


# --- work --------------------------------------------------------------------------------------------------------


def _task_scheduled(graph: Graph, state: GraphState, event: e.TaskScheduled, at: int) -> None:
    token = _attach(state, event.token)
    token.input = event.input
    undo = graph.nodes[token.node].undo
    kept = e.NULL
    if event.undo is not None and event.undo.takes is None and undo is not None and undo.input is not None:
        view = View(graph=graph, state=state, token=token, output=e.NULL, env=_NOWHERE, data=state.data)
        kept = view.keep(undo.input)
    state.tasks[state.seq] = Task(
        step=event.step,
        input=event.input,
        since=at,
        policy=event.policy,
        undo=event.undo,
        place=f"{token.node}/{token.id}",
        within=branch_keys(token.path) if event.undo is not None else [],
        kept=kept,
    )


def _task_succeeded(_: Graph, state: GraphState, event: e.TaskSucceeded, at: int) -> None:
    answers.unpark(state, event.task)
    task = tasks.evolve_succeeded(state, event, _place(state, event.task))
    if not task.undo_of:
        _done(state, event.task, event.output)


def _task_failed(_: Graph, state: GraphState, event: e.TaskFailed, at: int) -> None:
    answers.unpark(state, event.task)
    task = tasks.evolve_failed(state, event, _place(state, event.task))
    if task is not None and not task.undo_of:
        _failed(state, event.task, event.failure)


def _timer_set(_: Graph, state: GraphState, event: e.TimerSet, at: int) -> None:
    if event.join:
        _join_awaited(state, event.join)
    else:
        _attach(state, event.token)
    state.timers[state.seq] = event.due


def _join_awaited(state: GraphState, key: str) -> None:
    state.unarmed.remove(key)
    state.deadlines[state.seq] = key
    holder = state.frames[key[1:]] if key[0] == "f" else state.slots[key[1:]]
    holder.timer = state.seq


def _timer_fired(graph: Graph, state: GraphState, event: e.TimerFired, at: int) -> None:
    state.timers.pop(event.timer, None)
    if event.timer in state.deadlines:
        game = Game(graph, state)
        game.time_out(state.deadlines.pop(event.timer))
        game.settle()
        return
    token = state.tokens.get(state.by_task.get(event.timer, ""))
    _done(state, event.timer, token.value if token is not None else e.NULL)


def _message_awaited(_: Graph, state: GraphState, event: e.MessageAwaited, at: int) -> None:
    _attach(state, event.token).due = event.due
    state.waits[state.seq] = Wait(names=event.names, since=at, due=event.due, answer=event.answer)


def _messages_taken(_: Graph, state: GraphState, event: e.MessagesTaken, at: int) -> None:
    wait = state.waits.pop(event.wait)
    (message,) = messages.take_messages(state, event.ids, wait.names)
    token = state.tokens.get(state.by_task.get(event.wait, ""))
    if token is not None:
        token.message = message.id
    _done(state, event.wait, message.body)


def _message_refused(_: Graph, state: GraphState, event: e.MessageRefused, at: int) -> None:
    """The token waits anew, no longer than before."""
    token = state.tokens[event.token]
    token.mode, token.message, token.output = "ready", "", e.NULL
    state.executed[token.node] -= 1


def _message_answered(_: Graph, state: GraphState, event: e.MessageAnswered, at: int) -> None:
    state.requests.pop(event.message, None)


def _ask_opened(_: Graph, state: GraphState, event: e.AskOpened, at: int) -> None:
    _attach(state, event.token).input = event.input
    state.asks[state.seq] = questions.opened(event, at)


def _ask_answered(_: Graph, state: GraphState, event: e.AskAnswered, at: int) -> None:
    answer = questions.evolve_answer(state, event, at)
    if answer is not None:
        _done(state, event.ask, answer)


def _wait_timed_out(_: Graph, state: GraphState, event: e.WaitTimedOut, at: int) -> None:
    state.asks.pop(event.wait, None)
    state.waits.pop(event.wait, None)
    child = state.children.get(event.wait)
    if child is not None:
        child.cancelled = True
    _failed(state, event.wait, Failure(type="TimedOut", message="it did not come in time", code="wait.timed_out"))


def _child_started(_: Graph, state: GraphState, event: e.ChildStarted, at: int) -> None:
    token = _attach(state, event.token)
    token.input = event.input
    state.children[state.seq] = Child(
        uid=event.uid, run_id=event.run_id, workflow=event.workflow, since=at, due=event.due
    )


def _child_ended(graph: Graph, state: GraphState, event: e.ChildEnded, at: int) -> None:
    child = state.children.pop(event.child)
    if event.status == "completed":
        _done(state, event.child, event.output)
        return
    if child.cancelled:
        _stopped(state, event.child)
        return
    failure = event.failure or Failure(
        type="RunCancelled", message=f"{child.run_id} was cancelled", code="run.cancelled"
    )
    token = state.tokens.get(state.by_task.get(event.child, ""))
    if token is not None and graph.nodes[token.node].on_failure == "route":
        told = {"type": failure.type, "message": failure.message, "code": failure.code, "run": child.run_id}
        _done(state, event.child, Raw(msgspec.json.encode({"error": told})))
        return
    _failed(state, event.child, failure)


def _entry_cancelled(graph: Graph, state: GraphState, event: e.EntryCancelled, at: int) -> None:
    if event.entry in state.parked:
        answers.evolve_given_up(state, event.entry)
    else:
        lifecycle.evolve_cancelled_entry(state, event, _place(state, event.entry))
    if not is_open(state, event.entry):
        _stopped(state, event.entry)


def _place(state: GraphState, number: int) -> str:
    task = state.tasks.get(number)
    return task.place if task is not None else ""


Evolve = Callable[[Graph, GraphState, Any, int], None]
EVOLVE: dict[type, Evolve] = {
    e.RunStarted: _started,
    e.CancelRequested: _cancel_requested,
    e.RunTimedOut: _timed_out,
    e.RunEnding: _run_ending,
    e.RunCompleted: _completed,
    e.RunFailed: _run_failed,
    e.RunCancelled: _cancelled,
    e.RunPaused: _paused,
    e.RunResumed: _resumed,
    e.RunHeld: _held,
    e.NodeRouted: _routed,
    e.NodeFailed: _node_failed,
    e.FailureRaised: _raised,
    e.RunRetried: _retried,
    e.LetterDiscarded: _discarded,
    e.TaskScheduled: _task_scheduled,
    e.TaskSucceeded: _task_succeeded,
    e.TaskFailed: _task_failed,
    e.WorkAccepted: lambda _, state, event, at: answers.evolve_accepted(state, event),
    e.TaskLost: lambda _, state, event, at: tasks.evolve_lost(state, event),
    e.UndoScheduled: lambda _, state, event, at: tasks.evolve_undo(state, event, at=at),
    e.TimerSet: _timer_set,
    e.TimerFired: _timer_fired,
    e.MessageReceived: lambda _, state, event, at: messages.evolve_message(state, event, at),
    e.MessageAwaited: _message_awaited,
    e.MessagesTaken: _messages_taken,
    e.MessageRefused: _message_refused,
    e.MessageAnswered: _message_answered,
    e.AskOpened: _ask_opened,
    e.AskAnswered: _ask_answered,
    e.AskEscalated: lambda _, state, event, at: questions.evolve_escalated(state, event),
    e.AskReminded: lambda _, state, event, at: questions.evolve_reminded(state, event, at),
    e.AskTold: lambda _, state, event, at: questions.evolve_told(state, event),
    e.WaitTimedOut: _wait_timed_out,
    e.ChildStarted: _child_started,
    e.ChildEnded: _child_ended,
    e.EntryCancelled: _entry_cancelled,
}
