"""What asyncio offers works in a workflow, and does the same thing live and on every replay."""

import asyncio
from typing import Any

import pytest

import weft
from tests.code.desk import Desk
from tests.code.timeless import calm


def app_with_work(seen: list[str] | None = None) -> tuple[weft.App, Any]:
    app = weft.App("memory://")

    @app.step(retries=0)
    async def work(name: str, seconds: float = 0) -> str:
        if seen is not None:
            seen.append(name)
        await asyncio.sleep(seconds)
        if name.startswith("bad"):
            raise OSError(name)
        return name.upper()

    return app, work


def test_gather_gives_results_in_the_order_of_its_calls() -> None:
    seen: list[str] = []
    app, work = app_with_work(seen)

    @app.workflow
    async def flow(ctx: weft.Context) -> list[str]:
        found = await asyncio.gather(work("a", 3), work("b", 1), work("c", 2))
        await ctx.receive("go")
        return list(found)

    desk = Desk(app)
    assert desk.across_a_crash(flow(), seconds=5) == ["A", "B", "C"]
    assert seen == ["a", "b", "c"]
    assert desk.places() == ["&0/work", "&1/work", "&2/work", "go"]


def test_gather_raises_the_first_failure_and_the_rest_goes_on() -> None:
    seen: list[str] = []
    app, work = app_with_work(seen)

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        try:
            await asyncio.gather(work("a", 5), work("bad", 1))
        except weft.StepFailed as failed:
            await ctx.receive("go")
            return failed.failure.message
        return "?"

    assert Desk(app).across_a_crash(flow(), seconds=10) == "bad"
    assert seen == ["a", "bad"]


def test_gather_can_return_exceptions() -> None:
    app, work = app_with_work()

    @app.workflow
    async def flow(ctx: weft.Context) -> list[str]:
        found = await asyncio.gather(work("a"), work("bad"), return_exceptions=True)
        await ctx.receive("go")
        return [type(one).__name__ for one in found]

    assert Desk(app).across_a_crash(flow()) == ["str", "StepFailed"]


def test_a_task_group_gives_its_results_and_cancels_the_rest_at_a_failure() -> None:
    app, work = app_with_work()

    @app.workflow
    async def flow(ctx: weft.Context) -> list[Any]:
        async with asyncio.TaskGroup() as group:
            first, second = group.create_task(work("a", 1)), group.create_task(work("b", 2))
        count, left = 0, []
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(work("bad", 1))
                left.append(group.create_task(work("slow", 3600)))
        except* weft.StepFailed as failed:
            count = len(failed.exceptions)
        await ctx.receive("go")
        return [first.result(), second.result(), count, left[0].cancelled()]

    desk = Desk(app)
    assert desk.across_a_crash(flow(), seconds=10) == ["A", "B", 1, True]
    assert desk.kinds().count("entry_cancelled") == 1


def test_wait_for_the_first_gives_it_and_leaves_the_others_running() -> None:
    app, work = app_with_work()

    @app.workflow
    async def flow(ctx: weft.Context) -> list[Any]:
        tasks = [asyncio.create_task(work(name, seconds)) for name, seconds in (("a", 3), ("b", 1), ("c", 2))]
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        first = [task.result() for task in done]
        rest = [await task for task in tasks if task in pending]
        await ctx.receive("go")
        return [first, rest]

    assert Desk(app).across_a_crash(flow(), seconds=10) == [["B"], ["A", "C"]]


def test_as_completed_over_tasks_gives_them_in_the_order_of_the_log() -> None:
    app, work = app_with_work()
    orders: list[list[str]] = []

    @app.workflow
    async def flow(ctx: weft.Context) -> list[str]:
        tasks = [asyncio.create_task(work(name, seconds)) for name, seconds in (("a", 3), ("b", 1), ("c", 2))]
        found = [await each for each in asyncio.as_completed(tasks)]
        orders.append(found)
        await ctx.receive("go")
        return found

    assert Desk(app).across_a_crash(flow(), seconds=10) == ["B", "C", "A"]
    assert orders == [["B", "C", "A"]] * 2


def test_as_completed_over_bare_coroutines_has_no_order_and_is_refused() -> None:
    app, work = app_with_work()

    @app.workflow
    async def flow() -> list[str]:
        calls = [work("a"), work("b")]
        try:
            return [await each for each in asyncio.as_completed(calls)]
        finally:
            for call in calls:
                call.close()

    failure = Desk(app).fail(flow())
    assert failure.code == "code.unordered"


