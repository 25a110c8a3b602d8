"""What arrives after a fan-in fired is folded in as if all were merged again, and costs what one branch costs."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from tests import scale
from tests.graph.table import Table
from tests.work import lines_of
from weft.core import commands as c
from weft.core.graph.machine import GraphMachine, restore_state
from weft.core.ids import EntryId
from weft.core.run.composites import open_parts
from weft.core.values import seal
from weft.graphs.load import load_graph

pytestmark = scale.MARKS

HOWS = ("append", "keyed_by_branch", "merge_object", "last_wins")
Document = dict[str, Any]


def late(how: str, *, at_least: int = 1, **join: Any) -> Document:
    """A fan-out whose join goes on early; ``z`` works on while late branches come."""
    return {
        "nodes": {
            "a": {"pass": True, "next": [{"to": "b", "for_each": "${input}"}]},
            "b": {"step": "s", "next": "j"},
            "j": {
                "pass": True,
                "join": {"at_least": at_least},
                "late": "merge",
                "merge": {"how": how, "into": "state.all"},
                "next": "z",
                **join,
            },
            "z": {"step": "s", "with": {}},
        }
    }


def branches(table: Table) -> dict[int, int]:
    """The open tasks of ``b``, by their branches."""
    found = {}
    for number in table.open:
        node, index = table.place(number)
        if node == "b":
            assert index is not None
            found[index] = number
    return found


def answer(table: Table, number: int, output: Any) -> None:
    effect = table.open.pop(number)
    raw = Raw(seal(msgspec.json.encode(output)))
    table.tell(c.ReportTaskSucceeded(EntryId(number), effect.attempt, effect.delivery, raw))


def expected(how: str, outputs: dict[int, Any]) -> Any:
    """All that arrived, in the order of arrival, merged at once."""
    match how:
        case "append":
            return [outputs[index] for index in sorted(outputs)]
        case "keyed_by_branch":
            return {str(index): output for index, output in outputs.items()}
        case "last_wins":
            return list(outputs.values())[-1]
    union: dict[str, Any] = {}
    for index in sorted(outputs):
        union |= outputs[index]
    return union


def held(table: Table) -> Any:
    return open_parts(table.state.data["all"], lambda _: None)


OUTPUTS: dict[str, Callable[[random.Random, int], dict[str, Any]]] = {
    "plain": lambda draw, index: {draw.choice("uvw"): index, f"own{index}": True},
    "sometimes like a mark": lambda draw, index: {
        draw.choice("uvw"): {"$weft": index} if draw.random() < 0.2 else index
    },
    "always like a mark": lambda _, index: {"u": {"$weft": "blob", "v": index}},
    "now and then a mark": lambda draw, index: {"$weft" if draw.random() < 0.2 else "u": index},
}


@pytest.mark.parametrize("kind", OUTPUTS)
@pytest.mark.parametrize("how", HOWS)
def test_late_branches_in_any_order_give_what_all_at_once_would(how: str, kind: str) -> None:
    for seed in range(scale.scaled(4, 20)):
        draw = random.Random(seed)
        table = Table(load_graph(late(how, at_least=draw.choice([1, 3]))).graph, list(range(12)))
        order = list(branches(table).items())
        draw.shuffle(order)
        outputs: dict[int, Any] = {}
        for index, number in order:
            outputs[index] = OUTPUTS[kind](draw, index)
            answer(table, number, outputs[index])
            if draw.random() < 0.3:
                table.machine = GraphMachine(table.machine.style.program, restore_state(table.machine.snapshot()))
            if "all" in table.state.data:
                assert held(table) == expected(how, outputs), f"seed {seed}"


@pytest.mark.parametrize("how", HOWS)
def test_what_somebody_wrote_over_the_merged_value_is_merged_again(how: str) -> None:
    table = Table(load_graph(late(how, save={"state.all.note": "${1}"})).graph, list(range(4)))
    outputs = {}
    for index, number in branches(table).items():
        outputs[index] = {"k": index}
        answer(table, number, outputs[index])
        if index:
            assert held(table) == expected(how, outputs)
        else:
            assert held(table)["note"] == 1


def test_an_object_that_has_a_mark_for_a_field_is_merged_as_a_whole() -> None:
    table = Table(load_graph(late("merge_object")).graph, list(range(4)))
    for index, number in branches(table).items():
        answer(table, number, {"k": index} if index < 2 else {"$weft": "has"})
    assert held(table) == {"k": 1, "$weft": "has"}


def lines_per_branch(how: str, count: int) -> float:
    """Lines of Python executed for each late branch."""
    table = Table(load_graph(late(how)).graph, list(range(count)))
    numbers = list(branches(table).values())
    random.Random(count).shuffle(numbers)
    answer(table, numbers.pop(), {"k": 0})
    open_ = dict(table.open)
    table.open.clear()  # the table looks through it after every command

    def settle() -> None:
        for number in numbers:
            effect = open_[number]
            output = Raw(b'{"k%d":{"a":1,"b":[1,2,3]}}' % number)
            table.tell(c.ReportTaskSucceeded(EntryId(number), effect.attempt, effect.delivery, output))

    return lines_of(settle) / count


@pytest.mark.parametrize("how", scale.first(1, HOWS))
def test_a_late_branch_costs_the_same_among_many(how: str) -> None:
    few, many = lines_per_branch(how, 100), lines_per_branch(how, 600)

    # What grows with the number of branches would be six times as much.
    assert many < few * 1.5


def looping(rounds: int) -> Document:
    """A loop around a fan-out of two, of which one is enough."""
    document = late("append")
    document["nodes"]["j"] |= {
        "step": "s",
        "with": {},
        "repeat": {"while": "output.again", "at_most": rounds + 1, "back_to": "a"},
    }
    del document["nodes"]["j"]["pass"]
    return document


def at(table: Table, node: str) -> int:
    return next(number for number in table.open if table.place(number)[0] == node)


def test_a_branch_that_comes_after_its_loop_has_ended_is_merged() -> None:
    table = Table(load_graph(looping(1)).graph, [1, 2])
    first, second = branches(table).values()
    answer(table, first, "a")
    answer(table, at(table, "j"), {"again": False})

    answer(table, second, "b")

    assert held(table) == ["a", "b"]


def test_a_late_branch_of_an_earlier_round_does_not_overwrite_a_later_one() -> None:
    table = Table(load_graph(looping(2)).graph, [1, 2])
    old = branches(table)
    answer(table, old[0], "old 0")
    answer(table, at(table, "j"), {"again": True})
    new = [number for number in table.open if table.place(number)[0] == "b" and number != old[1]]
    answer(table, new[0], "new 0")

    answer(table, old[1], "old 1")
    assert held(table) == ["new 0"]
    answer(table, new[1], "new 1")

    assert held(table) == ["new 0", "new 1"]


def test_a_late_branch_of_an_earlier_round_is_merged_until_a_later_round_has_merged() -> None:
    table = Table(load_graph(looping(2)).graph, [1, 2])
    first, second = branches(table).values()
    answer(table, first, "old 0")
    answer(table, at(table, "j"), {"again": True})

    answer(table, second, "old 1")

    assert held(table) == ["old 0", "old 1"]
