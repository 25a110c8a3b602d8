"""The past of a graph run, as far as a patch needs it: its log is applied once more, with notes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from weft.core import events as e
from weft.core.graph.hosted import HostedGraph
from weft.core.graph.model import GraphModel
from weft.core.graph.tokens import GraphState, Path, Seen, Token, path_key, seen_after
from weft.core.patch_events import FRAME
from weft.core.run.env import PastEvent
from weft.core.run.kernel import Kernel
from weft.core.run.repeats import digest_of_work
from weft.core.run.state import OpenTask


class TokenWork(msgspec.Struct, frozen=True):
    """A task that a token did or does at a node, with its result if that was routed."""

    node: str
    path: Path
    work: e.Earlier
    effect: str
    step: str
    seq: int
    """The number of the event that began it."""


class NodeVisit(msgspec.Struct, frozen=True):
    """The last time that a node ran in a scope: what came to it, and the work that it did."""

    value: Raw
    work: e.Earlier | None = None
    token: str = ""
    path: Path = []
    """The scope in which it worked. The header of a loop has run in the scopes around it too."""
    seq: int = 0
    """The number of the event before it was routed."""
    visit: int = 0
    """The number of this visit in the past of the tokens that came from it."""


class Past(msgspec.Struct, frozen=True):
    """What has happened in a run, by scope and node."""

    ran: dict[str, dict[str, NodeVisit]]
    """The nodes that have run, by the key of their path."""
    seen: dict[str, dict[str, Seen]]
    """All outputs in the past of each token, and of each frame (``FRAME`` and its id)."""
    works: dict[str, TokenWork]
    """The work of every token that has had any."""

    def has_run(self, path: Path) -> dict[str, NodeVisit]:
        """Return the nodes that have run in a scope."""
        return self.ran.get(path_key(path), {})


def work_of(state: GraphState, task: OpenTask) -> e.Earlier:
    """Return a task as work that may be repeated."""
    n = task.again.n if task.again is not None else state.renewed.get(task.place, 0)
    key = task.again.place if task.again is not None else task.place
    return e.Earlier(key, n, digest_of_work(task.step, task.input))


NOTED = (e.NodeRouted, e.NodeFailed, e.TaskScheduled, e.RunPatched)
"""The events about which there are notes."""
Fold = Callable[[HostedGraph, GraphState], Kernel]
"""Makes an empty run of a graph."""


def read_past(program: HostedGraph, fold_of: Fold, uid: str, log: Sequence[PastEvent]) -> Past:
    """Apply a log with notes. Raises MissingInputs if a version that it names is not in memory."""
    state = GraphState(uid=uid)
    noted: Any = _NotedProgram(program)
    fold = fold_of(noted, state)
    notes = _Notes(state, fold)
    for one in log:
        is_noted = isinstance(one.event, NOTED)
        if is_noted:
            notes.before(one.event)
        fold.evolve(one.event, at=one.at)
        if is_noted:
            notes.after(one.event)
    seen = {token.id: token.seen for token in state.tokens.values()}
    seen.update((FRAME + frame.id, frame.seen) for frame in state.frames.values())
    return Past(notes.ran, seen, notes.works)


class _Notes:
    """Notes which nodes run, while a log is applied."""

    def __init__(self, state: GraphState, fold: Kernel) -> None:
        self._state = state
        self._style = fold.style
        self.ran: dict[str, dict[str, NodeVisit]] = {}
        self.works: dict[str, TokenWork] = {}

    def before(self, event: e.AnyEvent) -> None:
        if isinstance(event, e.NodeRouted) and event.token:
            token = self._state.tokens[event.token]
            visit = NodeVisit(
                token.value,
                self._work_being_routed(token, event),
                token.id,
                token.path,
                self._state.seq,
                _visit_number(token),
            )
            self.ran.setdefault(path_key(token.path), {})[token.node] = visit
            entered = list(token.path)
            while entered and entered[-1].kind == "l" and self._is_loop_header(entered[-1].id, token.node):
                entered.pop()
                self.ran.setdefault(path_key(entered), {})[token.node] = visit
            if not event.caught:
                self._remember_output(token, event.output)
        elif isinstance(event, e.NodeFailed):
            token = self._state.tokens[event.token]
            if token.mode == "routing" or event.output:
                self._remember_output(token, event.output)

    def _remember_output(self, token: Token, output: Raw) -> None:
        """Keep the output of a node that the program itself does not remember."""
        if token.node in self._style.ways.straight:
            token.seen = seen_after(token, output or token.output)

    def _work_being_routed(self, token: Token, event: e.NodeRouted) -> e.Earlier | None:
        """Return the work of a token that is being routed, with its result."""
        done = self.works.get(token.id)
        if done is None or event.caught:
            return done.work if done is not None else None
        work = msgspec.structs.replace(done.work, output=event.output or token.output)
        self.works[token.id] = msgspec.structs.replace(done, work=work)
        return work

    def _is_loop_header(self, loop: str, node: str) -> bool:
        run = self._state.loops.get(loop)
        return run is not None and run.loop.partition("#")[0] == node

    def after(self, event: e.AnyEvent) -> None:
        scheduled = event.task if isinstance(event, e.NodeRouted) else event
        if isinstance(scheduled, e.TaskScheduled) and scheduled.token in self._state.tokens:
            number = self._state.seq
            task = self._state.tasks.get(number) or self._state.parked[number]
            token = self._state.tokens[scheduled.token]
            work = work_of(self._state, task)
            self.works[token.id] = TokenWork(token.node, token.path, work, task.policy.effect, task.step, number)
        if isinstance(event, e.RunPatched) and event.nodes:
            for visits in self.ran.values():
                for old, new in event.nodes.items():
                    if old in visits:
                        visits[new] = visits.pop(old)
            for token_id, one in self.works.items():
                if one.node in event.nodes:
                    self.works[token_id] = msgspec.structs.replace(one, node=event.nodes[one.node])


def _visit_number(token: Token) -> int:
    """Return the number that the present visit has in what the token and its successors have seen."""
    known = token.seen.get(token.node)
    return (known.visit if known is not None else 0) + 1


class _NotedProgram:
    """A program in which tokens keep the outputs of all nodes. Those of straight nodes are kept with the notes."""

    def __init__(self, program: HostedGraph) -> None:
        self._program = program
        self.graph = _graph_remembering_all(program)
        self.ways = program.ways
        self.reader = program.reader

    def at(self, version: str) -> _NotedProgram:
        other = self._program.at(version)
        return self if other is self._program else _NotedProgram(other)


def _graph_remembering_all(program: HostedGraph) -> GraphModel:
    graph, straight = program.graph, program.ways.straight
    nodes = {
        name: msgspec.structs.replace(node, remembered=True)
        for name, node in graph.nodes.items()
        if name not in straight and not node.remembered
    }
    return msgspec.structs.replace(graph, nodes={**graph.nodes, **nodes}) if nodes else graph
