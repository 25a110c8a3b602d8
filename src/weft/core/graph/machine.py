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
from weft.core import values
from weft.core.effects import AnyEffect, ArmTimer, DisarmTimer, EndRun, OutgoingMail, PerformTask, StopTask
from weft.core.graph import answers, fold, keeping, starting
from weft.core.graph.binding import View
from weft.core.graph.defaults import has_defaults, with_defaults
from weft.core.graph.game import not_enough
from weft.core.graph.model import START, AskWork, Graph, ReceiveWork
from weft.core.graph.routing import Reader, route, route_failure
from weft.core.graph.tokens import GraphState, Path, Token
from weft.core.ids import CANCEL, EntryId
from weft.core.run import lifecycle, messages, questions, tasks, timers, undo
from weft.core.run.composites import is_plain, items, leaf, open_raw
from weft.core.run.env import Env
from weft.core.run.state import Undo
from weft.core.run.statuses import unknown_command
from weft.errors import Failure, NotFound, Refused, WeftError

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

    def undo(self, node: str) -> e.UndoPlan | None:
        """The step that takes a node's work back, if it can be taken back."""
        ...

    def takes(self, step: str) -> list[str] | None:
        """The names of a step's parameters, if the step is known here."""
        ...

    def version_of(self, workflow: str) -> tuple[str, e.Style]:
        """Which version of a child workflow is started, and its style."""
        ...

    def plan(self, goals: Sequence[str], given: Sequence[str]) -> Raw:
        """The plan for these goals from these facts. Raises BadPlan, UnknownStep."""
        ...


def restore_state(snapshot: bytes) -> GraphState:
    """A run's state from a snapshot of this fold."""
    return _decoder.decode(snapshot)


