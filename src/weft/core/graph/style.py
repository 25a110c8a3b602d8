"""The style of graph runs: when work completes, its token moves on, and all consequences are in one append.

A command for a token that no longer exists has no effect. Events record the choices of a run; the token game applies
their consequences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec
from msgspec import Raw

from weft.core import commands as c
from weft.core import events as e
from weft.core.effects import AnyEffect, ArmTimer, DisarmTimer, StopTask
from weft.core.graph import edits, kept_branches
from weft.core.graph.board import is_open
from weft.core.graph.follow import Follower, join_node
from weft.core.graph.game import Game
from weft.core.graph.hosted import HostedGraph
from weft.core.graph.model import START, AskWork, Edge, StepWork
from weft.core.graph.node_start import SCRIPT, approve, is_unapproved
from weft.core.graph.patch.apply import PatchGame
from weft.core.graph.patch.judge import judge_graph_patch
from weft.core.graph.patch.repeated import forget_repeated
from weft.core.graph.retry_from import check_children, decide_retry_from
from weft.core.graph.tokens import DeadLetter, GraphState, Token, branch_keys, remember_work, seen_after
from weft.core.graph.view import View
from weft.core.ids import CANCEL, derive
from weft.core.run import asked_patches, budget, by_hand, lifecycle, patches, questions, tasks, undo
from weft.core.run.children import start_for_child
from weft.core.run.composites import leaf
from weft.core.run.decide import DECIDE, DECIDE_ANSWERS
from weft.core.run.effects import EFFECTS, dispatch_opened
from weft.core.run.env import Env, MissingInputs
from weft.core.run.evolve import with_style_rows
from weft.core.run.kernel import Kernel
from weft.core.run.mail import MAIL
from weft.core.run.state import Child, OpenTask, Status, Undo
from weft.core.run.statuses import ALLOWED
from weft.core.run.style import DecideRows, EffectRows, Ended, EvolveRows, JudgedPatch, MailRows
from weft.core.run.worked_out import handed_over_patch
from weft.errors import Failure, NotFound, Refused

_EMPTY_ENV = Env(now=0, check=lambda *_: None)
"""An environment that loads and checks nothing, for applying events."""


class GraphStyle:
    """The tokens of one graph run."""

    name = "graph"
    has_code = False
    retried_from: ClassVar[frozenset[Status]] = ALLOWED[c.PatchRun].acts
    repeats_undone = False
    unanswered = "{0.step} was accepted, but no answer came in time"
    mail: ClassVar[MailRows] = MAIL
    effects: ClassVar[EffectRows] = {
        **EFFECTS,
        e.NodeRouted: lambda run, event: dispatch_opened(run, event) if event.task is not None else (),
        e.RunPatched: lambda run, event: [
            *asked_patches.disarm(run, event),
            *map(StopTask, event.forced),
            *_rearm_run_deadline(event),
        ],
    }
    consequences = None

    def __init__(self, program: HostedGraph, state: GraphState) -> None:
        self.program = program
        self.graph = program.graph
        self.state = state
        self.ways = program.ways
        self.follower = Follower(program, state)
        self.follow = self.follower.follow
        self._judged: tuple[c.PatchRun, int, JudgedPatch] | None = None
        """The last patch that was judged, and at which event."""

    def use(self, program: HostedGraph) -> None:
        """Follow another version of the graph from now on."""
        follower = self.follower
        self.program = follower.program = program
        self.graph = follower.graph = program.graph
        self.ways = follower.ways = program.ways

    # --- queries from the kernel ----------------------------------------------------------------------------------

    def begin(self, command: c.StartRun, env: Env) -> Sequence[e.AnyEvent]:
        if not command.timeout_ms and self.graph.limits.time_ms:
            command = msgspec.structs.replace(command, timeout_ms=self.graph.limits.time_ms)
        began = lifecycle.decide_start(self.state, command, env.now)
        own = self.graph.limits.budget
        if not began or own is None or command.budget is not None or command.refused:
            return began
        budget.check_currency(command.currency, own)
        return (*began, budget.set_budget(msgspec.structs.replace(command, budget=own)))

    def locate(self, number: int) -> str:
        token = self._token_of_entry(number)
        if token is not None:
            return f"{token.node}/{token.id}"
        key = self.state.deadlines.get(number)
        return join_node(self.state, key) if key is not None else ""

    def question(self, name: int | str) -> int | None:
        """Return the number of the open question at a node, at a token, or at a place as named by ``locate``."""
        if isinstance(name, int):
            return name
        state = self.state
        places: dict[int, str] = {}
        for number in state.asks:
            token = self._token_of_entry(number)
            if token is not None and name in (token.node, token.id, f"{token.node}/{token.id}"):
                places[number] = f"{token.node}/{token.id}"
        node = self.graph.nodes.get(name.partition("/")[0])
        asked = node is not None and isinstance(node.work, AskWork) and state.executed.get(node.id)
        if asked and not places and not state.over:
            raise questions.already_decided(state, name)
        return questions.find_open_question(state, name, places)

    def set_ended(self, command: c.SetResult) -> Sequence[e.AnyEvent]:
        raise by_hand.nothing_open(self.state, command.place)

    def result_error(self, number: int, output: Raw, env: Env) -> str | None:
        return None

    def needs_log(self, command: c.PatchRun | c.RetryRun) -> bool:
        """Return whether a command is judged here, or leads to a version that is not in memory, which is read then."""
        if isinstance(command, c.RetryRun):
            return bool(command.start)
        return not bytes(command.worked_out) or not self._has_version(command.version)

    def _has_version(self, version: str) -> bool:
        try:
            self.program.at(version or self.state.version)
        except MissingInputs:
            return False
        return True

    def retry(self, command: c.RetryRun, env: Env) -> Sequence[e.AnyEvent]:
        if command.start:
            return decide_retry_from(self.program, _empty_run, self.state, command, env)
        if not command.force:
            check_children(self.graph, self.state, command.approved)
        return (e.RunRetried(tokens=kept_branches.kept_tokens(self.graph, self.state)),)

    def judge_patch(self, command: c.PatchRun, env: Env) -> JudgedPatch:
        """Judge a patch. The inputs of a patch are looked for before it is decided: it is not worked out twice."""
        ready = handed_over_patch(command, self.state)
        if ready is not None:
            self.program.at(command.version or self.state.version)  # it is followed as soon as the patch is recorded
            return ready
        known, seq = self._judged, self.state.seq
        if known is None or known[0] is not command or known[1] != seq:
            judged = judge_graph_patch(self.program, _empty_run, self.state, command, env)
            known = self._judged = (command, seq, judged)
        return known[2]

    @property
    def review(self) -> Sequence[str]:
        return self.graph.review

    def no_work_at(self, place: str) -> str:
        return "" if place.partition("/")[0] in self.graph.nodes else f"the graph has no node {place[:60]}"

    def step_at(self, place: str) -> str:
        node = self.graph.nodes.get(place.partition("/")[0])
        return node.work.step if node is not None and isinstance(node.work, StepWork) else ""

    def named_places(self) -> Sequence[str]:
        return list(self.graph.nodes)

    def is_all_at(self, place: str) -> bool:
        """Return whether all tokens are at this node."""
        if place not in self.graph.nodes:
            raise Refused(
                f"{self.graph.name} has no node {place[:60]!r} where a patch of {self.state.run_id} could wait."
            )
        return bool(self.state.tokens) and all(token.node == place for token in self.state.tokens.values())

    def cancel_open(self) -> Sequence[e.AnyEvent]:
        return lifecycle.cancel_open(self.state)

    def undo(self, done: Undo, env: Env) -> Sequence[e.AnyEvent]:
        return self.follower.undo(done, env)

    def join_undo(self, dropped: list[Undo]) -> None:
        undo.join_stack(self.state, dropped)

    def start_for_child(self, event: e.ChildStarted) -> c.StartRun:
        return start_for_child(self.state, event, facts=True)

    # --- notifications from the kernel ----------------------------------------------------------------------------

    def opened(self, event: Any) -> None:
        """Let a token work. Its task, child or wait has the number of this event."""
        if isinstance(event, e.TimerSet) and event.join:
            self._join_awaited(event.join)
            return
        token = self.state.tokens[event.token]
        self._mark_working(token)
        match event:
            case e.TaskScheduled():
                token.input = event.input
                number = self.state.seq
                self._note_task_undo(event, token, self.state.tasks.get(number) or self.state.parked[number])
            case e.ChildStarted() | e.AskOpened():
                token.input = event.input
            case e.MessageAwaited():
                token.due = event.due

    def _mark_working(self, token: Token) -> None:
        state = self.state
        token.mode = "working"
        token.task = state.seq
        token.earlier = None
        state.by_task[state.seq] = token.id
        self._leave_agenda(token.id)

    def _begin_task(self, event: e.TaskScheduled) -> None:
        """Start the work of the token behind an edge in the same record."""
        token = self.state.tokens[event.token]
        self._mark_working(token)
        token.input = event.input or token.value
        self._note_task_undo(event, token, tasks.evolve_scheduled(self.state, event, token.input))

    def _note_task_undo(self, event: e.TaskScheduled, token: Token, task: OpenTask) -> None:
        task.place = f"{token.node}/{token.id}"
        if event.again is not None and self.state.repeated:
            forget_repeated(self.state, event.again)
        if event.undo is None:
            return
        task.within = branch_keys(token.path)
        plan = self.graph.nodes[token.node].undo
        if event.undo.takes is None and plan is not None and plan.input is not None:
            data = self.state.data
            view = View(graph=self.graph, state=self.state, token=token, output=e.NULL, env=_EMPTY_ENV, data=data)
            task.kept = view.keep(plan.input)

    def _join_awaited(self, key: str) -> None:
        state = self.state
        state.unarmed.remove(key)
        state.deadlines[state.seq] = key
        holder = state.frames[key[1:]] if key[0] == "f" else state.slots[key[1:]]
        holder.timer = state.seq

    def settled(self, ended: Ended) -> None:
        """Continue the token whose work has ended: it is routed next, fails, or starts again."""
        state, number = self.state, ended.number
        if ended.how == "task" and ended.failure is None:
            token = state.tokens.get(state.by_task.pop(number, ""))
            if token is not None:
                token.task = 0
                self._route_next(token, ended.output)
            return
        if ended.how == "timer" and number in state.deadlines:
            game = Game(self.graph, state)
            game.time_out(state.deadlines.pop(number))
            game.settle()
            return
        if ended.how == "stopped" and is_open(state, number):
            return
        token = state.tokens.get(state.by_task.pop(number, ""))
        if token is None:
            return
        token.task = 0
        if ended.task is not None and not ended.task.draining:
            remember_work(state, token, ended.task)
        match ended.how:
            case "answer" if ended.failure is None:
                self._take_answer(token, ended.output)
            case "timer":
                self._route_next(token, token.value)
            case "messages":
                (message,) = ended.messages
                token.message = message.id
                self._route_next(token, message.body)
            case "stopped":
                token.mode = "ready"
            case "late":
                late = Failure(type="TimedOut", message="it did not come in time", code="wait.timed_out")
                self._fail_token(token, late)
            case "child" if ended.child is not None:
                self._take_child_end(token, ended, ended.child)
            case _ if ended.failure is not None:
                self._fail_token(token, ended.failure)

    def _take_answer(self, token: Token, decision: Raw) -> None:
        """Continue a token after the decision of people: it is the output of the node, or says whether it may work."""
        if not is_unapproved(self.graph.nodes[token.node], token):
            self._route_next(token, decision)
            return
        rejected = approve(token, decision)
        if rejected is not None:
            self._fail_token(token, rejected)
            return
        token.mode = "ready"
        self.state.agenda.append(token.id)

    def _take_child_end(self, token: Token, ended: Ended, child: Child) -> None:
        failure = ended.failure
        if failure is None:
            self._route_next(token, ended.output)
        elif child.cancelled:
            token.mode = "ready"  # the child was stopped before it had a result, so a retry starts it again
        elif self.graph.nodes[token.node].on_failure == "route":
            error = {"type": failure.type, "message": failure.message, "code": failure.code, "run": child.run_id}
            self._route_next(token, Raw(msgspec.json.encode({"error": error})))
        else:
            self._fail_token(token, failure)

    def retry_later(self, number: int, due: int) -> None:
        """Do nothing, because the token keeps waiting."""

    # --- tokens ---------------------------------------------------------------------------------------------------

    def _token_of_entry(self, number: int) -> Token | None:
        return self.state.tokens.get(self.state.by_task.get(number, ""))

    def _leave_agenda(self, token_id: str) -> None:
        """Remove a token from the agenda. Tokens before it no longer exist."""
        agenda = self.state.agenda
        if token_id in agenda:
            del agenda[: agenda.index(token_id) + 1]

    def _route_next(self, token: Token, output: Raw) -> None:
        token.output = output
        token.mode = "routing"
        self.state.agenda.append(token.id)
        self.state.executed[token.node] = self.state.executed.get(token.node, 0) + 1

    def _fail_token(self, token: Token, failure: Failure) -> None:
        # Requests and scripts are performed by built-in steps, so the failure names the node instead.
        step = token.node if failure.step.startswith("weft.") else failure.step or token.node
        where = "" if failure.step == SCRIPT else failure.where
        token.failure = msgspec.structs.replace(failure, step=step, where=where)
        token.mode = "failing"
        self.state.agenda.append(token.id)

    # --- events ---------------------------------------------------------------------------------------------------

    def _evolve_started(self, event: e.RunStarted) -> None:
        self.use(self.program.at(event.version))
        for name in (self.graph.state or {}).get("properties") or {}:
            self.state.data[name] = None

    def _evolve_routed(self, event: e.NodeRouted) -> None:
        if event.token and self._try_hop(event):
            return
        if not event.token:
            self._emit_first_tokens(event)
            return
        graph, state = self.graph, self.state
        game = Game(graph, state, event.arrival)
        state.hops += 1
        token = state.tokens[event.token]
        self._leave_agenda(token.id)
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
        if event.task is not None:
            self._begin_task(event.task)

    def _emit_first_tokens(self, event: e.NodeRouted) -> None:
        """Emit the first tokens. A single one that begins a task at once is outside every scope."""
        state = self.state
        state.begun = True
        state.input = event.output or state.input
        origin = Token(id="", node=START, path=[], value=state.input, output=state.input)
        if event.task is not None:
            self.hop(origin, self.graph.edges[event.taken[0].edge], event.task)
            return
        state.hops += 1
        origin.id = derive(state.line, "start")
        game = Game(self.graph, state, event.arrival)
        game.emit(origin, None, event.taken, state.input, skips=event.skips)
        game.settle()

    def _try_hop(self, event: e.NodeRouted) -> bool:
        """Move a token along the only edge of its node, if no scope, join or other token is involved.

        A shortcut with the same result as the token game. Returns False if the game must be played.
        """
        state = self.state
        token = state.tokens[event.token]
        straight = self.ways.straight.get(token.node)
        if straight is None or token.path or token.mode != "routing" or event.output or event.caught:
            return False
        if len(state.agenda) != 1 or straight.taken != event.taken or (event.taken and event.task is None):
            return False
        state.agenda.clear()
        self.hop(token, straight.edge, event.task)
        return True

    def hop(self, token: Token, edge: Edge | None, task: e.TaskScheduled | None) -> OpenTask | None:
        """Move a token outside every scope along an edge and begin the task behind it. Without an edge, it ends."""
        state = self.state
        state.hops += 1
        state.tokens.pop(token.id, None)
        if edge is None or task is None:
            return None
        child = state.tokens[task.token] = Token(
            id=task.token,
            node=edge.to,
            path=[],
            value=token.output,
            sender=edge.source,
            edge=edge.name,
            mode="working",
            seen=token.seen,
            task=state.seq,
            input=task.input or token.output,
        )
        state.by_task[state.seq] = child.id
        opened = tasks.evolve_scheduled(state, task, child.input)
        self._note_task_undo(task, child, opened)
        return opened

    def _evolve_node_failed(self, event: e.NodeFailed) -> None:
        graph, state = self.graph, self.state
        token = state.tokens[event.token]
        self._leave_agenda(token.id)
        if token.mode == "routing" or event.output:
            # The work is done; only the routing failed.
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

    def _evolve_raised(self, event: e.FailureRaised) -> None:
        state = self.state
        game = Game(self.graph, state)
        token = state.tokens[event.token]
        self._leave_agenda(token.id)
        given = token.input if bytes(token.input) != b"null" else token.value
        state.letters[token.id] = DeadLetter(node=token.node, input=given, failure=event.failure, at=state.at)
        raised = event.raised or event.failure
        if event.taker:
            index = next(seg.n for seg in token.path if seg.id == event.taker)
            game.take_failure(state.frames[event.taker], index, raised)
            game.settle()
            return
        dropped = undo.take_dropped(state)
        lifecycle.evolve_ending(state, raised)
        self.join_undo(dropped)
        for other in list(state.tokens.values()):
            game.stop_work(other)
        game.stop_waiting()

    def _evolve_retried(self, event: e.RunRetried) -> None:
        """Let the failed tokens work again, and with them everything that was stopped when the run ended."""
        state = self.state
        for token_id in event.tokens:
            state.letters.pop(token_id, None)
        mended = kept_branches.restore_failed(self.graph, state, event.tokens)
        Game(self.graph, state).wait_again(mended)
        failed = []
        moving = []
        for token in state.tokens.values():
            if token.mode == "failing" and _repeats_work(token, event.tokens):
                token.mode = "ready"
                token.failure = None
            if kept_branches.waits_for_width(state, token):
                continue
            if token.mode == "failing":
                failed.append(token.id)
            elif token.mode in ("ready", "routing"):
                token.due = 0
                moving.append(token.id)
        state.agenda = [*failed, *moving]
        if state.revisions:
            PatchGame(self.graph, self.graph, state).conclude()

    def _evolve_patched(self, event: e.RunPatched) -> None:
        """Follow the new version: apply the event's map and instructions, and let everything settle."""
        old = self.graph
        self.use(self.program.at(event.version))
        patches.evolve_patched(self.state, event)
        self.state.approvals = [*self.state.approvals, *event.approved]
        if event.due is not None:
            self.state.due = event.due
        PatchGame(old, self.graph, self.state).apply(event)

    def _evolve_edited(self, event: e.RunEdited) -> None:
        edits.evolve_edited(self.state, event)

    def _evolve_letter_discarded(self, event: e.LetterDiscarded) -> None:
        self.state.letters.pop(event.token, None)

    def _evolve_message_refused(self, event: e.MessageRefused) -> None:
        """Let the token wait again, with the same deadline."""
        token = self.state.tokens[event.token]
        token.mode, token.message, token.output = "ready", "", e.NULL
        self.state.executed[token.node] -= 1

    evolve: ClassVar[EvolveRows] = with_style_rows(
        {
            e.RunStarted: _evolve_started,
            e.RunRetried: _evolve_retried,
            e.RunPatched: _evolve_patched,
            e.NodeRouted: _evolve_routed,
            e.NodeFailed: _evolve_node_failed,
            e.FailureRaised: _evolve_raised,
            e.LetterDiscarded: _evolve_letter_discarded,
            e.RunEdited: _evolve_edited,
            e.MessageRefused: _evolve_message_refused,
        }
    )

    # --- dead letters ---------------------------------------------------------------------------------------------

    def requeue(self, command: c.RequeueLetter) -> Sequence[e.AnyEvent]:
        """Let the token of a dead letter, and everything that failed with it, work again."""
        state = self.state
        self._refuse_unknown_letter(command.token)
        repeated = kept_branches.kept_tokens(self.graph, state)
        if command.token not in repeated:
            raise Refused(
                f"The branch of {state.letters[command.token].node} was dropped: its join continued without it.",
                hint="Discard the dead letter with weft dlq discard, or start a new run.",
            )
        lifecycle.check_retry(state)
        if state.undone:
            raise undo.already_undone(state)
        check_children(self.graph, state)
        return (e.RunRetried(tokens=repeated),)

    def discard(self, command: c.DiscardLetter) -> Sequence[e.AnyEvent]:
        """Discard a dead letter."""
        self._refuse_unknown_letter(command.token)
        return (e.LetterDiscarded(token=command.token),)

    def _refuse_unknown_letter(self, token: str) -> None:
        if token not in self.state.letters:
            raise NotFound(
                f"{self.state.run_id} has no dead letter {token!r}.", hint="To see the dead letters: weft dlq list"
            )

    decide: ClassVar[DecideRows] = {
        **DECIDE,
        **DECIDE_ANSWERS,
        c.RequeueLetter: lambda run, command, _: run.style.requeue(command),
        c.DiscardLetter: lambda run, command, _: run.style.discard(command),
        c.EditRun: lambda run, command, env: edits.decide_edit(run.style.graph, run.state, command, env),
    }


def _rearm_run_deadline(event: e.RunPatched) -> Sequence[AnyEffect]:
    """Arm the timer of the run anew if its limit in time has changed."""
    if event.due is None:
        return ()
    return (ArmTimer(CANCEL, event.due) if event.due else DisarmTimer(CANCEL),)


def _empty_run(program: HostedGraph, state: GraphState) -> Kernel:
    """Make an empty run, to apply a log once more."""
    return Kernel(state, GraphStyle(program, state))


def _repeats_work(token: Token, asked: Sequence[str]) -> bool:
    """Return whether a failed token repeats its work.

    A fan-in that too few branches can reach has no work to repeat. Work that may not be performed twice and whose
    outcome is unknown is repeated only on request.
    """
    if token.frame:
        return False
    unknown = token.failure is not None and token.failure.code == tasks.UNKNOWN
    return token.id in asked or not unknown
