"""From what was seen to what is wrong. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from weft.core.graph.model import Graph, Node
from weft.core.graph.soundness.flaws import Flaw
from weft.core.graph.soundness.play import Play, PlayFacts
from weft.core.graph.soundness.position import Position, Trail
from weft.core.graph.soundness.reach import Reach, fed_joins

FLAWS_MAX = 100


def judge(play: Play, stuck: list[Position], *, whole: bool) -> list[Flaw]:
    """All flaws, errors first, nearest first. What never happens is told only if everything was looked at."""
    graph, facts = play.graph, play.facts
    reach = Reach(graph)
    found = [*_deadlocks(graph, stuck), *_crowds(graph, facts, reach)]
    if whole:
        found += [*_silent_nodes(graph, facts), *_closed_loops(graph, facts, stuck)]
        if not facts.completed and not any(flaw.severity == "error" for flaw in found):
            found.append(Flaw("never_completes", "", "no run of this graph can complete: every way ends in a failure."))
    found.sort(key=lambda flaw: (flaw.severity != "error", flaw.code != "deadlock", len(flaw.moves)))
    return found[:FLAWS_MAX]


def _deadlocks(graph: Graph, stuck: list[Position]) -> Iterator[Flaw]:
    """One for each join that may wait for ever."""
    nearest: dict[str, Position] = {}
    for position in sorted(stuck, key=lambda each: each.trail.length):
        for token in position.state.tokens.values():
            nearest.setdefault(token.node, position)
    for name, position in nearest.items():
        node = graph.nodes[name]
        waits = _waiting(graph, node, position) if node.join == "edges" else "a token stays there and nothing can move."
        yield Flaw("deadlock", name, f"{name} may wait for ever: {waits}", position.trail.moves(), _TOO_MUCH)


_TOO_MUCH = "One edge delivers twice here. Let its tokens meet earlier (join: edges), or close the fan-out with a join."


def _waiting(graph: Graph, join: Node, position: Position) -> str:
    came, lacks = _edges_at(graph, join, position)
    return f"{_listed(came)} came, and nothing more will come from {_listed(lacks)}."


def _edges_at(graph: Graph, join: Node, position: Position) -> tuple[list[str], list[str]]:
    """From where something has come to a stuck join, and from where nothing."""
    slot = next(
        each
        for each in position.state.slots.values()
        if each.node == join.id and any(item for items in each.items.values() for item in items)
    )
    came = [graph.edges[o].source for o in join.incoming if any(slot.items.get(o, ()))]
    return came, [graph.edges[o].source for o in join.incoming if not slot.items.get(o)]


def _crowds(graph: Graph, facts: PlayFacts, reach: Reach) -> Iterator[Flaw]:
    """Nodes that several tokens enter in one scope."""
    for name, trail in facts.doubled.items():
        yield Flaw(
            "unbounded_tokens",
            name,
            f"two tokens go back to {name} in one round, so that every round has more of them.",
            trail.moves(),
            "Let them meet (join: edges) in front of the node that goes back.",
        )
    for name, trail in facts.twice.items():
        if name in facts.doubled:
            continue
        joins = fed_joins(graph, name, reach)
        if joins:
            message = f"{name} may run twice where {_listed(joins[:3])} waits for it once."
            yield Flaw("entered_twice", name, message, trail.moves(), _TOGETHER)
        else:
            message = f"{name} may run more than once: each token that comes runs it."
            yield Flaw("entered_twice", name, message, trail.moves(), severity="warning")


_TOGETHER = "Let the tokens meet: join: edges on this node, or a join that closes the fan-out."


def _silent_nodes(graph: Graph, facts: PlayFacts) -> Iterator[Flaw]:
    """Nodes that no run gets to; of those behind each other only the first, and where a run should end."""
    for name, node in graph.nodes.items():
        if name in facts.ran:
            continue
        if name in facts.met:
            yield _unfilled(node, facts.met[name])
        elif node.terminal and node.scopes:
            yield Flaw("unreachable_terminal", name, f"no run can end at {name}: it is never reached.")
        elif all(graph.edges[o].source in facts.ran or not graph.edges[o].source for o in node.incoming):
            yield Flaw("never_runs", name, f"{name} can never run.")


def _unfilled(node: Node, trail: Trail) -> Flaw:
    if node.fan_in is None:
        message = f"{node.id} can never have all its edges."
    else:
        message = f"{node.id} never sees as many branches of {node.fan_in.opener or 'start'} as it waits for."
    return Flaw("join_never_fills", node.id, message, trail.moves())


def _closed_loops(graph: Graph, facts: PlayFacts, stuck: list[Position]) -> Iterator[Flaw]:
    """Loops that no run leaves, though nothing is stuck in them."""
    waiting = {run.loop for position in stuck for run in position.state.loops.values()}
    for loop, trail in facts.begun.items():
        if loop not in facts.ended and loop not in waiting:
            ring = graph.loops[loop]
            message = (
                f"the loop from {_listed(ring.latches)} back to {ring.header} is never left: its limit is a failure."
            )
            suggestion = "Say where it leads when the limit is reached (exhausted), or let its condition change."
            yield Flaw("loop_without_exit", ring.header, message, trail.moves(), suggestion)


def _listed(names: list[str]) -> str:
    names = [name or "start" for name in dict.fromkeys(names)]
    if len(names) < 2:
        return "".join(names) or "nobody"
    return f"{', '.join(names[:-1])} and {names[-1]}"
