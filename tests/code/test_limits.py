"""Limits: what is too much is refused with a typed error, nothing is half written, others go on."""

import asyncio
from typing import Any

import msgspec
import pytest

import weft
from tests.code.desk import CALM, Desk
from tests.code.timeless import calm
from weft.core.values import DEPTH_MAX, VALUE_BYTES_MAX


def listener() -> tuple[weft.App, Any]:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        await ctx.receive("go")
        return len(await ctx.messages("n", most=100))

    return app, flow


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_more_commands_than_a_mailbox_holds_are_refused_and_the_rest_are_kept() -> None:
    app, flow = listener()

    async def scene() -> tuple[int, int]:
        run = await app.start(flow(), id="run")
        await calm()
        outcomes = await asyncio.gather(*(run.send("n", n) for n in range(30)), return_exceptions=True)
        refused = [outcome for outcome in outcomes if isinstance(outcome, weft.LimitExceeded)]
        await run.send("go")
        return len(refused), await run.result()

    desk = Desk(app, settings=msgspec.structs.replace(CALM, mailbox_max=10))
    refused, kept = desk.play(scene)
    assert refused > 0
    assert refused + kept == 30


@pytest.mark.parametrize(("depth", "fits"), [(DEPTH_MAX - 1, True), (DEPTH_MAX, True), (DEPTH_MAX + 1, False)])
def test_a_value_may_be_so_deep_and_no_deeper(depth: int, fits: bool) -> None:
    app, flow = listener()

    async def scene() -> None:
        run = await app.start(flow(), id="run")
        if fits:
            await run.send("n", nested(depth))
        else:
            with pytest.raises(weft.LimitExceeded):
                await run.send("n", nested(depth))

    desk = Desk(app)
    desk.play(scene, crash=True)
    assert ("message_received" in desk.kinds()) is fits


def test_a_value_above_the_limit_is_refused_at_every_door_before_anything_is_written() -> None:
    app = weft.App("memory://")
    big = "x" * VALUE_BYTES_MAX

    @app.step(retries=0)
    async def take(text: str) -> None: ...

    @app.step(retries=0)
    async def give() -> str:
        return big

    @app.workflow
    async def flow(ctx: weft.Context, how: str, text: str = "") -> str:
        match how:
            case "take":
                await take(big)
            case "give":
                await give()
            case "loop":
                await ctx.loop("l", body, state="")
            case "attribute":
                await ctx.set(text=big)
        return big

    async def body(_: str) -> weft.Turn[str, None]:
        return weft.again(big)

    with pytest.raises(weft.LimitExceeded):
        flow("x", big)  # type: ignore[unused-coroutine]
    for how in ("take", "give", "loop", "attribute", "return"):
        desk = Desk(app)
        failure = desk.fail(flow(how))
        assert failure.type in {"LimitExceeded", "StepFailed"}, how
        assert all(len(stored.body) < 100_000 for stored in desk.stored())
        assert desk.store.content.blobs == {}


def test_a_thousand_steps_at_once_wait_for_slots() -> None:
    app = weft.App("memory://")
    now = most = 0

    @app.step
    async def work(n: int) -> int:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(1)
        now -= 1
        return n

    @app.workflow
    async def flow() -> int:
        return sum(await asyncio.gather(*(work(n) for n in range(100))))

    desk = Desk(app, settings=msgspec.structs.replace(CALM, slots=7))
    assert desk.run(flow()) == sum(range(100))
    assert most == 7


def test_an_append_larger_than_a_batch_may_be_is_written_in_pieces() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        async def body(n: int) -> weft.Turn[int, int]:
            await ctx.set(n=n)
            return weft.done(n) if n == 3000 else weft.again(n + 1)

        return await ctx.loop("rounds", body, state=0, keep=0)

    desk = Desk(app)
    assert desk.run(flow()) == 3000
    assert [stored.seq for stored in desk.stored()] == list(range(1, len(desk.stored()) + 1))


def test_a_crowd_of_runs_is_refused_nothing_and_all_end() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context, n: int) -> int:
        await ctx.sleep("1s")
        return n

    async def scene() -> list[int]:
        runs = await asyncio.gather(*(app.start(flow(n)) for n in range(300)))
        return [await run.result() for run in runs]

    desk = Desk(app, settings=msgspec.structs.replace(CALM, resident_max=20))
    assert desk.play(scene) == list(range(300))
