"""Starting: the same id, workflow and arguments are the same run; anything else is told apart in words."""

import asyncio
from typing import Any

import pytest

import weft
from tests.code.desk import Desk
from tests.code.timeless import calm


def orders() -> tuple[weft.App, Any, list[str]]:
    app = weft.App("memory://")
    seen: list[str] = []

    @app.step
    async def pack(name: str, count: int) -> str:
        seen.append(name)
        return f"{count} {name}"

    @app.workflow
    async def order(name: str, count: int = 1, gift: bool = False) -> str:
        return await pack(name, count)

    return app, order, seen


def test_the_same_start_twice_is_one_run() -> None:
    app, order, seen = orders()

    async def scene() -> list[str]:
        runs = [await app.start(order("tea"), id="o-1") for _ in range(3)]
        return [await run.result() for run in runs]

    assert Desk(app).play(scene) == ["1 tea"] * 3
    assert seen == ["tea"]


def test_the_same_start_at_the_same_moment_is_one_run() -> None:
    app, order, seen = orders()

    async def scene() -> list[str]:
        runs = await asyncio.gather(*(app.start(order("tea"), id="o-1") for _ in range(5)))
        return [await run.result() for run in runs]

    assert Desk(app).play(scene) == ["1 tea"] * 5
    assert seen == ["tea"]


def test_a_finished_run_is_found_again_also_by_another_process() -> None:
    app, order, seen = orders()
    desk = Desk(app)
    assert desk.run(order("tea")) == "1 tea"
    assert desk.run(order("tea")) == "1 tea"
    assert seen == ["tea"]


@pytest.mark.parametrize("first", ["completed", "waiting"])
def test_code_before_the_first_wait_does_not_run_again(first: str) -> None:
    app = weft.App("memory://")
    begun: list[str] = []

    @app.workflow
    async def order(ctx: weft.Context, name: str) -> str:
        begun.append(name)
        if first == "waiting":
            await ctx.receive("never")
        return name

    async def scene() -> None:
        run = await app.start(order("tea"), id="o-1")
        if first == "completed":
            await run.result()
        await calm()
        await app.start(order("tea"), id="o-1")
        with pytest.raises(weft.IdTaken):
            await app.start(order("coffee"), id="o-1")
        await calm()

    Desk(app).play(scene)
    assert begun == ["tea"]


def test_other_arguments_under_the_same_id_are_refused_with_the_difference() -> None:
    app, order, _ = orders()

    async def scene() -> Any:
        await app.start(order("tea", 2), id="o-1")
        with pytest.raises(weft.IdTaken) as refused:
            await app.start(order("coffee", 2), id="o-1")
        return str(refused.value)

    text = Desk(app).play(scene)
    assert 'name: "tea" there, "coffee" here' in text
    assert "count" not in text


def test_arguments_left_to_their_defaults_are_not_compared() -> None:
    app, order, seen = orders()

    async def scene() -> None:
        await app.start(order("tea", 2), id="o-1")
        await app.start(order("tea"), id="o-1")
        await app.start(order("tea", gift=True), id="o-1")
        await calm()

    Desk(app).play(scene)
    assert seen == ["tea"]


def test_another_workflow_under_the_same_id_is_refused() -> None:
    app, order, _ = orders()

    @app.workflow
    async def other(name: str) -> str:
        return name

    async def scene() -> None:
        await app.start(order("tea"), id="o-1")
        with pytest.raises(weft.IdTaken, match="a run of order, not of other"):
            await app.start(other("tea"), id="o-1")

    Desk(app).play(scene)


def test_an_existing_run_can_be_refused() -> None:
    app, order, _ = orders()

    async def scene() -> None:
        await app.start(order("tea"), id="o-1", existing="refuse")
        with pytest.raises(weft.IdTaken):
            await app.start(order("tea"), id="o-1", existing="refuse")

    Desk(app).play(scene)


def test_without_an_id_every_start_is_a_new_run() -> None:
    app, order, seen = orders()

    async def scene() -> set[str]:
        runs = [await app.start(order("tea")) for _ in range(3)]
        for run in runs:
            await run.result()
        return {run.id for run in runs}

    assert len(Desk(app).play(scene)) == 3
    assert seen == ["tea"] * 3


def test_a_start_takes_a_call_a_workflow_or_a_name() -> None:
    app, order, _ = orders()

    async def scene() -> list[str]:
        runs = [
            await app.start(order("a")),
            await app.start(order, {"name": "b", "count": 2}),
            await app.start("order", {"name": "c"}),
        ]
        return [await run.result() for run in runs]

    assert Desk(app).play(scene) == ["1 a", "2 b", "1 c"]