class GraphMachine:
    """One graph run."""

    def __init__(self, program: GraphProgram, state: GraphState) -> None:
        self.program = program
        self.graph = program.graph
        self.state = state
        self._refs: dict[str, tuple[Any, Raw]] = {}

    def snapshot(self) -> bytes:
        return _encode(self.state)

    # --- deciding -------------------------------------------------------------------------------------------------

    def decide(self, command: c.AnyCommand, env: Env) -> Sequence[e.AnyEvent]:
        decide = _DECIDE.get(type(command))
        if decide is None:
            raise unknown_command(self.state.run_id, "graph", command)
        return decide(self, command, env)

    def follow(self, env: Env) -> Sequence[e.AnyEvent]:
        """The next thing that must happen by itself."""
        state = self.state
        if not state.started or state.over or state.status in ("paused", "held"):
            return ()
        if state.ended:
            return () if state.parked else self._undo_newest(env) or lifecycle.follow_for_good(state)
        if not state.begun:
            return self._begin(env)
        if state.unarmed:
            return (self._deadline(state.unarmed[0], env.now),)
        if state.reversals:
            dropped = undo.newest(state)
            if dropped is not None:
                return self._undo(dropped, env)
        for token_id in state.agenda:
            token = state.tokens.get(token_id)
            if token is not None:
                return self._attend(token, env)
        if not state.tokens:
            # Only what was dropped can still be ending, or being undone.
            waits = state.tasks or state.parked or undo.pending(state)
            return () if waits else self._complete(env)
        if not (state.tasks or state.timers or state.asks or state.children or state.waits):
            return lifecycle.end_of_run(state, self._deadlock())
        return ()

    def _begin(self, env: Env) -> Sequence[e.AnyEvent]:
        filled = self._with_defaults(env)
        wrong = self._misfit(self.graph.input, filled or self.state.input, env)
        if wrong is not None:
            message = f"the input of {self.graph.name} does not fit: {wrong}"
            failure = Failure(type="BadValue", message=message, code="bad_input")
            return lifecycle.end_of_run(self.state, lifecycle.never_began(failure, self.state.run_id))
        return (e.NodeRouted(taken=[e.Taken(name) for name in self.graph.start], output=filled),)

    def _with_defaults(self, env: Env) -> Raw:
        """The input with what it leaves to defaults, if it leaves anything. Raises MissingInputs."""
        if not has_defaults(self.graph.input):
            return e.ABSENT
        given = open_raw(self.state.input, env.blob)
        filled = with_defaults(self.graph.input, given)
        return e.ABSENT if filled is given else env.keep(values.encode(filled, what=f"{self.graph.name} is given"))

    def _deadline(self, key: str, now: int) -> e.TimerSet:
        """The timer of a join that has its first arrival."""
        node = self._joining(key)
        deadline = self.graph.nodes[node].deadline
        assert deadline is not None
        return e.TimerSet(node=node, join=key, due=now + deadline.ms)

    def _joining(self, key: str) -> str:
        """The node of a join that waits with a deadline."""
        return self.state.frames[key[1:]].fan_in if key[0] == "f" else self.state.slots[key[1:]].node

    def _misfit(self, schema: dict[str, Any] | None, raw: Raw, env: Env) -> str | None:
        if schema is None:
            return None
        return env.check(schema, bytes(raw) if is_plain(raw) else values.encode(open_raw(raw, env.blob)))

    def _attend(self, token: Token, env: Env) -> Sequence[e.AnyEvent]:
        match token.mode:
            case "routing":
                return self._route(token, env)
            case "failing":
                return self._route_failure(token, env)
        begun = starting.start(self.program, self.view(token, token.value, env, error=token.error))
        passed = begun[-1]
        limit = self._limit(passed.taken) if isinstance(passed, e.NodeRouted) else None
        return begun if limit is None else lifecycle.end_of_run(self.state, limit)

    def _route(self, token: Token, env: Env) -> Sequence[e.AnyEvent]:
        work = self.graph.nodes[token.node].work
        if isinstance(work, ReceiveWork) and (wrong := starting.misfit_message(work, token, env)) is not None:
            refused = e.MessageRefused(wait=EntryId(0), id=token.message, error=wrong, token=token.id)
            return (refused, *messages.refusal(self.state, token.message, wrong))
        output = starting.enriched(token, env) if isinstance(work, AskWork) and work.enriches else e.ABSENT
        found = route(self.graph, self.view(token, output or token.output, env), self.program.reader)
        if found.failure is not None:
            failed = e.NodeFailed(
                node=token.node, token=token.id, failure=found.failure, writes=found.writes, output=output
            )
            return (failed,)
        limit = self._limit(found.taken)
        if limit is not None:
            return lifecycle.end_of_run(self.state, limit)
        event = e.NodeRouted(
            node=token.node,
            token=token.id,
            taken=found.taken,
            writes=found.writes,
            verdicts=found.verdicts,
            skips=found.skips,
            arrival=found.arrival,
            output=output,
        )
        return (event,)

    def _route_failure(self, token: Token, env: Env) -> Sequence[e.AnyEvent]:
        view = self.view(token, token.value, env, error=token.failure)
        found = route_failure(self.graph, view, self.program.reader)
        if found.failure is None:
            caught = e.NodeRouted(
                node=token.node, token=token.id, taken=found.taken, verdicts=found.verdicts, caught=True
            )
            return (caught,)
        taker, raised = self._who_takes(token.path, found.failure, env)
        other = None if raised == found.failure else raised
        return (e.FailureRaised(node=token.node, token=token.id, failure=found.failure, taker=taker, raised=other),)

    def _who_takes(self, path: Path, failure: Failure, env: Env) -> tuple[str, Failure]:
        """The frame that takes a failure which goes along a path, inside out, and the failure as it gets there.

        Nothing has changed yet: if nobody takes it ("") the run keeps all that it has.
        """
        for seg in reversed(path):
            frame = self.state.frames.get(seg.id) if seg.kind == "f" else None
            if frame is None or not frame.fan_in:
                continue
            node = self.graph.nodes[frame.fan_in]
            assert node.fan_in is not None
            need = node.fan_in.need
            arriving = failure
            if frame.fired:
                return frame.id, failure
            if need.kind != "all":
                wanted = need.of(frame.total)
                if len(frame.arrived) + frame.total - frame.settled - 1 >= wanted:
                    return frame.id, failure
                failure = not_enough(frame, wanted, {**frame.failed, seg.n: failure})
            asked = Token(id="", node=node.id, path=frame.path, seen=frame.seen)
            found = route_failure(self.graph, self.view(asked, e.NULL, env, error=failure), self.program.reader)
            if found.failure is None:
                return frame.id, arriving
            failure = found.failure
        return "", failure

    def _undo_newest(self, env: Env) -> Sequence[e.AnyEvent]:
        state = self.state
        return self._undo(state.undo[-1], env) if state.undo and lifecycle.may_undo(state) else ()

    def _undo(self, newest: Undo, env: Env) -> Sequence[e.AnyEvent]:
        """Undo it with its recorded input and result, or with what the document says."""
        if newest.plan.takes is not None:
            return (undo.scheduled(newest),)
        state = self.state
        node = newest.location.rpartition("/")[0]
        token = Token(id="", node=node, path=[])
        of = EntryId(newest.task)
        try:
            view = self.view(token, newest.output, env)
            view.kept = items(leaf(newest.kept))
            given = starting.undo_input(self.program, view)
        except WeftError as error:
            failure = Failure(type=error.code, message=error.message, code=error.code, step=newest.plan.step)
            scheduled = e.UndoScheduled(of=of, step=newest.plan.step, input=e.NULL)
            return (scheduled, e.TaskFailed(task=EntryId(state.seq + 1), failure=failure))
        return (e.UndoScheduled(of=of, step=newest.plan.step, input=given),)

    def view(self, token: Token, output: Raw, env: Env, *, error: Failure | None = None) -> View:
        """What expressions see from where a token is."""
        return View(
            graph=self.graph,
            state=self.state,
            token=token,
            output=output,
            env=env,
            data=self.state.data,
            error=error,
            refs=self._refs,
        )

    def _limit(self, taken: Sequence[e.Taken]) -> Failure | None:
        limits = self.graph.limits
        made = 0
        for one in taken:
            made += len(one.items) if one.items is not None else self.graph.edges[one.edge].copies or 1
        for name, value, most in (
            ("hops", self.state.hops + 1, limits.hops or HOPS_MAX),
            ("tokens", len(self.state.tokens) + made, limits.tokens or TOKENS_MAX),
            ("fan_out", made, limits.fan_out or FAN_OUT_MAX),
        ):
            if value > most:
                return Failure(type="limit", message=f"the limit of {most} {name} is reached", code="limit")
        return None

    def _complete(self, env: Env) -> Sequence[e.AnyEvent]:
        try:
            raw = self._result(env)
        except WeftError as error:
            failure = Failure(type=error.code, message=error.message, code=error.code)
            return lifecycle.end_of_run(self.state, failure)
        wrong = self._misfit(self.graph.result, Raw(raw), env)
        if wrong is not None:
            message = f"the output of {self.graph.name} does not fit: {wrong}"
            return lifecycle.end_of_run(self.state, Failure(type="BadValue", message=message, code="bad_output"))
        return (e.RunCompleted(output=env.keep(raw), not_undone=list(self.state.not_undone)),)

    def _result(self, env: Env) -> bytes:
        view = self.view(Token(id="", node=START, path=[]), e.NULL, env)
        expr = self.graph.output
        found = view.bind_state() if expr is None else self.program.reader.template(expr.source, view.bind(expr))
        return values.encode(found, what=f"{self.graph.name} gives")

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

    def mail(self, event: e.AnyEvent) -> Sequence[OutgoingMail]:
        make = _MAIL.get(type(event))
        return () if make is None else make(self, event)

    def outstanding(self) -> Sequence[AnyEffect]:
        state = self.state
        if state.over:
            return ()
        found: list[AnyEffect] = [] if state.status == "paused" else [self.perform(number) for number in state.tasks]
        found += [ArmTimer(EntryId(number), due) for number, due in state.timers.items()]
        found += [timer for number, ask in state.asks.items() for timer in questions.armed(number, ask)]
        found += [ArmTimer(EntryId(n), wait.due, mailed=True) for n, wait in state.waits.items() if wait.due]
        found += [
            ArmTimer(EntryId(n), child.due, mailed=True)
            for n, child in state.children.items()
            if child.due and not child.cancelled
        ]
        found += [ArmTimer(EntryId(-n), due) for n, task in state.tasks.items() if (due := timers.task_due(task))]
        if state.due and not state.timed_out and state.cancelled is None and not state.ended:
            found.append(ArmTimer(CANCEL, state.due))
        return found

    def due_of(self, number: int) -> int:
        return timers.due_of(self.state, number)

    def perform(self, number: int) -> PerformTask:
        return tasks.perform(self.state, number, self.state.tasks[number], self.location(number))

    def location(self, number: int) -> str:
        """Where something stands: its node and token; an undo stands where its task did."""
        token = self.state.tokens.get(self.state.by_task.get(number, ""))
        if token is not None:
            return f"{token.node}/{token.id}"
        if number in self.state.deadlines:
            return self._joining(self.state.deadlines[number])
        task = self.state.tasks.get(number) or self.state.parked.get(number)
        if task is None:
            return f"!{number}"
        return f"{task.undoes or f'!{task.undo_of}'}!undo" if task.undo_of else task.place or f"!{number}"


