"""Decide what a graph run does without a command: route tokens, start nodes, and complete when no token is left.

Conditions are evaluated here, and their results are recorded. ``evolve`` plays the token game with the recorded
choices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw

from weft.core import events as e
from weft.core import values
from weft.core.graph import node_start
from weft.core.graph.defaults import has_defaults, with_defaults
from weft.core.graph.game import not_enough
from weft.core.graph.hosted import HostedGraph
from weft.core.graph.model import START, ReceiveWork
from weft.core.graph.patch.repeated import find_dropped, find_repeated
from weft.core.graph.route import Route, route, route_failure
from weft.core.graph.tokens import GraphState, Path, Token
from weft.core.graph.view import View
from weft.core.ids import EntryId, derive
from weft.core.run import lifecycle, messages, undo
from weft.core.run.composites import composite_fields, is_unmarked, leaf, open_raw
from weft.core.run.env import Env
from weft.core.run.repeats import digest_of_work, find_equal, repeat_elsewhere, repeat_work
from weft.core.run.revisions import version_at
from weft.core.run.state import Undo
from weft.errors import Failure, WeftError


def join_node(state: GraphState, key: str) -> str:
    """Return the node of a join that waits with a deadline."""
    return state.frames[key[1:]].fan_in if key[0] == "f" else state.slots[key[1:]].node


class Follower:
    """Decides the next events of one run that need no command."""

    def __init__(self, program: HostedGraph, state: GraphState) -> None:
        self.program = program
        self.graph = program.graph
        self.ways = program.ways
        self.state = state
        self._refs: dict[str, tuple[Any, Raw]] = {}

    def follow(self, env: Env) -> Sequence[e.AnyEvent]:
        """Return the next events that need no command. Raises MissingInputs."""
        state = self.state
        if not state.begun:
            return self._begin_run(env)
        if state.unarmed:
            return (self._set_join_deadline(state.unarmed[0], env.now),)
        if state.reversals:
            dropped = undo.next_dropped(state)
            if dropped is not None:
                return self.undo(dropped, env)
        for token_id in state.agenda:
            token = state.tokens.get(token_id)
            if token is not None:
                return self._advance_token(token, env)
        if not state.tokens:
            # Only dropped work can still be ending or being undone.
            waits = state.tasks or state.parked or undo.has_dropped(state)
            return () if waits else self._complete_run(env)
        if not (state.tasks or state.timers or state.asks or state.children or state.waits):
            return lifecycle.begin_end(state, self._deadlock_failure())
        return ()

    def _begin_run(self, env: Env) -> Sequence[e.AnyEvent]:
        filled = self._input_with_defaults(env)
        wrong = self._schema_error(self.graph.input, filled or self.state.input, env)
        if wrong is not None:
            message = f"the input of {self.graph.name} does not fit: {wrong}"
            failure = Failure(type="BadValue", message=message, code="bad_input")
            return lifecycle.begin_end(self.state, lifecycle.mark_never_began(failure, self.state.run_id))
        taken = [e.Taken(name) for name in self.graph.start]
        origin = Token(id=derive(self.state.line, "start"), node=START, path=[])
        task = self.task_behind(origin, taken, filled or self.state.input, env)
        return (e.NodeRouted(taken=taken, output=filled, task=task),)

    def _input_with_defaults(self, env: Env) -> Raw:
        """Return the input with defaults filled in, or ``ABSENT`` if there are none to add. Raises MissingInputs."""
        if not has_defaults(self.graph.input):
            return e.ABSENT
        given = open_raw(self.state.input, env.blob)
        filled = with_defaults(self.graph.input, given)
        return e.ABSENT if filled is given else env.keep(values.encode(filled, what=f"{self.graph.name} is given"))

    def _set_join_deadline(self, key: str, now: int) -> e.TimerSet:
        """Return the timer of a join that has its first arrival."""
        node = join_node(self.state, key)
        deadline = self.graph.nodes[node].deadline
        assert deadline is not None
        return e.TimerSet(node=node, join=key, due=now + deadline.ms)

    def _schema_error(self, schema: dict[str, Any] | None, raw: Raw, env: Env) -> str | None:
        if schema is None:
            return None
        return env.check(schema, bytes(raw) if is_unmarked(raw) else values.encode(open_raw(raw, env.blob)))

    def _advance_token(self, token: Token, env: Env) -> Sequence[e.AnyEvent]:
        match token.mode:
            case "routing":
                return self._route_token(token, env)
            case "failing":
                return self._route_failure(token, env)
        begun = node_start.start_node(self.program, self.view(token, token.value, env, error=token.error))
        if isinstance(begun[0], e.TaskScheduled) and (token.earlier is not None or self.state.repeated):
            return self._repeat_work(token, begun[0])
        passed = begun[-1]
        if not isinstance(passed, e.NodeRouted):
            return begun
        denied = self._denied_by_rules(token.node, passed.taken)
        if denied is not None:
            failed = e.NodeFailed(
                node=token.node, token=token.id, failure=denied, writes=passed.writes, output=passed.output
            )
            return (*begun[:-1], failed)
        limit = self._limit_failure(passed.taken, token.node)
        return begun if limit is None else lifecycle.begin_end(self.state, limit)

    def _repeat_work(self, token: Token, task: e.TaskScheduled) -> Sequence[e.AnyEvent]:
        """Return the events of a task that may repeat work, at this node or at another one."""
        state, place = self.state, f"{token.node}/{token.id}"
        digest = digest_of_work(task.step, task.input)
        earlier = token.earlier or find_repeated(state, token, digest)
        if task.policy.effect == "irreversible" and (earlier is None or earlier.digest not in ("", digest)):
            dropped = find_dropped(state, token)
            if find_equal(dropped, task.step, digest) is not None or (earlier is None and dropped):
                return repeat_elsewhere(state, dropped, place, task, digest)
        return (task,) if earlier is None else repeat_work(state, earlier, place, task, digest)

    def _route_token(self, token: Token, env: Env) -> Sequence[e.AnyEvent]:
        straight = self.ways.straight.get(token.node)
        if straight is not None and is_unmarked(token.output) and self.state.rules is None:
            state, ways = self.state, self.ways
            if state.hops >= ways.hops_max or len(state.tokens) >= ways.tokens_max:
                limit = self._limit_failure(straight.taken, token.node)
                if limit is not None:
                    return lifecycle.begin_end(state, limit)
            task = self.task_behind(token, straight.taken, token.output, env)
            return (e.NodeRouted(node=token.node, token=token.id, taken=straight.taken, task=task),)
        work = self.graph.nodes[token.node].work
        if isinstance(work, ReceiveWork) and (wrong := node_start.message_error(work, token, env)) is not None:
            refused = e.MessageRefused(wait=EntryId(0), id=token.message, error=wrong, token=token.id)
            return (refused, *messages.refuse_message(self.state, token.message, wrong))
        output = node_start.changed_output(work, token, env)
        found = route(self.graph, self.view(token, output or token.output, env), self.program.reader)
        if found.failure is not None:
            failed = e.NodeFailed(
                node=token.node, token=token.id, failure=found.failure, writes=found.writes, output=output
            )
            return (failed,)
        denied = self._denied_by_rules(token.node, found.taken)
        if denied is not None:
            return (e.NodeFailed(node=token.node, token=token.id, failure=denied, writes=found.writes, output=output),)
        limit = self._limit_failure(found.taken, token.node)
        if limit is not None:
            return lifecycle.begin_end(self.state, limit)
        event = e.NodeRouted(
            node=token.node,
            token=token.id,
            taken=found.taken,
            writes=found.writes,
            verdicts=found.verdicts,
            skips=found.skips,
            arrival=found.arrival,
            output=output,
            task=self.task_behind(token, found.taken, output or token.output, env, found.view)
            if found.view is not None
            else None,
        )
        return (event,)

    def task_behind(
        self, token: Token, taken: Sequence[e.Taken], output: Raw, env: Env, view: View | None = None
    ) -> e.TaskScheduled | None:
        """Return the task that a token begins behind the only edge it takes, if nothing else comes before it.

        The task is decided in advance, from the state as it will be (``view``: after the writes of the token). Returns
        None if that state is not known; the task is then decided when the token has arrived. Raises MissingInputs.
        """
        node = self.ways.tasks.get(taken[0].edge) if len(taken) == 1 else None
        if node is None or len(self.state.agenda) > 1 or self.state.repeated:
            return None
        behind = derive(token.id, taken[0].edge, 0)
        fixed = node_start.fixed_task(self.program, node, behind)
        if fixed is not None:
            return fixed
        if view is None:
            view = self.view(token, output, env)
        view.token = Token(id=behind, node=node.id, path=token.path, value=output, seen=view.token.seen)
        begun = node_start.start_node(self.program, view)[0]
        if not isinstance(begun, e.TaskScheduled):
            return None
        return msgspec.structs.replace(begun, input=e.ABSENT) if begun.input is output else begun

    def _route_failure(self, token: Token, env: Env) -> Sequence[e.AnyEvent]:
        view = self.view(token, token.value, env, error=token.failure)
        found = route_failure(self.graph, view, self.program.reader)
        denied = self._denied_by_rules(token.node, found.taken)
        if denied is not None:
            found = Route(failure=denied)
        if found.failure is None:
            caught = e.NodeRouted(
                node=token.node, token=token.id, taken=found.taken, verdicts=found.verdicts, caught=True
            )
            return (caught,)
        taker, raised = self._handling_frame(token.path, found.failure, env)
        other = None if raised == found.failure else raised
        return (e.FailureRaised(node=token.node, token=token.id, failure=found.failure, taker=taker, raised=other),)

    def _handling_frame(self, path: Path, failure: Failure, env: Env) -> tuple[str, Failure]:
        """Return the innermost frame on a path that handles a failure, and the failure as it arrives there.

        Nothing has changed yet: if no frame handles it ("") the run keeps its whole state.
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

    def undo(self, newest: Undo, env: Env) -> Sequence[e.AnyEvent]:
        """Undo a completed task with its recorded input and result, or with the input that the document specifies."""
        if newest.plan.takes is not None:
            return (undo.schedule_undo(newest),)
        state = self.state
        node = newest.location.rpartition("/")[0]
        token = Token(id="", node=node, path=[])
        of = EntryId(newest.task)
        # It is undone as the version says under which it was performed.
        program = self.program.at(version_at(state, newest.task)) if state.revisions else self.program
        try:
            view = self.view(token, newest.output, env)
            view.graph = program.graph
            view.kept = composite_fields(leaf(newest.kept))
            given = node_start.undo_input(program, view)
        except WeftError as error:
            failure = Failure(type=error.code, message=error.message, code=error.code, step=newest.plan.step)
            scheduled = e.UndoScheduled(of=of, step=newest.plan.step, input=e.NULL)
            return (scheduled, e.TaskFailed(task=EntryId(state.seq + 1), failure=failure))
        return (e.UndoScheduled(of=of, step=newest.plan.step, input=given),)

    def view(self, token: Token, output: Raw, env: Env, *, error: Failure | None = None) -> View:
        """Return the view of expressions at a token."""
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

    def _denied_by_rules(self, node: str, taken: Sequence[e.Taken]) -> Failure | None:
        """Return the failure of a node that may not lead where it leads, by the rules of the run."""
        rules = self.state.rules
        if rules is None:
            return None
        target = rules.denied(node, [self.graph.edges[one.edge].to for one in taken])
        if not target:
            return None
        allowed = ", ".join(rules.transitions[node]) or "no other node"
        message = f"{node} may not lead to {target}: the run_policies of the run allow {allowed}"
        return Failure(type="NotAllowed", message=message, code="policy.denied", step=node)

    def _limit_failure(self, taken: Sequence[e.Taken], node: str) -> Failure | None:
        ways, rules = self.ways, self.state.rules
        made = 0
        for one in taken:
            made += len(one.items) if one.items is not None else self.graph.edges[one.edge].copies or 1
        hops_max = min(ways.hops_max, rules.hops) if rules is not None and rules.hops else ways.hops_max
        if self.state.hops >= hops_max:
            return _over_limit("hops", hops_max)
        if len(self.state.tokens) + made > ways.tokens_max:
            return _over_limit("tokens", ways.tokens_max)
        fan_out_max = self.graph.nodes[node].limits.fan_out or ways.fan_out_max
        return _over_limit("fan_out", fan_out_max) if made > fan_out_max else None

    def _complete_run(self, env: Env) -> Sequence[e.AnyEvent]:
        try:
            raw = self._run_result(env)
        except WeftError as error:
            failure = Failure(type=error.code, message=error.message, code=error.code)
            return lifecycle.begin_end(self.state, failure)
        wrong = self._schema_error(self.graph.result, Raw(raw), env)
        if wrong is not None:
            message = f"the output of {self.graph.name} does not fit: {wrong}"
            return lifecycle.begin_end(self.state, Failure(type="BadValue", message=message, code="bad_output"))
        return (e.RunCompleted(output=env.keep(raw), not_undone=list(self.state.not_undone)),)

    def _run_result(self, env: Env) -> bytes:
        view = self.view(Token(id="", node=START, path=[]), e.NULL, env)
        expr = self.graph.output
        found = view.bind_state() if expr is None else self.program.reader.template(expr.source, view.bind(expr))
        return values.encode(found, what=f"{self.graph.name} gives")

    def _deadlock_failure(self) -> Failure:
        waiting = []
        for slot in self.state.slots.values():
            node = self.graph.nodes[slot.node]
            lacks = [self.graph.edges[o].source for o in node.incoming if not slot.items.get(o)]
            if lacks and node.join == "edges":
                waiting.append(f"{slot.node} lacks {', '.join(lacks)}")
        waiting += [f"{t.node} has one arrival too many" for t in self.state.tokens.values() if t.mode == "joining"][:3]
        return Failure(type="deadlock", message="; ".join(waiting) or "no token can move", code="deadlock")


def _over_limit(name: str, most: int) -> Failure:
    return Failure(type="limit", message=f"the limit of {most} {name} is reached", code="limit")
