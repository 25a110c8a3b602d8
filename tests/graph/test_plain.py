"""The fast path of a graph run gives the same events, state and effects as the tables, or nothing at all."""

from __future__ import annotations

import random

import msgspec
import pytest

from tests import scale
from tests.graph.random_graphs import timed, well_nested, wild
from tests.graph.random_plays import ENV, Play, drawn_answers
from weft.core import commands as c
from weft.core import events as e
from weft.core.effects import PerformTask
from weft.core.graph.machine import GraphMachine, restore_state
from weft.core.run.env import Env
from weft.errors import BadGraph
from weft.graphs.load import load_graph

pytestmark = scale.MARKS

SEEDS = scale.scaled(150, 2_000)


class TwoPaths(Play):
    """Takes every success on a copy of the run too, by the fast path."""

    taken = 0

    def tell(self, command: c.AnyCommand) -> None:
        if not isinstance(command, c.ReportTaskSucceeded) or self.state.status != "running":
            super().tell(command)
            return
        before = self.machine.snapshot()
        copy = GraphMachine(self.machine.style.program, restore_state(before))
        found = copy.take_success(command, Env(now=0, check=ENV.check))
        known, handed = len(self.log), len(self.handed_out)
        super().tell(command)
        if found is None:
            assert copy.snapshot() == before, "the fast path declines without a trace"
            return
        self.taken += 1
        effects: list[PerformTask] = list(found.effects)
        events = list(found.events)
        while not found.rests and (more := copy.follow(ENV)):
            for event in more:
                copy.evolve(event, at=0)
                events.append(event)
                effects += [one for one in copy.effects(event) if isinstance(one, PerformTask)]
        assert [e.encode(event) for event in events] == [e.encode(event) for event in self.log[known:]]
        assert effects == self.handed_out[handed:]
        assert not copy.follow(ENV)
        assert msgspec.json.decode(copy.snapshot()) == msgspec.json.decode(self.machine.snapshot())


@pytest.mark.parametrize("draw", [well_nested, wild])
def test_the_fast_path_does_what_the_tables_do(draw: object) -> None:
    taken = 0
    for seed in range(SEEDS):
        document = timed(draw(seed), seed)  # type: ignore[operator]
        order = random.Random(seed)
        try:
            graph = load_graph(document).graph
        except BadGraph:  # wild documents need not compile
            continue
        play = TwoPaths(graph, drawn_answers(seed, failing=0.1))
        for _ in range(300):
            if not play.open:
                break
            play.reply(order.choice(play.numbers()))
        taken += play.taken
    assert taken > SEEDS / 10


def test_straight_nodes_take_the_fast_path() -> None:
    nodes = {f"n{number}": {"step": "s", "next": f"n{number + 1}"} for number in range(5)}
    play = TwoPaths(load_graph({"nodes": {**nodes, "n5": {"step": "s"}}}).graph, lambda node, _: {"from": node})
    while play.open:
        play.reply(play.numbers()[0])
    assert play.taken == 6
    assert play.state.status == "completed"
