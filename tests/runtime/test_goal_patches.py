"""Patches of goal runs, as a user makes them: from Python, in a process with a host or without one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

import pytest

import weft
from weft.core.run.patch_plan import PatchPlan
from weft.runtime.patches import PatchService

BIG = "big " * 20_000


def shop(url: str = "memory://") -> tuple[weft.App, dict[str, asyncio.Event]]:
    """A goal whose first step waits until it may go on."""
    app = weft.App(url)
    gates = {"price": asyncio.Event(), "fail": asyncio.Event()}

    @app.step(gives="total")
    async def price(n: int) -> int:
        await gates["price"].wait()
        return n * 2

    @app.step(gives="note")
    async def note(n: int) -> str:
        return BIG

    @app.step(gives="tax")
    async def tax(total: int) -> float:
        if not gates["fail"].is_set():
            raise weft.Critical("no rate")
        return total * 0.5

    @app.step(gives="bill")
    async def bill(total: int, tax: float) -> str:
        return f"{total}+{tax}"

    @app.step(gives="short")
    async def short(note: Annotated[str, weft.Fact("note", match="size(value) > 9")], total: int) -> int:
        return len(note) + total

    app.goal("pricing", bill)
    app.goal("both", bill, note)
    return app, gates


def play(body: Callable[[weft.App, dict[str, asyncio.Event]], Awaitable[None]], url: str = "memory://") -> None:
    async def story() -> None:
        app, gates = shop(url)
        async with app:
            await body(app, gates)

    asyncio.run(story())


def said(plan: PatchPlan) -> list[tuple[str, str]]:
    return [(entry.what, entry.place) for entry in plan.entries]


def test_a_given_fact_replaces_work_in_progress() -> None:
    async def body(app: weft.App, gates: dict[str, asyncio.Event]) -> None:
        gates["fail"].set()
        handle = await app.start("pricing", {"n": 2}, id="p")
        planned = await handle.patch(given={"total": 10}, dry_run=True)
        assert said(planned) == [("gives", "total"), ("drops", "price"), ("starts", "tax")]
        assert not planned.applied
        done = await handle.patch(given={"total": 10}, expect=planned.digest, by="ann", reason="known")
        assert (done.applied, done.digest) == (True, planned.digest)
        assert (await handle.result(timeout=200))["bill"] == "10+5.0"
        versions = await handle.versions()
        assert [(one.rev, one.by, one.reason) for one in versions] == [(0, "", ""), (1, "ann", "known")]

    play(body)


def test_a_patch_that_changes_nothing_writes_nothing() -> None:
    async def body(app: weft.App, gates: dict[str, asyncio.Event]) -> None:
        handle = await app.start("pricing", {"n": 2}, id="p")
        before = [event.kind async for event in handle.events()]
        for said_again in ({"replan": True}, {"catalogue": "now"}, {"given": {"n": 2}}):
            plan = await handle.patch(**said_again)
            assert (plan.unchanged, plan.applied) == (True, False)
        assert [event.kind async for event in handle.events()] == before
        slower = {"step": "tax", "needs": {"total": "integer"}, "gives": {"tax": "number"}, "width": 2}
        replaced = await handle.patch(steps={"tax": slower}, reason="slower")
        assert (replaced.unchanged, replaced.applied) == (False, True)

    play(body)


def test_a_failed_run_is_repaired_and_retried(tmp_path: Path) -> None:
    async def body(app: weft.App, gates: dict[str, asyncio.Event]) -> None:
        gates["price"].set()
        handle = await app.start("pricing", {"n": 2}, id="p")
        with pytest.raises(weft.RunFailed):
            await handle.result(timeout=200)
        with pytest.raises(weft.PatchRefused) as caught:
            await handle.patch(given={"total": 5})
        assert [refusal.code for refusal in caught.value.plan.refusals] == ["patch.fact_known"]
        plan = await handle.patch(given={"tax": 1.5})
        assert plan.applied
        assert plan.notes == ["The run has failed. It follows the new plan when it is retried."]
        assert await handle.status() == "failed"
        with pytest.raises(weft.RunFailed, match="no rate"):
            await handle.result(timeout=60)
        await handle.retry()
        assert (await handle.result(timeout=200))["bill"] == "4+1.5"

    play(body, f"sqlite:///{tmp_path}/weft.db")


def test_a_patch_with_large_values_and_steps_of_now() -> None:
    async def body(app: weft.App, gates: dict[str, asyncio.Event]) -> None:
        gates["fail"].set()
        handle = await app.start("both", {"n": 2}, id="p")
        while "note" not in [
            event.data.get("step") for event in await _events(handle) if event.kind == "step_completed"
        ]:
            await asyncio.sleep(0.01)
        plan = await handle.patch(goals={"add": ["short"]}, catalogue="now")
        assert ("joins", "short") in said(plan)
        gates["price"].set()
        facts = await handle.result(timeout=200)
        assert facts["short"] == len(BIG) + 4

    play(body)


def test_a_large_given_value_is_stored_as_a_blob(tmp_path: Path) -> None:
    async def body(app: weft.App, gates: dict[str, asyncio.Event]) -> None:
        running = await app.start("pricing", {"n": 2}, id="running")
        await running.patch(given={"memo": BIG})
        gates["price"].set()
        failed = await app.start("pricing", {"n": 2}, id="failed")
        for handle in (running, failed):
            with pytest.raises(weft.RunFailed):
                await handle.result(timeout=200)
            await handle.patch(given={"memo": BIG, "tax": 1.0})
            await handle.retry()
            facts = await handle.result(timeout=200)
            assert facts["memo"] == BIG
            patched = [event for event in await _events(handle) if event.kind == "run_patched"]
            assert all(len(str(event.data)) < 10_000 for event in patched)

    play(body, f"sqlite:///{tmp_path}/weft.db")


async def _events(handle: Any) -> list[Any]:
    return [event async for event in handle.events()]


def test_an_undo_and_a_redo() -> None:
    async def body(app: weft.App, gates: dict[str, asyncio.Event]) -> None:
        gates["fail"].set()
        handle = await app.start("pricing", {"n": 2}, id="p")
        gives = {"tax": {"type": "number", "whole": True}}
        step = {"step": "tax", "needs": {"total": "integer"}, "gives": gives, "title": "With the new rate"}
        await handle.patch(steps={"tax": step})
        assert (await handle.undo_patch()).undoes == 1
        assert (await handle.undo_patch(redo=True)).undoes == 2
        assert [one.undoes for one in await handle.versions()] == [0, 0, 1, 2]
        gates["price"].set()
        assert (await handle.result(timeout=200))["bill"] == "4+2.0"

    play(body)


def test_what_is_wrong_with_a_patch_is_said_before_anything_happens() -> None:
    async def body(app: weft.App, gates: dict[str, asyncio.Event]) -> None:
        handle = await app.start("pricing", {"n": 2}, id="p")
        with pytest.raises(weft.BadPatch, match="unknown field `moves`"):
            await handle.patch(moves=[])
        with pytest.raises(weft.UsageError, match="colour") as bad:
            await handle.patch(steps={"tax": {"step": "tax", "colour": "red"}})
        assert bad.value.code.startswith("goal.")
        with pytest.raises(weft.PatchRefused) as caught:
            await handle.patch(given={"n": 3}, goals={"remove": ["nobody"]})
        assert {refusal.code for refusal in caught.value.plan.refusals} == {"patch.fact_known", "patch.unknown_goal"}
        assert not [event for event in await _events(handle) if event.kind == "run_patched"]
        gates["price"].set()

    play(body)


def test_a_process_without_a_host_knows_the_steps_of_the_hosts(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/weft.db"

    async def story() -> None:
        app, gates = shop(url)
        async with app, weft.Client(url) as client:
            gates["fail"].set()
            own = await app.start("pricing", {"n": 2}, id="p")
            handle = client.get("p")
            plan = await handle.patch(goals={"add": ["short"]}, catalogue="now")
            assert {("joins", "short"), ("joins", "note")} <= set(said(plan))
            other, _ = shop(url)
            other.step(gives="extra")(extra)
            async with other:
                plan = await handle.patch(goals={"add": ["extra"]}, catalogue="now", dry_run=True)
                assert ("joins", "extra") in said(plan)
            disagreeing = weft.App(url)
            disagreeing.step(gives="extra", name="short")(extra)
            async with disagreeing:
                with pytest.raises(weft.Refused, match="register different ones"):
                    await handle.patch(replan=True, catalogue="now")
            gates["price"].set()
            assert (await own.result(timeout=200))["short"] == len(BIG) + 4

    asyncio.run(story())


async def extra(n: int) -> int:
    return n


def test_without_a_host_the_steps_of_now_are_not_known(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/weft.db"

    async def story() -> None:
        app, gates = shop(url)
        async with app:
            handle = await app.start("pricing", {"n": 2}, id="p")
            gates["price"].set()
            with pytest.raises(weft.RunFailed):
                await handle.result(timeout=200)
        async with weft.Client(url) as client:
            patches = PatchService(client.service)
            with pytest.raises(weft.Refused, match="no process hosts the store") as caught:
                await patches.patch("p", {"catalogue": "now"})
            assert "Start a process" in (caught.value.hint or "")
            assert (await patches.patch("p", {"given": {"tax": 2.0}})).applied

    asyncio.run(story())


def test_an_undo_completes_the_run_only_with_leave(tmp_path: Path) -> None:
    async def body(app: weft.App, gates: dict[str, asyncio.Event]) -> None:
        handle = await app.start("pricing", {"n": 2}, id="p")
        await handle.patch(goals={"add": ["price"]})
        await handle.patch(given={"total": 10, "tax": 1.0})
        while "bill" not in [
            event.data.get("step") for event in await _events(handle) if event.kind == "step_completed"
        ]:
            await asyncio.sleep(0.01)
        assert (await handle.undo_patch()).applied
        with pytest.raises(weft.PatchRefused) as caught:
            await handle.undo_patch()
        assert [refusal.code for refusal in caught.value.plan.refusals] == ["patch.would_end"]
        assert (await handle.undo_patch(ends=True)).applied
        assert (await handle.result(timeout=200))["bill"] == "10+1.0"

    play(body)
