"""Map: one call per item, at most so many at once, results in the order of the items."""

import asyncio
from typing import Any

import pytest

import weft
from tests.code.desk import Desk
from tests.code.timeless import calm


class Mill:
    """An app with a step that grinds numbers and remembers how many ran at once."""

    def __init__(self) -> None:
        self.app = weft.App("memory://")
        self.seen: list[int] = []
        self.now = self.most = 0
        self.grind = self.app.step(name="grind", retries=0)(self._grind)

    async def _grind(self, n: int) -> int:
        self.seen.append(n)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(10 - n % 10)
        finally:
            self.now -= 1
        if n < 0:
            raise OSError(n)
        return n * n


def test_results_come_in_the_order_of_the_items() -> None:
    mill = Mill()

    @mill.app.workflow
    async def flow(ctx: weft.Context) -> list[int]:
        return await ctx.map("squares", mill.grind, range(8))

    desk = Desk(mill.app)
    assert desk.run(flow()) == [n * n for n in range(8)]
    assert desk.places()[4] == "squares/~3/grind"


@pytest.mark.parametrize("width", [1, 3, 16])
def test_at_most_width_run_at_once(width: int) -> None:
    mill = Mill()

    @mill.app.workflow
    async def flow(ctx: weft.Context) -> list[int]:
        return await ctx.map("squares", mill.grind, range(12), width=width)

    assert Desk(mill.app).run(flow()) == [n * n for n in range(12)]
    assert mill.most == min(width, 12)


def test_the_next_item_begins_as_soon_as_one_has_ended() -> None:
    app = weft.App("memory://")

    @app.step
    async def nap(seconds: int) -> None:
        await asyncio.sleep(seconds)

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await ctx.map("naps", nap, [30, 1, 1, 1, 1], width=2)

    desk = Desk(app)
    desk.run(flow())
    times = [stored.at for stored in desk.stored()]
    assert times[-1] - times[0] < 31_000


def test_no_items_no_results() -> None:
    mill = Mill()

    @mill.app.workflow
    async def flow(ctx: weft.Context) -> list[int]:
        return await ctx.map("squares", mill.grind, [])

    assert Desk(mill.app).run(flow()) == []


def test_a_map_goes_on_after_a_crash_without_repeating() -> None:
    mill = Mill()

    @mill.app.workflow
    async def flow(ctx: weft.Context) -> list[int]:
        return await ctx.map("squares", mill.grind, range(20), width=5)

    async def begin() -> None:
        await mill.app.start(flow(), id="run")
        await asyncio.sleep(12.5)

    async def end() -> Any:
        return await mill.app.get("run").result()

    desk = Desk(mill.app)
    desk.play(begin, crash=True)
    done = len([kind for kind in desk.kinds() if kind == "task_succeeded"])
    assert 0 < done < 20
    assert desk.play(end) == [n * n for n in range(20)]
    assert len(mill.seen) == 25


def test_the_first_failure_stops_the_rest() -> None:
    mill = Mill()

    @mill.app.workflow
    async def flow(ctx: weft.Context) -> str:
        try:
            await ctx.map("squares", mill.grind, [1, -9, 3, 4, 5, 6], width=3)
        except weft.BranchesFailed as failed:
            return ",".join(failed.errors)
        return "?"

    assert Desk(mill.app).run(flow()) == "~1"
    assert 6 not in mill.seen


def test_outcomes_are_values_in_place() -> None:
    mill = Mill()

    @mill.app.workflow
    async def flow(ctx: weft.Context) -> list[Any]:
        found = await ctx.map_outcomes("squares", mill.grind, [1, -9, 3])
        return [one.value if isinstance(one, weft.Ok) else one.failure.type for one in found]

    assert Desk(mill.app).run(flow()) == [1, "OSError", 9]


def test_the_function_may_be_any_that_waits() -> None:
    mill = Mill()

    @mill.app.workflow
    async def flow(ctx: weft.Context) -> list[int]:
        async def both(n: int) -> int:
            await ctx.sleep("1s")
            return await mill.grind(n) + await mill.grind(n)

        return await ctx.map("doubled", both, [1, 2])

    desk = Desk(mill.app)
    assert desk.run(flow()) == [2, 8]
    assert "doubled/~1/grind#2" in desk.places()


def test_maps_nest() -> None:
    mill = Mill()

    @mill.app.workflow
    async def flow(ctx: weft.Context) -> list[list[int]]:
        async def row(n: int) -> list[int]:
            return await ctx.map("row", mill.grind, [n, n + 1])

        return await ctx.map("rows", row, [1, 5])

    assert Desk(mill.app).run(flow()) == [[1, 4], [25, 36]]


def test_a_width_below_one_is_refused() -> None:
    mill = Mill()

    @mill.app.workflow
    async def flow(ctx: weft.Context) -> list[int]:
        return await ctx.map("squares", mill.grind, [1], width=0)

    assert Desk(mill.app).fail(flow()).type == "BadValue"


def test_an_item_added_while_the_run_was_down_is_done_too() -> None:
    """Items are arguments, not names: more of them is more work, not divergence."""

    def build(count: int) -> weft.App:
        app = weft.App("memory://")

        @app.step
        async def work(n: int) -> int:
            return n

        @app.workflow
        async def flow(ctx: weft.Context) -> list[int]:
            found = await ctx.map("items", work, range(count))
            await ctx.receive("go")
            return found

        return app

    first, second = build(2), build(3)

    async def begin() -> None:
        await first.start("flow", {}, id="run")
        await calm()

    async def end() -> Any:
        await calm()
        return (await second.get("run").status()), desk.places()

    desk = Desk(first)
    desk.play(begin, crash=True)
    status, places = desk.play(end, app=second)
    assert status in {"running", "held"}
    assert "items/~2/work" in places


def test_a_failure_counts_the_branches_of_the_whole_map() -> None:
    mill = Mill()

    @mill.app.workflow
    async def flow(ctx: weft.Context) -> list[int]:
        return await ctx.map("squares", mill.grind, [1, -9, 3], width=1)

    failure = Desk(mill.app).fail(flow())
    assert failure.message.startswith("squares: 1 of 3 branches failed: ~1: StepFailed: grind failed")
    assert "Try again" not in failure.message
    assert ".." not in failure.message