# --- what comes from outside -------------------------------------------------------------------------------------


def _decide_child(machine: GraphMachine, command: c.ReportChildEnded, _: Env) -> Sequence[e.AnyEvent]:
    if command.child not in machine.state.children:
        return ()
    return (e.ChildEnded(child=command.child, status=command.status, output=command.output, failure=command.failure),)


def _decide_ask(machine: GraphMachine, command: c.DecideAsk, env: Env) -> Sequence[e.AnyEvent]:
    number = command.ask if isinstance(command.ask, int) else _ask_named(machine, command.ask)
    return questions.decide_ask(machine.state, command, number, env)


def _ask_named(machine: GraphMachine, name: str) -> int | None:
    """The question at a node, at a token, or at a place as ``location`` gives it."""
    state = machine.state
    places: dict[int, str] = {}
    for number in state.asks:
        token = state.tokens.get(state.by_task.get(number, ""))
        if token is not None and name in (token.node, token.id, f"{token.node}/{token.id}"):
            places[number] = f"{token.node}/{token.id}"
    node = machine.graph.nodes.get(name.partition("/")[0])
    asked = node is not None and isinstance(node.work, AskWork) and state.executed.get(node.id)
    if asked and not places and not state.over:
        raise questions.already_decided(state, name)
    return questions.find_open(state, name, places)


