"""Code that never waits works in slices: others go on between them, its work is committed, and a spin is found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import weft
from tests import scale
from tests.code.desk import Desk
from weft.runtime.run import private_loop
from weft.runtime.run.driver import CodeDriver
from weft.runtime.run.private_loop import SPIN_SECONDS, PrivateLoop, make_loop
from weft.runtime.run.scopes import CURRENT, NameScope

Body = Callable[[weft.Context], Coroutine[Any, Any, None]]
SOON = 0.3
"""Seconds after which a spin is found, where it does not matter how long it takes."""


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
def test_a_spin_is_held_with_its_line_while_others_go_on(beside: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_loop, "SPIN_SECONDS", SOON)
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
            explained = await run.explain()
            await run.cancel()  # or the host waits for its step
            return ended, explained

    (during,), explained = asyncio.run(scenario())

    assert during in ("running", "held")
    assert "code.spinning" in explained.summary
    assert "test_spinning.py:" in explained.hint


def test_rounds_that_ask_for_nothing_are_committed_on_the_way_and_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_loop, "SPIN_SECONDS", SOON)
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


async def times(ctx: weft.Context) -> None:
    while True:
        await ctx.now()


async def numbers(ctx: weft.Context) -> None:
    while True:
        await ctx.random()
        await ctx.uuid()


async def attributes(ctx: weft.Context) -> None:
    n = 0
    while True:
        n += 1
        await ctx.set(n=n)


async def chunks(ctx: weft.Context) -> None:
    while True:
        await ctx.emit("out", 1)


async def beside(ctx: weft.Context) -> None:
    await asyncio.gather(times(ctx), numbers(ctx))


AT_ONCE = [times, numbers, attributes, chunks, beside]


@pytest.mark.parametrize("body", scale.first(2, AT_ONCE))
def test_others_go_on_beside_asks_that_are_answered_at_once(body: Body) -> None:
    app, neighbour = app_with_neighbour()

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await body(ctx)

    async def scenario() -> tuple[str, int]:
        async with app:
            run = await app.start(flow(), id="asks")
            other = await app.start(neighbour(), id="other")
            assert await other.result(timeout="60s") == 20
            during = await run.status()
            await run.cancel()
            with pytest.raises(weft.RunCancelled):
                await run.result(timeout="60s")
            return during, len([event async for event in run.events()])

    during, committed = asyncio.run(scenario())
    assert during == "running"
    assert body is chunks or committed > 20


def test_time_runs_out_for_asks_that_are_answered_at_once() -> None:
    app = weft.App("memory://")

    @app.workflow(timeout="50ms")
    async def flow(ctx: weft.Context) -> None:
        await times(ctx)

    with pytest.raises(weft.RunFailed, match="did not end before its deadline"):
        app.run(flow())


def test_a_cancel_comes_to_the_same_ask_after_a_crash() -> None:
    app = weft.App("memory://")
    heard: list[int] = []

    @app.step
    async def clean_up(n: int) -> int:
        heard.append(n)
        await asyncio.sleep(60)
        return n

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        n = 0
        try:
            while True:
                await ctx.now()
                n += 1
        finally:
            await ctx.now()
            await clean_up(n)

    desk = Desk(app)

    async def begin() -> None:
        run = await app.start(flow(), id="run")
        await run.cancel()
        while not heard:
            await asyncio.sleep(0.001)

    async def end() -> None:
        with pytest.raises(weft.RunCancelled):
            await app.get("run").result(timeout="1h")

    desk.play(begin, crash=True)
    desk.play(end)
    assert len(heard) == 2
    assert heard[0] == heard[1] > 0


def test_a_long_replay_works_in_slices() -> None:
    app = weft.App("memory://")
    steps = 3_000

    @app.step
    async def add(n: int) -> int:
        return n + 1

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        n = 0
        while n < steps:
            n = await add(n)
        return n + int(await ctx.receive("go"))

    slices: list[int] = []
    begin = PrivateLoop.begin_slice

    def counted(self: PrivateLoop) -> None:
        slices.append(id(self))
        begin(self)

    desk = Desk(app)

    async def start() -> None:
        run = await app.start(flow(), id="run")
        while (await run.explain()).steps_done < steps:
            await asyncio.sleep(0.01)

    async def go_on() -> None:
        run: weft.Handle[int] = app.get("run")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(PrivateLoop, "begin_slice", counted)
            patch.setattr(private_loop, "TURNS_PER_SLICE_MAX", 100)
            await run.send("go", 1)
            assert await run.result(timeout="1h") == steps + 1

    desk.play(start, crash=True)
    desk.play(go_on)
    assert len(slices) > 10


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
    loop.spawn(spin(), NameScope(driver, ""))
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
