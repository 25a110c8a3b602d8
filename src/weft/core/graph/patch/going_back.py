"""Go back in a graph run: find the token that performs everything from a place on once more. Pure.

A place is a node, or a node and a token. The run can go back to a node that has run, or at which a token is, in a scope
that is still there. Of the tokens that came from there one goes back, and the others end.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Raw

from weft.core import events as e
from weft.core.graph.model import GraphModel
from weft.core.graph.patch.apply import path_steps
from weft.core.graph.patch.joins import live_paths
from weft.core.graph.patch.past import Past, work_of
from weft.core.graph.tokens import AT_WORK, Frame, GraphState, Path, Seen, Token
from weft.core.ids import derive
from weft.core.patch_events import FRAME
from weft.errors import NotFound, Refused

PLACES_SHOWN_MAX = 20


class EarlierVisit(msgspec.Struct, frozen=True):
    """A visit of a node to which a run can go back: by which token, in which scope, with what."""

    token: str
    path: Path
    value: Raw
    work: e.Earlier | None
    visit: int


class WayBack(msgspec.Struct, frozen=True):
    """How a run goes back: one token moves, the others that came from the place end."""

    node: str
    to: EarlierVisit
    moved: Token
    dropped: list[Token]

    @property
    def leaving(self) -> list[Token]:
        """The tokens whose work is withdrawn."""
        return [self.moved, *self.dropped]

    def changes(self, rev: int) -> list[e.TokenPatch]:
        """Return what a patch with this number does to the tokens."""
        move = e.TokenPatch(
            do="move",
            token=self.moved.id,
            to=derive("moved", self.moved.id, rev),
            node=self.node,
            path=path_steps(self.to.path),
            value=self.to.value,
            earlier=self.to.work,
        )
        return [move, *(e.TokenPatch(do="drop", token=token.id, node=token.node) for token in self.dropped)]

    def patch(self) -> Raw:
        """Return the same as a patch that a person could have written."""
        move = [{"token": self.moved.id, "to": self.node}]
        drop = [{"token": token.id} for token in self.dropped]
        return Raw(msgspec.json.encode({"ops": [], "move": move, **({"drop": drop} if drop else {})}))


def find_way_back(graph: GraphModel, state: GraphState, past: Past, place: str) -> WayBack:
    """Return how a run goes back to a place. Raises NotFound, Refused."""
    node = place.partition("/")[0]
    if node not in graph.nodes:
        hint = f"To see where it was: weft show {state.run_id}"
        raise NotFound(f"{graph.name} has no node {node[:60]!r}.", hint=hint, code="run.no_way_back")
    visits = {visit.token: visit for visit in _earlier_visits(state, past, node)}
    found = [visit for token, visit in visits.items() if place in (node, f"{node}/{token}")]
    if not found:
        raise _not_there(state, place, "it never came there, or what it did there is closed")
    if len(found) > 1:
        names = ", ".join(f"{node}/{visit.token}" for visit in found[:PLACES_SHOWN_MAX])
        message = f"{state.run_id} has been at {node} in {len(found)} branches."
        raise Refused(message, hint=f"Name one of them: {names}", code="run.no_way_back")
    return _build_way_back(state, past, node, found[0])


def _earlier_visits(state: GraphState, past: Past, node: str) -> Iterator[EarlierVisit]:
    """Yield the visits of a node in the scopes that are still there. A token that is there now comes first."""
    taken: list[Path] = []
    for token in state.tokens.values():
        if token.node == node and token.mode in AT_WORK and not (token.frame or token.slot):
            task = state.tasks.get(token.task) or state.parked.get(token.task)
            work = work_of(state, task) if task is not None else token.earlier
            taken.append(token.path)
            yield EarlierVisit(
                token.id, token.path, token.value, work, _visit_number(past.seen.get(token.id, {}), node) + 1
            )
    for path in live_paths(state):
        visit = past.has_run(path).get(node)
        if visit is not None and visit.path == path and path not in taken:
            yield EarlierVisit(visit.token, path, visit.value, visit.work, visit.visit)


def _build_way_back(state: GraphState, past: Past, node: str, to: EarlierVisit) -> WayBack:
    place = f"{node}/{to.token}"
    for frame in state.frames.values():
        if not frame.fired and _came_from(frame, past.seen.get(FRAME + frame.id, {}), node, to):
            raise _not_there(state, node, f"the branches of {frame.opener} are open")
    came = [
        token
        for token in state.tokens.values()
        if token.id == to.token or _came_from(token, past.seen.get(token.id, {}), node, to)
    ]
    if any(token.mode in ("parked", "queued") or _in_branch(token, to.path) for token in came):
        raise _not_there(state, node, "what came from there has arrived at a join")
    if not came:
        raise _not_there(state, place, "nothing that came from there is left")
    first = next((token for token in came if token.id == to.token or token.mode == "failing"), came[0])
    return WayBack(node, to, first, [token for token in came if token is not first])


def _came_from(one: Token | Frame, seen: dict[str, Seen], node: str, to: EarlierVisit) -> bool:
    return list(one.path[: len(to.path)]) == to.path and _visit_number(seen, node) >= to.visit


def _visit_number(seen: dict[str, Seen], node: str) -> int:
    return seen[node].visit if node in seen else 0


def _in_branch(token: Token, scope: Path) -> bool:
    return any(seg.kind == "f" for seg in token.path[len(scope) :])


def _not_there(state: GraphState, place: str, why: str) -> Refused:
    return Refused(
        f"{state.run_id} cannot go back to {place[:60]}: {why}.",
        hint=f"Go on with a copy: weft fork {state.run_id} --before {place[:60]}",
        code="run.no_way_back",
    )
