"""``try_step``: a failure as a value, the same live and on replay; what is not a failure of the call passes through."""

import asyncio

import pytest

import weft
from tests.code.desk import Desk
from tests.code.timeless import calm


def test_a_success_is_ok_and_a_failure_is_err() -> None:
    app = weft.App("memory://")
    attempts: list[str] = []

    @app.step(retries=1)
    async def work(name: str) -> str:
        attempts.append(name)
        if name == "bad":
            raise OSError("down")
        return name

    @app.workflow
    async def flow(ctx: weft.Context) -> list[object]:
        good, bad = await ctx.try_step(work("good")), await ctx.try_step(work("bad"))
        assert isinstance(good, weft.Ok)
        assert isinstance(bad, weft.Err)
        await ctx.receive("go")
        return [good.value, bad.failure.type, bad.failure.step, bad.failure.attempts]

    assert Desk(app).across_a_crash(flow(), seconds=5) == ["good", "OSError", "work", 2]
    assert attempts == ["good", "bad", "bad"]


def test_every_way_to_fail_for_good_is_a_value() -> None:
    app = weft.App("memory://")

    @app.step(retries=0, timeout="1s", raises=[KeyError])
    async def work(how: str) -> None:
        match how:
            case "critical":
                raise weft.Critical("no")
            case "declared":
                raise KeyError("k")
            case "slow":
                await asyncio.sleep(60)

    @app.workflow
    async def child() -> None:
        raise ValueError("child")

    @app.workflow
    async def flow(ctx: weft.Context) -> list[str]:
        calls = [work("critical"), work("declared"), work("slow"), child()]
        outcomes = [await ctx.try_step(call) for call in calls]
        return [outcome.failure.type for outcome in outcomes if isinstance(outcome, weft.Err)]

    assert Desk(app).run(flow()) == ["Critical", "KeyError", "TimedOut", "ValueError"]


def test_a_wait_can_be_tried_too() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        outcome = await ctx.try_step(ctx.receive("n", timeout="1s"))
        assert isinstance(outcome, weft.Err)
        return outcome.failure.code

    assert Desk(app).run(flow()) == "wait.timed_out"


def test_a_cancel_is_not_a_failure() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        await ctx.try_step(ctx.receive("never"))
        return "swallowed"

    async def scene() -> None:
        run = await app.start(flow())
        await calm()
        await run.cancel()
        with pytest.raises(weft.RunCancelled):
            await run.result()

    Desk(app).play(scene)


def test_a_mistake_of_the_caller_is_not_a_failure_of_the_call() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await ctx.try_step(ctx.sleep("soon"))

    assert Desk(app).fail(flow()).type == "BadDuration"


def test_rollback_raised_in_the_workflow_is_not_caught_by_a_tried_branch() -> None:
    """``Rollback`` means: fail the run now."""
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        async def give_up() -> None:
            raise weft.Rollback("enough")

        await ctx.try_step(give_up())
        return "went on"

    assert Desk(app).fail(flow()).type == "Rollback"
