"""The rows of limited tasks: there as long as they are needed, and gone afterwards, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import weft
from weft.runtime.worker.flight import Flight
from weft.runtime.worker.step_worker import StepWorker
from weft.testing import World


def one_at_once(began: list[str], *, seconds: float = 1.0) -> weft.App:
    app = weft.App("memory://")

    @app.step(limit=weft.Limit(concurrency=1))
    async def call(name: str) -> str:
        began.append(name)
        await asyncio.sleep(seconds)
        return name

    @app.workflow
    async def calling(name: str) -> str:
        return await call(name)

    @app.workflow
    async def hasty(ctx: weft.Context, name: str) -> str:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(call(name))
            await ctx.sleep("100ms")
            task.cancel()
        return "gave up"

    return app


def rows(world: World) -> list[tuple[str, bool]]:
    """The runs of all rows, and whether a host has them."""
    content = world._store.content
    found = [*content.tasks.values(), *content.unwanted]
    return [(content.runs[row.offer.uid].id, row.host is not None) for row in found]


def slow_down(port: Any, method: str, is_slow: Callable[[Any, Any], bool], *, after: bool) -> None:
    """Let one call of a port of a store take five seconds, before or after the store does what it asks for."""
    at_once, left = getattr(port, method), [True]

    async def slowly(*arguments: Any, **options: Any) -> Any:
        if not after and left and is_slow(arguments, None):
            left.clear()
            await asyncio.sleep(5)
        done = await at_once(*arguments, **options)
        if after and left and is_slow(arguments, done):
            left.clear()
            await asyncio.sleep(5)
        return done

    setattr(port, method, slowly)


def has_result(arguments: Any, _: Any) -> bool:
    """Whether a commit has the result of a step."""
    return any(b'"task_succeeded"' in event.body for append in arguments[0] for event in append.events)


def slow_world(app: weft.App) -> World:
    """A world in which the answer to the first exchange that hands out a task takes five seconds."""
    world = World(app)
    slow_down(world._service.store.tasks, "exchange", lambda _, done: bool(done.taken), after=True)
    return world


def test_a_row_stays_until_the_report_is_in_the_log() -> None:
    """If the host has lost the run and dies before that, the row is how the loss of the report is noticed."""
    world = World(one_at_once([]))
    slow_down(world._service.store.log, "commit", has_result, after=False)
    run = world.start("calling", {"name": "a"}, id="a")

    world.advance("3s")

    assert rows(world) == [("a", True)]
    assert run.result() == "a"
    world.settle()
    assert rows(world) == []


def test_a_task_whose_run_is_paused_while_it_is_taken_is_performed() -> None:
    began: list[str] = []
    world = slow_world(one_at_once(began))
    run = world.start("calling", {"name": "a"}, id="a")
    world.advance("1s")
    world.perform(lambda: world.app.get("a").pause())
    world.advance("10s")

    world.perform(lambda: world.app.get("a").resume())

    assert run.result() == "a"
    assert began == ["a"]


def test_a_task_that_is_dropped_while_rows_are_written_leaves_no_row() -> None:
    """Its row is inserted and withdrawn in this order, though both wait for the same call."""
    began: list[str] = []
    world = slow_world(one_at_once(began, seconds=20))
    first = world.start("calling", {"name": "a"}, id="a")
    world.settle()
    hasty = world.start("hasty", {"name": "b"}, id="b")

    assert hasty.result() == "gave up"
    world.advance("10s")

    assert rows(world) == [("a", True)]
    assert first.result() == "a"
    assert began == ["a"]


def test_an_unwanted_task_that_never_began_gives_its_place_back(monkeypatch: pytest.MonkeyPatch) -> None:
    began: list[str] = []
    perform, lost = StepWorker.perform, [True]

    def lose_first(self: StepWorker, flight: Flight) -> None:
        if lost:
            lost.clear()
        else:
            perform(self, flight)

    monkeypatch.setattr(StepWorker, "perform", lose_first)
    world = World(one_at_once(began))
    first = world.start("calling", {"name": "a"}, id="a")
    world.advance("1s")
    assert rows(world) == [("a", True)]

    first.cancel()
    world.settle()
    assert world._service.work is not None
    for _ in range(2):  # at the first look, its body may still be cleaning up
        world.perform(world._service.work._shared.renew)
        world.settle()

    assert rows(world) == []
    assert world.run("calling", {"name": "b"}) == "b"


def test_a_task_that_ends_while_the_host_reads_its_rows_is_not_performed_again() -> None:
    began: list[str] = []
    world = World(one_at_once(began, seconds=0.5))
    assert world._service.work is not None
    shared, tasks = world._service.work._shared, world._service.store.tasks
    at_once, held = tasks.taken_by, []

    async def slowly(*arguments: Any, **options: Any) -> Any:
        await asyncio.sleep(0.7)
        held.extend(rows := await at_once(*arguments, **options))
        await asyncio.sleep(0.7)
        return rows

    tasks.taken_by = slowly  # type: ignore[method-assign]
    runs = [world.start("calling", {"name": name}) for name in "abcdefghijkl"]
    world.advance("200ms")
    for _ in range(3):
        world.perform(shared.renew)

    assert [run.result() for run in runs] == list("abcdefghijkl")
    world.settle()
    assert held
    assert began == list("abcdefghijkl")
    assert shared._removals == []


def test_a_task_that_a_look_at_the_rows_began_is_not_begun_again_by_the_late_answer() -> None:
    began: list[str] = []
    world = slow_world(one_at_once(began))
    assert world._service.work is not None
    run = world.start("calling", {"name": "a"})
    world.advance("1s")
    assert began == []

    world.perform(world._service.work._shared.renew)  # it finds a row whose answer never came
    assert run.result() == "a"
    world.advance("10s")

    assert began == ["a"]
    assert rows(world) == []


def test_a_task_that_ends_while_the_end_of_its_run_is_written_leaves_no_row() -> None:
    app = weft.App("memory://")

    @app.step(limit=weft.Limit(concurrency=2))
    async def call(seconds: float) -> None:
        await asyncio.sleep(seconds)

    @app.workflow
    async def racing(ctx: weft.Context) -> str:
        winner = await ctx.race("first", {"quick": call(1.0), "slow": call(1.5)})
        return winner.name

    world = World(app)
    slow_down(world._service.store.log, "commit", has_result, after=False)

    assert world.run(racing()) == "quick"
    world.settle()

    assert rows(world) == []


def test_a_run_that_is_over_leaves_nothing_in_memory() -> None:
    world = World(one_at_once([]))
    runs = [world.start("calling", {"name": name}) for name in "abc"]

    assert [run.result() for run in runs] == ["a", "b", "c"]
    world.settle()

    assert world._service.work is not None
    shared = world._service.work._shared
    assert (shared.offered, shared._in_progress, shared._taken, shared._finished) == ({}, {}, {}, [])
