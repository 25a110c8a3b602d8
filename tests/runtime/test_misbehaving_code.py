"""Whatever user code raises is its own failure: the host goes on, and no run is left standing."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from typing import Any

import pydantic
import pytest

import weft
from tests import scale
from tests.code.desk import Desk


class Odd(BaseException):
    """Not an Exception, and not one of Python's own."""


RAISED: list[type[BaseException]] = [
    SystemExit,
    KeyboardInterrupt,
    GeneratorExit,
    asyncio.CancelledError,
    StopIteration,
    StopAsyncIteration,
    Odd,
]
app = weft.App("memory://")
"""With threads and processes of its own; what it performs elsewhere must be found by name."""
tries: list[str] = []


def throw(name: str) -> None:
    raise {error.__name__: error for error in RAISED}[name]("out")


@app.step(retries=weft.Retry(2, delay="1ms"))
async def on_the_loop(name: str) -> None:
    tries.append("loop")
    throw(name)


@app.step(retries=weft.Retry(2, delay="1ms"))
async def cancels_itself() -> None:
    current = asyncio.current_task()
    assert current is not None
    current.cancel()
    await asyncio.sleep(60)


@app.step(retries=weft.Retry(2, delay="1ms"), timeout="1m")
def in_a_thread(name: str) -> None:
    tries.append("thread")
    throw(name)


@app.step(run_in="process", retries=weft.Retry(2, delay="1ms"))
def in_a_process(name: str) -> None:
    throw(name)


@app.step
async def undoable(name: str) -> str:
    return name


@undoable.undo
async def undo_badly(result: str) -> None:
    throw(result)


@app.workflow
async def calls(ctx: weft.Context, name: str) -> list[str]:
    tries.clear()
    retries = weft.Retry(2, delay="1ms")
    outcomes = [
        await ctx.try_step(on_the_loop(name)),
        await ctx.try_step(in_a_thread(name)),
        await ctx.try_step(in_a_process(name)),
        await ctx.try_step(ctx.step("inline", lambda: throw(name), retries=retries)),
        await ctx.try_step(cancels_itself()),
    ]
    return [f"{found.failure.type}/{found.failure.attempts}" for found in outcomes if isinstance(found, weft.Err)]


@app.workflow
async def fails_and_undoes(ctx: weft.Context, name: str) -> None:
    await undoable(name)
    raise ValueError("enough")


def test_a_step_that_raises_anything_fails_its_attempt_and_is_retried() -> None:
    async def scenario() -> dict[str, list[str]]:
        async with app:
            handles = {error.__name__: await app.start(calls(error.__name__)) for error in RAISED}
            return {name: await handle.result(timeout="60s") for name, handle in handles.items()}

    found = asyncio.run(scenario())

    for error in RAISED:
        name = error.__name__
        # Python itself makes a RuntimeError of it when a coroutine raises it.
        on_the_loop = "RuntimeError" if error is StopIteration else name
        assert found[name] == [f"{on_the_loop}/2", *[f"{name}/2"] * 3, "CancelledError/2"]


@pytest.mark.parametrize("error", RAISED)
def test_an_undo_that_raises_anything_is_reported_and_the_run_ends(error: type[BaseException]) -> None:
    desk = Desk(app)

    assert desk.fail(fails_and_undoes(error.__name__)).type == "ValueError"
    assert "undo_badly" in desk.log()[-1].not_undone[0]  # type: ignore[union-attr]


# --- workflow code ----------------------------------------------------------------------------------------------------

Body = Callable[[weft.Context, Callable[[], None]], Coroutine[Any, Any, Any]]


async def at_the_top(ctx: weft.Context, go: Callable[[], None]) -> None:
    go()


async def in_a_gathered_task(ctx: weft.Context, go: Callable[[], None]) -> None:
    async def part() -> None:
        await ctx.sleep("1s")
        go()

    await asyncio.gather(part(), ctx.sleep("1h"))


async def in_a_task_group(ctx: weft.Context, go: Callable[[], None]) -> None:
    async def part() -> None:
        await ctx.sleep("1s")
        go()

    async with asyncio.TaskGroup() as group:
        group.create_task(part())
        group.create_task(ctx.sleep("1h"))


async def in_a_loop(ctx: weft.Context, go: Callable[[], None]) -> None:
    async def turn(n: int) -> weft.Turn[int, int]:
        go()
        return weft.again(n)

    await ctx.loop("rounds", turn, state=0)


async def in_a_map(ctx: weft.Context, go: Callable[[], None]) -> None:
    async def part(n: int) -> None:
        go()

    await ctx.map("parts", part, [1, 2])