def _decide_cancel(machine: GraphMachine, command: c.CancelRun, _: Env) -> Sequence[e.AnyEvent]:
    decided = lifecycle.decide_cancel(machine.state, command)
    if len(decided) == 1:
        return (*decided, *lifecycle.let_go(machine.state), e.RunEnding())
    return decided


def _decide_retry(machine: GraphMachine, command: c.RetryRun, _: Env) -> Sequence[e.AnyEvent]:
    state = machine.state
    if command.start:
        raise Refused(f"{state.run_id} is a graph run; it is tried again where it failed.", hint="Leave out --from.")
    lifecycle.refuse_retry(state)
    return _again_from(state, keeping.kept_tokens(state))


def _decide_requeue(machine: GraphMachine, command: c.RequeueLetter, _: Env) -> Sequence[e.AnyEvent]:
    state = machine.state
    _refuse_unknown_letter(state, command.token)
    repeated = keeping.kept_tokens(state)
    if command.token not in repeated:
        raise Refused(
            f"The branch of {state.letters[command.token].node} is gone: its join went on without it.",
            hint="weft dlq discard it, or start the run anew.",
        )
    lifecycle.refuse_retry(state)
    return _again_from(state, repeated)


def _again_from(state: GraphState, tokens: list[str]) -> Sequence[e.AnyEvent]:
    if state.undone:
        raise lifecycle.undone(state)
    return (e.RunRetried(tokens=tokens),)


def _decide_discard(machine: GraphMachine, command: c.DiscardLetter, _: Env) -> Sequence[e.AnyEvent]:
    _refuse_unknown_letter(machine.state, command.token)
    return (e.LetterDiscarded(token=command.token),)


def _refuse_unknown_letter(state: GraphState, token: str) -> None:
    if token not in state.letters:
        raise NotFound(f"{state.run_id} has no dead letter {token!r}.", hint="weft dlq list shows them.")


