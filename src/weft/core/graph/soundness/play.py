"""Find the possible moves in a position and make them, in the real game with observers. Pure.

One order of moves represents all orders, except in frames whose fan-in fires early. There every order in which the
branches settle is tried. Other branches cannot observe what a branch does before it settles, so a branch that has begun
continues until it has settled.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from weft.core.events import NULL, Taken
from weft.core.graph.game import Game
from weft.core.graph.model import START, Edge, GraphModel, Node
from weft.core.graph.soundness.choices import Choices, RouteChoice
from weft.core.graph.soundness.position import At, Position, Trail
from weft.core.graph.soundness.reach import Reach, may_repeat
from weft.core.graph.tokens import Frame, GraphState, Path, Seg, Token, innermost_branch
from weft.errors import Failure

_FAILURE = Failure(type="failure", message="")


class Move(msgspec.Struct, frozen=True):
    """What a token does next. ``outcome`` None: it fails or, if it has failed already, nothing handles the failure.

    ``join``: no token moves, but the deadline of this join passes.
    """

    token: str
    focus: dict[str, int]
    outcome: RouteChoice | None
    join: str = ""


@dataclass(slots=True)
class PlayFacts:
    """What was observed in any position, each with the shortest path to it."""

    ran: set[str] = field(default_factory=set)
    met: dict[str, Trail] = field(default_factory=dict)
    """Joins that something arrived at or that a frame was opened for."""
    begun: dict[str, Trail] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    """Loops that were entered (``begun``) and left (``ended``)."""
    twice: dict[str, Trail] = field(default_factory=dict)
    doubled: dict[str, Trail] = field(default_factory=dict)
    """Nodes entered twice in one scope (``twice``); headers that two tokens went back to in one round (``doubled``)."""
    completed: bool = False
    whole: bool = True


class _ObservedGame(Game):
    """The game, recording what happens in it."""

    def __init__(self, graph: GraphModel, state: GraphState) -> None:
        super().__init__(graph, state)
        self.entered: list[tuple[str, At, bool]] = []
        self.met: list[str] = []
        self.ended: list[str] = []
        self.skips = 0

    def _activate_token(self, token: Token, node: Node, inside: str = "") -> None:
        self.entered.append((node.id, tuple(token.path), bool(inside)))
        super()._activate_token(token, node, inside)

    def arrive(self, token: Token, edge: Edge) -> None:
        if self.graph.nodes[edge.to].join != "plain":
            self.met.append(edge.to)
        super().arrive(token, edge)

    def _pass_edge(self, edge: Edge, path: Path) -> None:
        self.skips += 1
        super()._pass_edge(edge, path)

    def _end_loop(self, loop_id: str) -> None:
        run = self.state.loops.get(loop_id)
        super()._end_loop(loop_id)
        if run is not None and loop_id not in self.state.loops:
            self.ended.append(run.loop)


class Play:
    """Finds the moves in a position and makes them."""

    def __init__(self, graph: GraphModel, *, all_orders: bool = False) -> None:
        """``all_orders``: try every order of moves, because the position is not one that the graph itself reaches."""
        self.graph = graph
        self._all_orders = all_orders
        self.facts = PlayFacts()
        self._choices = Choices(graph)
        self._repeated = may_repeat(graph)
        self._timed = any(node.deadline is not None for node in graph.nodes.values())
        self._reach = Reach(graph)

    def beginning(self) -> Position:
        position = Position(GraphState(uid="check", begun=True), {}, {}, Trail())
        game = _ObservedGame(self.graph, position.state)
        origin = Token(id="start", node=START, path=[])
        game.emit(origin, None, [Taken(name) for name in self.graph.start], NULL, skips=True)
        game.settle()
        self._record_facts(position, game)
        return position

    # --- possible moves -------------------------------------------------------------------------------------------

    def moves(self, position: Position) -> list[Move]:
        """Return what may happen next: every outcome of the token whose turn it is, or of several that compete."""
        state = position.state
        live = [state.tokens[token_id] for token_id in state.agenda if token_id in state.tokens]
        failing = next((token for token in live if token.mode == "failing"), None)
        if failing is not None:
            return self._after_failure(failing)
        # Work left over after a fan-in has fired affects nothing else: it is played to its end first.
        left = [token for token in live if token.path and self._has_left_scope(state, token.path[0])]
        if self._all_orders:
            turns = [(token, dict[str, int]()) for token in live]
        else:
            turns = self._tokens_to_move(position, left or live, 0) if live else []
        moves = [move for token, focus in turns for move in self._after_success(position, token, focus)]
        if self._timed:
            waiting = Game(self.graph, state).waiting_joins()
            moves += [Move("", {}, None, join) for join in waiting]
        return moves

    def _tokens_to_move(
        self, position: Position, tokens: Sequence[Token], depth: int
    ) -> list[tuple[Token, dict[str, int]]]:
        """Return the tokens whose turn it is, among tokens with the same path up to a depth. The newest goes first."""
        for token in reversed(tokens):
            if self._first_competing_depth(position.state, token.path, depth) is None:
                return [(token, {})]
        place = self._first_competing_depth(position.state, tokens[-1].path, depth)
        assert place is not None
        frame = tokens[-1].path[place].id
        branches: dict[int, list[Token]] = {}
        for token in tokens:
            if len(token.path) > place and token.path[place].id == frame:
                branches.setdefault(token.path[place].n, []).append(token)
        begun = position.focus.get(frame)
        return [
            (token, {frame: n, **inner})
            for n in ([begun] if begun in branches else _distinct_branches(position.state.frames[frame], branches))
            for token, inner in self._tokens_to_move(position, branches[n], place + 1)
        ]

    def _has_left_scope(self, state: GraphState, seg: Seg) -> bool:
        frame = state.frames.get(seg.id) if seg.kind == "f" else None
        return frame is not None and frame.fired

    def _first_competing_depth(self, state: GraphState, path: Path, depth: int) -> int | None:
        """Return the depth of the first frame on the path whose branches compete."""
        for place in range(depth, len(path)):
            frame = state.frames.get(path[place].id) if path[place].kind == "f" else None
            if frame is None or frame.fired or not frame.fan_in:
                continue
            closing = self.graph.nodes[frame.fan_in]
            if closing.fan_in is not None and (closing.fan_in.need.kind != "all" or closing.deadline is not None):
                return place
        return None

    def _after_success(self, position: Position, token: Token, focus: dict[str, int]) -> list[Move]:
        node = self.graph.nodes[token.node]
        found = self._choices.after_success(node, self._executions_in_loop(position.state, token, node))
        self.facts.whole = self.facts.whole and found.whole
        moves = [Move(token.id, focus, outcome) for outcome in found.ways]
        if self._may_fail(position.state, token, node):
            moves.append(Move(token.id, focus, None))
        return moves

    def _after_failure(self, token: Token) -> list[Move]:
        found = self._choices.after_failure(self.graph.nodes[token.node])
        moves = [Move(token.id, {}, outcome) for outcome in found.ways]
        if found.fails:
            moves.append(Move(token.id, {}, None))
        return moves

    def _executions_in_loop(self, state: GraphState, token: Token, node: Node) -> int:
        repeat = node.repeat
        if repeat is None:
            return 1
        rounds = (s.n + 1 for s in reversed(token.path) if s.kind == "l" and state.loops[s.id].loop == repeat.loop)
        return next(rounds, 1)

    def _may_fail(self, state: GraphState, token: Token, node: Node) -> bool:
        """Return whether an edge would handle a failure here, or a frame would continue without the branch.

        The consequences do not depend on where in a branch the failure happens, so only its first node fails.
        """
        if node.error_tiers:
            return True
        for seg in reversed(token.path):
            frame = state.frames.get(seg.id) if seg.kind == "f" else None
            if frame is None or not (frame.fan_in or frame.fired):
                continue
            closing = self.graph.nodes[frame.fan_in]
            assert closing.fan_in is not None
            if frame.fired:
                return False  # nothing waits for it any longer
            if closing.fan_in.need.kind != "all" or closing.error_tiers:
                return token.edge == frame.branches[seg.n].edge
        return False

    # --- making a move --------------------------------------------------------------------------------------------

    def make(self, position: Position, move: Move) -> int:
        """Make a move in the position. Returns the number of edges along which a skip was passed on."""
        state = position.state
        if move.join:
            return self._time_out(position, move.join)
        token = state.tokens[move.token]
        node = self.graph.nodes[token.node]
        position.trail = position.trail.then(describe_move(self.graph, token, move.outcome))
        position.focus.update(move.focus)
        state.agenda.remove(token.id)
        game = _ObservedGame(self.graph, state)
        if move.outcome is not None:
            game.emit(token, node, move.outcome.taken, NULL, skips=move.outcome.skips)
            game.settle()
        elif token.mode != "failing":
            token.mode = "failing"
            state.agenda.append(token.id)
        elif game.raise_failure(token, _FAILURE) is None:
            game.settle()
        else:
            position.over = True
        self._remove_irrelevant(position, game)
        return game.skips

    def _time_out(self, position: Position, join: str) -> int:
        state = position.state
        node = state.frames[join[1:]].fan_in if join[0] == "f" else state.slots[join[1:]].node
        position.trail = position.trail.then(f"{node} times out")
        game = _ObservedGame(self.graph, state)
        game.time_out(join)
        game.settle()
        self._remove_irrelevant(position, game)
        return game.skips

    def _remove_irrelevant(self, position: Position, game: _ObservedGame) -> None:
        """Remove what has no influence on the game, and record what was observed."""
        state = position.state
        state.agenda = [token_id for token_id in state.agenda if token_id in state.tokens]
        state.data, state.unarmed, state.newest = {}, [], {}
        self._record_facts(position, game)

    def _record_facts(self, position: Position, game: _ObservedGame) -> None:
        facts, trail = self.facts, position.trail
        for node_id, at, back in game.entered:
            facts.ran.add(node_id)
            for loop in self.graph.nodes[node_id].heads:
                _keep_shortest_trail(facts.begun, loop, trail)
            if back or node_id in self._repeated:
                times = position.entered[node_id, at] = position.entered.get((node_id, at), 0) + 1
                if times > 1:
                    _keep_shortest_trail(facts.doubled if back else facts.twice, node_id, trail)
        for node_id in game.met:
            _keep_shortest_trail(facts.met, node_id, trail)
        for frame in position.state.frames.values():
            if frame.fan_in:
                _keep_shortest_trail(facts.met, frame.fan_in, trail)
        facts.ended.update(game.ended)
        facts.completed = facts.completed or not (position.state.tokens or position.over)
        if position.entered:
            position.entered = dict(self._relevant_entries(position))

    def _relevant_entries(self, position: Position) -> Iterable[tuple[tuple[str, At], int]]:
        """Yield entries that may be entered again. The others have no influence any more."""
        tokens = [token for token in position.state.tokens.values() if token.mode != "parked"]
        for (node_id, at), times in position.entered.items():
            if any(_is_within(token.path, at) and self._reach.leads(token.node, node_id) for token in tokens):
                yield (node_id, at), times


def _is_within(path: Path, at: At) -> bool:
    """Return whether a token on a path may still reach a scope: it is there, or in an earlier round of its loop."""
    if not at or at[-1].kind == "f":
        return tuple(path[: len(at)]) == at
    last = len(at) - 1
    return len(path) > last and path[last].id == at[-1].id


def _keep_shortest_trail(facts: dict[str, Trail] | dict[int, Trail], name: str | int, trail: Trail) -> None:
    known = facts.get(name)  # type: ignore[arg-type]
    if known is None or trail.length < known.length:
        facts[name] = trail  # type: ignore[index]


def _distinct_branches(frame: Frame, branches: dict[int, list[Token]]) -> list[int]:
    """Return the branches to begin with. Of those that one edge opened and that have not moved yet, one is enough."""
    found: list[int] = []
    seen: set[str] = set()
    for n, tokens in branches.items():
        edge = frame.branches[n].edge
        if len(tokens) == 1 and tokens[0].edge == edge:
            if edge in seen:
                continue
            seen.add(edge)
        found.append(n)
    return found


def describe_move(graph: GraphModel, token: Token, outcome: RouteChoice | None) -> str:
    """Describe a move in words."""
    branch = innermost_branch(token.path)
    name = token.node if branch is None else f"{token.node}[{branch.n}]"
    if outcome is None:
        return f"nothing handles the failure of {name}" if token.mode == "failing" else f"{name} fails"
    if not outcome.taken:
        return f"{name} ends"
    return f"{name} -> {', '.join(_describe_target(graph.edges[one.edge], one) for one in outcome.taken)}"


def _describe_target(edge: Edge, taken: Taken) -> str:
    if edge.kind == "back":
        return f"{edge.to} again"
    if taken.items is not None:
        return f"{edge.to} x{len(taken.items)}"
    return f"{edge.to} x{edge.copies}" if edge.copies else edge.to