async def in_the_function_of_a_map(ctx: weft.Context, go: Callable[[], None]) -> None:
    def make(n: int) -> Any:
        go()

    await ctx.map("parts", make, [1, 2])


async def in_a_race(ctx: weft.Context, go: Callable[[], None]) -> None:
    async def part() -> None:
        await ctx.sleep("1s")
        go()

    await ctx.race("parts", {"a": part(), "b": part()})


async def in_a_join(ctx: weft.Context, go: Callable[[], None]) -> None:
    async def part() -> None:
        await ctx.sleep("1s")
        go()

    await ctx.join("parts", {"a": part(), "b": ctx.sleep("1h")})


async def in_a_callback(ctx: weft.Context, go: Callable[[], None]) -> None:
    async def part() -> None:
        await ctx.sleep("1s")

    task = asyncio.create_task(part())
    task.add_done_callback(lambda _: go())
    await ctx.sleep("1h")


BODIES: list[Body] = [
    at_the_top,
    in_a_gathered_task,
    in_a_task_group,
    in_a_loop,
    in_a_map,
    in_the_function_of_a_map,
    in_a_race,
    in_a_join,
    in_a_callback,
]


@pytest.mark.parametrize(
    ("body", "error"),
    # A task group takes a task that raises CancelledError for one that was cancelled, which is no failure.
    scale.sample(
        16, [pair for pair in itertools.product(BODIES, RAISED) if pair != (in_a_task_group, asyncio.CancelledError)]
    ),
)
def test_workflow_code_that_raises_anything_fails_its_run_and_no_other(body: Body, error: type[BaseException]) -> None:
    app = weft.App("memory://")

    def go() -> None:
        raise error("out")

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await body(ctx, go)

    @app.workflow
    async def other(ctx: weft.Context) -> str:
        await ctx.sleep("10s")
        return "well"

    desk = Desk(app)

    async def scene() -> tuple[str, str]:
        beside = await app.start(other(), id="other")
        handle = await app.start(flow(), id="run")
        with pytest.raises(weft.RunFailed) as failed:
            await handle.result(timeout="2h")
        return failed.value.failure.type, await beside.result()

    found, beside = desk.play(scene)

    expected = {error.__name__}
    if issubclass(error, (StopIteration, StopAsyncIteration)):
        expected |= {"RuntimeError", "BranchesFailed"}
    if body is in_a_task_group:
        expected |= {"BaseExceptionGroup", "ExceptionGroup"}
    assert found in expected
    assert beside == "well"


@pytest.mark.parametrize("body", [body for body in BODIES if body is not in_a_task_group])
def test_a_stray_cancellation_keeps_its_text_its_line_and_its_traceback(body: Body) -> None:
    app = weft.App("memory://")

    def go() -> None:
        raise asyncio.CancelledError("nobody asked for it")

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await body(ctx, go)

    failure = Desk(app).fail(flow())

    assert (failure.type, failure.message) == ("CancelledError", "nobody asked for it")
    assert failure.where == f"test_misbehaving_code.py:{go.__code__.co_firstlineno + 1}"
    assert 'raise asyncio.CancelledError("nobody asked for it")' in failure.traceback


class Hostile(pydantic.BaseModel):
    name: str

    @pydantic.field_validator("name")
    @classmethod
    def check(cls, value: str) -> str:
        if value in {error.__name__ for error in RAISED}:
            throw(value)
        return value


@pytest.mark.parametrize("error", RAISED)
def test_a_validator_that_raises_anything_refuses_the_value(error: type[BaseException]) -> None:
    app = weft.App("memory://")

    @app.step
    async def takes(given: Hostile) -> str:
        return given.name

    @app.step(retries=0)
    async def gives(name: str) -> Hostile:
        return Hostile.model_construct(name=name)

    @app.workflow
    async def flow(ctx: weft.Context, name: str) -> list[str]:
        outcome = await ctx.try_step(gives(name))
        return [outcome.failure.code] if isinstance(outcome, weft.Err) else []

    @app.workflow
    async def returns(ctx: weft.Context, name: str) -> Hostile:
        return Hostile.model_construct(name=name)

    @app.workflow
    async def given(ctx: weft.Context, hostile: Hostile) -> str:
        return hostile.name

    name = error.__name__
    assert Desk(app).run(flow(name)) == ["value.wrong_type"]
    assert Desk(app).fail(returns(name)).code == "value.wrong_type"

    async def scene() -> str:
        with pytest.raises(weft.BadValue):
            await app.start("given", {"hostile": {"name": name}})
        return "refused"

    assert Desk(app).play(scene) == "refused"