def _decide_start(machine: GraphMachine, command: c.StartRun, env: Env) -> Sequence[e.AnyEvent]:
    if not command.timeout_ms and machine.graph.limits.time_ms:
        command = msgspec.structs.replace(command, timeout_ms=machine.graph.limits.time_ms)
    return lifecycle.decide_start(machine.state, command, env.now)


def _decide_hold(machine: GraphMachine, command: c.HoldRun, _: Env) -> Sequence[e.AnyEvent]:
    if machine.state.over or machine.state.status == "held":
        return ()
    return (e.RunHeld(code=command.code, message=command.message, location=command.location),)


def _decide_timer(machine: GraphMachine, command: c.FireTimer, env: Env) -> Sequence[e.AnyEvent]:
    if command.entry in machine.state.parked:
        return answers.unanswered(machine.state, command.entry, env.now)
    decided = timers.decide_timer(machine.state, command, env)
    if decided and isinstance(decided[0], e.RunTimedOut):
        late = Failure(type="deadline", message=f"{machine.state.run_id} did not end in its time", code="deadline")
        return (*decided, *lifecycle.end_of_run(machine.state, late))
    return decided


_Decide = Callable[[GraphMachine, Any, Env], Sequence[e.AnyEvent]]
_DECIDE: dict[type, _Decide] = {
    c.StartRun: _decide_start,
    c.ReportTaskSucceeded: lambda m, command, _: tasks.decide_succeeded(m.state, command),
    c.ReportTaskFailed: lambda m, command, env: tasks.decide_failed(m.state, command, env.now),
    c.ReportTaskLost: lambda m, command, env: tasks.decide_lost(m.state, command, env.now),
    c.ReportWorkAccepted: lambda m, command, env: answers.accepted(m.state, command, env.now),
    c.AnswerWork: lambda m, command, env: answers.answered(m.state, command, env.now),
    c.FireTimer: _decide_timer,
    c.DeliverMessage: lambda m, command, _: messages.decide_message(m.state, command),
    c.DecideAsk: _decide_ask,
    c.NoteTold: lambda m, command, _: questions.decide_told(m.state, command),
    c.ReportChildEnded: _decide_child,
    c.CancelRun: _decide_cancel,
    c.PauseRun: lambda m, _, __: lifecycle.decide_pause(m.state),
    c.ResumeRun: lambda m, _, __: lifecycle.decide_resume(m.state),
    c.RetryRun: _decide_retry,
    c.RequeueLetter: _decide_requeue,
    c.DiscardLetter: _decide_discard,
    c.HoldRun: _decide_hold,
}


# --- what events ask of the world --------------------------------------------------------------------------------


def _scheduled(machine: GraphMachine, _: e.TaskScheduled) -> Sequence[AnyEffect]:
    number = machine.state.seq
    due = timers.task_due(machine.state.tasks[number])
    perform = machine.perform(number)
    return (perform, ArmTimer(EntryId(-number), due)) if due else (perform,)


def _task_ended(machine: GraphMachine, event: e.TaskSucceeded | e.TaskFailed) -> Sequence[AnyEffect]:
    """A deadline passed while somebody may still be at work, or it did not pass."""
    if event.task in machine.state.tasks:
        return _again(machine, event) if isinstance(event, e.TaskFailed) else ()
    return (StopTask(event.task), DisarmTimer(event.task), DisarmTimer(EntryId(-event.task)))


def _again(machine: GraphMachine, event: e.TaskFailed | e.TaskLost) -> Sequence[AnyEffect]:
    if event.task not in machine.state.tasks or machine.state.status == "paused":
        return ()
    return (machine.perform(event.task),)


def _armed(machine: GraphMachine, event: e.TimerSet | e.ChildStarted | e.MessageAwaited) -> Sequence[AnyEffect]:
    if not event.due:
        return ()
    return (ArmTimer(EntryId(machine.state.seq), event.due, mailed=not isinstance(event, e.TimerSet)),)


def _entry_cancelled(machine: GraphMachine, event: e.EntryCancelled) -> Sequence[AnyEffect]:
    if event.entry in machine.state.tasks or event.entry in machine.state.parked:
        return ()
    return (StopTask(event.entry), DisarmTimer(event.entry))