@pytest.mark.parametrize(
    ("given", "code"),
    [({}, "value.wrong_type"), ({"name": 3}, "value.wrong_type"), ({"name": "a", "nmae": 1}, "value.wrong_type")],
)
def test_wrong_arguments_are_refused_and_nothing_is_started(given: dict[str, Any], code: str) -> None:
    app, _, _ = orders()

    async def scene() -> None:
        with pytest.raises(weft.BadValue) as refused:
            await app.start("order", given, id="o-1")
        assert refused.value.code == code

    desk = Desk(app)
    desk.play(scene)
    assert desk.store.content.runs == {}


def test_an_unknown_workflow_is_refused_with_a_guess() -> None:
    app, _, _ = orders()

    async def scene() -> None:
        with pytest.raises(weft.UnknownWorkflow, match='Did you mean "order"'):
            await app.start("ordre", {})

    Desk(app).play(scene)


def test_a_call_of_a_step_is_not_a_run() -> None:
    app, _, _ = orders()

    @app.step
    async def step() -> None: ...

    async def scene() -> None:
        with pytest.raises(weft.UsageError):
            await app.start(step())

    Desk(app).play(scene)


@pytest.mark.parametrize("id", ["", " a", "a\n", "a\0", "x" * 501, "\ud800"])
def test_an_id_that_nobody_could_type_is_refused(id: str) -> None:
    app, order, _ = orders()

    async def scene() -> None:
        with pytest.raises(weft.UsageError):
            await app.start(order("a"), id=id)

    Desk(app).play(scene)


def test_a_delayed_run_begins_when_its_time_has_come() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> float:
        return (await ctx.now()).timestamp()

    async def scene() -> float:
        begun = desk.clock.now_ms() / 1000
        run = await app.start(flow(), id="run", delay="1h")
        await asyncio.sleep(600)
        assert await run.status() == "pending"
        return await run.result() - begun

    desk = Desk(app)
    assert 3600 <= desk.play(scene) < 3610


def test_a_delayed_start_survives_its_process_and_is_one_run() -> None:
    app, order, seen = orders()

    async def begin() -> None:
        await app.start(order("tea"), id="o-1", delay="1h")
        await app.start(order("tea"), id="o-1", delay="1h")
        with pytest.raises(weft.IdTaken):
            await app.start(order("coffee"), id="o-1")

    async def end() -> Any:
        assert seen == []
        return await app.get("o-1").result()

    desk = Desk(app)
    desk.play(begin, crash=True)
    assert desk.play(end) == "1 tea"
    assert seen == ["tea"]


def test_awaiting_a_workflow_outside_starts_a_run_and_waits() -> None:
    app, order, _ = orders()

    async def scene() -> Any:
        found: str = await order("tea", 3)
        return found

    desk = Desk(app)
    assert desk.play(scene) == "3 tea"
    assert len(desk.store.content.runs) == 1


def test_without_an_engine_a_start_says_how_to_have_one() -> None:
    app, order, _ = orders()

    async def start() -> None:
        await app.start(order("tea"))

    with pytest.raises(weft.NotRunning, match="async with app"):
        asyncio.run(start())


def test_result_with_a_timeout_gives_up_waiting_and_the_run_goes_on() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        await ctx.sleep("1m")
        return "done"

    async def scene() -> Any:
        run = await app.start(flow())
        with pytest.raises(weft.TimedOut):
            await run.result(timeout="1s")
        return await run.result()

    assert Desk(app).play(scene) == "done"


def test_a_run_that_does_not_exist_is_not_found() -> None:
    app, _, _ = orders()

    async def scene() -> None:
        for wish in (app.get("x").result(), app.get("x").status(), app.get("x").cancel(), app.get("x").explain()):
            with pytest.raises(weft.NotFound):
                await wish

    Desk(app).play(scene)


def test_events_can_be_followed_to_the_end() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await ctx.sleep("1m")

    async def scene() -> list[str]:
        run = await app.start(flow())
        return [event.kind async for event in run.events(follow=True)]

    assert Desk(app).play(scene) == ["run_started", "timer_set", "timer_fired", "run_completed"]


def test_the_real_app_hosts_the_engine_in_an_async_with() -> None:
    app, order, _ = orders()

    async def main() -> str:
        async with app:
            return str(await (await app.start(order("tea"), id="o-1")).result())

    assert asyncio.run(main()) == "1 tea"
    with pytest.raises(weft.NotRunning):
        app.get("o-1")


def test_the_real_app_runs_in_one_blocking_call_and_performs_plain_functions_in_threads() -> None:
    import threading

    app = weft.App("memory://")

    @app.step
    def where() -> str:
        return threading.current_thread().name

    @app.workflow
    async def flow() -> str:
        return await where()

    assert app.run(flow()).startswith("weft-step")
