"""A retry of a graph run from a place: what came from there is withdrawn, and performed once more."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import weft


class Ledger:
    """An app whose steps note with which key they were performed."""

    def __init__(self) -> None:
        self.app = weft.App("memory://")
        self.done: list[str] = []
        self.keys: dict[str, list[str]] = {}
        self.failing = {"ship"}
        self.blocked = asyncio.Event()

        def note(name: str) -> dict[str, str]:
            self.done.append(name)
            self.keys.setdefault(name, []).append(weft.task().key)
            if name in self.failing:
                raise weft.Critical(name)
            return {"by": name}

        @self.app.step
        async def pick() -> dict[str, str]:
            return note("pick")

        @self.app.step(effect="irreversible")
        async def pay() -> dict[str, str]:
            return note("pay")

        @self.app.step
        async def ship() -> dict[str, str]:
            return note("ship")

        @self.app.step(effect="irreversible")
        async def wire() -> dict[str, str]:
            note("wire")
            await self.blocked.wait()
            return {}


def _document(**nodes: Any) -> dict[str, Any]:
    return {"name": "order", "nodes": nodes}


CHAIN = _document(
    pick={"step": "pick", "next": "pay"}, pay={"step": "pay", "next": "ship"}, ship={"step": "ship", "next": []}
)
ASKING = _document(
    pick={"step": "pick", "next": "pay"},
    pay={"step": "pay", "next": "ask"},
    ask={"ask": {"title": "Go on?"}, "next": "end"},
    end={"step": "pick"},
)


async def _until(handle: weft.Handle[Any], kind: str, times: int = 1) -> None:
    while [event.kind async for event in handle.events()].count(kind) < times:
        await asyncio.sleep(0.005)


def test_a_failed_run_goes_back_and_pays_only_once() -> None:
    asyncio.run(_a_failed_run_goes_back_and_pays_only_once())


async def _a_failed_run_goes_back_and_pays_only_once() -> None:
    ledger = Ledger()
    ledger.app.graph(CHAIN)
    async with ledger.app:
        handle = await ledger.app.start("order", id="o-1")
        with pytest.raises(weft.RunFailed):
            await handle.result(timeout=200)
        ledger.failing.clear()
        await handle.retry("again", start="pick", by="ann")
        await handle.result(timeout=200)
        assert ledger.done == ["pick", "pay", "ship", "pick", "ship"]
        assert len(set(ledger.keys["pick"])) == 1
        assert len(set(ledger.keys["ship"])) == 1
        changes = [event for event in [one async for one in handle.events()] if event.kind == "run_patched"]
        assert [(one.data["by"], one.data["reason"]) for one in changes] == [("ann", "again")]


def test_a_running_run_goes_back_and_its_question_is_asked_anew() -> None:
    asyncio.run(_a_running_run_goes_back_and_its_question_is_asked_anew())


async def _a_running_run_goes_back_and_its_question_is_asked_anew() -> None:
    ledger = Ledger()
    ledger.app.graph(ASKING)
    async with ledger.app:
        handle = await ledger.app.start("order", id="o-2")
        await _until(handle, "ask_opened")
        await handle.retry(start="pick")
        await _until(handle, "ask_opened", 2)
        assert ledger.done == ["pick", "pay", "pick"]
        await handle.retry(start="ask")
        await _until(handle, "ask_opened", 3)
        await handle.decide("ask", approved=True)
        await handle.result(timeout=200)
        assert ledger.done == ["pick", "pay", "pick", "pick"]


def test_irreversible_work_with_another_input_waits_for_a_person() -> None:
    asyncio.run(_irreversible_work_with_another_input_waits_for_a_person())


async def _irreversible_work_with_another_input_waits_for_a_person() -> None:
    ledger = Ledger()
    given = iter("ab")

    @ledger.app.step
    async def choose() -> dict[str, str]:
        return {"account": next(given)}

    @ledger.app.step(effect="irreversible")
    async def pay_to(account: str) -> dict[str, str]:
        ledger.done.append(f"pay {account}")
        return {"account": account}

    nodes = dict(ASKING["nodes"])
    nodes["pick"] = {"step": "choose", "next": "pay"}
    nodes["pay"] = {"step": "pay_to", "next": "ask"}
    ledger.app.graph({"name": "order", "nodes": nodes})
    async with ledger.app:
        handle = await ledger.app.start("order", id="o-3")
        await _until(handle, "ask_opened")
        await handle.retry(start="pick")
        while "must not be performed twice" not in str(await handle.explain()):
            await asyncio.sleep(0.005)
        assert ledger.done == ["pay a"]
        await handle.retry(start="pay", approved=["pay"])
        await _until(handle, "ask_opened", 2)
        assert ledger.done == ["pay a", "pay b"]
        await handle.cancel()


def test_irreversible_work_in_flight_is_given_up_only_by_force() -> None:
    asyncio.run(_irreversible_work_in_flight_is_given_up_only_by_force())


async def _irreversible_work_in_flight_is_given_up_only_by_force() -> None:
    ledger = Ledger()
    ledger.app.graph(_document(pick={"step": "pick", "next": "wire"}, wire={"step": "wire", "next": []}))
    async with ledger.app:
        handle = await ledger.app.start("order", id="o-4")
        while "wire" not in ledger.done:
            await asyncio.sleep(0.005)
        before = [event.seq async for event in handle.events()]
        with pytest.raises(weft.Refused, match="in flight") as refused:
            await handle.retry(start="pick")
        assert refused.value.code == "run.in_flight"
        assert [event.seq async for event in handle.events()] == before
        await handle.retry(start="pick", force=True)
        while ledger.done.count("pick") < 2:
            await asyncio.sleep(0.005)
        kinds = [event.kind async for event in handle.events()]
        assert kinds.index("task_failed") < kinds.index("run_patched")
        ledger.blocked.set()
        await handle.cancel()
    assert ledger.done.count("wire") == 1


def test_the_other_arm_of_a_join_stays_where_it_is() -> None:
    asyncio.run(_the_other_arm_of_a_join_stays_where_it_is())


async def _the_other_arm_of_a_join_stays_where_it_is() -> None:
    ledger = Ledger()
    ledger.app.graph(
        _document(
            a={"step": "pick", "next": {"to": ["b", "c"]}},
            b={"step": "pick", "next": "b2"},
            b2={"ask": {"title": "Go on?"}, "next": "j"},
            c={"step": "ship", "next": "j"},
            j={"step": "pay", "join": "edges", "next": []},
        )
    )
    ledger.failing.clear()
    async with ledger.app:
        handle = await ledger.app.start("order", id="o-5")
        await _until(handle, "ask_opened")
        while "ship" not in ledger.done:
            await asyncio.sleep(0.005)
        await handle.retry(start="b")
        await _until(handle, "ask_opened", 2)
        await handle.decide("b2", approved=True)
        await handle.result(timeout=200)
        assert sorted(ledger.done) == ["pay", "pick", "pick", "pick", "ship"]


def test_places_to_which_a_run_cannot_go_back_are_refused() -> None:
    asyncio.run(_places_to_which_a_run_cannot_go_back_are_refused())


async def _places_to_which_a_run_cannot_go_back_are_refused() -> None:
    ledger = Ledger()
    ledger.app.graph(ASKING)
    async with ledger.app:
        handle = await ledger.app.start("order", id="o-6")
        await _until(handle, "ask_opened")
        with pytest.raises(weft.NotFound, match="no node 'nowhere'"):
            await handle.retry(start="nowhere")
        with pytest.raises(weft.Refused, match="never came there") as refused:
            await handle.retry(start="end")
        assert "weft fork o-6 --before end" in refused.value.hint
        await handle.decide("ask", approved=True)
        await handle.result(timeout=200)
        with pytest.raises(weft.Refused, match="completed"):
            await handle.retry(start="pick")


def test_a_retry_from_a_place_is_no_patch_to_undo() -> None:
    asyncio.run(_a_retry_from_a_place_is_no_patch_to_undo())


async def _a_retry_from_a_place_is_no_patch_to_undo() -> None:
    ledger = Ledger()
    ledger.app.graph(ASKING)
    async with ledger.app:
        handle = await ledger.app.start("order", id="o-9")
        await _until(handle, "ask_opened")
        await handle.retry(start="ask")
        with pytest.raises(weft.Refused, match="no patch that can be undone"):
            await handle.undo_patch()
        ops = [{"op": "replace", "path": "/nodes/end/step", "value": "ship"}]
        await handle.patch(ops)
        await _until(handle, "ask_opened", 2)
        await handle.retry(start="ask")
        first, *later = await handle.versions()
        assert [(one.rev, one.retried) for one in later] == [(1, "ask"), (2, ""), (3, "ask")]
        with pytest.raises(weft.StaleBase, match="had 1 patch since"):
            await handle.patch(ops, base=first.version)
        undone = await handle.undo_patch()
        assert (undone.undoes, undone.version) == (2, first.version)
        await handle.cancel()


def test_work_that_a_patch_withdrew_while_it_was_in_flight_counts_too() -> None:
    asyncio.run(_work_that_a_patch_withdrew_while_it_was_in_flight_counts_too())


async def _work_that_a_patch_withdrew_while_it_was_in_flight_counts_too() -> None:
    ledger = Ledger()
    ledger.app.graph(_document(pick={"step": "pick", "next": "wire"}, wire={"step": "wire", "next": []}))
    async with ledger.app:
        handle = await ledger.app.start("order", id="o-9")
        while "wire" not in ledger.done:
            await asyncio.sleep(0.005)
        await handle.patch([], restart=["wire"], reason="it hangs")
        await _until(handle, "perform_asked")
        before = [event.seq async for event in handle.events()]
        for change in (
            lambda: handle.set("wire", {}),
            lambda: handle.retry(start="wire"),
            lambda: handle.retry(start="pick"),
        ):
            with pytest.raises(weft.Refused) as refused:
                await change()
            assert refused.value.code == "run.in_flight"
        assert [event.seq async for event in handle.events()] == before
        await handle.set("wire", {}, force=True)
        await handle.result(timeout=200)
        failed = [event async for event in handle.events() if event.kind == "task_failed"]
        assert [event.data["failure"]["code"] for event in failed] == ["step.outcome_unknown"]
        ledger.blocked.set()
    assert ledger.done.count("wire") == 1


def test_going_back_uses_up_no_patches() -> None:
    asyncio.run(_going_back_uses_up_no_patches())


async def _going_back_uses_up_no_patches() -> None:
    ledger = Ledger()
    ledger.app.graph(ASKING)
    async with ledger.app:
        handle = await ledger.app.start("order", id="o-10")
        for times in range(1, 102):
            await _until(handle, "ask_opened", times)
            await handle.retry(start="ask")
        await _until(handle, "ask_opened", 102)
        plan = await handle.patch([{"op": "replace", "path": "/nodes/ask/ask/title", "value": "Well?"}])
        assert (plan.applied, plan.rev) == (True, 102)


def test_long_places_are_cut_in_errors() -> None:
    asyncio.run(_long_places_are_cut_in_errors())


async def _long_places_are_cut_in_errors() -> None:
    ledger = Ledger()
    ledger.app.graph(ASKING)
    async with ledger.app:
        handle = await ledger.app.start("order", id="o-11")
        await _until(handle, "ask_opened")
        place = "x" * 5_000
        for change in (
            lambda: handle.set(place, {}),
            lambda: handle.retry(start=place),
            lambda: handle.retry(start=f"ask/{place}"),
            lambda: handle.fork(before=place),
            lambda: handle.patch([], wait="1h", at=place, reason="later"),
            lambda: handle.decide(place, approved=True),
            lambda: handle.set(place, float("nan")),
            lambda: handle.fork(set={place: 1}),
            lambda: handle.fork(state={place: 1}),
            lambda: handle.patch([], move=[{"node": place, "to": "ask"}], reason="long"),
            lambda: handle.patch([], move=[{"node": "ask", "to": place}], reason="long"),
            lambda: handle.patch([], start=[{"node": place}], reason="long"),
            lambda: handle.patch([], start=[{"node": "ask", "beside": place}], reason="long"),
            lambda: handle.patch([], restart=[place], reason="long"),
            lambda: handle.patch([], drop=[{"token": place}], reason="long"),
            lambda: handle.patch([], again=[place], reason="long"),
            lambda: handle.patch([], rename={place: "ask"}, reason="long"),
            lambda: handle.patch([], **{place: 1}),
            lambda: ledger.app.start(place),
            lambda: ledger.app.start(f"order@{place}"),
            lambda: ledger.app.get(place).status(),
            lambda: ledger.app.diff("o-11", place),
        ):
            with pytest.raises(weft.WeftError) as refused:
                await change()
            error = refused.value
            said = [str(error), error.hint, *(one.message for one in getattr(error, "findings", []))]
            assert max(map(len, said)) < 500


def test_a_long_place_from_which_a_running_code_run_is_retried_is_cut() -> None:
    asyncio.run(_a_long_place_of_code_is_cut())


async def _a_long_place_of_code_is_cut() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def wait(ctx: weft.Context) -> None:
        await ctx.receive("go")

    async with app:
        handle = await app.start(wait(), id="w-1")
        with pytest.raises(weft.Refused) as refused:
            await handle.retry(start="x" * 5_000)
        assert len(str(refused.value)) < 500
