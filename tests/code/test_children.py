"""Child runs: started with their parent's event, heard of when they end, stopped when nobody waits any more."""

import asyncio
from typing import Any

import pytest

import weft
from tests.code.desk import Desk
from tests.code.timeless import calm
from weft.core import events as e
from weft.testing import World


class Family:
    """An app with a child that doubles, one that fails and one that waits."""

    def __init__(self) -> None:
        self.app = weft.App("memory://")
        self.seen: list[str] = []
        app = self.app

        @app.step(retries=0)
        async def note(text: str) -> str:
            self.seen.append(text)
            return text

        @app.workflow
        async def double(n: int) -> int:
            await note(f"double {n}")
            return n * 2

        @app.workflow
        async def broken() -> None:
            raise KeyError("broken")

        @app.workflow
        async def patient(ctx: weft.Context) -> str:
            try:
                return await ctx.receive("word", str)
            except asyncio.CancelledError:
                self.seen.append("told to stop")
                raise

        self.note, self.double, self.broken, self.patient = note, double, broken, patient


def test_a_workflow_awaited_in_a_workflow_is_a_child_run_with_an_id_of_its_own() -> None:
    family = Family()

    @family.app.workflow
    async def flow() -> int:
        return await family.double(4)

    desk = Desk(family.app)
    assert desk.run(flow()) == 8
    assert desk.kinds() == ["run_started", "child_started", "child_ended", "run_completed"]
    assert desk.status("run.double") == "completed"


def test_call_takes_a_call_a_workflow_or_a_name() -> None:
    family = Family()

    @family.app.workflow
    async def flow(ctx: weft.Context) -> list[int]:
        return [
            await ctx.call(family.double(1)),
            await ctx.call(family.double, {"n": 2}),
            await ctx.call("double", {"n": 3}),
            await ctx.call(family.double(4), id="mine"),
        ]

    desk = Desk(family.app)
    assert desk.run(flow()) == [2, 4, 6, 8]
    assert desk.places() == ["double", "double#2", "double#3", "double#4"]
    assert desk.status("mine") == "completed"


@pytest.mark.parametrize("id", ["schedule/nightly", "bulk/1"])
def test_a_child_cannot_have_an_id_of_wefts_own_runs(id: str) -> None:
    app = weft.App("memory://")

    @app.workflow
    async def below() -> int:
        return 1

    @app.workflow
    async def above(ctx: weft.Context) -> str:
        try:
            return str(await ctx.call(below(), id=id))
        except weft.UsageError as error:
            return error.message

    assert "Weft's own" in World(app).run(above())


def test_children_can_be_gathered() -> None:
    family = Family()

    @family.app.workflow
    async def flow() -> list[int]:
        return list(await asyncio.gather(*(family.double(n) for n in range(20))))

    assert Desk(family.app).run(flow()) == [n * 2 for n in range(20)]


def test_a_spawned_child_goes_on_by_itself_and_can_be_awaited_later() -> None:
    family = Family()

    @family.app.workflow
    async def flow(ctx: weft.Context) -> list[Any]:
        child = await ctx.spawn(family.double(5))
        first = await family.note("meanwhile")
        return [first, child.id, await child.result()]

    assert Desk(family.app).run(flow()) == ["meanwhile", "run.double", 10]


def test_the_result_of_a_spawned_child_can_be_asked_for_more_than_once() -> None:
    family = Family()

    @family.app.workflow
    async def flow(ctx: weft.Context) -> list[int]:
        child = await ctx.spawn(family.double(5))
        both = await asyncio.gather(child.result(), child.result())
        await ctx.receive("go")
        return [*both, await child.result()]

    assert Desk(family.app).across_a_crash(flow(), seconds=5) == [10, 10, 10]


def test_a_spawned_child_outlives_a_parent_that_completes() -> None:
    family = Family()

    @family.app.workflow
    async def flow(ctx: weft.Context) -> str:
        return (await ctx.spawn(family.patient())).id

    async def scene() -> Any:
        run = await family.app.start(flow(), id="run")
        child = family.app.get(await run.result())
        await calm()
        await child.send("word", "late")
        return await child.result()

    assert Desk(family.app).play(scene) == "late"


