"""Examine every position that a graph can reach, nearest first, and collect the stuck ones. Pure.

Positions with only one possible move are passed through without being stored. The search ends when there is nothing
new, or when it has used up its budget.
"""

from __future__ import annotations

import heapq

from weft.core.graph.model import GraphModel
from weft.core.graph.soundness.flaw_search import find_flaws
from weft.core.graph.soundness.flaws import Flaw, Verdict
from weft.core.graph.soundness.play import Move, Play
from weft.core.graph.soundness.position import Key, Position, position_key
from weft.core.graph.soundness.reduction import reduce_graph

WORK_MAX = 200_000
"""The budget of the search: one unit for each thing in each copied position, plus something for each move. It is used
up after about a second.
"""
COPIED, PLAYED = 6, 6
"""The cost of a move in addition to its edges: if its position is stored, and if not."""
LOOK = 10
"""How many things can be examined for the cost of copying one."""
SKIPPED = 2
"""How many edges a skip can be passed along for the cost of one unit."""
WORK_AFTER_DEADLOCK = 12_000
"""The remaining budget once a deadlock is found. Stuck tokens create ever more positions."""


def check_soundness(graph: GraphModel, *, work_max: int = WORK_MAX) -> Verdict:
    """Check whether a run of the graph can get stuck, and which parts of it are useless."""
    search = Search(Play(reduce_graph(graph)), work_max)
    search.run()
    flaws: list[Flaw] = find_flaws(search.play, search.stuck, whole=search.whole)
    if any(flaw.severity == "error" for flaw in flaws):
        return Verdict("unsound", flaws, search.positions)
    return Verdict("sound" if search.whole else "unknown", flaws, search.positions)


class Search:
    """A breadth-first search by number of moves. ``stuck``: positions in which tokens wait and nothing can move."""

    def __init__(self, play: Play, work_max: int) -> None:
        self.play = play
        self.stuck: list[Position] = []
        self.positions = 0
        self._work_left = work_max
        self._queue: list[tuple[int, int, Key, Position]] = []
        self._nearest: dict[Key, int] = {}
        self._made = 0

    @property
    def whole(self) -> bool:
        """Whether everything was examined."""
        return self._work_left > 0 and self.play.facts.whole

    def run(self, beginning: Position | None = None) -> None:
        """Examine everything that can follow: from the start of the graph, or from another position."""
        self._play_to_next_choice(beginning or self.play.beginning())
        while self._queue and self._work_left > 0:
            length, _, key, position = heapq.heappop(self._queue)
            if self._nearest[key] < length:
                continue
            self.positions += 1
            moves = self.play.moves(position)
            frozen = position.frozen()
            size = position.size
            for number, move in enumerate(moves, 1):
                self._work_left -= COPIED + size + self._count_edges(position, move)
                if self._work_left <= 0:
                    return
                child = position.copied(frozen) if number < len(moves) else position
                self._make_move(child, move)
                self._play_to_next_choice(child)

    def _play_to_next_choice(self, position: Position) -> None:
        """Play a position forward to the next choice, and store that position."""
        while self._work_left > 0:
            self._work_left -= PLAYED + position.size // LOOK
            moves = [] if position.over else self.play.moves(position)
            if not moves:
                self._end_position(position)
                return
            if len(moves) > 1:
                self._push_position(position)
                return
            self._work_left -= self._count_edges(position, moves[0])
            self._make_move(position, moves[0])

    def _make_move(self, position: Position, move: Move) -> None:
        self._work_left -= self.play.make(position, move) // SKIPPED

    def _count_edges(self, position: Position, move: Move) -> int:
        """Return the number of edges of the node whose token moves: each is taken or skipped."""
        token = position.state.tokens.get(move.token)
        return sum(map(len, self.play.graph.nodes[token.node].tiers)) if token is not None else 1

    def _push_position(self, position: Position) -> None:
        key = position_key(self.play.graph, position)
        length = position.trail.length
        known = self._nearest.get(key)
        if known is None or length < known:
            self._nearest[key] = length
            self._made += 1
            heapq.heappush(self._queue, (length, self._made, key, position))

    def _end_position(self, position: Position) -> None:
        state = position.state
        if state.tokens and not state.agenda and not position.over:
            self.stuck.append(position)
            self._work_left = min(self._work_left, WORK_AFTER_DEADLOCK)
