"""Limits of a tree of runs: how deep it is, how many are open, and that nothing starts below a cancelled root."""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

import weft
from tests.code.desk import Desk
from tests.code.timeless import calm
from weft.core.ids import Millis, RunId, RunUid
from weft.ports.new_run import NewRun
from weft.stores.memory import MemoryStore
from weft.stores.memory.directory import MemoryDirectory


def desk_of(app: weft.App, **limits: int) -> Desk:
    desk = Desk(app)
    desk.settings = msgspec.structs.replace(desk.settings, **limits)
    return desk


def rows(desk: Desk) -> int:
    return len(desk.store.content.runs)


@pytest.mark.parametrize("spawn", [False, True])
def test_a_workflow_that_starts_itself_is_stopped_by_the_depth(spawn: bool) -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context, n: int) -> str:
        try:
            if not spawn:
                return await flow(n + 1)
            return await (await ctx.spawn(flow(n + 1))).result()
        except weft.LimitExceeded as error:
            return f"{n}: {error.code}"

    desk = desk_of(app)
    assert desk.run(flow(1)) == "32: limit.tree_depth"
    assert rows(desk) == 32


def test_the_failure_at_the_root_names_the_run_that_reached_the_limit_and_the_limit() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await flow()

    with pytest.raises(weft.RunFailed) as caught:
        desk_of(app).run(flow(), id="root")
    last = ".".join(["root", *["flow"] * 31])
    assert f"RunFailed: {last} failed: " in str(caught.value)
    assert f"{last} is at depth 32 of its tree, the limit" in str(caught.value)


def test_the_open_runs_of_a_tree_are_limited_and_those_that_are_over_do_not_count() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def child(ctx: weft.Context, wait: bool) -> None:
        if wait:
            await ctx.receive("never")

    @app.workflow
    async def flow(ctx: weft.Context) -> tuple[int, str]:
        for _ in range(30):
            await child(wait=False)
        started = 0
        while True:
            try:
                await ctx.spawn(child(wait=True))
            except weft.LimitExceeded as error:
                return started, error.code
            started += 1

    desk = desk_of(app, tree_runs_max=10)

    async def scene() -> Any:
        return await (await app.start(flow(), id="run")).result()

    assert desk.play(scene) == (9, "limit.tree_runs")
    assert rows(desk) == 1 + 30 + 9


class CountingDirectory(MemoryDirectory):
    """Knows how often it was asked for the open runs of a tree."""

    asked = 0

    async def counts(self, below: RunUid | None = None, *, limit: int = 0) -> Mapping[str, int]:
        CountingDirectory.asked += below is not None
        return await super().counts(below, limit=limit)


class CountingStore(MemoryStore):
    def share(self) -> MemoryStore:
        store = super().share()
        store.directory = CountingDirectory(store.content)
        return store


def test_a_full_tree_that_refuses_many_starts_is_counted_once() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def child(ctx: weft.Context) -> None:
        await ctx.receive("never")

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        refused = 0
        for _ in range(109):
            try:
                await ctx.spawn(child())
            except weft.LimitExceeded:
                refused += 1
        return refused

    desk = desk_of(app, tree_runs_max=10)
    desk.store = CountingStore()
    CountingDirectory.asked = 0

    async def scene() -> Any:
        return await (await app.start(flow(), id="run")).result()

    assert desk.play(scene) == 100
    assert 1 <= CountingDirectory.asked <= 10  # once for the full tree, and while it grew


def test_a_refusal_is_recorded_and_replayed() -> None:
    app = weft.App("memory://")
    performed: list[int] = []

    @app.step
    async def act(n: int) -> int:
        performed.append(n)
        return n

    @app.workflow
    async def child() -> None: ...

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        try:
            await child()
        except weft.LimitExceeded:
            await act(1)
        await ctx.receive("go")
        return "refused"

    desk = desk_of(app, tree_depth_max=1)

    async def begin() -> None:
        await app.start(flow(), id="run")
        await calm()

    async def end() -> Any:
        await app.get("run").send("go")
        return await app.get("run").result()

    desk.play(begin, crash=True)
    desk.settings = msgspec.structs.replace(desk.settings, tree_depth_max=32)
    assert desk.play(end) == "refused"
    assert performed == [1]


def test_open_runs_of_other_hosts_count_also_where_this_host_has_few() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def child(ctx: weft.Context) -> None:
        await ctx.receive("never")

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        for started in range(15):
            try:
                await ctx.spawn(child())
            except weft.LimitExceeded:
                return started
            await ctx.sleep("1s")
        return 15

    desk = desk_of(app, tree_runs_max=40)

    async def scene() -> int:
        handle = await app.start(flow(), id="run")
        await calm()
        root = await desk.store.directory.find(RunId("run"))
        assert root is not None
        await desk.store.log.create([elsewhere(n, root.uid) for n in range(36)])
        return await handle.result()

    assert desk.play(scene) < 7  # of 4 that fit, and a twentieth of the limit


