"""The decider of graph runs: tokens are consumed and made at completion, and everything follows in the same append.

A command for a token that is not live decides nothing. What a completed task leads to is worked out by ``follow``: the
token is routed (conditions are evaluated there and what they saw is recorded), what arrives is started, and a run whose
tokens are gone is over. ``evolve`` plays the token game with the choices that the events recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Raw

from weft.core import commands as c
from weft.core import events as e
from weft.core import life, tasks, waits
from weft.core.decider import Env, Letter
from weft.core.effects import AnyEffect, ArmTimer, DisarmTimer, EndRun, PerformTask, StopTask
from weft.core.graph import fold, starting
from weft.core.graph.binding import View
from weft.core.graph.model import START, Graph
from weft.core.graph.routing import Reader, route, route_failure
from weft.core.graph.tokens import GraphState, Token
from weft.core.ids import CANCEL, EntryId
from weft.errors import Failure

_decoder: msgspec.json.Decoder[GraphState] = msgspec.json.Decoder(GraphState)
_encode = msgspec.json.Encoder().encode

HOPS_MAX = 100_000
TOKENS_MAX = 100_000
FAN_OUT_MAX = 20_000


class GraphProgram(Protocol):
    """A compiled graph with all that its document leaves to others."""

    graph: Graph
    reader: Reader

    def policy(self, node: str) -> e.Policy:
        """How a node's task is tried: the document's words over the step's own."""
        ...

    def undo(self, node: str) -> e.UndoPlan | None: ...

    def version(self, workflow: str) -> tuple[str, e.Style]:
        """Which version of a child workflow is started, and its style."""
        ...


