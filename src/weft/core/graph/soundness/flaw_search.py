"""Find the flaws in a graph from the observations of the search. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from weft.core.graph.model import GraphModel, Node
from weft.core.graph.soundness.flaws import Flaw
from weft.core.graph.soundness.play import Play, PlayFacts
from weft.core.graph.soundness.position import Position, Trail
from weft.core.graph.soundness.reach import Reach, fed_joins

FLAWS_MAX = 100


def find_flaws(play: Play, stuck: list[Position], *, whole: bool) -> list[Flaw]:
    """Return all flaws: errors before warnings, and those with the shortest path first.

    Flaws about what never happens are returned only if the search examined the ``whole`` graph.
    """
    graph, facts = play.graph, play.facts
    reach = Reach(graph)
    found = [*_find_deadlocks(graph, stuck), *_find_repeated_entries(graph, facts, reach)]
    if whole:
        found += [*_find_silent_nodes(graph, facts), *_find_closed_loops(graph, facts, stuck)]
        if not facts.completed and not any(flaw.severity == "error" for flaw in found):
            found.append(
                Flaw("never_completes", "", "no run of this graph can complete: every path ends in a failure.")
            )
    found.sort(key=lambda flaw: (flaw.severity != "error", flaw.code != "deadlock", len(flaw.moves)))
    return found[:FLAWS_MAX]


def _find_deadlocks(graph: GraphModel, stuck: list[Position]) -> Iterator[Flaw]:
    """Yield a flaw for each join that may wait forever."""
    nearest: dict[str, Position] = {}
    for position in sorted(stuck, key=lambda each: each.trail.length):
        for token in position.state.tokens.values():
            nearest.setdefault(token.node, position)
    for name, position in nearest.items():
        node = graph.nodes[name]
        waits = (
            _describe_waiting(graph, node, position)
            if node.join == "edges"
            else "a token stays there and nothing can move."
        )
        yield Flaw("deadlock", name, f"{name} may wait forever: {waits}", position.trail.moves(), _JOIN_EARLIER)


_JOIN_EARLIER = "One edge delivers twice here. Join its tokens earlier (join: edges), or close the fan-out with a join."


def _describe_waiting(graph: GraphModel, join: Node, position: Position) -> str:
    arrived, missing = _edges_at(graph, join, position)
    return f"{_join_names(arrived)} arrived, but nothing will arrive from {_join_names(missing)}."


def _edges_at(graph: GraphModel, join: Node, position: Position) -> tuple[list[str], list[str]]:
    """Return the sources from which something has arrived at a stuck join, and those from which nothing has."""
    slot = next(
        each
        for each in position.state.slots.values()
        if each.node == join.id and any(item for items in each.items.values() for item in items)
    )
    came = [graph.edges[o].source for o in join.incoming if any(slot.items.get(o, ()))]
    return came, [graph.edges[o].source for o in join.incoming if not slot.items.get(o)]


def _find_repeated_entries(graph: GraphModel, facts: PlayFacts, reach: Reach) -> Iterator[Flaw]:
    """Yield a flaw for each node that several tokens enter in one scope."""
    for name, trail in facts.doubled.items():
        yield Flaw(
            "unbounded_tokens",
            name,
            f"two tokens go back to {name} in one round, so every round has more tokens.",
            trail.moves(),
            "Join them (join: edges) before the node that goes back.",
        )
    for name, trail in facts.twice.items():
        if name in facts.doubled:
            continue
        joins = fed_joins(graph, name, reach)
        if joins:
            wait = "waits" if len(joins[:3]) == 1 else "wait"
            message = f"{name} may run twice, but {_join_names(joins[:3])} {wait} for it only once."
            yield Flaw("entered_twice", name, message, trail.moves(), _JOIN_TOKENS)
        else:
            message = f"{name} may run more than once: it runs once for each token that arrives."
            yield Flaw("entered_twice", name, message, trail.moves(), severity="warning")


_JOIN_TOKENS = "Join the tokens: write join: edges on this node, or close the fan-out with a join."


def _find_silent_nodes(graph: GraphModel, facts: PlayFacts) -> Iterator[Flaw]:
    """Yield nodes that no run reaches: only the first of a chain, and nodes where a run should end."""
    for name, node in graph.nodes.items():
        if name in facts.ran:
            continue
        if name in facts.met:
            yield _unfilled_flaw(node, facts.met[name])
        elif node.terminal and node.scopes:
            yield Flaw("unreachable_terminal", name, f"no run can end at {name}: it is never reached.")
        elif all(graph.edges[o].source in facts.ran or not graph.edges[o].source for o in node.incoming):
            yield Flaw("never_runs", name, f"{name} can never run.")


def _unfilled_flaw(node: Node, trail: Trail) -> Flaw:
    if node.fan_in is None:
        message = f"{node.id} can never get a token from all its edges."
    else:
        message = f"{node.id} never gets enough branches of {node.fan_in.opener or 'start'}."
    return Flaw("join_never_fills", node.id, message, trail.moves())


def _find_closed_loops(graph: GraphModel, facts: PlayFacts, stuck: list[Position]) -> Iterator[Flaw]:
    """Yield loops that no run leaves, although nothing is stuck in them."""
    waiting = {run.loop for position in stuck for run in position.state.loops.values()}
    for loop, trail in facts.begun.items():
        if loop not in facts.ended and loop not in waiting:
            ring = graph.loops[loop]
            latches = _join_names(ring.latches)
            message = f"no run leaves the loop from {latches} back to {ring.header}: each fails at its limit."
            suggestion = "Say where to go at the limit (exhausted), or change in the loop what its condition reads."
            yield Flaw("loop_without_exit", ring.header, message, trail.moves(), suggestion)


def _join_names(names: list[str]) -> str:
    names = [name or "start" for name in dict.fromkeys(names)]
    if len(names) < 2:
        return "".join(names) or "nothing"
    return f"{', '.join(names[:-1])} and {names[-1]}"