def test_a_task_made_and_awaited_later_is_begun_at_once() -> None:
    seen: list[str] = []
    app, work = app_with_work(seen)

    @app.workflow
    async def flow(ctx: weft.Context) -> list[str]:
        early = asyncio.create_task(work("early", 5))
        late = await work("late")
        return [late, await early]

    assert Desk(app).run(flow()) == ["LATE", "EARLY"]
    assert sorted(seen) == ["early", "late"]


def test_a_task_that_the_code_cancels_stops_its_step() -> None:
    app = weft.App("memory://")
    seen: list[str] = []

    @app.step
    async def slow() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            seen.append("stopped")
            raise

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        task = asyncio.create_task(slow())
        await ctx.sleep("1s")
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            await ctx.receive("go")
            return "cancelled"
        return "?"

    desk = Desk(app)
    assert desk.across_a_crash(flow(), seconds=5) == "cancelled"
    assert seen == ["stopped"]
    assert desk.kinds().count("task_scheduled") == 1


def test_queues_locks_and_events_work_between_tasks() -> None:
    app, work = app_with_work()

    @app.workflow
    async def flow(ctx: weft.Context) -> list[str]:
        queue: asyncio.Queue[str] = asyncio.Queue()
        lock, ready = asyncio.Lock(), asyncio.Event()

        async def producer() -> None:
            for name in "abc":
                async with lock:
                    await queue.put(await work(name, 1))
            ready.set()

        async def consumer() -> list[str]:
            await ready.wait()
            return [queue.get_nowait() for _ in range(queue.qsize())]

        _, found = await asyncio.gather(producer(), consumer())
        await ctx.receive("go")
        return found

    assert Desk(app).across_a_crash(flow(), seconds=10) == ["A", "B", "C"]


def test_shielded_work_goes_on_when_its_waiter_is_cancelled() -> None:
    app, work = app_with_work()

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        inner = asyncio.create_task(work("kept", 5))

        async def outer() -> None:
            await asyncio.shield(inner)

        waiter = asyncio.create_task(outer())
        await ctx.sleep("1s")
        waiter.cancel()
        return str(await inner)

    assert Desk(app).run(flow()) == "KEPT"


def test_giving_way_with_sleep_zero_is_allowed() -> None:
    app, work = app_with_work()

    @app.workflow
    async def flow() -> str:
        for _ in range(10):
            await asyncio.sleep(0)
        return str(await work("a"))

    assert Desk(app).run(flow()) == "A"


def test_a_workflow_that_spins_is_stopped_for_a_person() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow() -> None:
        while True:
            await asyncio.sleep(0)

    async def scene() -> Any:
        run = await app.start(flow(), id="run")
        return await run.status()

    desk = Desk(app)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("weft.runtime.run.private_loop.TURNS_MAX", 10_000)
        assert desk.play(scene, crash=True) == "held"
    held = desk.state().held
    assert held is not None
    assert held.code == "code.spinning"


def test_each_task_has_a_scope_of_its_own_and_counts_for_itself() -> None:
    app, work = app_with_work()

    @app.workflow
    async def flow() -> None:
        async def two(name: str) -> None:
            await work(name)
            await asyncio.gather(work(name), work(name))

        await asyncio.gather(two("x"), two("y"))
        await work("z")

    desk = Desk(app)
    desk.run(flow())
    assert sorted(desk.places()) == [
        "&0/&0/work", "&0/&1/work", "&0/work", "&1/&0/work", "&1/&1/work", "&1/work", "work",
    ]  # fmt: skip


def test_a_call_takes_its_place_where_it_is_awaited_first_and_not_where_it_is_made() -> None:
    app, work = app_with_work()

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        call = work("a")
        await ctx.join("inner", {"x": call})

    desk = Desk(app)
    desk.run(flow())
    assert desk.places() == ["inner/x/work"]


