"""All ways in which a token may leave a node, whatever its data: every result of the real routing. Pure.

The real routing is called repeatedly with a reader that guesses. Whenever it needs a truth value or a list, the guesses
so far are repeated and the next possibility is tried. So tiers, defaults and limits work as in a run, and a condition
that is not evaluated is not guessed. Within a hop each condition has one value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from weft.core.events import NULL, Taken
from weft.core.graph.model import GraphModel, Node
from weft.core.graph.route import Route, route, route_failure
from weft.core.graph.soundness.reduction import item_counts
from weft.core.graph.tokens import GraphState, LoopRun, Seg, Token
from weft.core.graph.view import View
from weft.core.run.env import Env
from weft.errors import Failure

OUTCOMES_MAX = 1024
ASKED_MAX = 60_000
"""How many edges may be tried in total. Many outcomes of many edges are expensive and show no more than a few."""
ANOTHER = "another"
"""An error that no catch entry names."""

_ENV = Env(now=0, check=lambda *_: None)
# Such a condition is false unless something failed; the rest of the text cannot change that without an alternative.
_NEEDS_ERROR = re.compile(r"\s*(error|state\._last_error)\s*!=\s*null\s*(&&[^|?]*)?", re.DOTALL)


class RouteChoice(msgspec.Struct, frozen=True):
    """One way to leave a node. ``taken`` empty: the token ends."""

    taken: list[Taken]
    skips: bool = True


class Outcomes(msgspec.Struct, frozen=True):
    """All ways to leave a node. ``fails``: possibly no edge matches. ``whole`` False: there are more."""

    ways: list[RouteChoice]
    fails: bool = False
    whole: bool = True


class Choices:
    """The outcomes of each node, computed once."""

    def __init__(self, graph: GraphModel) -> None:
        self._graph = graph
        self._known: dict[tuple[str, int], Outcomes] = {}
        self._asked_left = ASKED_MAX

    def after_success(self, node: Node, executions: int) -> Outcomes:
        """Return where a token may go after the n-th execution of the node in its loop."""
        key = (node.id, min(executions, node.repeat.at_most) if node.repeat is not None else 0)
        if key not in self._known:
            self._known[key] = self._collect_outcomes(node, key[1], [None], route)
        return self._known[key]

    def after_failure(self, node: Node) -> Outcomes:
        """Return which error edges may handle a failure of the node."""
        key = (node.id, -1)
        if key not in self._known:
            named = [self._graph.edges[name].errors or [] for tier in node.error_tiers for name in tier]
            kinds: list[str | None] = [*sorted({kind for kinds in named for kind in kinds}), ANOTHER]
            self._known[key] = self._collect_outcomes(node, 1, kinds, route_failure)
        return self._known[key]

    def _collect_outcomes(
        self, node: Node, executions: int, errors: Sequence[str | None], ask: Callable[[GraphModel, View, Guess], Route]
    ) -> Outcomes:
        found: dict[tuple[object, ...], RouteChoice] = {}
        fails = False
        whole = True
        edges = sum(map(len, node.tiers))
        for error in errors:
            guess = Guess(item_counts(self._graph, node), failing=error is not None)
            view = self._guessed_view(node, executions, error)
            while guess.begin():
                answer = ask(self._graph, view, guess)
                if answer.failure is not None:
                    fails = True
                else:
                    shape = tuple((one.edge, -1 if one.items is None else len(one.items)) for one in answer.taken)
                    found.setdefault((answer.skips, *shape), RouteChoice(list(answer.taken), answer.skips))
                self._asked_left -= edges
                if len(found) >= OUTCOMES_MAX or self._asked_left <= 0:
                    whole = False
                    break
        return Outcomes(list(found.values()), fails, whole)

    def _guessed_view(self, node: Node, executions: int, error: str | None) -> View:
        """Return a view at the node, in a round of its loop, with an otherwise empty state."""
        state = GraphState(uid="")
        token = Token(id="", node=node.id, path=[])
        if node.repeat is not None:
            state.loops["loop"] = LoopRun(id="loop", loop=node.repeat.loop, path=[], made=0)
            token.path = [Seg("l", "loop", executions - 1)]
        failure = Failure(type=error, message=error, code=error) if error is not None else None
        return View(graph=self._graph, state=state, token=token, output=NULL, env=_ENV, data=state.data, error=failure)


class Guess:
    """A reader that tries all answers. ``begin`` starts the next combination and returns False after the last."""

    def __init__(self, counts: Sequence[int], *, failing: bool) -> None:
        self._counts = counts
        self._failing = failing
        self._answers: list[int] = []
        self._left: list[int] = []
        self._asked: dict[str, int] = {}
        self._begun = False

    def begin(self) -> bool:
        """Start the next combination."""
        self._asked = {}
        if not self._begun:
            self._begun = True
            return True
        while self._left and not self._left[-1]:
            self._left.pop()
            self._answers.pop()
        if not self._left:
            return False
        self._left[-1] -= 1
        self._answers[-1] += 1
        return True

    def _next_answer(self, source: str, options: int) -> int:
        place = self._asked.setdefault(source, len(self._asked))
        if place == len(self._answers):
            self._answers.append(0)
            self._left.append(options - 1)
        return self._answers[place]

    def condition(self, source: Any, bindings: Mapping[str, Any]) -> tuple[bool, dict[str, Any]]:
        known = _constant_condition(source)
        if known is None and not self._failing and isinstance(source, str) and _NEEDS_ERROR.fullmatch(source):
            known = False
        if known is None:
            known = self._next_answer(f"condition {msgspec.json.encode(source, order='sorted').decode()}", 2) == 0
        return known, {}

    def expression(self, source: str, bindings: Mapping[str, Any]) -> Any:
        # Try the largest count first: two items show more than none.
        counts = self._counts[::-1]
        return [None] * counts[self._next_answer(f"list {source}", len(counts))]

    def template(self, source: Any, bindings: Mapping[str, Any]) -> Any:
        return None


def _constant_condition(source: Any) -> bool | None:
    if isinstance(source, bool):
        return source
    if isinstance(source, str):
        return {"true": True, "false": False}.get(source.strip())
    return None
