"""A process that dies anywhere, and another that goes on: the same code, the same store, in memory and on disk."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.code.desk import Desk
from tests.code.timeless import calm


class Trip:
    """A workflow that uses nearly everything, and a ledger of what its steps did."""

    def __init__(self, url: str = "memory://") -> None:
        self.app = weft.App(url)
        self.ledger: list[str] = []
        app = self.app

        @app.step(retries=weft.Retry(5, "fixed", "10ms"))
        async def book(what: str) -> str:
            self.ledger.append(what)
            if what == "hotel" and weft.task().attempt < 3:
                raise OSError("full")
            return f"{what} booked"

        @app.workflow
        async def insure(ctx: weft.Context, days: int) -> int:
            await book("insurance")
            await ctx.sleep("20ms")
            return days * 3

        @app.workflow
        async def trip(ctx: weft.Context, days: int) -> dict[str, Any]:
            async def day(n: int) -> weft.Turn[int, int]:
                await book(f"day {n}")
                return weft.done(n) if n == days - 1 else weft.again(n + 1)

            travel = await ctx.join("travel", {"flight": book("flight"), "hotel": book("hotel")})
            price, seats = await asyncio.gather(insure(days), ctx.map("seats", book, ["seat a", "seat b"], width=1))
            last = await ctx.loop("days", day, state=0, keep=1)
            await ctx.sleep("30ms")
            winner = await ctx.race("first", {"bus": book("bus"), "never": ctx.receive("never")})
            word = await ctx.receive("word", str)
            return {**travel, "price": price, "seats": seats, "last": last, "by": winner.name, "word": word}

        self.trip = trip


EXPECTED = {
    "flight": "flight booked",
    "hotel": "hotel booked",
    "price": 9,
    "seats": ["seat a booked", "seat b booked"],
    "last": 2,
    "by": "bus",
    "word": "go",
}


@pytest.mark.parametrize("milliseconds", [1, 5, 12, 25, 33, 41, 60, 75])
def test_a_run_goes_on_after_a_crash_at_any_time(milliseconds: int) -> None:
    trip = Trip()

    async def begin() -> None:
        run = await trip.app.start(trip.trip(3), id="run")
        await run.send("word", "go", key="once")
        await asyncio.sleep(milliseconds / 1000)

    async def end() -> Any:
        run = trip.app.get("run")
        return await run.result()

    desk = Desk(trip.app)
    desk.play(begin, crash=True)
    assert desk.play(end) == EXPECTED
    days = [what for what in trip.ledger if what.startswith("day")]
    assert len(days) <= 4


def test_a_run_goes_on_after_a_crash_every_few_milliseconds() -> None:
    trip = Trip()

    async def begin() -> None:
        await trip.app.start(trip.trip(3), id="run")

    async def some_more() -> str:
        await asyncio.sleep(0.004)
        return await trip.app.get("run").status()

    async def end() -> Any:
        run = trip.app.get("run")
        await run.send("word", "go", key="once")
        return await run.result()

    desk = Desk(trip.app)
    desk.play(begin, crash=True)
    for _ in range(30):
        desk.play(some_more, crash=True)
    assert desk.play(end) == EXPECTED
    recorded = desk.kinds().count("task_succeeded")
    assert recorded == 8
    assert desk.kinds("run.&0/insure").count("task_succeeded") == 1


def test_replaying_writes_nothing() -> None:
    trip = Trip()

    async def begin() -> None:
        await trip.app.start(trip.trip(3), id="run")
        await asyncio.sleep(1)

    async def look() -> None:
        await trip.app.get("run").pause()
        await trip.app.get("run").resume()
        await calm()

    desk = Desk(trip.app)
    desk.play(begin, crash=True)
    before = desk.kinds()
    for _ in range(3):
        desk.play(look, crash=True)
    assert desk.kinds() == [*before, *["run_paused", "run_resumed"] * 3]


def test_a_snapshot_and_a_tail_give_the_same_run_as_the_whole_log() -> None:
    app = weft.App("memory://")

    @app.step
    async def work(text: str) -> str:
        return text

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        total = 0
        for n in range(200):
            total += len(await work(str(n) * 200))
        await ctx.receive("go")
        return total

    async def begin() -> None:
        await app.start(flow(), id="run")
        await calm()

    async def end() -> Any:
        run = app.get("run")
        await run.send("go")
        return await run.result()

    desk = Desk(app)
    desk.play(begin)
    (stored,) = desk.store.content.runs.values()
    assert stored.snapshots
    assert desk.play(end) == sum(len(str(n) * 200) for n in range(200))


def test_the_same_on_a_file_with_two_processes_after_each_other(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'weft.db'}"

    async def begin(trip: Trip) -> None:
        async with trip.app:
            run = await trip.app.start(trip.trip(3), id="run")
            await run.send("word", "go", key="once")

    async def end(trip: Trip) -> Any:
        async with trip.app:
            return await trip.app.get("run").result(timeout=120)

    first, second = Trip(url), Trip(url)
    asyncio.run(begin(first))
    assert asyncio.run(end(second)) == EXPECTED
    done = first.ledger + second.ledger
    assert done.count("flight") == 1
    assert done.count("hotel") == 3


def test_large_values_and_keys_on_a_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'weft.db'}"
    big = "x" * 100_000

    def build() -> tuple[weft.App, Any]:
        app = weft.App(url)

        @app.step
        async def grow(text: str) -> str:
            return text + "y"

        @app.workflow
        async def flow(ctx: weft.Context, text: str) -> int:
            text = await grow(text)
            for message in [await ctx.receive("n", str), await ctx.receive("n", str)]:
                text += message
            return len(text)

        return app, flow

    async def begin() -> None:
        app, flow = build()
        async with app:
            run = await app.start(flow(big), id="run")
            await asyncio.gather(*(run.send("n", big, key="k") for _ in range(3)))

    async def end() -> Any:
        app, _ = build()
        async with app:
            run = app.get("run")
            await run.send("n", big, key="k")
            with pytest.raises(weft.KeyReused):
                await run.send("n", "other", key="k")
            await run.send("n", "z", key="l")
            return await run.result(timeout=120)

    asyncio.run(begin())
    assert asyncio.run(end()) == 200_002
