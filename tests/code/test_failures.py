"""What a run that failed says: which step, where, how often, and the cause at the root."""

import asyncio

import pytest

import weft
from tests.code.desk import Desk


class Declined(Exception):
    pass


class OrderFailed(Exception):
    pass


def raised(app: weft.App, call: "weft.Call[object]") -> weft.RunFailed:
    async def scene() -> weft.RunFailed:
        run = await app.start(call, id="r-1")
        with pytest.raises(weft.RunFailed) as caught:
            await run.result()
        return caught.value

    return Desk(app).play(scene)


def test_a_step_that_timed_out_is_a_step_that_failed() -> None:
    app = weft.App("memory://")

    @app.step(retries=1, timeout="1s")
    async def slow() -> None:
        await asyncio.sleep(60)

    @app.workflow
    async def flow(ctx: weft.Context, kind: str) -> list[object]:
        try:
            await slow()
        except {"step": weft.StepFailed, "wait": weft.TimedOut, "python": TimeoutError}[kind] as error:
            failure = getattr(error, "failure", None)
            return [
                type(error).__name__,
                failure and failure.code,
                failure and failure.step,
                failure and failure.attempts,
            ]
        return []

    for kind in ("step", "wait", "python"):
        assert Desk(app).run(flow(kind)) == ["StepTimedOut", "step.timed_out", "slow", 2]


def test_a_wait_that_timed_out_is_no_failed_step() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> bool:
        try:
            await ctx.receive("never", timeout="1s")
        except weft.TimedOut as error:
            return isinstance(error, weft.StepFailed)
        return True

    assert Desk(app).run(flow()) is False


@pytest.mark.parametrize("declared", [True, False])
def test_a_run_that_failed_names_step_location_and_attempts(declared: bool) -> None:
    app = weft.App("memory://")

    @app.step(retries=0 if declared else 2, raises=[Declined] if declared else [])
    async def charge() -> None:
        raise Declined("o-1")

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await ctx.join("pay", {"card": ctx.try_step(charge())})
        await charge()

    error = raised(app, flow())
    failure = error.failure
    assert (failure.step, failure.location, failure.attempts) == ("charge", "charge", 1 if declared else 3)
    assert "charge" in str(error)
    assert "o-1" in str(error)


def test_an_error_of_ones_own_raised_from_a_failed_step_names_it_as_the_cause() -> None:
    app = weft.App("memory://")

    @app.step(retries=1)
    async def charge() -> None:
        raise Declined("card of o-1")

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        try:
            await charge()
        except weft.StepFailed as error:
            raise OrderFailed("no money") from error

    error = raised(app, flow())
    assert error.failure.type == "OrderFailed"
    assert (error.failure.step, error.failure.location, error.failure.attempts) == ("charge", "charge", 2)
    assert "Declined" in error.failure.cause
    assert "OrderFailed: no money" in str(error)
    assert "card of o-1" in str(error)
    assert ".." not in str(error)


def test_a_failed_branch_is_the_cause_of_the_run_that_it_ends() -> None:
    app = weft.App("memory://")

    @app.step(retries=0)
    async def fetch(n: int) -> int:
        if n == 2:
            raise Declined("page 2")
        return n

    @app.workflow
    async def flow(ctx: weft.Context) -> list[int]:
        return await ctx.map("pages", fetch, [1, 2, 3])

    error = raised(app, flow())
    assert (error.failure.type, error.failure.step) == ("BranchesFailed", "fetch")
    assert error.failure.location == "pages/~1/fetch"
    assert "page 2" in error.failure.cause


def test_a_failed_child_is_named_where_its_parent_called_it() -> None:
    app = weft.App("memory://")

    @app.step(retries=1)
    async def charge() -> None:
        raise Declined("o-1")

    @app.workflow
    async def pay() -> None:
        await charge()

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await pay()

    failure = raised(app, flow()).failure
    assert (failure.step, failure.location, failure.attempts) == ("charge", "pay", 2)
    assert "Declined" in failure.message


@pytest.mark.parametrize("way", ["step", "inline", "join", "map", "group"])
def test_rollback_is_never_taken_as_an_outcome(way: str) -> None:
    app = weft.App("memory://")
    performed: list[str] = []

    @app.step
    async def refuse(n: int = 0) -> None:
        performed.append(way)
        raise weft.Rollback("sold out")

    def refuse_inline() -> None:
        performed.append(way)
        raise weft.Rollback("sold out")

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        async def group() -> None:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(refuse())

        match way:
            case "step":
                await ctx.try_step(refuse())
            case "inline":
                await ctx.try_step(ctx.step("refuse", refuse_inline))
            case "join":
                await ctx.try_step(ctx.join("both", {"a": refuse()}))
            case "map":
                await ctx.map_outcomes("all", refuse, [1])
            case "group":
                await ctx.try_step(group())
        return "went on"

    error = raised(app, flow())
    assert "sold out" in error.failure.message + error.failure.cause
    assert error.failure.type in ("Rollback", "ExceptionGroup")
    assert performed == [way]
