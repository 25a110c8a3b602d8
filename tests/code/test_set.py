"""Results set by hand in code runs: of open work, and of work that has ended."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import weft
from tests.code.desk import Desk
from tests.code.test_repeats import Shop, failed, retry
from weft.core import events as e
from weft.errors import BadValue, NotFound, Refused
from weft.runtime.by_hand import GivenResult, set_result
from weft.runtime.service import RunService


class Slow:
    """An app whose step never ends by itself."""

    def __init__(self, **options: Any) -> None:
        self.app = weft.App("memory://")
        self.undone: list[str] = []
        self.slow = self.app.step(name="slow", **options)(self._slow)

        @self.slow.undo
        async def unslow(result: int | None) -> None:
            self.undone.append(str(result))

        @self.app.step(retries=0)
        async def breaks(n: int) -> int:
            raise OSError(str(n))

        @self.app.workflow
        async def flow(fails: bool = False) -> int:
            n = await self.slow()
            return await breaks(n) if fails else n

        self.flow = flow
        self.desk = Desk(self.app)

    async def _slow(self) -> int:
        await asyncio.sleep(10**6)
        return 0

    def play(self, *, fails: bool = False, **given: Any) -> Any:
        async def scene() -> Any:
            run = await self.app.start(self.flow(fails), id="run")
            await asyncio.sleep(1)
            await run.set("slow", **given)
            return await run.result()

        return self.desk.play(scene)


def test_an_open_step_ends_with_the_result_that_is_set() -> None:
    slow = Slow()
    assert slow.play(output=7, by="ann", reason="done by phone") == 7
    noted = next(event for event in slow.desk.log() if isinstance(event, e.ResultSet))
    assert (noted.by, noted.reason, noted.performed) == ("ann", "done by phone", False)
    assert slow.desk.machine().snapshot()


def test_an_open_step_fails_with_the_error_that_is_set() -> None:
    with pytest.raises(weft.RunFailed, match="the bank is closed"):
        Slow().play(error="the bank is closed")


@pytest.mark.parametrize("performed", [True, False])
def test_the_undo_of_a_set_step_is_registered_only_if_somebody_did_the_work(performed: bool) -> None:
    slow = Slow()
    with pytest.raises(weft.RunFailed):
        slow.play(fails=True, output=7, performed=performed)
    assert slow.undone == (["7"] if performed else [])


def test_a_result_of_the_wrong_type_is_refused_and_changes_nothing() -> None:
    slow = Slow()
    with pytest.raises(BadValue, match="slow"):
        slow.play(output="seven")
    assert "result_set" not in slow.desk.kinds()


def test_an_irreversible_step_in_flight_needs_force() -> None:
    slow = Slow(effect="irreversible")
    with pytest.raises(Refused, match="in flight"):
        slow.play(output=7)
    other = Slow(effect="irreversible")
    assert other.play(output=7, force=True) == 7
    noted = next(event for event in other.desk.log() if isinstance(event, e.ResultSet))
    assert noted.forced == [noted.entry]


def test_timers_questions_and_children_can_be_set() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def child(ctx: weft.Context) -> str:
        await ctx.sleep("1h")
        return "slow"

    @app.workflow
    async def flow(ctx: weft.Context) -> list[Any]:
        await ctx.sleep("300d")
        answer = await ctx.ask("ask", title="Really?")
        return [answer.approved, answer.by, await ctx.call(child())]

    desk = Desk(app)

    async def scene() -> Any:
        run = await app.start(flow(), id="run")
        await asyncio.sleep(1)
        with pytest.raises(BadValue):
            await run.set("sleep", output=1)
        await run.set("sleep")
        await asyncio.sleep(1)
        with pytest.raises(BadValue, match="a decision"):
            await run.set("ask", output=True)
        await run.set("ask", output={"approved": True}, by="ann")
        await asyncio.sleep(1)
        await run.set("child", output="quick")
        assert await run.result() == [True, ["ann"], "quick"]
        with pytest.raises(weft.RunCancelled):
            await app.get("run.child").result()

    desk.play(scene)


def test_what_is_not_open_cannot_be_set_while_the_run_goes_on() -> None:
    slow = Slow()

    async def scene() -> None:
        run = await slow.app.start(slow.flow(), id="run")
        await asyncio.sleep(1)
        with pytest.raises(NotFound, match="Nothing is open at 'nowhere'"):
            await run.set("nowhere", output=1)
        await run.cancel(force=True)

    slow.desk.play(scene)


def test_the_result_of_a_step_that_failed_is_set_and_the_run_goes_on() -> None:
    shop, desk = failed("charge")

    async def scene() -> str:
        run = shop.app.get("run")
        await run.set("charge", output="charged by hand", by="ann")
        assert await run.status() == "failed"
        await run.retry()
        return await run.result()

    assert desk.play(scene) == "charged by hand"
    assert shop.performed("charge") == [1]
    assert shop.performed("price") == [None]


def test_what_began_after_a_result_that_is_set_is_repeated() -> None:
    shop, desk = failed("mail")

    async def scene() -> str:
        run = shop.app.get("run")
        await run.set("price", output=5)
        await run.retry(approved=["charge"])
        return await run.result()

    assert desk.play(scene) == "charged 5"
    assert shop.performed("price") == [None]
    assert shop.performed("charge") == [1, 5]
    assert shop.keys == ["price", "charge", "mail", "charge~1", "mail~1"]


def test_a_paused_run_takes_a_result_and_replays() -> None:
    shop = Shop()
    desk = Desk(shop.app)

    @shop.app.workflow
    async def waits(ctx: weft.Context) -> list[int]:
        first = await shop.price()
        await ctx.sleep("1h")
        return [first, await shop.price()]

    async def scene() -> list[int]:
        run = await shop.app.start(waits(), id="run")
        await asyncio.sleep(1)
        with pytest.raises(Refused, match="Pause the run first"):
            await run.set("price", output=9)
        await run.pause()
        await run.set("price", output=9)
        await run.resume()
        return await run.result()

    assert desk.play(scene) == [9, 1]
    assert desk.kinds().count("timer_set") == 2


def test_a_result_set_twice_is_the_last_one() -> None:
    shop, desk = failed("mail")

    async def scene() -> str:
        run = shop.app.get("run")
        await run.set("price", output=5)
        await run.set("price", output=1)
        return await retry(shop)

    assert desk.play(scene) == "charged 1"
    assert shop.performed("charge") == [1]


def test_the_host_of_a_run_refuses_a_result_of_another_type_that_comes_as_mail() -> None:
    slow = Slow()

    async def scene() -> int:
        run = await slow.app.start(slow.flow(), id="run")
        await asyncio.sleep(1)
        elsewhere = RunService(slow.desk.store.share(), slow.desk.clock, slow.desk.ids)  # has neither host nor code
        with pytest.raises(BadValue, match="refused the result for 'slow': the step does not return this type"):
            await set_result(elsewhere, "run", "slow", GivenResult(output={"a": 1}))
        elsewhere.declared = slow.app.catalogue()
        with pytest.raises(BadValue, match="The result of slow is an object; it must be an integer"):
            await set_result(elsewhere, "run", "slow", GivenResult(output={"a": 1}))
        await set_result(elsewhere, "run", "slow", GivenResult(output=7))
        return await run.result()

    assert slow.desk.play(scene) == 7


def test_a_large_result_that_comes_as_mail_is_checked_too() -> None:
    slow = Slow()

    async def scene() -> int:
        run = await slow.app.start(slow.flow(), id="run")
        await asyncio.sleep(1)
        elsewhere = RunService(slow.desk.store.share(), slow.desk.clock, slow.desk.ids)
        with pytest.raises(BadValue, match="refused the result for 'slow': the step does not return this type"):
            await set_result(elsewhere, "run", "slow", GivenResult(output="x" * 100_000))
        await set_result(elsewhere, "run", "slow", GivenResult(output=7))
        return await run.result()

    assert slow.desk.play(scene) == 7


def test_an_error_is_set_by_another_process() -> None:
    slow = Slow()

    async def scene() -> None:
        run = await slow.app.start(slow.flow(), id="run")
        await asyncio.sleep(1)
        elsewhere = RunService(slow.desk.store.share(), slow.desk.clock, slow.desk.ids)
        await set_result(elsewhere, "run", "slow", GivenResult(error="lost"))
        with pytest.raises(weft.RunFailed, match="lost"):
            await run.result()

    slow.desk.play(scene)


def test_a_run_with_a_recorded_value_of_another_type_says_how_to_replace_it() -> None:
    shop, desk = failed("mail")

    async def scene() -> str:
        elsewhere = RunService(desk.store.share(), desk.clock, desk.ids)  # nobody has the code of a run that is over
        await set_result(elsewhere, "run", "price", GivenResult(output={"a": 1}))
        run = shop.app.get("run")
        await run.retry(approved=["charge"])
        await asyncio.sleep(1)
        (held,) = [event for event in desk.log() if isinstance(event, e.RunHeld)]
        assert held.message.startswith(
            "run stopped for you: the value recorded at `price` does not have the type that the code expects "
            "(it must be an integer, got an object). Nothing was undone."
        )
        assert "If the value is wrong: weft set run price --output JSON" in held.message
        await run.set("price", output=5)
        await run.resume()
        return await run.result()

    assert desk.play(scene) == "charged 5"


def test_a_paused_run_is_retried_from_a_place() -> None:
    shop = Shop()
    desk = Desk(shop.app)

    @shop.app.workflow
    async def waits(ctx: weft.Context) -> int:
        found = await shop.price()
        await ctx.sleep("1h")
        return found

    async def scene() -> int:
        run = await shop.app.start(waits(), id="run")
        await asyncio.sleep(1)
        with pytest.raises(Refused, match="run is running, so it cannot be retried from price"):
            await run.retry(start="price")
        await run.pause()
        await run.retry(start="price")
        return await run.result()

    assert desk.play(scene) == 1
    assert shop.performed("price") == [None, None]
    assert desk.kinds().count("timer_set") == 2
