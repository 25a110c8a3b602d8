"""Loop: a state that is recorded each round, a restart at the current round, and a history that does not grow."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

import weft
from tests.code.desk import Desk
from tests.code.timeless import calm


@dataclass
class Cursor:
    page: int
    found: list[str]


class Totals(BaseModel):
    rounds: int
    sum: int


def paging(seen: list[int], *, last: int, keep: int = 20) -> tuple[weft.App, Any]:
    app = weft.App("memory://")

    @app.step
    async def fetch(page: int) -> int:
        seen.append(page)
        return page + 1

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        async def body(page: int) -> weft.Turn[int, int]:
            following = await fetch(page)
            if page == 3:
                await ctx.receive("go", timeout="1h", default=None)
            return weft.done(page) if page == last else weft.again(following)

        return await ctx.loop("pages", body, state=0, keep=keep)

    return app, flow


def test_rounds_follow_until_done() -> None:
    seen: list[int] = []
    app, flow = paging(seen, last=5)
    desk = Desk(app)

    assert desk.run(flow()) == 5
    assert seen == [0, 1, 2, 3, 4, 5]
    assert "pages/~2/fetch" in desk.places()


def test_a_restart_goes_on_with_the_current_round() -> None:
    seen: list[int] = []
    app, flow = paging(seen, last=5)

    assert Desk(app).across_a_crash(flow()) == 5
    assert seen == [0, 1, 2, 3, 4, 5]


def test_old_rounds_leave_the_state() -> None:
    seen: list[int] = []
    app, flow = paging(seen, last=500, keep=2)
    desk = Desk(app)
    sizes: list[int] = []

    async def scene() -> None:
        run = await app.start(flow(), id="run")
        for _ in range(3):
            await asyncio.sleep(0.01)
            actor = next(iter(desk.host.runs.actors.values()), None)
            if actor is not None:
                sizes.append(len(actor.machine.state.entries))
        await run.send("go")
        await run.result()

    desk.play(scene)
    assert max(sizes) <= 10
    assert [entry.key for entry in desk.state().entries.values()] == ["pages"]


def test_a_long_loop_has_a_small_state_and_a_small_snapshot_at_every_moment() -> None:
    app = weft.App("memory://")
    sizes: list[int] = []

    @app.step
    async def tick(n: int) -> int:
        if n % 100 == 99:
            (actor,) = desk.host.runs.actors.values()
            sizes.append(len(actor.machine.snapshot()))
        return n + 1

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        async def body(n: int) -> weft.Turn[int, int]:
            following = await tick(n)
            return weft.done(n) if n == 1999 else weft.again(following)

        return await ctx.loop("ticks", body, state=0, keep=5)

    desk = Desk(app)
    assert desk.run(flow()) == 1999
    assert max(sizes) < 8_000


def test_a_long_loop_does_not_grow_the_tables_beside_the_state_either() -> None:
    app = weft.App("memory://")
    sizes: list[int] = []

    @app.step
    async def tick(n: int) -> int:
        if n in {300, 1900}:
            (actor,) = desk.host.runs.actors.values()
            index = actor.machine.index
            inner = sum(len(scope.scopes) + len(scope.entries) for scope in index.scopes.values())
            sizes.append(len(index.keys) + len(index.paths) + len(index.scopes) + inner)
        return n + 1

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        async def body(n: int) -> weft.Turn[int, int]:
            following = await tick(n)
            return weft.done(n) if n == 1999 else weft.again(following)

        return await ctx.loop("ticks", body, state=0, keep=5)

    desk = Desk(app)
    desk.run(flow())
    assert sizes[1] <= sizes[0] + 5


def test_a_finished_loop_gives_its_result_again_without_a_round() -> None:
    app = weft.App("memory://")
    rounds: list[int] = []

    @app.workflow
    async def flow(ctx: weft.Context) -> list[Any]:
        async def body(n: int) -> weft.Turn[int, str]:
            rounds.append(n)
            return weft.done("end") if n == 2 else weft.again(n + 1)

        async def empty(n: int) -> weft.Turn[int, None]:
            rounds.append(100)
            return weft.done(None)

        found: list[Any] = [await ctx.loop("count", body, state=0)]
        once: Any = ctx.loop("once", empty, state=0)
        found.append(await once)
        await ctx.receive("go")
        return found

    assert Desk(app).across_a_crash(flow()) == ["end", None]
    assert rounds == [0, 1, 2, 100]


def test_the_state_may_be_a_dataclass_or_a_model() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> list[Any]:
        async def pages(cursor: Cursor) -> weft.Turn[Cursor, list[str]]:
            assert isinstance(cursor, Cursor)
            if cursor.page == 2:
                await ctx.receive("go")
                return weft.done(cursor.found)
            return weft.again(Cursor(cursor.page + 1, [*cursor.found, f"p{cursor.page}"]))

        async def sums(totals: Totals) -> weft.Turn[Totals, int]:
            assert isinstance(totals, Totals)
            if totals.rounds == 3:
                return weft.done(totals.sum)
            return weft.again(Totals(rounds=totals.rounds + 1, sum=totals.sum + totals.rounds))

        return [
            await ctx.loop("pages", pages, state=Cursor(0, [])),
            await ctx.loop("sums", sums, state=Totals(rounds=0, sum=0)),
        ]

    assert Desk(app).across_a_crash(flow()) == [["p0", "p1"], 3]


def test_a_state_changed_in_place_does_not_change_what_is_recorded() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> list[int]:
        async def body(found: list[int]) -> weft.Turn[list[int], list[int]]:
            found.append(len(found))
            if len(found) == 3:
                found.append(99)
                await ctx.receive("go")
                return weft.done(found)
            return weft.again(found)

        return await ctx.loop("grow", body, state=list[int]())

    assert Desk(app).across_a_crash(flow()) == [0, 1, 2, 99]


def test_a_large_state_goes_through_blobs() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        async def body(text: str) -> weft.Turn[str, str]:
            if len(text) > 100_000:
                await ctx.receive("go")
                return weft.done(text)
            return weft.again(text * 2)

        return len(await ctx.loop("grow", body, state="x" * 40_000))

    desk = Desk(app)
    assert desk.across_a_crash(flow()) == 160_000
    assert all(len(stored.body) < 40_000 for stored in desk.stored()[1:])


def test_loops_nest_and_the_inner_begins_anew_each_time() -> None:
    app = weft.App("memory://")
    seen: list[tuple[int, int]] = []

    @app.step
    async def visit(a: int, b: int) -> None:
        seen.append((a, b))

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        async def outer(a: int) -> weft.Turn[int, int]:
            async def inner(b: int) -> weft.Turn[int, None]:
                await visit(a, b)
                if (a, b) == (1, 1):
                    await ctx.receive("go")
                return weft.done(None) if b == 2 else weft.again(b + 1)

            await ctx.loop("inner", inner, state=0)
            return weft.done(a) if a == 2 else weft.again(a + 1)

        return await ctx.loop("outer", outer, state=0)

    desk = Desk(app)
    assert desk.across_a_crash(flow()) == 2
    assert seen == [(a, b) for a in range(3) for b in range(3)]
    assert "outer/~1/inner/~2/visit" in desk.places()


def test_a_join_and_a_long_wait_in_a_round_do_not_diverge_on_resume() -> None:
    app = weft.App("memory://")

    @app.step
    async def work(n: int) -> int:
        return n

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        async def body(n: int) -> weft.Turn[int, int]:
            a, b = await ctx.join("both", work(n), work(n + 1))
            await ctx.receive("go", timeout="1h", default=None)
            return weft.done(a + b) if n == 1 else weft.again(n + 1)

        return await ctx.loop("rounds", body, state=0)

    desk = Desk(app)
    assert desk.across_a_crash(flow()) == 3
    assert "run_held" not in desk.kinds()


def test_a_failure_in_a_round_leaves_the_loop() -> None:
    app = weft.App("memory://")

    @app.step(retries=0)
    async def broken(n: int) -> None:
        if n == 2:
            raise OSError

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        async def body(n: int) -> weft.Turn[int, None]:
            await broken(n)
            return weft.again(n + 1)

        try:
            await ctx.loop("rounds", body, state=0)
        except weft.StepFailed as failed:
            await ctx.receive("go")
            return failed.failure.location
        return "?"

    assert Desk(app).across_a_crash(flow()) == "rounds/~2/broken"


def test_a_body_that_returns_something_else_is_told_so() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        async def body(n: int) -> Any:
            return n

        await ctx.loop("rounds", body, state=0)

    failure = Desk(app).fail(flow())
    assert failure.type == "UsageError"
    assert "rounds" in failure.message


@pytest.mark.parametrize("keep", [-1, -100])
def test_a_negative_number_of_kept_rounds_is_refused(keep: int) -> None:
    seen: list[int] = []
    app, flow = paging(seen, last=2, keep=keep)
    assert Desk(app).fail(flow()).type == "BadValue"


@pytest.mark.parametrize("keep", [0, 1, 3])
def test_whatever_is_kept_the_loop_resumes_where_it_was(keep: int) -> None:
    seen: list[int] = []
    app, flow = paging(seen, last=6, keep=keep)
    assert Desk(app).across_a_crash(flow()) == 6
    assert seen == list(range(7))


def test_facts_of_rounds_that_left_the_state_do_not_disturb_a_resume() -> None:
    """Thinning the list of facts in the middle of a run must not lose the place of the code in it."""
    app = weft.App("memory://")
    seen: list[int] = []

    @app.step
    async def work(n: int) -> int:
        seen.append(n)
        return n

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        async def body(n: int) -> weft.Turn[int, int]:
            await asyncio.gather(*(work(n) for _ in range(3)))
            if n == 250:
                await ctx.receive("go")
            return weft.done(n) if n == 400 else weft.again(n + 1)

        return await ctx.loop("rounds", body, state=0, keep=1)

    desk = Desk(app)
    assert desk.across_a_crash(flow(), seconds=1) == 400
    assert seen == [n for n in range(401) for _ in range(3)]
    assert len(desk.state().facts) < 700


@pytest.mark.parametrize("keep", [0, 2])
def test_a_loop_may_take_hundreds_of_messages_that_wait_for_it(keep: int) -> None:
    """What is answered at once becomes a fact right after older facts left the state."""
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        async def body(total: int) -> weft.Turn[int, int]:
            await ctx.now()
            total += await ctx.receive("n", int)
            return weft.done(total) if total == 700 else weft.again(total)

        await ctx.sleep("1s")
        return await ctx.loop("rounds", body, state=0, keep=keep)

    async def scene() -> int:
        run = await app.start(flow(), id="run")
        for _ in range(700):
            await run.send("n", 1)
        return await run.result()

    assert Desk(app).play(scene) == 700


def test_a_loop_inside_a_branch_has_its_own_rounds() -> None:
    app = weft.App("memory://")

    @app.step
    async def work(name: str, n: int) -> int:
        return n

    @app.workflow
    async def flow(ctx: weft.Context) -> Any:
        async def count(name: str, last: int) -> int:
            async def body(n: int) -> weft.Turn[int, int]:
                await work(name, n)
                return weft.done(n) if n == last else weft.again(n + 1)

            return await ctx.loop("count", body, state=0)

        found = await ctx.join("both", {"a": count("a", 2), "b": count("b", 4)})
        await ctx.receive("go")
        return found

    desk = Desk(app)
    assert desk.across_a_crash(flow()) == {"a": 2, "b": 4}
    assert "both/b/count/~4/work" in desk.places()


def test_a_loop_that_never_waits_does_not_hold_the_process() -> None:
    """Ten thousand rounds without a wait are one long turn, but they end, and other runs go on."""
    app = weft.App("memory://")

    @app.workflow
    async def busy(ctx: weft.Context) -> int:
        async def body(n: int) -> weft.Turn[int, int]:
            return weft.done(n) if n == 3000 else weft.again(n + 1)

        return await ctx.loop("rounds", body, state=0, keep=0)

    async def scene() -> list[int]:
        runs = [await app.start(busy()) for _ in range(2)]
        await calm()
        return [await run.result() for run in runs]

    assert Desk(app).play(scene) == [3000, 3000]


def test_names_made_up_in_a_long_loop_do_not_fill_the_state() -> None:
    app = weft.App("memory://")

    @app.step
    async def work(n: int) -> int:
        return n

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        async def body(n: int) -> weft.Turn[int, int]:
            await work.options(name=f"item {n}")(n)
            await ctx.join("both", {f"left {n}": work(n), f"right {n}": work(n)})
            if n == 1500:
                await ctx.receive("go")
            return weft.done(n) if n == 1600 else weft.again(n + 1)

        return await ctx.loop("rounds", body, state=0, keep=1)

    desk = Desk(app)
    assert desk.across_a_crash(flow(), seconds=1) == 1600
    assert len(desk.state().names) <= 1_100
    assert desk.places()[-4:] == [
        "rounds/~1599/both/right 1599/work", "rounds/~1600/item 1600",
        "rounds/~1600/both/left 1600/work", "rounds/~1600/both/right 1600/work",
    ]  # fmt: skip
