"""Who may answer a question, when it is settled, and what time does to it: the same for code, graphs and goals."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import Raw

import weft
from tests.code.desk import Desk
from tests.code.timeless import calm
from weft.core import commands as c
from weft.core import events as e
from weft.core.ids import RunId
from weft.core.run.questions import question_digest
from weft.observe.questions import all_open
from weft.ports.run_query import RunQuery
from weft.runtime.run.append_extras import ASKING

GRAPH: dict[str, Any] = {"weft": "graph/1", "name": "flow", "nodes": {"ship": {"ask": {"title": "Ship?"}}}}


def code_app(**options: Any) -> weft.App:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> dict[str, Any]:
        answer = await ctx.ask("ship", title="Ship?", **options)
        return {"approved": answer.approved, "by": answer.by, "reason": answer.reason}

    return app


def graph_app(**options: Any) -> weft.App:
    app = weft.App("memory://")
    save = {"state.approved": "${output.approved}", "state.by": "${output.by}"}
    ship = {"ask": {"title": "Ship?", **options}, "save": save}
    output = {"approved": "${state.approved}", "by": "${state.by}"}
    app.graph({**GRAPH, "nodes": {"ship": ship}, "output": output})
    return app


STYLES = pytest.mark.parametrize("make", [code_app, graph_app])


def answer(
    app: weft.App,
    by: str,
    groups: list[str] | None = None,
    *,
    approved: bool = True,
    digest: str = "",
    ask: Any = "ship",
) -> Any:
    """The answer of somebody whom the server knows, or (no groups) of somebody who says a name."""
    return app.service.tell(RunId("run"), c.DecideAsk(ask, approved, by, "", Raw(b"null"), groups, digest))


async def started(app: weft.App, **attributes: Any) -> weft.Handle[Any]:
    run = await app.start("flow", id="run", attributes=attributes)
    await calm()
    return run


# --- who ---------------------------------------------------------------------------------------------------------


@STYLES
@pytest.mark.parametrize(
    ("by", "groups", "allowed"),
    [
        ("ann", [], True),
        ("bob", ["role:ops"], True),
        ("bob", ["role:ops", "team:x"], True),
        ("bob", [], False),
        ("bob", ["team:ops", "ops"], False),
        ("role:ops", [], False),
        ("bob", None, True),
    ],
)
def test_only_those_who_are_asked_may_answer(make: Any, by: str, groups: list[str] | None, allowed: bool) -> None:
    app = make(of=["ann", "role:ops"])

    async def scene() -> Any:
        run = await started(app)
        if not allowed:
            with pytest.raises(weft.NotAllowed, match="may not answer") as refused:
                await answer(app, by, groups)
            assert refused.value.code == "ask.not_yours"
            await answer(app, "ann", [])
        else:
            await answer(app, by, groups)
        return await run.result()

    assert Desk(app).play(scene)["by"] == [by if allowed else "ann"]


def test_a_name_that_nobody_checked_must_still_be_one_that_is_asked() -> None:
    app = code_app(of=["ann"])

    async def scene() -> Any:
        run = await started(app)
        with pytest.raises(weft.NotAllowed, match="--by"):
            await run.decide("ship", approved=True, by="eve")
        await run.decide("ship", approved=True, by="ann")
        return await run.result()

    assert Desk(app).play(scene)["by"] == ["ann"]


@STYLES
def test_whoever_started_a_run_does_not_decide_it(make: Any) -> None:
    app = make(four_eyes=True)

    async def scene() -> Any:
        run = await started(app, **{"weft.started_by": "ann"})
        with pytest.raises(weft.NotAllowed, match="ann started run"):
            await answer(app, "ann", ["role:boss"])
        with pytest.raises(weft.NotAllowed, match="Name the person who decides"):
            await run.decide("ship", approved=True)
        await answer(app, "bob", [])
        return await run.result()

    assert Desk(app).play(scene)["by"] == ["bob"]


def test_whoever_started_a_run_has_started_its_children() -> None:
    app = code_app(four_eyes=True)

    @app.workflow
    async def outer(ctx: weft.Context) -> Any:
        return await ctx.call("flow", {}, id="child")

    async def scene() -> Any:
        run = await app.start(outer(), id="run", attributes={"weft.started_by": "ann"})
        await calm()
        child = app.get("child")
        with pytest.raises(weft.NotAllowed):
            await child.decide("ship", approved=True, by="ann")
        await child.decide("ship", approved=True, by="bob")
        return await run.result()

    assert Desk(app).play(scene)["by"] == ["bob"]


# --- how many ----------------------------------------------------------------------------------------------------


@STYLES
def test_a_number_of_approvals_is_a_number_of_people(make: Any) -> None:
    app = make(of=["role:ops"], quorum=2)

    async def scene() -> Any:
        run = await started(app)
        await answer(app, "ann", ["role:ops"])
        with pytest.raises(weft.AlreadyDecided):
            await answer(app, "ann", ["role:ops"])
        assert await run.status() == "running"
        await answer(app, "bob", ["role:ops"])
        return await run.result()

    assert Desk(app).play(scene)["by"] == ["ann", "bob"]


@STYLES
@pytest.mark.parametrize(
    ("people", "settled"),
    [
        ([("ann", ["role:legal"]), ("bob", ["role:money"])], True),
        ([("ann", ["role:legal", "role:money"]), ("bob", ["role:legal", "role:money"])], True),
        # Whom the first stands for is open until the second comes.
        ([("ann", ["role:legal", "role:money"]), ("bob", ["role:legal"])], True),
        ([("ann", ["role:legal"]), ("bob", ["role:legal"])], False),
        ([("ann", ["role:legal", "role:money"])], False),
    ],
)
def test_all_means_a_different_person_for_each(make: Any, people: list[Any], settled: bool) -> None:
    app = make(of=["role:legal", "role:money"], quorum="all")

    async def scene() -> str:
        run = await started(app)
        for by, groups in people:
            await answer(app, by, groups)
        await calm()
        return await run.status()

    assert Desk(app).play(scene) == ("completed" if settled else "running")


def test_more_than_one_approval_needs_names() -> None:
    app = code_app(of=["ann", "bob"], quorum="all")

    async def scene() -> None:
        run = await started(app)
        with pytest.raises(weft.NotAllowed, match="Name the person who decides"):
            await run.decide("ship", approved=True)

    Desk(app).play(scene, crash=True)


@pytest.mark.parametrize("options", [{"of": ["ann"], "quorum": 2}, {"on_timeout": {"escalate": []}, "timeout": "1h"}])
def test_a_document_that_asks_for_more_than_there_is_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(weft.BadGraph):
        graph_app(**options)


# --- time --------------------------------------------------------------------------------------------------------


@STYLES
def test_without_an_answer_others_are_asked_and_each_of_them_decides_alone(make: Any) -> None:
    app = make(of=["ann", "bob"], quorum="all", timeout="1h", on_timeout={"escalate": "role:boss"})

    async def scene() -> Any:
        run = await started(app)
        with pytest.raises(weft.NotAllowed):
            await answer(app, "cat", ["role:boss"])
        await asyncio.sleep(3_601)
        await answer(app, "cat", ["role:boss"])
        return await run.result()

    desk = Desk(app)
    assert desk.play(scene)["by"] == ["cat"]
    assert "ask_escalated" in desk.kinds()


@STYLES
def test_those_who_were_asked_first_may_still_answer(make: Any) -> None:
    app = make(of=["ann"], timeout="1h", on_timeout={"escalate": ["boss"]})

    async def scene() -> Any:
        run = await started(app)
        await asyncio.sleep(7_200)
        await answer(app, "ann", [])
        return await run.result()

    assert Desk(app).play(scene)["by"] == ["ann"]


@STYLES
@pytest.mark.parametrize(("on_timeout", "approved"), [("approve", True), ("reject", False)])
def test_a_time_that_comes_while_nobody_hosts_the_run_is_kept(make: Any, on_timeout: str, approved: bool) -> None:
    app = make(timeout="1h", on_timeout=on_timeout)

    async def begin() -> None:
        await started(app)

    async def later() -> Any:
        return await app.get("run").result()

    desk = Desk(app)
    desk.play(begin, crash=True)
    desk.now_ms += 10 * 3_600_000
    assert desk.play(later)["approved"] is approved
    answered = next(event for event in desk.log() if isinstance(event, e.AskAnswered))
    assert answered.reason == "nobody answered in time"


@STYLES
def test_people_are_reminded_again_and_again_and_what_was_slept_through_is_not_made_up_for(make: Any) -> None:
    app = make(remind="10m", timeout="100m", on_timeout="reject")

    async def begin() -> None:
        await started(app)
        await asyncio.sleep(25 * 60)

    async def later() -> Any:
        return await app.get("run").result()

    desk = Desk(app)
    desk.play(begin, crash=True)
    assert desk.kinds().count("ask_reminded") == 2
    desk.now_ms += 40 * 60_000
    assert desk.play(later)["approved"] is False
    assert desk.kinds().count("ask_reminded") == 6


def test_reminders_go_on_when_others_are_asked() -> None:
    app = code_app(remind="10m", timeout="15m", on_timeout={"escalate": "boss"}, of=["ann"])

    async def scene() -> Any:
        run = await started(app)
        await asyncio.sleep(45 * 60)
        await run.decide("ship", approved=True, by="boss")
        return await run.result()

    desk = Desk(app)
    assert desk.play(scene)["by"] == ["boss"]
    assert [kind for kind in desk.kinds() if kind.startswith("ask_")] == [
        "ask_opened", "ask_reminded", "ask_escalated", "ask_reminded", "ask_reminded", "ask_reminded", "ask_answered",
    ]  # fmt: skip


# --- what --------------------------------------------------------------------------------------------------------


@STYLES
def test_an_answer_for_something_else_is_refused(make: Any) -> None:
    app = make(about={"total": 7})

    async def scene() -> Any:
        run = await started(app)
        (item,) = [item async for item in all_open(app.service)]
        with pytest.raises(weft.NotAllowed, match="has changed since it was shown") as refused:
            await answer(app, "ann", [], digest="0" * 32)
        assert refused.value.code == "ask.other_subject"
        await answer(app, "ann", [], digest=item.digest)
        return await run.result()

    desk = Desk(app)
    assert desk.play(scene)["approved"] is True
    answered = next(event for event in desk.log() if isinstance(event, e.AskAnswered))
    assert answered.digest


def test_the_digest_tells_subjects_apart() -> None:
    digests = set()
    for about in ({"total": 7}, {"total": 8}, None, "x" * 50_000, "x" * 50_001):
        app = code_app(about=about)

        async def scene(app: weft.App = app) -> str:
            await started(app)
            (item,) = [item async for item in all_open(app.service)]
            return question_digest(item.question)

        digests.add(Desk(app).play(scene, crash=True))
    assert len(digests) == 5


def test_each_round_of_a_loop_asks_anew() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        async def body(n: int) -> weft.Again[int] | weft.Done[int]:
            found = await ctx.ask("enough", title="Enough?", about=n)
            return weft.done(n) if found.approved else weft.again(n + 1)

        return await ctx.loop("tries", body, state=0)

    async def scene() -> Any:
        run = await started(app)
        (first,) = [item async for item in all_open(app.service)]
        await answer(app, "ann", [], approved=False, digest=first.digest, ask=first.place)
        await calm()
        (second,) = [item async for item in all_open(app.service)]
        assert second.place != first.place
        with pytest.raises(weft.AlreadyDecided):
            await answer(app, "ann", [], digest=first.digest, ask=first.place)
        with pytest.raises(weft.NotAllowed):
            await answer(app, "ann", [], digest=first.digest, ask=second.place)
        await answer(app, "ann", [], digest=second.digest, ask=second.place)
        return await run.result()

    assert Desk(app).play(scene) == 1


# --- finding and telling -----------------------------------------------------------------------------------------


@STYLES
def test_a_run_is_found_by_its_open_questions_and_only_while_it_has_some(make: Any) -> None:
    app = make()

    async def scene() -> tuple[int, int]:
        run = await started(app)
        asking = await app.service.search(RunQuery(where={ASKING: True}))
        await run.decide("ship", approved=True)
        await run.result()
        after = await app.service.search(RunQuery(where={ASKING: True}))
        return len(asking.rows), len(after.rows)

    assert Desk(app).play(scene) == (1, 0)


@STYLES
def test_what_people_were_told_is_remembered(make: Any) -> None:
    app = make(remind="10m")

    async def notices() -> list[tuple[str, str]]:
        return [(item.notice, item.question.told) async for item in all_open(app.service)]

    async def tell(notice: str) -> None:
        (item,) = [item async for item in all_open(app.service)]
        await app.service.tell(RunId("run"), c.NoteTold(item.number, notice))

    async def scene() -> None:
        await started(app)
        assert await notices() == [("opened", "")]
        await tell("opened")
        await tell("opened")
        assert await notices() == [("opened", "opened")]
        await asyncio.sleep(601)
        assert await notices() == [("reminded.1", "opened")]

    desk = Desk(app)
    desk.play(scene, crash=True)
    assert desk.kinds().count("ask_told") == 1
