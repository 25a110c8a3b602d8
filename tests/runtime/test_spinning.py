"""Code that never waits works in slices: others go on between them, its work is committed, and a spin is found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import weft
from tests.code.desk import Desk
from weft.runtime.code_driver import CodeDriver
from weft.runtime.private_loop import SPIN_SECONDS, make_loop
from weft.runtime.scopes import CURRENT, Scope

Body = Callable[[weft.Context], Coroutine[Any, Any, None]]


def app_with_neighbour() -> tuple[weft.App, Any]:
    app = weft.App("memory://")

    @app.step
    async def work(n: int) -> int:
        return n + 1

    @app.workflow
    async def neighbour(ctx: weft.Context) -> int:
        n = 0
        for _ in range(20):
            n = await work(n)
        return n

    return app, neighbour


@pytest.mark.parametrize("beside", ["alone", "a_step"])
def test_a_spin_is_held_with_its_line_while_others_go_on(beside: str) -> None:
    app, neighbour = app_with_neighbour()

    @app.step
    async def long() -> None:
        await asyncio.sleep(3600)

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        waiting = asyncio.create_task(long()) if beside == "a_step" else None
        while waiting is None or not waiting.done():
            await asyncio.sleep(0)  # the line

    async def scenario() -> tuple[list[str], weft.Explanation]:
        async with app:
            run = await app.start(flow(), id="spins")
            ended: list[str] = []
            other = await app.start(neighbour(), id="other")
            assert await other.result(timeout="60s") == 20
            ended.append(await run.status())
            while await run.status() != "held":
                await asyncio.sleep(0.01)
            return ended, await run.explain()

    (during,), explained = asyncio.run(scenario())

    assert during in ("running", "held")
    assert "code.spinning" in explained.summary
    assert "test_spinning.py:" in explained.hint


def test_rounds_that_ask_for_nothing_are_committed_on_the_way_and_held() -> None:
    app, neighbour = app_with_neighbour()

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        async def turn(n: int) -> weft.Turn[int, None]:
            return weft.again(n + 1)

        await ctx.loop("rounds", turn, state=0)

    async def scenario() -> tuple[int, weft.Explanation]:
        async with app:
            run = await app.start(flow(), id="endless")
            other = await app.start(neighbour(), id="other")
            assert await other.result(timeout="60s") == 20
            while await run.status() != "held":
                await asyncio.sleep(0.01)
            explained = await run.explain()
            seen = [event async for event in run.events()]
            await run.cancel()
            with pytest.raises(weft.RunCancelled):
                await run.result(timeout="60s")
            return len(seen), explained

    committed, explained = asyncio.run(scenario())
    assert committed >= 50
    assert "code.spinning" in explained.summary
    assert "test_spinning.py:" in explained.hint


async def rounds(ctx: weft.Context) -> None:
    async def turn(n: int) -> weft.Turn[int, None]:
        await ctx.now()
        return weft.again(n + 1)

    await ctx.loop("rounds", turn, state=0)


async def a_plain_loop(ctx: weft.Context) -> None:
    while True:
        await ctx.now()
        await asyncio.sleep(0)


async def a_spin(ctx: weft.Context) -> None:
    while True:
        await asyncio.sleep(0)


@pytest.mark.parametrize("body", [rounds, a_plain_loop, a_spin])
def test_a_plain_cancel_reaches_code_that_never_waits(
    body: Callable[[weft.Context], Coroutine[Any, Any, None]],
) -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await body(ctx)

    async def scenario() -> str:
        async with app:
            run = await app.start(flow(), id="endless")
            await run.cancel()
            with pytest.raises(weft.RunCancelled):
                await run.result(timeout="60s")
            return await run.status()

    assert asyncio.run(scenario()) == "cancelled"


def test_a_loop_hears_of_a_cancel_at_the_same_round_after_a_crash() -> None:
    app = weft.App("memory://")
    heard: list[int] = []

    @app.step
    async def clean_up(n: int) -> int:
        heard.append(n)
        await asyncio.sleep(60)
        return n

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        at = 0

        async def turn(n: int) -> weft.Turn[int, None]:
            nonlocal at
            at = n
            await (ctx.receive("go") if n == 3 else ctx.now())
            return weft.again(n + 1)

        try:
            await ctx.loop("rounds", turn, state=0)
        finally:
            await clean_up(at)

    desk = Desk(app)
    elsewhere = weft.App("memory://")

    async def begin() -> None:
        await app.start(flow(), id="run")

    async def cancel() -> None:
        run: weft.Handle[None] = elsewhere.get("run")
        await run.send("go")
        await run.cancel()

    async def hear() -> None:
        while not heard:
            await asyncio.sleep(0.001)

    async def end() -> None:
        with pytest.raises(weft.RunCancelled):
            await app.get("run").result(timeout="1h")

    desk.play(begin, crash=True)
    desk.play(cancel, app=elsewhere)
    desk.play(hear, crash=True)
    desk.play(end)
    assert heard == [3, 3]


def test_only_time_in_turns_without_an_ask_counts() -> None:
    loop = make_loop()
    clock = [0.0]
    loop.monotonic = lambda: clock[0]

    async def spin() -> None:
        while True:
            clock[0] += 0.0001
            await asyncio.sleep(0)

    driver: Any = type("Driver", (), {"program": type("Program", (), {"name": "flow"})})
    loop.spawn(spin(), Scope(driver, ""))
    slices = 0
    with pytest.raises(weft.LimitExceeded) as stopped:
        while True:
            loop.begin_slice()
            loop.pump()
            slices += 1
            clock[0] += 10.0  # others are busy: no time of this code
            if slices < 300:
                loop.has_asked = True
    assert stopped.value.code == "code.spinning"
    assert slices > 300
    assert SPIN_SECONDS == 1.0
    loop.end_all(weft.Evicted)
    loop.ready.clear()


def _outer_counts() -> dict[str, int]:
    outer = CURRENT.get().outer
    assert outer is not None
    return outer.counts


def test_a_loop_keeps_nothing_per_finished_round(monkeypatch: pytest.MonkeyPatch) -> None:
    app = weft.App("memory://")
    drivers: list[CodeDriver] = []
    begin = CodeDriver.__init__

    def watched(self: CodeDriver, *args: Any) -> None:
        begin(self, *args)
        drivers.append(self)

    monkeypatch.setattr(CodeDriver, "__init__", watched)
    sizes: list[int] = []

    @app.workflow
    async def flow(ctx: weft.Context, rounds: int) -> int:
        async def turn(n: int) -> weft.Turn[int, int]:
            await ctx.now()
            await ctx.now()
            if n % 500 == 0:
                kept = (drivers[-1]._visited, drivers[-1]._passed, drivers[-1]._facts, _outer_counts())
                sizes.append(sum(map(len, kept)))
            return weft.done(n) if n == rounds else weft.again(n + 1)

        return await ctx.loop("rounds", turn, state=0, keep=5)

    assert app.run(flow(3_000)) == 3_000
    assert max(sizes) < 500, sizes
