"""How far a run is: items of maps, branches of fan-outs, work items of goals."""

import asyncio
import sys
from typing import Annotated, Any

import weft
from tests.code.desk import Desk
from tests.code.timeless import calm
from weft.core.ids import RunId
from weft.observe.diagnosis import Progress
from weft.observe.progress import progress_of


class Gate:
    """Lets items pass up to a number."""

    def __init__(self, passing: int) -> None:
        self.passing = passing
        self.opened = asyncio.Event()

    async def __call__(self, n: int) -> int:
        if n >= self.passing:
            await self.opened.wait()
        return n


def watched(app: weft.App, gate: Gate, call: Any, given: dict[str, Any] | None = None) -> list[list[Progress]]:
    """What is told while items wait at the gate, and after the end."""
    desk = Desk(app)

    async def scene() -> list[list[Progress]]:
        run = await (app.start(call, id="r") if given is None else app.start(call, given, id="r"))
        await calm()
        told = []
        for _ in range(2):
            row = await app.service.row(RunId("r"))
            told.append(progress_of(await app.service.reader.machine(row)))
            gate.opened.set()
            await run.result()
        return told

    return desk.play(scene)


def test_a_map_tells_how_many_of_its_items_are_done() -> None:
    app, gate = weft.App("memory://"), Gate(3)

    @app.step
    async def work(n: int) -> int:
        return await gate(n)

    @app.workflow
    async def flow(ctx: weft.Context) -> list[int]:
        async def twice(n: int) -> int:
            await work(n)
            return await work(n)

        return await ctx.map("items", twice, range(500), width=8)

    assert watched(app, gate, flow()) == [[Progress("items", 3, 500)], []]


def test_maps_in_maps_come_after_those_around_them() -> None:
    app, gate = weft.App("memory://"), Gate(0)

    @app.step
    async def work(n: int) -> int:
        return await gate(n)

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        async def inner(n: int) -> list[int]:
            return await ctx.map("inner", work, range(2))

        await ctx.map("outer", inner, range(2))

    told, _ = watched(app, gate, flow())
    assert [str(one) for one in told] == ["outer 0 of 2", "outer/~0/inner 0 of 2", "outer/~1/inner 0 of 2"]


def test_maps_that_are_done_cost_a_look_nearly_nothing() -> None:
    app, gate = weft.App("memory://"), Gate(990)

    @app.step
    async def work(n: int) -> int:
        return await gate(n)

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        for start in range(0, 1_000, 20):
            await ctx.map("items", work, range(start, start + 20), width=20)

    async def scene() -> tuple[list[Progress], int]:
        run = await app.start(flow(), id="r")
        await calm()
        machine = await app.service.reader.machine(await app.service.row(RunId("r")))
        calls = 0

        def count(frame: object, event: str, arg: object) -> None:
            nonlocal calls
            calls += event == "call"

        sys.setprofile(count)
        try:
            told = progress_of(machine)
        finally:
            sys.setprofile(None)
        gate.opened.set()
        await run.result()
        return told, calls

    told, calls = Desk(app).play(scene)
    assert told == [Progress("items#50", 10, 20)]
    assert calls < 500


def test_a_fan_out_tells_how_many_of_its_branches_are_done() -> None:
    app, gate = weft.App("memory://"), Gate(2)

    @app.step
    async def work(n: int) -> int:
        return await gate(n)

    graph = app.graph(
        {
            "name": "fan",
            "input": {"items": "integer[]"},
            "nodes": {
                "begin": {"pass": True, "next": [{"for_each": "${input.items}", "as": "n", "to": "work"}]},
                "work": {"step": "work", "with": {"n": "${n}"}, "next": "all"},
                "all": {"pass": True, "join": "all"},
            },
        }
    )

    assert watched(app, gate, graph, {"items": [0, 1, 2, 3]}) == [[Progress("all", 2, 4)], []]


def test_a_goal_step_tells_how_many_of_its_work_items_are_done() -> None:
    app, gate = weft.App("memory://"), Gate(1)

    @app.step(gives="done", width=8)
    async def work(n: Annotated[int, weft.Each("numbers")]) -> int:
        return await gate(n)

    told = watched(app, gate, app.goal("all", work), {"numbers": [0, 1, 2]})
    assert told == [[Progress("work", 1, 3)], []]


def test_an_explanation_has_it_too() -> None:
    app, gate = weft.App("memory://"), Gate(1)

    @app.step
    async def work(n: int) -> int:
        return await gate(n)

    @app.workflow
    async def flow(ctx: weft.Context) -> list[int]:
        return await ctx.map("items", work, range(3))

    async def scene() -> weft.Explanation:
        run = await app.start(flow(), id="r")
        await calm()
        return await run.explain()

    explanation = Desk(app).play(scene)
    assert explanation.progress == [Progress("items", 1, 3)]
    assert "items 1 of 3" in str(explanation)