@pytest.mark.parametrize("rounds", range(0, 33, 4))
def test_a_set_of_tasks_has_the_same_order_after_a_race_and_a_loop_were_skipped_on_replay(rounds: int) -> None:
    """A replay makes fewer tasks than the first pass: losers and earlier rounds are not begun again."""
    app, work = app_with_work()
    orders: list[list[str]] = []

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        async def body(n: int) -> weft.Turn[int, None]:
            return weft.done(None) if n == rounds else weft.again(n + 1)

        await ctx.loop("rounds", body, state=0)
        await ctx.race("first", {name: work(name, n) for n, name in enumerate("abcde")})
        tasks = {asyncio.create_task(work(name)) for name in "pqrstuv"}
        done, _ = await asyncio.wait(tasks)
        orders.append([task.result() for task in done])
        await ctx.receive("go")

    Desk(app).across_a_crash(flow(), seconds=10)
    assert orders[0] == orders[1]


def test_a_race_ends_at_its_place_in_the_order_of_facts_also_on_replay() -> None:
    """A loser that cleans up delays the end of the race; what ended meanwhile must come first on replay too."""
    app, work = app_with_work()
    orders: list[list[str]] = []

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        async def tidy() -> str:
            try:
                await ctx.sleep("1h")
            finally:
                await work("cleaning", 10)
            return "tidy"

        async def race() -> str:
            return (await ctx.race("first", {"tidy": tidy(), "quick": work("quick", 1)})).name

        async def other() -> str:
            return str(await work("other", 5))

        order = [
            await each for each in asyncio.as_completed([asyncio.create_task(race()), asyncio.create_task(other())])
        ]
        orders.append(order)
        await ctx.receive("go")

    Desk(app).across_a_crash(flow(), seconds=30)
    assert orders == [["OTHER", "quick"]] * 2


def test_a_loop_ends_at_its_place_in_the_order_of_facts_also_on_replay() -> None:
    app, work = app_with_work()
    orders: list[list[str]] = []

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        async def rounds() -> str:
            async def body(n: int) -> weft.Turn[int, str]:
                await work("round", 3)
                return weft.done("rounds") if n == 3 else weft.again(n + 1)

            return await ctx.loop("rounds", body, state=0)

        tasks = [asyncio.create_task(rounds()), asyncio.create_task(work("other", 5))]
        orders.append([await each for each in asyncio.as_completed(tasks)])
        await ctx.receive("go")

    Desk(app).across_a_crash(flow(), seconds=30)
    assert orders == [["OTHER", "rounds"]] * 2


def test_a_blob_that_must_be_fetched_on_replay_does_not_change_the_order() -> None:
    app = weft.App("memory://")
    orders: list[list[str]] = []

    @app.step
    async def big(name: str) -> str:
        return name * 50_000

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        order: list[str] = []
        gate = asyncio.Event()

        async def reader(name: str) -> None:
            text = asyncio.create_task(big(name))
            await gate.wait()
            order.append((await text)[0])
            order.append("." + name)

        async def opener() -> None:
            await ctx.sleep("1s")
            gate.set()
            order.append("open")

        await asyncio.gather(reader("a"), reader("b"), opener())
        orders.append(order)
        await ctx.receive("go")

    Desk(app).across_a_crash(flow(), seconds=5)
    assert len(orders) == 2
    assert orders[0] == orders[1]


@pytest.mark.parametrize("swallow", [False, True])
def test_a_cancel_told_to_nested_tasks_replays(swallow: bool) -> None:
    app, _ = app_with_work()
    seen: list[list[str]] = []

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        marks: list[str] = []
        seen.append(marks)

        async def inner(name: str) -> None:
            try:
                await ctx.receive("never")
            except asyncio.CancelledError:
                marks.append(name)
                if not swallow:
                    raise

        async def outer() -> None:
            await asyncio.gather(inner("a"), inner("b"))

        task = asyncio.create_task(outer())
        await ctx.sleep("1s")
        task.cancel()
        await asyncio.wait([task])
        marks.append("done")
        await ctx.receive("go")
        return "end"

    assert Desk(app).across_a_crash(flow(), seconds=5) == "end"
    assert seen == [["a", "b", "done"]] * 2


def test_two_runs_do_not_see_each_other() -> None:
    app, work = app_with_work()

    @app.workflow
    async def flow(name: str) -> list[str]:
        return list(await asyncio.gather(*(work(f"{name}{n}", n) for n in range(4))))

    async def scene() -> list[list[str]]:
        runs = [await app.start(flow(name)) for name in "xyz"]
        await calm()
        return [await run.result() for run in runs]

    assert Desk(app).play(scene) == [[f"{name}{n}".upper() for n in range(4)] for name in "xyz"]
