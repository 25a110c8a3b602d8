"""Messages: never lost, in order of arrival, seen once, whether the run waits for them yet or not."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import weft
from tests.code.desk import Desk
from tests.code.timeless import calm
from weft.core import events as e


@dataclass
class Quote:
    cents: int


def test_a_message_ends_the_wait_for_it() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        return (await ctx.receive("quote", Quote)).cents

    async def scene() -> int:
        run = await app.start(flow())
        await calm()
        await run.send("quote", {"cents": 5})
        return await run.result()

    assert Desk(app).play(scene) == 5


def test_a_message_that_comes_before_the_wait_is_kept_for_it() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> list[Any]:
        await ctx.sleep("1m")
        return [await ctx.receive("a"), await ctx.receive("b")]

    async def scene() -> Any:
        run = await app.start(flow())
        await run.send("b", 2)
        await run.send("a", 1)
        return await run.result()

    assert Desk(app).play(scene) == [1, 2]


def test_messages_of_one_name_come_in_the_order_of_their_arrival_also_after_a_crash() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> list[int]:
        await ctx.receive("go")
        return [await ctx.receive("n", int) for _ in range(12)]

    async def begin() -> None:
        run = await app.start(flow(), id="run")
        for n in range(12):
            await run.send("n", n)

    async def end() -> list[int]:
        run = app.get("run", flow)
        await run.send("go")
        return await run.result()

    desk = Desk(app)
    desk.play(begin, crash=True)
    assert desk.play(end) == list(range(12))


def test_messages_over_several_names_come_in_the_order_of_their_arrival() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> list[tuple[str, Any]]:
        await ctx.receive("go")
        found = await ctx.messages("b", "a", most=10)
        return [(message.name, message.body) for message in found]

    async def begin() -> None:
        run = await app.start(flow(), id="run")
        for name in "abbac":
            await run.send(name, name.upper())

    async def end() -> Any:
        run = app.get("run", flow)
        await run.send("go")
        return await run.result()

    desk = Desk(app)
    desk.play(begin, crash=True)
    assert [name for name, _ in desk.play(end)] == list("abba")


def test_messages_gives_at_most_as_many_as_asked_for_and_leaves_the_rest() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> list[list[int]]:
        await ctx.receive("go")
        first = await ctx.messages("n", most=2)
        rest = await ctx.messages("n", most=10)
        return [[m.body for m in first], [m.body for m in rest]]

    async def scene() -> Any:
        run = await app.start(flow())
        for n in range(5):
            await run.send("n", n)
        await run.send("go")
        return await run.result()

    assert Desk(app).play(scene) == [[0, 1], [2, 3, 4]]


def test_messages_returns_with_the_first_and_does_not_wait_for_more() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        return len(await ctx.messages("n", most=10))

    async def scene() -> int:
        run = await app.start(flow())
        await calm()
        await run.send("n", 1)
        return await run.result()

    assert Desk(app).play(scene) == 1


def test_messages_without_names_takes_any() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> list[str]:
        await ctx.sleep("1s")
        return [message.name for message in await ctx.messages(most=10)]

    async def scene() -> Any:
        run = await app.start(flow())
        await run.send("x")
        await run.send("y")
        return await run.result()

    assert Desk(app).play(scene) == ["x", "y"]


def test_messages_gives_an_empty_list_when_the_time_is_up() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> list[Any]:
        return await ctx.messages("n", timeout="1m")

    assert Desk(app).run(flow()) == []


def test_receive_raises_timed_out_the_same_live_and_on_replay() -> None:
    app = weft.App("memory://")
    seen: list[str] = []

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        try:
            await ctx.receive("n", timeout="10s")
        except TimeoutError as late:
            seen.append(str(late))
        await ctx.receive("go")

    Desk(app).across_a_crash(flow(), seconds=20)
    assert len(seen) == 2
    assert seen[0] == seen[1]
    assert "n did not come in time" in seen[0]


def test_receive_gives_the_default_when_the_time_is_up() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> list[Any]:
        return [
            await ctx.receive("n", int, timeout="1s", default=None),
            await ctx.receive("m", timeout="1s", default=7),
        ]

    assert Desk(app).run(flow()) == [None, 7]


def test_the_time_of_a_wait_runs_on_while_nobody_is_there() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        return await ctx.receive("n", str, timeout="1h", default="late")

    async def begin() -> None:
        await app.start(flow(), id="run")
        await asyncio.sleep(1800)

    async def end() -> Any:
        return await app.get("run").result()

    desk = Desk(app)
    desk.play(begin, crash=True)
    before = desk.now_ms
    assert desk.play(end) == "late"
    assert 1790_000 <= desk.now_ms - before <= 1810_000


def test_a_message_sent_in_time_beats_the_timeout_although_it_is_read_late() -> None:
    """Accepted in time wins: the inbox is read before a timer that ends a wait is decided."""
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        return await ctx.receive("n", str, timeout="1h", default="late")

    async def begin() -> None:
        await app.start(flow(), id="run")
        await calm()

    async def elsewhere() -> None:
        await other.get("run").send("n", "in time")

    async def end() -> Any:
        return await app.get("run").result()

    desk = Desk(app)
    desk.play(begin)
    other = weft.App("memory://")
    desk.play(elsewhere, app=other)
    desk.now_ms += 2 * 3_600_000
    assert desk.play(end) == "in time"


def test_a_message_of_the_wrong_type_is_refused_and_recorded_and_the_wait_goes_on() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        quote = await ctx.receive("quote", Quote)
        await ctx.receive("go")
        return quote.cents

    async def begin() -> None:
        run = await app.start(flow(), id="run")
        await run.send("quote", {"cents": "five"})
        await run.send("quote", 3)
        await run.send("quote", {"cents": 5})
        await calm()

    async def end() -> Any:
        run = app.get("run")
        await run.send("go")
        return await run.result()

    desk = Desk(app)
    desk.play(begin, crash=True)
    refused = [event for event in desk.log() if isinstance(event, e.MessageRefused)]
    assert len(refused) == 2
    assert "cents" in refused[0].error
    assert desk.play(end) == 5
    assert desk.kinds().count("message_refused") == 2


def test_a_refused_message_does_not_lengthen_the_wait() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        await ctx.receive("quote", Quote, timeout="1m", default=None)
        return str(await ctx.now())

    async def scene() -> None:
        run = await app.start(flow(), id="run")
        await asyncio.sleep(50)
        await run.send("quote", "bad")
        await run.result()

    desk = Desk(app)
    desk.play(scene)
    times = [stored.at for stored in desk.stored()]
    assert 59_000 <= times[-1] - times[0] <= 61_000


def test_a_refused_message_does_not_lengthen_the_wait_on_replay_either() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        return str(await ctx.receive("quote", Quote, timeout="1m", default=None))

    async def begin() -> None:
        run = await app.start(flow(), id="run")
        await asyncio.sleep(50)
        await run.send("quote", "bad")

    async def late_again() -> None:
        run = app.get("run")
        await asyncio.sleep(5)
        await run.send("quote", "bad again")
        await run.result()

    desk = Desk(app)
    desk.play(begin, crash=True)
    desk.play(late_again)
    times = [stored.at for stored in desk.stored()]
    assert 59_000 <= times[-1] - times[0] <= 61_000


def test_two_waits_for_one_name_share_the_messages_in_order() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> list[int]:
        return list(await asyncio.gather(ctx.receive("n", int), ctx.receive("n", int)))

    async def scene() -> Any:
        run = await app.start(flow())
        await calm()
        await run.send("n", 1)
        await run.send("n", 2)
        return await run.result()

    assert Desk(app).play(scene) == [1, 2]


def test_a_message_carries_its_id_name_and_time() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> bool:
        (message,) = await ctx.messages("n")
        return bool(message.id) and message.name == "n" and message.sent_at.year == 2026

    async def scene() -> bool:
        run = await app.start(flow())
        await run.send("n")
        return await run.result()

    assert Desk(app).play(scene)


def test_a_message_is_taken_once() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> list[Any]:
        return [await ctx.receive("n"), await ctx.receive("n", timeout="1s", default="none")]

    async def scene() -> Any:
        run = await app.start(flow())
        await run.send("n", 1)
        return await run.result()

    assert Desk(app).play(scene) == [1, "none"]


def test_the_same_key_is_one_message() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        await ctx.sleep("1s")
        return len(await ctx.messages("n", most=10))

    async def scene() -> int:
        run = await app.start(flow())
        for _ in range(3):
            await run.send("n", 1, key="k")
        return await run.result()

    assert Desk(app).play(scene) == 1


def test_the_same_key_at_the_same_moment_is_one_message() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        await ctx.sleep("1s")
        return len(await ctx.messages("n", most=10))

    async def scene() -> int:
        run = await app.start(flow())
        await asyncio.gather(*(run.send("n", 1, key="k") for _ in range(3)))
        return await run.result()

    assert Desk(app).play(scene) == 1


def test_another_body_under_a_used_key_is_refused() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> Any:
        return await ctx.receive("n")

    async def scene() -> Any:
        run = await app.start(flow())
        await run.send("n", 1, key="k")
        with pytest.raises(weft.KeyReused):
            await run.send("n", 2, key="k")
        assert await run.result() == 1
        await run.send("n", 1, key="k")
        with pytest.raises(weft.KeyReused):
            await run.send("n", 2, key="k")

    Desk(app).play(scene)


def test_a_message_to_a_finished_run_is_refused() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow() -> int:
        return 1

    async def scene() -> None:
        run = await app.start(flow())
        await run.result()
        with pytest.raises(weft.RunFinished, match='the message "n" was not delivered'):
            await run.send("n", 1)

    Desk(app).play(scene)


def test_a_message_to_no_run_is_refused() -> None:
    app = weft.App("memory://")

    async def scene() -> None:
        with pytest.raises(weft.NotFound):
            await app.get("nobody").send("n", 1)

    Desk(app).play(scene)


@pytest.mark.parametrize("body", [float("nan"), {1, 2}, object(), "a\0b", "\ud800"])
def test_a_body_that_no_store_can_hold_is_refused_and_nothing_is_written(body: Any) -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> Any:
        return await ctx.receive("n")

    async def scene() -> None:
        run = await app.start(flow(), id="run")
        await calm()
        with pytest.raises(weft.BadValue):
            await run.send("n", body)

    desk = Desk(app)
    desk.play(scene, crash=True)
    assert desk.kinds() == ["run_started", "message_awaited"]


WAITS: list[Callable[[weft.Context, str], Any]] = [
    lambda ctx, name: ctx.receive(name),
    lambda ctx, name: ctx.messages(name),
    lambda ctx, name: ctx.messages("fine", name),
]


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("name", ["", "a/b", "~1", "&x", "a#2", "a\0"])
def test_a_wait_for_a_name_that_could_be_taken_for_another_place_is_refused(
    wait: Callable[[weft.Context, str], Any], name: str
) -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await wait(ctx, name)

    assert Desk(app).fail(flow()).code == "value.bad_name"


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800", "x" * 1000])
def test_a_message_whose_name_nobody_can_wait_for_is_refused(name: str) -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> Any:
        return await ctx.receive("n")

    async def scene() -> None:
        run = await app.start(flow(), id="run")
        with pytest.raises(weft.UsageError):
            await run.send(name, 1)

    desk = Desk(app)
    desk.play(scene, crash=True)
    assert "message_received" not in desk.kinds()


def test_less_than_one_message_is_refused() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await ctx.messages("n", most=0)

    assert Desk(app).fail(flow()).type == "BadValue"
