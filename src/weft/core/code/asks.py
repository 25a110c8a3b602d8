"""Decide asks: requests of the code at a place that is not recorded yet. Pure.

Each ask causes one event, or more if it can be answered at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from weft.core import commands as c
from weft.core import events as e
from weft.core.code.locations import compact_path, location_key, name_index
from weft.core.code.state import CodeIndex, CodeState
from weft.core.ids import EntryId, child_uid, tenant_prefix
from weft.core.run import withheld
from weft.core.run.env import Env
from weft.core.run.messages import take_buffered, waiting_messages
from weft.core.run.repeats import find_equal, repeat_elsewhere, repeat_task
from weft.errors import Failure, WeftError


class Indexed(Protocol):
    """The part of a style that has the index of entries."""

    @property
    def index(self) -> CodeIndex: ...


class CodeRun(Protocol):
    """The part of a code run that the functions here use."""

    @property
    def state(self) -> CodeState: ...

    @property
    def style(self) -> Indexed: ...


def decide_code_ask(code: CodeRun, ask: c.Ask, env: Env) -> Sequence[e.AnyEvent]:
    """Return the events of an ask. The first event carries the names that are not in the registry yet."""
    state, index = code.state, code.style.index
    add: list[str] = []
    path = path_of_ask(index, ask, add)
    events = ASKS[type(ask)](state, ask, path, add, env)
    removed = _REMOVED_SCOPES.get(type(ask))
    return events if removed is None else (*_cancel_below(state, index, removed(ask)), *events)


def path_of_ask(index: CodeIndex, ask: c.Ask, add: list[str]) -> e.Path:
    """Return the path of an ask. Names that are not in the registry yet are appended to ``add``."""
    base = index.paths.get(ask.scope)
    if base is None:
        base = compact_path(ask.scope[:-1], index.name_ids, add)
        if not add:
            index.paths[ask.scope] = base
    number = index.name_ids.get(ask.name)
    name = name_index(ask.name, index.name_ids, add) if number is None else number
    return [*base, name] if ask.n == 1 else [*base, name, -ask.n]


def _cancel_below(state: CodeState, index: CodeIndex, prefixes: Sequence[str]) -> list[e.AnyEvent]:
    """Cancel the open entries in scopes that are about to be removed from the state. Children continue."""
    entries = [state.entries.get(number) for prefix in prefixes for number in index.below(prefix)]
    return [
        e.EntryCancelled(entry=entry.id)
        for entry in entries
        if entry is not None and entry.status == "open" and entry.kind not in ("child", "loop")
    ]


def _schedule_task(
    state: CodeState, ask: c.ScheduleTask, path: e.Path, add: list[str], __: Env
) -> Sequence[e.AnyEvent]:
    event = e.TaskScheduled(
        at=path,
        add=add,
        step=ask.step,
        input=ask.input,
        digest=ask.digest,
        policy=ask.policy,
        undo=ask.undo,
        inline=ask.inline,
        early=ask.early,
        cover=ask.cover,
    )
    if state.earlier:
        return _repeat_dropped_work(state, ask, event)
    return (event,)


def _repeat_dropped_work(state: CodeState, ask: c.ScheduleTask, event: e.TaskScheduled) -> Sequence[e.AnyEvent]:
    """Return the events of a task that may repeat work that a retry dropped, here or at another place."""
    place = location_key(ask.scope, ask.name, ask.n)
    earlier = state.earlier.get(place)
    if ask.passed and (earlier is None or earlier.digest != ask.digest):
        done = {entry.key: entry.output for entry in state.entries.values() if entry.once and entry.status == "done"}
        passed = [state.earlier[one] for one in ask.passed]
        dropped = [msgspec.structs.replace(one, output=done.get(one.place, e.ABSENT)) for one in passed]
        if earlier is None or find_equal(dropped, event.step, ask.digest) is not None:
            return repeat_elsewhere(state, dropped, place, event, ask.digest)
    return (event if earlier is None else repeat_task(state, earlier, place, event, ask.digest),)


def _await_messages(
    state: CodeState, ask: c.AwaitMessages, path: e.Path, add: list[str], __: Env
) -> Sequence[e.AnyEvent]:
    awaited = e.MessageAwaited(at=path, add=add, names=ask.names, most=ask.most, due=ask.due, answer=ask.answer)
    found = waiting_messages(state, ask.names, ask.most)
    if not found:
        return (awaited,)
    return (awaited, *take_buffered(EntryId(state.seq + 1), found, answer=ask.answer))


def _answer_message(
    state: CodeState, ask: c.AnswerMessage, path: e.Path, add: list[str], __: Env
) -> Sequence[e.AnyEvent]:
    event = e.MessageAnswered(
        at=path, add=add, message=ask.message, output=ask.output, repeated=ask.message not in state.requests
    )
    return (event,)


def _open_question(_: CodeState, ask: c.OpenAsk, path: e.Path, add: list[str], __: Env) -> Sequence[e.AnyEvent]:
    event = e.AskOpened(
        at=path,
        add=add,
        title=ask.title,
        form=ask.form,
        about=ask.about,
        of=ask.of,
        quorum=ask.quorum,
        due=ask.due,
        on_timeout=ask.on_timeout,
        escalate=ask.escalate,
        four_eyes=ask.four_eyes,
        remind_ms=ask.remind_ms,
    )
    return (event,)


def _start_child(state: CodeState, ask: c.StartChild, path: e.Path, add: list[str], env: Env) -> Sequence[e.AnyEvent]:
    try:
        withheld.check_child(state, ask.workflow)
        env.check_child(state, ask.workflow, ask.input)
    except WeftError as error:
        failure = Failure(type=type(error).__name__, message=error.message, code=error.code)
        refused = e.ChildStarted(
            at=path,
            add=add,
            workflow=ask.workflow,
            version=ask.version,
            run_id="",
            uid="",
            input=ask.input,
            digest=ask.digest,
            refused=failure,
        )
        return (refused,)
    place = location_key(ask.scope, ask.name, ask.n)
    run_id = f"{state.run_id}.{place}"
    if ask.run_id:
        # A child belongs to the tenant of its parent, whatever id the code chooses.
        prefix = tenant_prefix(state.run_id)
        run_id = ask.run_id if ask.run_id.startswith(prefix) else f"{prefix}{ask.run_id}"
        if state.fork is not None:
            run_id = f"{run_id}~{state.uid[-6:]}"  # the original has a child with this id
    times = state.reborn.get(place, 0)
    event = e.ChildStarted(
        at=path,
        add=add,
        workflow=ask.workflow,
        version=ask.version,
        style=ask.style,
        run_id=f"{run_id}~{times}" if times else run_id,
        uid=child_uid(state.uid, state.seq + 1),
        input=ask.input,
        digest=ask.digest,
        due=ask.due,
        timeout_ms=ask.timeout_ms,
        awaited=ask.awaited,
        plan=ask.plan,
        budget=ask.budget,
    )
    return (event,)


ASKS: dict[type, Callable[[CodeState, Any, e.Path, list[str], Env], Sequence[e.AnyEvent]]] = {
    c.ScheduleTask: _schedule_task,
    c.SetTimer: lambda _, ask, path, add, __: (e.TimerSet(at=path, add=add, due=ask.due),),
    c.AwaitMessages: _await_messages,
    c.AnswerMessage: _answer_message,
    c.OpenAsk: _open_question,
    c.StartChild: _start_child,
    c.RecordValue: lambda _, ask, path, add, __: (e.ValueRecorded(at=path, add=add, of=ask.of, value=ask.value),),
    c.SetAttributes: lambda _, ask, path, add, __: (e.AttributesSet(at=path, add=add, attributes=ask.attributes),),
    c.DecideRace: lambda _, ask, path, add, __: (
        e.RaceDecided(at=path, add=add, winner=ask.winner, losers=ask.losers),
    ),
    c.TurnLoop: lambda _, ask, path, add, __: (
        e.LoopTurned(at=path, add=add, round=ask.round, state=ask.state, keep=ask.keep),
    ),
    c.FinishLoop: lambda _, ask, path, add, __: (
        e.LoopFinished(at=path, add=add, rounds=ask.rounds, output=ask.output),
    ),
}


def _oldest_round_scope(ask: c.TurnLoop) -> list[str]:
    oldest = ask.round - ask.keep - 1
    return [f"{location_key(ask.scope, ask.name, ask.n)}/~{oldest}/"] if oldest >= 0 else []


_REMOVED_SCOPES: dict[type, Callable[[Any], list[str]]] = {
    c.TurnLoop: _oldest_round_scope,
    c.FinishLoop: lambda ask: [f"{location_key(ask.scope, ask.name, ask.n)}/"],
    c.DecideRace: lambda ask: [f"{location_key(ask.scope, ask.name, ask.n)}/{loser}/" for loser in ask.losers],
}
