"""What was begun before a patch of a graph, and ends after it: docs/changing-runs.md#what-happens-to-a-run."""

from __future__ import annotations

from typing import Any

import weft
from weft.testing import World


def played(document: dict[str, Any], fakes: dict[str, Any]) -> tuple[World, Any]:
    """Start a run of a graph whose steps are fakes, and let it come to where it waits."""
    app = weft.App("memory://")
    for name in fakes:
        app.step(name=name, retries=0)(_step(name))
    world = World(app)
    for name, answers in fakes.items():
        world.fake(name, *(answers if isinstance(answers, list) else [answers]))
    run = world.start(app.graph({"weft": "graph/1", "name": "order", **document}), {}, id="o-1")
    world.settle()
    return world, run


def _step(name: str) -> Any:
    async def step(input: Any = None) -> Any:
        return name

    step.__qualname__ = step.__name__ = name
    return step


def patch(world: World, *ops: dict[str, Any], **more: Any) -> None:
    world.perform(lambda: world.app.get("o-1").patch(list(ops), **more))
    world.settle()


def test_the_outcome_of_what_is_in_flight_goes_by_the_new_version() -> None:
    document = {
        "nodes": {
            "wait": {"receive": "go", "save": {"state.old": "${output}"}, "next": "before"},
            "before": {"step": "before"},
        },
        "state": {"old": "integer", "new": "integer"},
        "output": {"old": "${state.old}", "new": "${state.new}"},
    }
    world, run = played(document, {"before": 1, "after": 2})
    patch(
        world,
        {"op": "replace", "path": "/nodes/wait/save", "value": {"state.new": "${output}"}},
        {"op": "replace", "path": "/nodes/wait/next", "value": "after"},
        {"op": "move", "from": "/nodes/before", "path": "/nodes/after"},
        {"op": "replace", "path": "/nodes/after/step", "value": "after"},
    )
    run.send("go", 7)
    assert run.result() == {"old": None, "new": 7}
    assert (len(world.calls("before")), len(world.calls("after"))) == (0, 1)


def test_completed_work_is_undone_as_its_version_says() -> None:
    document = {
        "nodes": {
            "pay": {"step": "pay", "undo": {"step": "refund", "with": {"input": "old"}}, "next": "wait"},
            "wait": {"receive": "go", "next": "ship"},
            "ship": {"step": "ship", "undo": {"step": "refund", "with": {"input": "ship, old"}}, "next": "fail"},
            "fail": {"step": "fail"},
        }
    }
    world, run = played(document, {"pay": 1, "refund": None, "ship": 2, "fail": weft.Critical("no")})
    patch(
        world,
        {"op": "replace", "path": "/nodes/pay/undo/with/input", "value": "new"},
        {"op": "replace", "path": "/nodes/ship/undo/with/input", "value": "ship, new"},
    )
    run.send("go", None)
    world.settle()
    assert run.status == "failed"
    assert [call.args for call in world.calls("refund")] == [{"input": "ship, new"}, {"input": "old"}]