def test_a_child_goes_on_after_a_crash_and_is_not_started_twice() -> None:
    family = Family()

    @family.app.workflow
    async def flow() -> str:
        return await family.patient()

    async def begin() -> None:
        await family.app.start(flow(), id="run")
        await calm()

    async def end() -> Any:
        await family.app.get("run.patient").send("word", "here")
        return await family.app.get("run").result()

    desk = Desk(family.app)
    desk.play(begin, crash=True)
    assert desk.play(end) == "here"
    assert len(desk.store.content.runs) == 2


def test_the_end_of_a_child_reaches_a_parent_that_was_at_rest() -> None:
    family = Family()

    @family.app.workflow
    async def flow() -> str:
        return await family.patient()

    async def begin() -> None:
        await family.app.start(flow(), id="run")
        await calm()

    async def middle() -> None:
        await asyncio.sleep(120)
        assert not desk.host.runs.actors
        await family.app.get("run.patient").send("word", "here")
        await asyncio.sleep(60)

    desk = Desk(family.app)
    desk.play(begin)
    desk.play(middle)
    assert desk.status() == "completed"


def test_a_child_that_fails_raises_run_failed_in_its_parent_live_and_on_replay() -> None:
    family = Family()
    seen: list[tuple[str, str]] = []

    @family.app.workflow
    async def flow(ctx: weft.Context) -> None:
        try:
            await family.broken()
        except weft.RunFailed as failed:
            seen.append((failed.run_id, failed.failure.type))
        await ctx.receive("go")

    Desk(family.app).across_a_crash(flow())
    assert seen == [("run.broken", "KeyError")] * 2


def test_a_child_that_was_cancelled_raises_run_cancelled_in_its_parent() -> None:
    family = Family()

    @family.app.workflow
    async def flow() -> str:
        try:
            return await family.patient()
        except weft.RunCancelled as cancelled:
            return f"{cancelled.run_id} is gone"

    async def scene() -> Any:
        run = await family.app.start(flow(), id="run")
        await calm()
        await family.app.get("run.patient").cancel()
        return await run.result()

    assert Desk(family.app).play(scene) == "run.patient is gone"


def test_a_child_that_takes_too_long_is_stopped_and_raises_timed_out() -> None:
    family = Family()

    @family.app.workflow
    async def flow(ctx: weft.Context) -> str:
        try:
            return await ctx.call(family.patient(), timeout="1m")
        except weft.TimedOut:
            await ctx.receive("go")
            return "late"

    desk = Desk(family.app)
    assert desk.across_a_crash(flow(), seconds=100) == "late"
    assert desk.status("run.patient") == "cancelled"
    assert family.seen == ["told to stop"]


def test_a_child_whose_own_wait_timed_out_has_failed_and_not_timed_out() -> None:
    """A timeout inside the child is the child's failure; only the parent's own limit is the parent's timeout."""
    family = Family()

    @family.app.workflow
    async def impatient(ctx: weft.Context) -> None:
        await ctx.receive("never", timeout="1s")

    @family.app.workflow
    async def flow(ctx: weft.Context) -> str:
        try:
            await ctx.call(impatient(), timeout="1h")
        except weft.RunFailed as failed:
            return failed.failure.type
        except weft.TimedOut:
            return "taken for our own"
        return "?"

    assert Desk(family.app).run(flow()) == "TimedOut"


def test_a_child_that_failed_because_of_a_cancelled_grandchild_has_failed() -> None:
    family = Family()

    @family.app.workflow
    async def middle() -> str:
        return await family.patient()

    @family.app.workflow
    async def flow() -> str:
        try:
            return await middle()
        except weft.RunFailed as failed:
            return failed.failure.type
        except weft.RunCancelled:
            return "taken for cancelled"

    async def scene() -> Any:
        run = await family.app.start(flow(), id="run")
        await asyncio.sleep(1)
        await family.app.get("run.middle.patient").cancel()
        return await run.result()

    assert Desk(family.app).play(scene) == "RunCancelled"


def test_cancelling_a_parent_reaches_children_and_grandchildren_and_waits_for_them() -> None:
    family = Family()

    @family.app.workflow
    async def middle() -> str:
        return await family.patient()

    @family.app.workflow
    async def flow(ctx: weft.Context) -> None:
        await asyncio.gather(middle(), family.patient())

    async def scene() -> None:
        run = await family.app.start(flow(), id="run")
        await asyncio.sleep(1)
        await run.cancel("enough")
        with pytest.raises(weft.RunCancelled):
            await run.result()

    desk = Desk(family.app)
    desk.play(scene)
    statuses = {name: desk.status(name) for name in desk.store.content.ids}
    assert set(statuses.values()) == {"cancelled"}
    assert len(statuses) == 4
    ends = {name: desk.stored(name)[-1].at for name in statuses}
    assert desk.stored()[-1].at == max(ends.values())
    assert family.seen == ["told to stop"] * 2


