"""The fast analyses agree with the slow definitions, on thousands of random graphs."""

from __future__ import annotations

import random
from itertools import combinations
from typing import Any

import pytest

from tests.scale import MARKS, scaled
from weft.core.findings import Problems
from weft.core.graph.dominators import Flow, cut_cycles
from weft.core.graph.expressions import DocumentReader
from weft.core.graph.frames import find_frames
from weft.core.graph.loops import Loops, find_exits, find_loops
from weft.core.graph.shape import Shape, build_shape
from weft.graphs.fold import Rules, fold_document
from weft.graphs.language import Conditions

SEEDS = range(scaled(100, 1500))
pytestmark = MARKS


def random_document(seed: int) -> dict[str, Any]:
    """A graph without plain cycles: edges lead forward, loops back."""
    draw = random.Random(seed)
    count = draw.randint(2, 14)
    listed: list[dict[str, Any]] = []
    for index in range(count):
        node: dict[str, Any] = {"id": f"n{index}", "type": "task", "step": "s"}
        later = [f"n{other}" for other in range(index + 1, min(count, index + 6))]
        chosen = draw.sample(later, min(len(later), draw.choice([0, 1, 1, 1, 2, 2, 3])))
        node["next"] = [{"to": chosen}] if chosen else []
        if draw.random() < 0.35:
            back = f"n{draw.randint(max(0, index - 6), index)}"
            node["repeat"] = {"while": "state.more == true", "at_most": 3, "back_to": back}
        if draw.random() < 0.25:
            node["join"] = draw.choice(["all", "all", "edges"])
        listed.append(node)
    return {"nodes": listed}


def shaped(document: dict[str, Any]) -> tuple[Shape, Problems]:
    problems = Problems()
    folded = fold_document(document, "random", Rules(), problems)
    assert folded is not None
    shape = build_shape(folded, DocumentReader(Conditions(), folded.nodes, problems), problems)
    cut_cycles(shape, problems)
    return shape, problems


def reachable(shape: Shape, start: int, *, without: int = -1) -> set[int]:
    """Nodes reached from a node by forward edges, never entering `without`."""
    found = {start} - {without}
    stack = list(found)
    while stack:
        for arc in shape.out[stack.pop()]:
            if arc.to not in found and arc.to != without:
                found.add(arc.to)
                stack.append(arc.to)
    return found


def slow_body(shape: Shape, loops: list[tuple[int, int]], header: int, latch: int) -> frozenset[int]:
    """The header and all that reaches the latch, by any edge, without passing the header."""
    into: dict[int, set[int]] = {}
    for arcs in shape.out:
        for arc in arcs:
            into.setdefault(arc.to, set()).add(arc.source)
    for other_header, other_latch in loops:
        into.setdefault(other_header, set()).add(other_latch)
    found = {header, latch}
    stack = [latch] if latch != header else []
    while stack:
        for source in into.get(stack.pop(), ()):
            if source not in found:
                found.add(source)
                stack.append(source)
    return frozenset(found)


def slow_loops(shape: Shape, flow: Flow) -> dict[tuple[int, frozenset[int]], set[int]]:
    """(header, body) -> latches: bodies of one header that do not hold each other are put together until they do."""
    pairs = [
        (arc.to, arc.source)
        for arc in shape.back.values()
        if flow.reached(arc.source)
        and arc.to not in (set(range(len(shape.names))) - reachable(shape, 0))
        and arc.source not in reachable(shape, 0, without=arc.to)
    ]
    bodies = [(header, slow_body(shape, pairs, header, latch), {latch}) for header, latch in pairs]
    while True:
        for (i, a), (j, b) in combinations(enumerate(bodies), 2):
            if a[0] == b[0] and not a[1] < b[1] and not b[1] < a[1]:
                bodies[i] = (a[0], a[1] | b[1], a[2] | b[2])
                del bodies[j]
                break
        else:
            return {(header, body): latches for header, body, latches in bodies}


def fast_loops(shape: Shape, loops: Loops) -> dict[tuple[int, frozenset[int]], set[int]]:
    return {
        (ring.header, frozenset(node for node in range(len(shape.names)) if loops.holds(number, node))): {
            arc.source for arc in ring.latches
        }
        for number, ring in enumerate(loops.rings)
    }


@pytest.mark.parametrize("part", range(3))
def test_dominators_are_the_nodes_that_every_path_passes(part: int) -> None:
    for seed in SEEDS[part::3]:
        shape, _ = shaped(random_document(seed))
        flow = Flow(shape)
        reached = reachable(shape, 0)
        assert set(flow.order) == reached
        for above in reached - {0}:
            cut_off = reached - reachable(shape, 0, without=above)
            for node in reached:
                assert flow.dominates(above, node) == (node in cut_off), (seed, above, node)


@pytest.mark.parametrize("part", range(3))
def test_loops_are_the_bodies_of_the_definition(part: int) -> None:
    found = 0
    for seed in SEEDS[part::3]:
        shape, problems = shaped(random_document(seed))
        flow = Flow(shape)
        loops = find_loops(shape, flow, problems)
        assert fast_loops(shape, loops) == slow_loops(shape, flow), seed
        found += len(loops.rings)
    assert found > len(SEEDS) / 5


@pytest.mark.parametrize("part", range(3))
def test_edges_exit_the_loops_that_hold_only_their_source(part: int) -> None:
    for seed in SEEDS[part::3]:
        shape, problems = shaped(random_document(seed))
        loops = find_loops(shape, Flow(shape), problems)
        assert find_exits(shape, loops, problems)
        for arc in shape.arcs:
            exits = [n for n in range(len(loops.rings)) if loops.holds(n, arc.source) and not loops.holds(n, arc.to)]
            assert sorted(arc.exits) == exits, seed
            for inner, outer in zip(arc.exits, arc.exits[1:], strict=False):
                assert loops.rings[inner].parent == outer


@pytest.mark.parametrize("part", range(3))
def test_edges_open_if_they_lead_to_the_fan_in_without_passing_the_opener(part: int) -> None:
    found = 0
    for seed in SEEDS[part::3]:
        shape, problems = shaped(random_document(seed))
        flow = Flow(shape)
        frames = find_frames(shape, flow, problems)
        for opener, fan_in in frames.closer.items():
            found += 1
            assert flow.dominates(opener, fan_in)
            for arc in shape.out[opener]:
                leads = arc.to == fan_in or fan_in in reachable(shape, arc.to, without=opener)
                assert arc.opens == leads, seed
    assert found > len(SEEDS) / 10
