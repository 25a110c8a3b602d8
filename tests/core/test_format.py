"""The event format: a log folds under another uid, and means the same when its graph changes elsewhere."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from tests.core.histories import BEGIN, History, Tape, play
from tests.goal.plays import start
from tests.graph.documents import compiled, nodes
from tests.graph.table import Program, Table
from weft.core import events as e
from weft.core.code.machine import CodeMachine
from weft.core.goal.machine import GoalMachine
from weft.core.goal.state import GoalState
from weft.core.graph.machine import GraphMachine
from weft.core.graph.model import GraphModel
from weft.core.graph.tokens import GraphState

OTHER = "f" * 32

AGAIN = {"while": "output.more", "at_most": 3, "back_to": "a"}
WORKING: dict[str, Any] = {
    "a": {"step": "s", "next": [{"to": "b", "for_each": "${[1, 2]}"}]},
    "b": {"step": "s", "next": "j"},
    "j": {"join": "all", "pass": True, "next": "c"},
    "c": {"step": "s", "repeat": AGAIN, "next": [{"to": ["x", "y"]}]},
    "x": {"step": "s", "next": "z"},
    "y": {"step": "s", "next": "z"},
    "z": {"join": "edges", "step": "s"},
}

LOOPING = [{"output": {"more": True}}, {"output": {"more": False}}]


def played(graph: GraphModel, hops: int, seed: int) -> Table:
    """A run that has answered so many tasks, in some order; the loop goes round once."""
    table = Table(graph, {})
    order, calls = random.Random(seed), Counter[str]()
    for _ in range(hops):
        if not table.open:
            break
        table.answer(order.choice(sorted(table.open)), {"c": LOOPING}, calls)
    return table


def folded(graph: GraphModel, log: list[e.AnyEvent], uid: str) -> dict[str, Any]:
    machine = GraphMachine(Program(graph), GraphState(uid=uid))
    for event in log:
        machine.evolve(event, at=1_000)
    return without_uid(machine.state)


def without_uid(state: Any) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(state))
    del found["uid"]
    return found


@pytest.mark.parametrize("hops", range(9))
def test_the_log_of_a_graph_run_folds_under_another_uid(hops: int) -> None:
    graph = compiled(nodes(**WORKING))
    for seed in range(5):
        log = played(graph, hops, seed).log

        assert folded(graph, log, OTHER) == folded(graph, log, "0" * 32)


def test_the_log_of_a_goal_run_folds_under_another_uid() -> None:
    document: Mapping[str, Any] = {
        "list": {"gives": {"n": "any"}},
        "each": {"needs": {"n": {"type": "any", "each": True}}, "gives": {"x": "any"}},
        "g": {"needs": {"x": "any"}},
    }
    table = start(document, ["g"])
    table.play({"list": {"output": {"n": [1, 2, 3]}}, "each": {"output": {"x": 1}}, "g": {"output": {}}})
    for length in range(len(table.events) + 1):
        states = []
        for uid in ("u", OTHER):
            machine = GoalMachine(table.program, GoalState(uid=uid))
            for event in table.events[:length]:
                machine.evolve(event, at=1_000)
            states.append(without_uid(machine.state))
        assert states[0] == states[1]


def test_the_log_of_a_code_run_folds_under_another_uid() -> None:
    for seed in range(40):
        chance = random.Random(seed)
        log = play(History(), Tape([chance.randrange(2**16) for _ in range(100)])).log
        states = []
        for uid in ("0" * 32, OTHER):
            machine = CodeMachine.fresh(uid)
            for event, at in log:
                machine.evolve(event, at=at or BEGIN)
            states.append(without_uid(machine.state))
        assert states[0] == states[1]


@pytest.mark.parametrize("hops", range(9))
def test_a_node_inserted_elsewhere_shifts_nothing_that_a_log_names(hops: int) -> None:
    graph = compiled(nodes(**WORKING))
    with_more = compiled(nodes(first={"step": "s", "next": "second"}, second={"step": "s"}, **WORKING))
    for seed in range(5):
        log = played(graph, hops, seed).log

        assert folded(with_more, log, "0" * 32) == folded(graph, log, "0" * 32)