class GraphMachine:
    """One graph run."""

    def __init__(self, program: GraphProgram, state: GraphState) -> None:
        self.program = program
        self.graph = program.graph
        self.state = state

    def snapshot(self) -> bytes:
        return _encode(self.state)

    # --- deciding -------------------------------------------------------------------------------------------------

    def decide(self, command: c.AnyCommand, env: Env) -> Sequence[e.AnyEvent]:
        return _DECIDE[type(command)](self, command, env)

    def follow(self, env: Env) -> Sequence[e.AnyEvent]:
        """The next thing that must happen by itself."""
        state = self.state
        if not state.started or state.over or state.status in ("paused", "held"):
            return ()
        if state.ended:
            return life.follow(state)
        if not state.begun:
            return (e.NodeRouted(taken=[e.Taken(ordinal) for ordinal in self.graph.start]),)
        while state.agenda and state.agenda[0] not in state.tokens:
            state.agenda.pop(0)
        if state.agenda:
            return self._attend(state.tokens[state.agenda[0]], env)
        if not state.tokens:
            return self._complete()
        if not (state.tasks or state.timers or state.asks or state.children):
            return life.code_ended(state, self._deadlock())
        return ()

    def _attend(self, token: Token, env: Env) -> Sequence[e.AnyEvent]:
        match token.mode:
            case "routing":
                return self._route(token)
            case "failing":
                return self._route_failure(token)
        return starting.start(self.program, self.state, token, env)

    def _route(self, token: Token) -> Sequence[e.AnyEvent]:
        view = self.view(token, token.output)
        found = route(self.graph, view, self.program.reader)
        if found.failure is not None:
            return (e.NodeFailed(token=token.id, failure=found.failure),)
        limit = self._limit(found.taken)
        if limit is not None:
            return life.code_ended(self.state, limit)
        event = e.NodeRouted(
            token=token.id, taken=found.taken, writes=found.writes, verdicts=found.verdicts, skips=found.skips
        )
        return (event,)

    def _route_failure(self, token: Token) -> Sequence[e.AnyEvent]:
        view = self.view(token, token.value, error=token.error)
        found = route_failure(self.graph, view, self.program.reader)
        if found.failure is not None:
            return (e.FailureRaised(token=token.id, failure=found.failure),)
        return (e.NodeRouted(token=token.id, taken=found.taken, verdicts=found.verdicts, caught=True),)

    def view(self, token: Token, output: Raw, *, error: Failure | None = None) -> View:
        return View(graph=self.graph, state=self.state, token=token, output=output, data=self.state.data, error=error)

    def _limit(self, taken: Sequence[e.Taken]) -> Failure | None:
        limits = self.graph.limits
        made = sum(
            len(one.items) if one.items is not None else max(1, self.graph.edges[one.edge].copies) for one in taken
        )
        for name, value, most in (
            ("hops", self.state.hops + 1, limits.hops or HOPS_MAX),
            ("tokens", len(self.state.tokens) + made, limits.tokens or TOKENS_MAX),
            ("fan_out", made, limits.fan_out or FAN_OUT_MAX),
        ):
            if value > most:
                return Failure(type="limit", message=f"the limit of {most} {name} is reached", code="limit")
        return None

    def _breadth(self, taken: e.Taken) -> int:
        return len(taken.items) if taken.items is not None else max(1, self.graph.edges[taken.edge].copies)

    def _complete(self) -> Sequence[e.AnyEvent]:
        output: Any = self.state.data
        if self.graph.output is not None:
            token = Token(id="", node=START, path=[])
            expr = self.graph.output
            output = self.program.reader.template(expr.source, self.view(token, e.NULL).bind(expr))
        return (e.RunCompleted(output=Raw(_encode(output))),)

    def _deadlock(self) -> Failure:
        waiting = []
        for slot in self.state.slots.values():
            node = self.graph.nodes[slot.node]
            lacks = [self.graph.edges[o].source for o in node.incoming if not slot.items.get(o)]
            if lacks and node.join == "edges":
                waiting.append(f"{slot.node} lacks {', '.join(lacks)}")
        waiting += [f"{t.node} has an edge too many" for t in self.state.tokens.values() if t.mode == "joining"][:3]
        return Failure(type="deadlock", message="; ".join(waiting) or "no token can move", code="deadlock")

    # --- evolving -------------------------------------------------------------------------------------------------

    def evolve(self, event: e.AnyEvent, *, at: int) -> None:
        state = self.state
        state.seq += 1
        state.at = at
        state.gone, state.gone_children = [], []
        fold.EVOLVE[type(event)](self.graph, state, event, at)

    # --- the world ------------------------------------------------------------------------------------------------

    def effects(self, event: e.AnyEvent) -> Sequence[AnyEffect]:
        make = _EFFECTS.get(type(event))
        return () if make is None else make(self, event)

    def mail(self, event: e.AnyEvent) -> Sequence[Letter]:
        make = _MAIL.get(type(event))
        return () if make is None else make(self, event)

    def outstanding(self) -> Sequence[AnyEffect]:
        state = self.state
        if state.over:
            return ()
        found: list[AnyEffect] = [] if state.status == "paused" else [self.perform(number) for number in state.tasks]
        found += [ArmTimer(EntryId(number), due) for number, due in state.timers.items()]
        found += [ArmTimer(EntryId(n), ask.due, mailed=True) for n, ask in state.asks.items() if ask.due]
        found += [
            ArmTimer(EntryId(n), child.due, mailed=True)
            for n, child in state.children.items()
            if child.due and not child.cancelled
        ]
        if state.due and not state.timed_out and state.cancelled is None and not state.ended:
            found.append(ArmTimer(CANCEL, state.due))
        return found

    def perform(self, number: int) -> PerformTask:
        return tasks.perform(self.state, number, self.state.tasks[number], self.location(number))

    def location(self, number: int) -> str:
        """Where a task stands: its node and token."""
        token = self.state.tokens.get(self.state.by_task.get(number, ""))
        if token is not None:
            return f"{token.node}/{token.id}"
        task = self.state.tasks.get(number)
        return f"!{task.undo_of}!undo" if task is not None and task.undo_of else f"!{number}"


# --- what comes from outside -------------------------------------------------------------------------------------


def _decide_child(machine: GraphMachine, command: c.ReportChildEnded, _: Env) -> Sequence[e.AnyEvent]:
    if command.child not in machine.state.children:
        return ()
    return (e.ChildEnded(child=command.child, status=command.status, output=command.output, failure=command.failure),)


def _decide_ask(machine: GraphMachine, command: c.DecideAsk, env: Env) -> Sequence[e.AnyEvent]:
    number = command.ask if isinstance(command.ask, int) else _ask_named(machine.state, command.ask)
    return waits.decide_ask(machine.state, command, number, env)


def _ask_named(state: GraphState, name: str) -> int | None:
    for number in state.asks:
        token = state.tokens.get(state.by_task.get(number, ""))
        if token is not None and name in (token.node, token.id):
            return number
    return None


def _decide_cancel(machine: GraphMachine, command: c.CancelRun, _: Env) -> Sequence[e.AnyEvent]:
    decided = life.decide_cancel(machine.state, command)
    if len(decided) == 1:
        return (*decided, *life.let_go(machine.state), e.CodeEnded())
    return decided


def _decide_timer(machine: GraphMachine, command: c.FireTimer, env: Env) -> Sequence[e.AnyEvent]:
    decided = waits.decide_timer(machine.state, command, env)
    if decided and isinstance(decided[0], e.RunTimedOut):
        late = Failure(type="deadline", message=f"{machine.state.run_id} did not end in its time", code="deadline")
        return (*decided, *life.code_ended(machine.state, late))
    return decided


