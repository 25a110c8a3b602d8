"""A record that says several things says what the records one by one would say."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.graph.documents import compiled, nodes
from tests.graph.random_plays import Play, Program, drawn_answers
from tests.graph.table import Table
from tests.graph.test_random_graphs import drawn
from weft.core import events as e
from weft.core.graph.model import GraphModel
from weft.core.unfold import unfold

CHAIN: dict[str, Any] = {"a": {"step": "s", "next": "b"}, "b": {"step": "s", "next": "c"}, "c": {"step": "s"}}


class LongWay(Program):
    """Every token is routed by evaluating, and begins its work in a record of its own."""

    def __init__(self, graph: GraphModel) -> None:
        super().__init__(graph)
        self.ways.straight.clear()
        self.ways.tasks.clear()


class LongPlay(Play):
    program = LongWay


def told(play: Play) -> list[tuple[str, str, str]]:
    """What happened, where, in order; not under which number."""
    events = [event for record in play.log for event in unfold(record)]
    return [(type(event).__name__, getattr(event, "node", ""), getattr(event, "token", "")) for event in events]


def test_the_short_way_leads_where_the_long_way_does() -> None:
    merged = 0
    for seed in range(60):
        graph = drawn(seed)
        for order, failing in enumerate((0.0, 0.2)):
            answers = drawn_answers(seed, failing=failing)
            short = Play(graph, answers, watched=False).to_the_end(order)
            long = LongPlay(graph, answers, watched=False).to_the_end(order)
            merged += len(long.log) - len(short.log)
            assert sorted(told(short)) == sorted(told(long)), f"graph {seed}, order {order}"
            assert short.result() == long.result(), f"graph {seed}, order {order}"
    assert merged > 300


def test_a_chain_writes_three_records_per_step() -> None:
    table = Table(compiled(nodes(**CHAIN)), {})
    table.play({"steps": {}}, seed=0)

    assert len(table.log) == 3 * len(CHAIN)
    kinds = [msgspec.json.decode(e.encode(event))["kind"] for record in table.log for event in unfold(record)]
    assert kinds == [
        "run_started", "node_routed", "task_scheduled", "task_succeeded", "node_routed", "task_scheduled",
        "task_succeeded", "node_routed", "task_scheduled", "task_succeeded", "node_routed", "run_completed",
    ]  # fmt: skip


def test_what_arrives_stands_in_the_log_once() -> None:
    table = Table(compiled(nodes(**CHAIN)), {})
    table.play({"steps": {"a": {"*": {"output": {"mark": "only-once"}}}}}, seed=0)

    assert sum(e.encode(record).count(b"only-once") for record in table.log) == 1