def test_a_spawned_child_is_told_too_when_its_parent_is_cancelled_or_fails() -> None:
    family = Family()

    @family.app.workflow
    async def flow(ctx: weft.Context) -> None:
        await ctx.spawn(family.patient())
        await ctx.sleep("1s")
        raise weft.Rollback

    desk = Desk(family.app)
    desk.fail(flow())
    assert desk.status("run.patient") == "cancelled"


def test_a_child_of_a_taken_id_fails_and_its_parent_hears_of_it() -> None:
    family = Family()

    @family.app.workflow
    async def flow(ctx: weft.Context) -> str:
        try:
            await ctx.call(family.double(1), id="taken")
        except weft.RunFailed as failed:
            return failed.failure.code
        return "?"

    async def scene() -> Any:
        await family.app.start(family.patient(), id="taken")
        return await (await family.app.start(flow(), id="run")).result()

    assert Desk(family.app).play(scene) == "run.id_taken"


def test_a_large_input_and_result_pass_between_parent_and_child() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def grow(text: str) -> str:
        return text * 2

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        grown = await grow("x" * 50_000)
        await ctx.receive("go")
        return len(grown)

    assert Desk(app).across_a_crash(flow(), seconds=5) == 100_000


def test_other_arguments_for_a_recorded_child_are_divergence() -> None:
    def build(n: int) -> weft.App:
        app = weft.App("memory://")

        @app.workflow
        async def child(n: int) -> int:
            return n

        @app.workflow
        async def flow(ctx: weft.Context) -> None:
            await child(n)
            await ctx.receive("go")

        return app

    async def begin() -> None:
        await first.start("flow", {}, id="run")
        await asyncio.sleep(1)

    async def look() -> str:
        await calm()
        return await second.get("run").status()

    first, second = build(1), build(2)
    desk = Desk(first)
    desk.play(begin, crash=True)
    assert desk.play(look, app=second) == "held"


def test_a_child_is_of_the_version_that_was_called() -> None:
    app = weft.App("memory://")

    @app.workflow(name="child", version="1")
    async def old() -> str:
        return "old"

    @app.workflow(name="child", version="2")
    async def new() -> str:
        return "new"

    @app.workflow
    async def flow() -> list[str]:
        return [await old(), await new()]

    assert Desk(app).run(flow()) == ["old", "new"]


def test_an_unknown_child_is_refused_by_name() -> None:
    family = Family()

    @family.app.workflow
    async def flow(ctx: weft.Context) -> None:
        await ctx.call("doubel", {"n": 1})

    failure = Desk(family.app).fail(flow())
    assert failure.type == "UnknownWorkflow"
    assert "double" in failure.message


def test_children_that_nobody_waits_for_any_more_when_the_parent_completes_go_on() -> None:
    family = Family()

    @family.app.workflow
    async def flow(ctx: weft.Context) -> str:
        task = asyncio.create_task(ctx.call(family.patient()))
        await ctx.sleep("1s")
        del task
        return "done"

    desk = Desk(family.app)
    assert desk.run(flow()) == "done"
    ended = [event for event in desk.log() if isinstance(event, e.RunCompleted)]
    assert len(ended) == 1


def test_deep_families_end_and_uids_derive_from_their_parents() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def down(depth: int) -> int:
        return 1 + await down(depth - 1) if depth else 0

    desk = Desk(app)
    assert desk.run(down(12)) == 12
    twin = Desk(app)
    assert twin.run(down(12)) == 12
    assert list(desk.store.content.runs) == list(twin.store.content.runs)


@pytest.mark.parametrize("name", [" a", "a\n", "a\0", "x" * 501, "\ud800"])
def test_a_child_id_that_nobody_could_type_is_refused(name: str) -> None:
    family = Family()

    @family.app.workflow
    async def flow(ctx: weft.Context) -> str:
        refused = 0
        for wish in (ctx.call(family.double(1), id=name), ctx.spawn(family.double(1), id=name)):
            try:
                await wish
            except weft.UsageError:
                refused += 1
        await ctx.sleep("1s")
        return f"{refused} refused"

    assert Desk(family.app).run(flow()) == "2 refused"