_Decide = Callable[[GraphMachine, Any, Env], Sequence[e.AnyEvent]]
_DECIDE: dict[type, _Decide] = {
    c.StartRun: lambda m, command, env: life.decide_start(m.state, command, env.now),
    c.ReportTaskSucceeded: lambda m, command, _: tasks.decide_succeeded(m.state, command),
    c.ReportTaskFailed: lambda m, command, env: tasks.decide_failed(m.state, command, env.now),
    c.ReportTaskLost: lambda m, command, env: tasks.decide_lost(m.state, command, env.now),
    c.FireTimer: _decide_timer,
    c.DeliverMessage: lambda m, command, _: waits.decide_message(m.state, command),
    c.DecideAsk: _decide_ask,
    c.ReportChildEnded: _decide_child,
    c.CancelRun: _decide_cancel,
    c.PauseRun: lambda m, _, __: life.decide_pause(m.state),
    c.ResumeRun: lambda m, _, __: life.decide_resume(m.state),
}


# --- what events ask of the world --------------------------------------------------------------------------------


def _again(machine: GraphMachine, event: e.TaskFailed | e.TaskLost) -> Sequence[AnyEffect]:
    if event.task not in machine.state.tasks or machine.state.status == "paused":
        return ()
    return (machine.perform(event.task),)


def _armed(machine: GraphMachine, event: e.TimerSet | e.AskOpened | e.ChildStarted) -> Sequence[AnyEffect]:
    if not event.due:
        return ()
    return (ArmTimer(EntryId(machine.state.seq), event.due, mailed=not isinstance(event, e.TimerSet)),)


def _dropped(machine: GraphMachine, _: e.AnyEvent) -> Sequence[AnyEffect]:
    """Tasks and timers whose tokens this event took away."""
    gone = machine.state.gone
    return [effect for number in gone for effect in (StopTask(EntryId(number)), DisarmTimer(EntryId(number)))]


_EFFECTS: dict[type, Callable[[GraphMachine, Any], Sequence[AnyEffect]]] = {
    e.RunStarted: lambda _, event: (ArmTimer(CANCEL, event.due),) if event.due else (),
    e.TaskScheduled: lambda m, _: (m.perform(m.state.seq),),
    e.UndoScheduled: lambda m, _: (m.perform(m.state.seq),),
    e.TaskFailed: _again,
    e.TaskLost: _again,
    e.TimerSet: _armed,
    e.AskOpened: _armed,
    e.ChildStarted: _armed,
    e.AskAnswered: lambda _, event: (DisarmTimer(event.ask),) if event.decided else (),
    e.ChildEnded: lambda _, event: (DisarmTimer(event.child),),
    e.EntryCancelled: lambda _, event: (StopTask(event.entry), DisarmTimer(event.entry)),
    e.NodeRouted: _dropped,
    e.FailureRaised: _dropped,
    e.RunResumed: lambda m, _: m.outstanding(),
    e.RunCompleted: lambda _, __: (EndRun(),),
    e.RunFailed: lambda _, __: (EndRun(),),
    e.RunCancelled: lambda _, __: (EndRun(),),
}


def _stop_children(machine: GraphMachine, _: e.AnyEvent) -> Sequence[Letter]:
    stop = c.CancelRun(reason=f"{machine.state.run_id} no longer waits for it")
    return [Letter(to=uid, command=stop) for uid in machine.state.gone_children]


def _stop_child(machine: GraphMachine, event: e.EntryCancelled | e.WaitTimedOut) -> Sequence[Letter]:
    if not event.child:
        return ()
    return (Letter(to=event.child, command=c.CancelRun(reason=f"{machine.state.run_id} no longer waits for it")),)


def _tell_parent(machine: GraphMachine, _: e.AnyEvent) -> Sequence[Letter]:
    report = life.parent_report(machine.state)
    if report is None or machine.state.parent is None:
        return ()
    return (Letter(to=machine.state.parent.uid, command=report),)


_MAIL: dict[type, Callable[[GraphMachine, Any], Sequence[Letter]]] = {
    e.ChildStarted: lambda m, event: (Letter(to=event.uid, command=life.child_start(m.state, event), create=True),),
    e.EntryCancelled: _stop_child,
    e.WaitTimedOut: _stop_child,
    e.NodeRouted: _stop_children,
    e.FailureRaised: _stop_children,
    e.RunCompleted: _tell_parent,
    e.RunFailed: _tell_parent,
    e.RunCancelled: _tell_parent,
}
