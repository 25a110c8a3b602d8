"""What differs between two runs, and between two versions."""

from __future__ import annotations

import random
from typing import Any

import pytest
from msgspec import UNSET

import weft
from tests.forks.programs import STARTS, build, play, start
from weft.documents.json_diff import changed_values, patch_operations
from weft.documents.json_patch import apply_operations
from weft.observe.diff import Diff
from weft.testing import SimRun, World


def diff(a: SimRun[Any], b: SimRun[Any], **points: Any) -> Diff:
    a.world.settle()
    return a.world.perform(lambda: a.world.app.diff(a.id, b.id, **points))


def played(name: str, run_id: str = "a") -> tuple[weft.App, World, SimRun[Any]]:
    app, _ = build()
    world = World(app)
    run = start(app, world, name, run_id)
    play(run)
    return app, world, run


@pytest.mark.parametrize("name", list(STARTS))
def test_two_runs_of_the_same_are_equal(name: str) -> None:
    app, world, run = played(name)
    other = start(app, world, name, "b")
    play(other)

    found = diff(run, other)

    assert found.equal, found.runs
    fork = run.fork()
    play(fork)
    assert diff(run, fork).equal


def test_the_first_divergence_comes_first() -> None:
    _, _, run = played("line")
    fork = run.fork(after="plain", set={"plain": {"n": 3}})
    play(fork)

    found = diff(run, fork).runs

    assert found is not None
    assert found.first is not None
    assert (found.first.place, found.first.aspect) == ("plain", "value")
    assert [(one.pointer, one.a, one.b) for one in found.first.changes] == [("/n", 2, 3)]
    assert ("pay", "input") in [(one.place, one.aspect) for one in found.changed]
    assert ("pay", "value") in [(one.place, one.aspect) for one in found.changed]
    assert not found.only_a
    assert not found.only_b


def test_another_input_is_the_first_divergence() -> None:
    _, _, run = played("line")
    fork = run.fork(input={"n": 5})
    play(fork)

    found = diff(run, fork).runs

    assert found is not None
    assert found.first is not None
    assert (found.first.place, found.first.aspect) == ("the run", "input")


def test_what_only_one_run_has_is_listed() -> None:
    app, world, run = played("failing")
    other = start(app, world, "line", "b")
    play(other)

    found = diff(run, other)

    assert not found.equal
    assert found.runs is not None
    assert found.runs.only_a == ["book", "broken"]
    assert "calculate" in found.runs.only_b
    assert found.runs.first is not None
    assert (found.runs.first.place, found.runs.first.aspect) == ("book", "presence")


def test_runs_are_compared_up_to_an_event() -> None:
    _, _, run = played("line")
    fork = run.fork(at=5, set={"calculate": {"n": 1}})
    play(fork)

    assert not diff(run, fork).equal
    assert diff(run, fork, at_a=5, at_b=5).equal
    with pytest.raises(weft.Refused):
        diff(run, fork, at_a=99)


def test_work_that_is_open_has_no_value() -> None:
    _, _, run = played("line")

    found = diff(run, run, at_b=4).runs

    assert found is not None
    changes = [one.changes for one in found.changed if (one.place, one.aspect) == ("pay", "value")]
    assert [(one.a, one.b) for one in changes[0]] == [({"n": 20}, UNSET)]


def test_who_decided_and_the_facts_are_compared() -> None:
    _, _, run = played("delivery")
    fork = run.fork(before="charge", set={"charge": 100})
    play(fork)

    found = diff(run, fork).runs

    assert found is not None
    assert {"fact receipt", "fact letter"} <= {one.place for one in found.changed}
    assert "fact price" not in {one.place for one in found.changed}


def test_conditions_are_compared_with_what_they_saw() -> None:
    app = weft.App("memory://")

    @app.step
    async def score(n: int) -> dict[str, int]:
        return {"n": n}

    graph = app.graph(
        {
            "name": "branching",
            "input": {"n": "integer"},
            "nodes": {
                "a": {
                    "step": "score",
                    "with": {"n": "${input.n}"},
                    "next": [{"to": "b", "when": "output.n > 5"}, {"to": "c"}],
                },
                "b": {"step": "score", "with": {"n": 1}},
                "c": {"step": "score", "with": {"n": 1}},
            },
        }
    )
    world = World(app)
    low, high = world.start(graph, {"n": 1}, id="low"), world.start(graph, {"n": 9}, id="high")
    low.result(), high.result()

    found = diff(low, high).runs

    assert found is not None
    (conditions,) = (one for one in found.changed if one.aspect == "conditions")
    assert conditions.place == "a"
    assert "/a>b/taken" in [one.pointer for one in conditions.changes]
    assert (found.only_a, found.only_b) == (["c"], ["b"])


def test_a_run_and_something_else_cannot_be_compared() -> None:
    app, world, run = played("line")

    with pytest.raises(weft.UsageError, match="is a run"):
        world.perform(lambda: app.diff(run.id, "order@1"))
    with pytest.raises(weft.NotFound):
        world.perform(lambda: app.diff("nothing", "nowhere"))


# --- values and documents ------------------------------------------------------------------------------------------


def value(chance: random.Random, depth: int = 3) -> Any:
    kind = chance.randrange(6 if depth else 4)
    if kind == 4:
        return [value(chance, depth - 1) for _ in range(chance.randrange(4))]
    if kind == 5:
        return {chance.choice("ab/~c"): value(chance, depth - 1) for _ in range(chance.randrange(4))}
    return [None, True, chance.randrange(3), chance.choice("xy")][kind]


def test_operations_turn_one_document_into_the_other() -> None:
    chance = random.Random(7)
    for _ in range(500):
        a, b = {"d": value(chance)}, {"d": value(chance)}
        operations = patch_operations(a, b)
        assert apply_operations(a, operations) == b
        assert bool(operations) is bool(changed_values(a, b)) is (a != b or repr(a) != repr(b))


def test_values_are_equal_only_if_their_types_are() -> None:
    assert changed_values({"a": 1}, {"a": True})
    assert changed_values([1, 2], [1])[0].pointer == "/1"
    assert not changed_values({"a": 1, "b": 2}, {"b": 2, "a": 1})


def test_a_question_about_something_else_is_a_difference() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def ship(ctx: weft.Context, total: int) -> bool:
        return (await ctx.ask("approve", title="Ship it?", about={"total": total})).approved

    world = World(app)
    runs = [world.start("ship", {"total": total}, id=f"order-{total}") for total in (100, 200)]
    world.settle()

    found = diff(runs[0], runs[1]).runs

    assert found is not None
    [asked] = [one for one in found.changed if one.place == "approve"]
    assert asked.aspect == "input"
    assert [(one.pointer, one.a, one.b) for one in asked.changes] == [("/total", 100, 200)]
