"""Graph runs on the engine: what they leave behind when they fail, and what a person can do about it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import weft
from weft.core import commands as c
from weft.core.graph.tokens import DeadLetter
from weft.core.ids import RunId
from weft.observe.dead_letters import all_dead_letters
from weft.testing import World


def shop() -> weft.App:
    app = weft.App("memory://")

    @app.step(retries=0)
    def double(n: int) -> int:
        return n * 2

    @app.step(retries=0)
    def check(n: int) -> int:
        return n

    @app.step
    def give_back(n: int) -> None: ...

    return app


def chain(app: weft.App, **second: Any) -> weft.Graph:
    """``double``, then ``check``, which the test lets fail."""
    return app.graph(
        {
            "weft": "graph/1",
            "name": "chain",
            "input": {"n": "integer"},
            "nodes": {
                "first": {"step": "double", "with": {"n": "${input.n}"}, "next": "second"},
                "second": {"step": "check", "with": {"n": "${output}"}, "save": {"state.n": "${output}"}, **second},
            },
        }
    )


def letters(world: World) -> list[tuple[str, str, DeadLetter]]:
    async def look() -> list[tuple[str, str, DeadLetter]]:
        return [(found.row.id, found.token, found.letter) async for found in all_dead_letters(world.app.service)]

    return world.perform(look)


def reopen(world: World, run: str, make: Callable[[str], Any], token: str) -> None:
    world.perform(lambda: world.app.service.tell(RunId(run), make(token)))
    world.settle()


def failed(app: weft.App) -> World:
    world = World(app)
    world.fake("check", ValueError("not yet"))
    run = world.start(app.registered.runnable_named("chain"), {"n": 3}, id="c-1")
    world.settle()
    assert run.status == "failed"
    world.fake("check", 7)
    return world


def test_an_unrouted_failure_is_a_dead_letter_with_its_input() -> None:
    app = shop()
    chain(app)
    world = failed(app)

    ((run, _, letter),) = letters(world)

    assert (run, letter.node, bytes(letter.input), letter.failure.type) == ("c-1", "second", b'{"n":6}', "ValueError")


def test_a_requeued_letter_works_again_and_what_was_done_is_not_repeated() -> None:
    app = shop()
    chain(app)
    world = failed(app)
    ((_, token, _),) = letters(world)

    reopen(world, "c-1", c.RequeueLetter, token)

    assert world.perform(lambda: app.get("c-1").result()) == {"n": 7}
    assert len(world.calls("double")) == 1
    assert letters(world) == []


def test_a_discarded_letter_is_gone_and_the_run_stays_failed() -> None:
    app = shop()
    chain(app)
    world = failed(app)
    ((_, token, _),) = letters(world)

    reopen(world, "c-1", c.DiscardLetter, token)

    assert letters(world) == []
    assert world.perform(lambda: app.get("c-1").status()) == "failed"


def test_a_letter_that_is_not_there_is_refused() -> None:
    app = shop()
    chain(app)
    world = failed(app)

    with pytest.raises(weft.NotFound, match="no dead letter"):
        reopen(world, "c-1", c.RequeueLetter, "nonsense")


def test_a_failed_run_is_tried_again_where_it_failed_also_after_a_restart() -> None:
    app = shop()
    chain(app)
    world = failed(app)

    world.restart()
    world.perform(lambda: app.get("c-1").retry())
    world.settle()

    assert world.perform(lambda: app.get("c-1").result()) == {"n": 7}
    assert [call.args for call in world.calls("double")] == [{"n": 3}]


def fork(app: weft.App) -> weft.Graph:
    """Two branches that meet: ``double`` and ``check``, which the test lets fail."""
    return app.graph(
        {
            "weft": "graph/1",
            "name": "fork",
            "nodes": {
                "begin": {"pass": True, "next": [{"to": ["left", "later"]}]},
                "later": {"wait": "1m", "next": "right"},
                "left": {"step": "double", "with": {"n": 1}, "next": "meet"},
                "right": {"step": "check", "with": {"n": 2}, "next": "meet"},
                "meet": {"join": "all", "merge": {"into": "state.got", "how": "append"}},
            },
        }
    )


def test_retry_after_a_failed_branch_repeats_that_branch_and_joins_what_never_failed() -> None:
    app = shop()
    graph = fork(app)
    world = World(app)
    world.fake("check", ValueError("not yet"))
    run = world.start(graph, {}, id="f-1")
    world.advance("2m")
    assert run.status == "failed"
    world.fake("check", 7)

    world.restart()
    world.perform(lambda: app.get("f-1").retry())
    world.settle()

    assert run.result() == {"got": [2, 7]}
    assert len(world.calls("double")) == 1
    assert letters(world) == []


def test_work_that_may_run_once_and_outlives_the_failure_is_not_repeated_by_a_retry() -> None:
    app = shop()
    charged: list[int] = []

    @app.step(effect="irreversible")
    async def charge(n: int) -> int:
        await asyncio.sleep(60)
        charged.append(n)
        return n

    graph = app.graph(
        {
            "weft": "graph/1",
            "name": "paying",
            "nodes": {
                "begin": {"pass": True, "next": [{"to": ["pay", "right"]}]},
                "pay": {"step": "charge", "with": {"n": 5}, "next": "meet"},
                "right": {"step": "check", "with": {"n": 2}, "next": "meet"},
                "meet": {"join": "all", "merge": {"into": "state.got", "how": "append"}},
            },
        }
    )
    world = World(app)
    world.fake("check", ValueError("not yet"))
    run = world.start(graph, {}, id="p-1")
    world.settle()
    assert run.status == "rolling_back"
    world.advance("2m")
    assert run.status == "failed"
    world.fake("check", 7)

    world.perform(lambda: app.get("p-1").retry())
    world.settle()

    assert run.result() == {"got": [5, 7]}
    assert charged == [5]


def test_what_was_undone_cannot_be_gone_on_from() -> None:
    app = shop()
    graph = app.graph(
        {
            "weft": "graph/1",
            "name": "chain",
            "nodes": {
                "first": {
                    "step": "double",
                    "with": {"n": 1},
                    "undo": {"step": "give_back", "with": {"n": "${output}"}},
                    "next": "second",
                },
                "second": {"step": "check", "with": {"n": "${output}"}},
            },
        }
    )
    world = World(app)
    world.fake("check", ValueError("no"))
    run = world.start(graph, {}, id="c-1")
    world.settle()

    assert (run.status, [call.args for call in world.calls("give_back")]) == ("failed", [{"n": 2}])
    ((_, token, _),) = letters(world)
    with pytest.raises(weft.RunUndone, match="was undone") as refused:
        world.perform(lambda: app.get("c-1").retry())
    assert refused.value.code == "run.undone"
    assert "Start a new run" in refused.value.hint
    with pytest.raises(weft.RunUndone):
        reopen(world, "c-1", c.RequeueLetter, token)
    reopen(world, "c-1", c.DiscardLetter, token)
    assert letters(world) == []


def test_an_undo_without_words_is_given_the_input_and_the_result_by_name() -> None:
    app = shop()

    @app.step
    def take_back(n: int, result: int) -> None: ...

    graph = app.graph(
        {
            "weft": "graph/1",
            "name": "chain",
            "nodes": {
                "first": {"step": "double", "with": {"n": 4}, "undo": "take_back", "next": "second"},
                "second": {"step": "check", "with": {"n": "${output}"}},
            },
        }
    )
    world = World(app)
    world.fake("check", ValueError("no"))
    world.start(graph, {}, id="c-1")
    world.settle()

    assert [call.args for call in world.calls("take_back")] == [{"n": 4, "result": 8}]


def raced(app: weft.App) -> tuple[World, Any]:
    """A run of two branches, of which one fails and the other is enough. It takes about an hour."""
    graph = app.graph(
        {
            "weft": "graph/1",
            "name": "race",
            "nodes": {
                "start": {"pass": True, "next": [{"to": "work", "for_each": "${[1, 2]}"}]},
                "work": {"step": "check", "with": {"n": "${item}"}, "next": "later"},
                "later": {"wait": "1m", "next": "meet"},
                "meet": {"join": "any", "merge": {"into": "state.got", "how": "append"}, "next": "wait"},
                "wait": {"wait": "1h"},
            },
        }
    )
    world = World(app)
    world.fake("check", lambda n: 5 if n == 2 else 1 // 0)
    return world, world.start(graph, {}, id="r-1")


def test_the_letter_of_a_branch_whose_join_went_on_cannot_be_requeued() -> None:
    world, run = raced(shop())
    world.advance("5m")
    ((_, token, _),) = letters(world)

    with pytest.raises(weft.Refused, match="continued without it"):
        reopen(world, "r-1", c.RequeueLetter, token)
    assert run.result() == {"got": [5]}


@pytest.mark.parametrize(
    ("passed", "status"),
    [("10s", "running"), ("20m", "running"), ("3h", "completed")],
    ids=["awake", "at rest", "over"],
)
def test_a_letter_is_discarded_while_its_run_goes_on_and_after_its_end(passed: str, status: str) -> None:
    world, run = raced(shop())
    world.advance(passed)
    assert run.status == status
    ((_, token, _),) = letters(world)

    reopen(world, "r-1", c.DiscardLetter, token)

    assert letters(world) == []
    assert run.result() == {"got": [5]}
    with pytest.raises(weft.NotFound, match="no dead letter"):
        reopen(world, "r-1", c.DiscardLetter, token)


def test_a_node_has_a_deadline_for_all_its_attempts() -> None:
    app = shop()
    graph = chain(
        app, retry={"attempts": 10, "delay": "1m", "backoff": "fixed", "max_delay": "1m"}, limits={"time": "150s"}
    )
    world = World(app)
    world.fake("check", ValueError("again"))

    with pytest.raises(weft.RunFailed, match="did not end within"):
        world.run(graph, {"n": 1})
    assert len(world.calls("check")) == 3


def test_a_run_has_a_deadline_too() -> None:
    app = shop()
    graph = app.graph({"weft": "graph/1", "name": "slow", "limits": {"time": "1h"}, "nodes": {"wait": {"wait": "2h"}}})

    with pytest.raises(weft.RunFailed, match="did not end before its deadline"):
        World(app).run(graph)


@pytest.mark.parametrize(
    ("given", "complaint"), [({"n": "six"}, "is not of type"), ({}, "required"), ({"n": 1, "m": 2}, "m")]
)
def test_an_input_that_does_not_fit_is_refused_at_the_door(given: dict[str, Any], complaint: str) -> None:
    app = shop()
    graph = chain(app)

    with pytest.raises(weft.BadValue, match=complaint):
        World(app).start(graph, given)


def test_a_child_graph_with_a_wrong_input_fails_and_its_parent_hears_of_it() -> None:
    app = shop()
    chain(app)
    outer = app.graph(
        {"weft": "graph/1", "name": "outer", "nodes": {"call": {"workflow": "chain", "with": {"n": "x"}}}}
    )

    with pytest.raises(weft.RunFailed, match="the input of chain does not fit"):
        World(app).run(outer)


def test_a_failed_child_may_be_routed_instead() -> None:
    app = shop()
    chain(app)
    outer = app.graph(
        {
            "weft": "graph/1",
            "name": "outer",
            "nodes": {
                "call": {
                    "workflow": "chain",
                    "with": {"n": 1},
                    "on_failure": "route",
                    "save": {"state.why": "${output.error.type}"},
                }
            },
        }
    )
    world = World(app)
    world.fake("check", KeyError("gone"))

    assert world.run(outer) == {"why": "KeyError"}


def test_a_declared_field_of_the_state_holds_only_what_it_says() -> None:
    app = shop()
    graph = app.graph(
        {
            "weft": "graph/1",
            "name": "typed",
            "state": {"n": "string"},
            "nodes": {"first": {"step": "double", "with": {"n": 1}, "save": {"state.n": "${output}"}}},
        }
    )

    with pytest.raises(weft.RunFailed, match=r"saves state.n, which does not fit"):
        World(app).run(graph)


def test_values_too_large_for_the_log_are_merged_saved_and_read_like_others() -> None:
    app = weft.App("memory://")

    @app.step
    def page(n: int) -> dict[str, str]:
        return {"text": str(n) * 40_000, "$weft": "blob"}

    @app.step
    def count(texts: list[str]) -> list[int]:
        return [len(text) for text in texts]

    graph = app.graph(
        {
            "weft": "graph/1",
            "name": "pages",
            "nodes": {
                "start": {"pass": True, "next": [{"to": "page", "for_each": "${[1, 2, 3]}"}]},
                "page": {"step": "page", "with": {"n": "${item}"}, "next": "all"},
                "all": {
                    "join": "all",
                    "merge": {"from": "output.text", "how": "append", "into": "state.texts"},
                    "next": "count",
                },
                "count": {
                    "step": "count",
                    "with": {"texts": "${state.texts}"},
                    "save": {"state.sizes": "${output}", "state.first": "${state.texts[0]}"},
                },
            },
            "output": {"sizes": "${state.sizes}", "same": "${state.first == state.texts[0]}"},
        }
    )

    assert World(app).run(graph) == {"sizes": [40_000] * 3, "same": True}


def test_what_users_write_is_never_taken_for_a_reference() -> None:
    app = weft.App("memory://")
    tricky = {"$weft": "blob", "at": "cas://sha256:" + "0" * 64, "size": 1, "inner": [{"$weft": "has", "v": 1}]}

    @app.step
    def give() -> Any:
        return tricky

    graph = app.graph(
        {
            "weft": "graph/1",
            "name": "tricky",
            "nodes": {
                "start": {"pass": True, "next": [{"to": "give", "for_each": "${[1, 2]}"}]},
                "give": {"step": "give", "with": {}, "next": "all"},
                "all": {"join": "all", "merge": {"how": "append", "into": "state.got"}},
            },
        }
    )

    assert World(app).run(graph) == {"got": [tricky, tricky]}


def test_a_registered_node_type_performs_its_nodes() -> None:
    class Config(BaseModel):
        times: int

    async def perform(config: Config, given: Any) -> Any:
        return [given] * config.times

    weft.register_node_type(weft.NodeType("test.repeat", perform, Config))
    app = weft.App("memory://")
    graph = app.graph(
        {
            "weft": "graph/1",
            "name": "typed",
            "input": {"x": "string"},
            "nodes": {
                "a": {
                    "type": "test.repeat",
                    "config": {"times": 2},
                    "with": "${input.x}",
                    "save": {"state.got": "${output}"},
                }
            },
        }
    )

    assert World(app).run(graph, {"x": "a"}) == {"got": ["a", "a"]}
    with pytest.raises(weft.BadGraph) as refused:
        app.graph(
            {"weft": "graph/1", "name": "wrong", "nodes": {"a": {"type": "test.repeat", "config": {"times": "x"}}}}
        )
    assert [finding.code for finding in refused.value.findings] == ["graph.bad_config"]


@pytest.mark.parametrize(
    ("node", "code"),
    [
        ({"step": "dubble", "with": {"n": 1}}, "graph.unknown_step"),
        ({"step": "double", "with": {"m": 1}}, "graph.unknown_argument"),
        ({"step": "double", "with": {}}, "graph.missing_argument"),
        ({"workflow": "parcels"}, "graph.unknown_workflow"),
        ({"step": "double", "with": {"n": 1}, "undo": "undubble"}, "graph.unknown_step"),
    ],
)
def test_what_nobody_here_could_perform_is_refused_before_the_start(node: dict[str, Any], code: str) -> None:
    app = shop()
    graph = app.graph({"weft": "graph/1", "name": "g", "nodes": {"a": node}})

    with pytest.raises(weft.BadGraph) as refused:
        World(app).start(graph)
    assert code in [finding.code for finding in refused.value.findings]


def test_a_run_goes_on_with_the_version_it_began_with(tmp_path: Path) -> None:
    def app_with(n: int) -> weft.App:
        app = weft.App(f"sqlite:///{tmp_path}/weft.db")
        app.registered.add_step(say, name="say")
        app.graph(
            {
                "weft": "graph/1",
                "name": "g",
                "nodes": {
                    "ask": {"ask": {"title": "Go on?"}, "next": "say"},
                    "say": {"step": "say", "with": {"n": n}, "save": {"state.n": "${output}"}},
                },
            }
        )
        return app

    async def start(app: weft.App, id: str) -> None:
        async with app:
            await app.start("g", {}, id=id)

    async def finish(app: weft.App, id: str) -> Any:
        async with app:
            await app.service.tell(RunId(id), c.DecideAsk("ask", approved=True))
            return await app.get(id).result(timeout=120)

    asyncio.run(start(app_with(1), "g-1"))
    changed = app_with(2)
    asyncio.run(start(changed, "g-2"))

    assert asyncio.run(finish(changed, "g-2")) == {"n": 2}
    assert asyncio.run(finish(changed, "g-1")) == {"n": 1}


def say(n: int) -> int:
    return n


@pytest.mark.parametrize("error", ["*", ["ValueError", "*"]])
def test_a_catch_of_a_star_takes_any_error(error: Any) -> None:
    app = weft.App("memory://")

    @app.step(retries=0)
    def fail() -> None:
        raise LookupError("gone")

    graph = app.graph(
        {
            "weft": "graph/1",
            "name": "star",
            "state": {"type": "string"},
            "nodes": {
                "first": {"step": "fail", "with": {}, "catch": [{"error": error, "to": "mend"}]},
                "mend": {"pass": True, "save": {"state.type": "${error.type}"}},
            },
        }
    )

    assert app.run(graph, {}) == {"type": "LookupError"}


def test_a_catch_of_a_part_of_a_name_is_refused() -> None:
    with pytest.raises(weft.BadGraph, match="a type or code of errors"):
        weft.Graph.of({"nodes": {"a": {"pass": True, "catch": [{"error": "Http*", "to": "b"}]}, "b": {"pass": True}}})
