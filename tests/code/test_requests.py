"""Messages with an answer: durable on both sides, answered once, and never left waiting for a run that is over."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

import weft
from tests.code.desk import Desk
from tests.code.timeless import calm


@dataclass
class Quote:
    cents: int


def shop() -> weft.App:
    app = weft.App("memory://")

    @app.workflow
    async def counter(ctx: weft.Context, rounds: int = 1) -> int:
        total = 0
        for _ in range(rounds):
            message = await ctx.receive("add", Quote, answer=True)
            total += message.body.cents
            await message.answer({"total": total})
        return total

    @app.workflow
    async def deaf(ctx: weft.Context) -> Any:
        return await ctx.receive("add", Quote)

    @app.workflow
    async def talker(ctx: weft.Context, to: str, times: int = 1) -> str:
        for n in range(times):
            await ctx.send(to, "add", {"cents": n + 1})
        return "sent"

    return app


def test_a_request_returns_what_the_run_answers() -> None:
    app = shop()

    async def scene() -> Any:
        run = await app.start("counter", {"rounds": 2})
        first = await run.request("add", {"cents": 5}, timeout="1m")
        second = await run.request("add", {"cents": 7})
        return first, second, await run.result()

    assert Desk(app).play(scene) == ({"total": 5}, {"total": 12}, 12)


def test_a_request_made_before_the_run_waits_is_answered() -> None:
    app = shop()

    @app.workflow
    async def later(ctx: weft.Context) -> str:
        await ctx.sleep("1m")
        message = await ctx.receive("hello", str, answer=True)
        await message.answer(message.body.upper())
        return "done"

    async def scene() -> Any:
        run = await app.start(later())
        return await run.request("hello", "you", timeout="2m")

    assert Desk(app).play(scene) == "YOU"


def test_the_same_key_is_one_request_with_one_answer_also_after_a_crash_and_the_end() -> None:
    app = shop()
    desk = Desk(app)

    async def first() -> Any:
        run = await app.start("counter", {"rounds": 1}, id="c")
        return await run.request("add", {"cents": 5}, key="k-1")

    async def again() -> Any:
        run = app.get("c")
        return await run.request("add", {"cents": 5}, key="k-1"), await run.result()

    assert desk.play(first, crash=True) == {"total": 5}
    assert desk.play(again) == ({"total": 5}, 5)


def test_another_body_under_the_same_key_is_refused() -> None:
    app = shop()

    async def scene() -> None:
        run = await app.start("counter", {"rounds": 2})
        await run.request("add", {"cents": 5}, key="k")
        with pytest.raises(weft.KeyReused, match='The key "k" was used for another request'):
            await run.request("add", {"cents": 6}, key="k")

    Desk(app).play(scene)


def test_the_answer_survives_a_crash_of_the_one_who_asks() -> None:
    app = shop()
    desk = Desk(app)

    async def asks_and_dies() -> None:
        run = await app.start("later_counter", {}, id="c")
        request = asyncio.ensure_future(run.request("add", {"cents": 3}, key="k"))
        await calm()
        request.cancel()

    @app.workflow
    async def later_counter(ctx: weft.Context) -> int:
        message = await ctx.receive("add", Quote, answer=True)
        await ctx.sleep("1m")
        await message.answer(message.body.cents)
        return 0

    async def asks_again() -> Any:
        return await app.get("c").request("add", {"cents": 3}, key="k")

    desk.play(asks_and_dies, crash=True)
    assert desk.play(asks_again) == 3


def test_a_request_that_nobody_answers_times_out_and_stands() -> None:
    app = shop()

    @app.workflow
    async def slow(ctx: weft.Context) -> None:
        message = await ctx.receive("add", answer=True)
        await ctx.sleep("1m")
        await message.answer("at last")

    async def scene() -> Any:
        run = await app.start(slow())
        with pytest.raises(weft.TimedOut, match="the request stays open"):
            await run.request("add", 1, timeout="10s", key="k")
        return await run.request("add", 1, key="k")

    assert Desk(app).play(scene) == "at last"


def test_a_run_that_ends_without_an_answer_says_so() -> None:
    app = shop()

    @app.workflow
    async def rude(ctx: weft.Context) -> None:
        await ctx.receive("add", answer=True)

    async def scene() -> None:
        run = await app.start(rude())
        with pytest.raises(weft.RunFinished, match="ended without an answer"):
            await run.request("add", 1)
        with pytest.raises(weft.RunFinished, match="was not delivered"):
            await run.request("add", 1)

    Desk(app).play(scene)


def test_a_plain_receive_acknowledges_a_request_with_null() -> None:
    app = shop()

    async def scene() -> Any:
        run = await app.start("deaf")
        return await run.request("add", {"cents": 1})

    assert Desk(app).play(scene) is None


def test_a_buffered_request_is_acknowledged_by_a_plain_receive() -> None:
    app = shop()

    @app.workflow
    async def late(ctx: weft.Context) -> Any:
        await ctx.sleep("1m")
        return await ctx.receive("add")

    async def scene() -> Any:
        run = await app.start(late())
        return await run.request("add", 1), await run.result()

    assert Desk(app).play(scene) == (None, 1)


def test_a_request_of_the_wrong_type_is_refused_and_the_wait_goes_on() -> None:
    app = shop()

    async def scene() -> Any:
        run = await app.start("counter", {"rounds": 1})
        with pytest.raises(weft.BadValue, match="refused the message"):
            await run.request("add", "five")
        return await run.request("add", {"cents": 5})

    assert Desk(app).play(scene) == {"total": 5}


def test_messages_can_be_answered_in_any_order() -> None:
    app = shop()

    @app.workflow
    async def pairs(ctx: weft.Context) -> None:
        found = [*await ctx.messages("a", most=2), *await ctx.messages("a", most=2)][:2]
        for message in reversed(found):
            await message.answer(message.body * 10)

    async def scene() -> Any:
        run = await app.start(pairs())
        return await asyncio.gather(run.request("a", 1), run.request("a", 2))

    assert Desk(app).play(scene) == [10, 20]


def test_a_message_is_answered_once() -> None:
    app = shop()

    @app.workflow
    async def twice(ctx: weft.Context) -> str:
        message = await ctx.receive("add", answer=True)
        await message.answer(1)
        try:
            await message.answer(2)
        except weft.UsageError as error:
            return str(error)
        return "no error"

    async def scene() -> Any:
        run = await app.start(twice())
        return await run.request("add"), await run.result()

    answer, said = Desk(app).play(scene)
    assert answer == 1
    assert "answered twice" in said


def test_a_run_that_answers_a_plain_message_disturbs_nobody() -> None:
    app = shop()

    async def scene() -> Any:
        run = await app.start("counter", {"rounds": 1})
        await run.send("add", {"cents": 4})
        return await run.result()

    assert Desk(app).play(scene) == 4


def test_replay_does_not_answer_again() -> None:
    app = shop()
    desk = Desk(app)

    async def first() -> Any:
        run = await app.start("counter", {"rounds": 2}, id="c")
        return await run.request("add", {"cents": 1})

    async def second() -> Any:
        run = app.get("c")
        answer = await run.request("add", {"cents": 2})
        events = [event.kind async for event in run.events()]
        return answer, events.count("message_answered")

    assert desk.play(first, crash=True) == {"total": 1}
    assert desk.play(second) == ({"total": 3}, 2)


# --- ctx.send -----------------------------------------------------------------------------------------------------


def test_a_workflow_sends_messages_to_another_run() -> None:
    app = shop()

    async def scene() -> Any:
        run = await app.start("counter", {"rounds": 3}, id="c")
        said = await (await app.start("talker", {"to": "c", "times": 3})).result()
        return said, await run.result()

    assert Desk(app).play(scene) == ("sent", 6)


def test_a_send_to_no_run_or_one_that_is_over_raises_the_same_live_and_on_replay() -> None:
    app = shop()
    desk = Desk(app)

    @app.workflow
    async def careful(ctx: weft.Context) -> list[str]:
        found = []
        for target in ("nobody", "over"):
            try:
                await ctx.send(target, "add", 1)
            except weft.Refused as error:
                found.append(type(error).__name__)
        await ctx.sleep("1m")
        return found

    async def first() -> None:
        await (await app.start("deaf", id="over")).send("add", {"cents": 1})
        await app.get("over").result()
        await app.start(careful(), id="careful")
        await calm()

    async def second() -> Any:
        return await app.get("careful").result()

    desk.play(first, crash=True)
    assert desk.play(second) == ["NotFound", "RunFinished"]


def test_a_run_may_send_to_itself() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def alone(ctx: weft.Context) -> int:
        await ctx.send(ctx.run_id, "note", 5)
        return await ctx.receive("note", int)

    async def scene() -> Any:
        return await (await app.start(alone())).result()

    assert Desk(app).play(scene) == 5