def _dropped(machine: GraphMachine, _: e.AnyEvent) -> Sequence[AnyEffect]:
    """Tasks and timers whose tokens this event took away."""
    gone = machine.state.gone
    if not gone:
        return ()
    return [effect for number in gone for effect in (StopTask(EntryId(number)), DisarmTimer(EntryId(number)))]


def _task_succeeded(machine: GraphMachine, event: e.TaskSucceeded) -> Sequence[AnyEffect]:
    dropped = _dropped(machine, event)
    return (*dropped, *tasks.stop_later(machine, event)) if event.earlier else dropped


_EFFECTS: dict[type, Callable[[GraphMachine, Any], Sequence[AnyEffect]]] = {
    e.RunStarted: lambda _, event: (ArmTimer(CANCEL, event.due),) if event.due else (),
    e.TaskScheduled: _scheduled,
    e.UndoScheduled: lambda m, _: (m.perform(m.state.seq),),
    e.TaskSucceeded: _task_succeeded,
    e.TaskFailed: _task_ended,
    e.TaskLost: _again,
    e.WorkAccepted: lambda _, event: (ArmTimer(event.task, event.due),),
    e.TimerSet: _armed,
    e.MessageAwaited: _armed,
    e.MessagesTaken: lambda _, event: (DisarmTimer(event.wait),),
    e.TimerFired: _dropped,
    e.AskOpened: lambda m, _: questions.armed_new(m.state),
    e.ChildStarted: _armed,
    e.AskAnswered: lambda m, event: questions.armed_again(m.state, event),
    e.ChildEnded: lambda _, event: (DisarmTimer(event.child),),
    e.EntryCancelled: _entry_cancelled,
    e.NodeRouted: _dropped,
    e.FailureRaised: _dropped,
    e.RunResumed: lambda m, _: m.outstanding(),
    e.CancelRequested: lambda m, _: m.outstanding(),
    e.RunEnding: lambda m, _: m.outstanding(),
    e.RunRetried: lambda m, _: (DisarmTimer(CANCEL), *m.outstanding()),
    e.AskEscalated: lambda m, event: questions.armed_again(m.state, event),
    e.AskReminded: lambda m, event: questions.armed_again(m.state, event),
    e.RunCompleted: lambda _, __: (EndRun(),),
    e.RunFailed: lambda _, __: (EndRun(),),
    e.RunCancelled: lambda _, __: (EndRun(),),
}


def _stop_children(machine: GraphMachine, _: e.AnyEvent) -> Sequence[OutgoingMail]:
    if not machine.state.gone_children:
        return ()
    stop = c.CancelRun(reason=f"{machine.state.run_id} no longer waits for it")
    return [OutgoingMail(to=uid, command=stop) for uid in machine.state.gone_children]


def _start_child(machine: GraphMachine, event: e.ChildStarted) -> Sequence[OutgoingMail]:
    return (OutgoingMail(to=event.uid, command=lifecycle.child_start(machine.state, event, facts=True), create=True),)


def _stop_child(machine: GraphMachine, event: e.EntryCancelled | e.WaitTimedOut) -> Sequence[OutgoingMail]:
    if not event.child:
        return ()
    return (OutgoingMail(to=event.child, command=c.CancelRun(reason=f"{machine.state.run_id} no longer waits for it")),)


def _tell_parent(machine: GraphMachine, _: e.AnyEvent) -> Sequence[OutgoingMail]:
    report = lifecycle.parent_report(machine.state)
    if report is None or machine.state.parent is None:
        return ()
    return (OutgoingMail(to=machine.state.parent.uid, command=report),)


_MAIL: dict[type, Callable[[GraphMachine, Any], Sequence[OutgoingMail]]] = {
    e.ChildStarted: _start_child,
    e.EntryCancelled: _stop_child,
    e.WaitTimedOut: _stop_child,
    e.NodeRouted: _stop_children,
    e.TimerFired: _stop_children,
    e.FailureRaised: _stop_children,
    e.RunCompleted: _tell_parent,
    e.RunFailed: _tell_parent,
    e.RunCancelled: _tell_parent,
}