def elsewhere(n: int, parent: RunUid) -> NewRun:
    """A child that another host made."""
    return NewRun(
        uid=RunUid(f"u{n}"),
        id=RunId(f"e{n}"),
        workflow="far",
        version="1",
        style="code",
        created_at=Millis(0),
        parent=parent,
    )


def test_open_runs_that_this_host_has_not_seen_count_too() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def child(ctx: weft.Context) -> None:
        await ctx.receive("never")

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        for _ in range(9):
            await ctx.spawn(child())
        await ctx.receive("go")
        await ctx.sleep("1s")
        try:
            await ctx.spawn(child())
        except weft.LimitExceeded as error:
            return error.code
        return "started"

    desk = desk_of(app, tree_runs_max=10)

    async def begin() -> None:
        await app.start(flow(), id="run")
        await calm()

    async def end() -> Any:
        await app.get("run").send("go")
        return await app.get("run").result()

    desk.play(begin)
    assert desk.play(end) == "limit.tree_runs"


def test_a_graph_that_names_itself_is_stopped(tmp_path: Any) -> None:
    app = weft.App("memory://")
    (tmp_path / "again.yaml").write_text("name: again\nnodes:\n  more: {workflow: again}\n")
    app.graph(tmp_path / "again.yaml")
    desk = desk_of(app, tree_depth_max=5)

    async def scene() -> Any:
        run = await app.start("again", {}, id="run")
        with pytest.raises(weft.RunFailed):
            await run.result()

    desk.play(scene)
    assert rows(desk) == 5


def test_nothing_starts_below_a_cancelled_root() -> None:
    """Each run starts the next one and goes on by itself: a cancel that only follows the tree would never catch up."""
    app = weft.App("memory://")

    @app.step
    async def work() -> None:
        await asyncio.sleep(1)

    @app.workflow
    async def flow(ctx: weft.Context, n: int) -> None:
        await work()
        await ctx.spawn(flow(n + 1))
        await ctx.receive("never")

    desk = desk_of(app, tree_depth_max=1000)

    async def scene() -> list[int]:
        run = await app.start(flow(1), id="run")
        await asyncio.sleep(5.5)
        before = rows(desk)
        await run.cancel()
        with pytest.raises(weft.RunCancelled):
            await run.result()
        await asyncio.sleep(60)
        return [before, rows(desk)]

    before, after = desk.play(scene)
    assert before == after
    assert all(run.status in ("cancelled", "failed") for run in desk.store.content.runs.values())


def test_nothing_starts_below_a_root_that_failed() -> None:
    """It has told its children to stop. They start others below them meanwhile, faster than they can be told."""
    app = weft.App("memory://")

    @app.step
    async def work() -> None:
        await asyncio.sleep(1)

    @app.workflow
    async def stubborn(ctx: weft.Context) -> None:
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await work()
                await ctx.spawn(child())

    @app.workflow
    async def child(ctx: weft.Context) -> None:
        await ctx.receive("never")

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await ctx.spawn(stubborn())
        await ctx.receive("fail")
        raise RuntimeError("no")

    desk = desk_of(app)

    async def scene() -> list[int]:
        run = await app.start(flow(), id="run")
        await asyncio.sleep(5.5)
        before = rows(desk)
        await run.send("fail")
        await asyncio.sleep(60)
        assert await run.status() in ("rolling_back", "failed")
        return [before, rows(desk)]

    before, after = desk.play(scene)
    assert before == after > 5


def test_the_limits_are_options_of_the_app() -> None:
    app = weft.App("memory://", tree_depth=3)

    @app.workflow
    async def flow(n: int) -> int:
        try:
            return await flow(n + 1)
        except weft.LimitExceeded:
            return n

    assert app.run(flow(1)) == 3
    with pytest.raises(weft.UsageError):
        weft.App("memory://", tree_runs=0)


def test_a_child_that_is_taken_up_below_a_cancelled_root_does_not_begin() -> None:
    """Its row was made before the cancel, and no host had its workflow then."""
    app, other = weft.App("memory://"), weft.App("memory://")
    begun: list[str] = []

    @other.workflow
    async def child() -> None:
        begun.append("child")

    @app.workflow
    async def middle() -> None:
        await child()

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await middle()

    desk = desk_of(app)

    async def begin() -> None:
        await app.start(flow(), id="run")
        await calm()

    desk.play(begin, crash=True)
    desk.store.content.runs[desk.store.content.ids["run"]].status = "cancelling"  # type: ignore[index]

    async def look() -> str:
        await asyncio.sleep(1)
        return desk.status("run.middle.child")

    assert desk.play(look, app=other) == "failed"
    assert begun == []
