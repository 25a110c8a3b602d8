"""Asking people: a question is open until it is answered or its time is up; a wrong form can be given again."""

import asyncio
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from pydantic import BaseModel

import weft
from tests.code.desk import Desk
from tests.code.timeless import calm


@dataclass
class Shipping:
    carrier: Literal["dhl", "ups"]
    express: bool = False


class Budget(BaseModel):
    cents: int


def shown(form: Any) -> dict[str, Any] | None:
    return None if form is None else {name: getattr(form, name) for name in type(form).__annotations__}


def asking(**options: Any) -> tuple[weft.App, Any]:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> dict[str, Any]:
        answer = await ctx.ask("ship", title="Ship it?", **options)
        return {
            "approved": answer.approved,
            "by": answer.by,
            "reason": answer.reason,
            "form": shown(answer.form),
        }

    return app, flow


def answered(options: dict[str, Any], *answers: dict[str, Any]) -> tuple[Any, Desk]:
    app, flow = asking(**options)

    async def scene() -> Any:
        run = await app.start(flow(), id="run")
        await calm()
        for answer in answers:
            await run.decide("ship", **answer)
        return await run.result()

    desk = Desk(app)
    return desk.play(scene), desk


def test_an_approval_ends_the_question() -> None:
    found, desk = answered({}, {"approved": True, "by": "ann", "reason": "fine"})
    assert found == {"approved": True, "by": ["ann"], "reason": "fine", "form": None}
    assert desk.kinds() == ["run_started", "ask_opened", "ask_answered", "run_completed"]


def test_a_rejection_ends_the_question() -> None:
    found, _ = answered({}, {"approved": False, "by": "bob", "reason": "too dear"})
    assert found == {"approved": False, "by": ["bob"], "reason": "too dear", "form": None}


@pytest.mark.parametrize("form", [Shipping, Budget])
def test_a_form_comes_back_as_its_type(form: type) -> None:
    given = {"carrier": "dhl", "express": True} if form is Shipping else {"cents": 7}
    found, _ = answered({"form": form}, {"approved": True, "by": "ann", "form": given})
    assert found["form"] == given


def test_a_form_may_be_approved_by_nobody_in_particular() -> None:
    found, _ = answered({"form": Shipping}, {"approved": True, "form": {"carrier": "ups"}})
    assert found["form"] == {"carrier": "ups", "express": False}


def test_a_wrong_form_is_refused_and_can_be_given_again() -> None:
    app, flow = asking(form=Shipping)

    async def scene() -> Any:
        run = await app.start(flow(), id="run")
        await calm()
        for wrong in ({"carrier": "pigeon"}, None, {"express": True}, [1]):
            with pytest.raises(weft.BadValue, match="form"):
                await run.decide("ship", approved=True, by="ann", form=wrong)
        assert await run.status() == "running"
        await run.decide("ship", approved=True, by="ann", form={"carrier": "dhl"})
        return await run.result()

    desk = Desk(app)
    assert desk.play(scene)["form"] == {"carrier": "dhl", "express": False}
    assert desk.kinds().count("ask_answered") == 1


def test_a_rejection_needs_no_form() -> None:
    found, _ = answered({"form": Shipping}, {"approved": False, "by": "ann"})
    assert found["form"] is None


@pytest.mark.parametrize(("on_timeout", "approved"), [("approve", True), ("reject", False)])
def test_when_nobody_answers_the_policy_does(on_timeout: str, approved: bool) -> None:
    app, flow = asking(timeout="2h", on_timeout=on_timeout, form=Shipping)
    found = Desk(app).run(flow())
    assert found["approved"] is approved
    assert found["by"] == []
    assert found["form"] is None


def test_when_nobody_answers_it_fails_by_default() -> None:
    app, flow = asking(timeout="2h")
    assert Desk(app).fail(flow()).type == "TimedOut"


def test_an_answer_before_the_time_is_up_counts_after_a_crash_too() -> None:
    app, flow = asking(timeout="2h", on_timeout="reject")

    async def begin() -> None:
        await app.start(flow(), id="run")
        await asyncio.sleep(3600)

    async def end() -> Any:
        run = app.get("run")
        await run.decide("ship", approved=True, by="ann")
        return await run.result()

    desk = Desk(app)
    desk.play(begin, crash=True)
    assert desk.play(end)["approved"] is True


def test_all_of_several_must_approve() -> None:
    app, flow = asking(of=["ann", "bob"], quorum="all")

    async def scene() -> Any:
        run = await app.start(flow(), id="run")
        await calm()
        await run.decide("ship", approved=True, by="ann")
        assert await run.status() == "running"
        with pytest.raises(weft.AlreadyDecided):
            await run.decide("ship", approved=True, by="ann")
        await run.decide("ship", approved=True, by="bob")
        return await run.result()

    assert Desk(app).play(scene)["by"] == ["ann", "bob"]


def test_one_rejection_is_enough_when_all_must_approve() -> None:
    found, _ = answered({"of": ["ann", "bob"], "quorum": "all"}, {"approved": False, "by": "bob"})
    assert found["approved"] is False


def test_a_number_of_approvals_may_be_asked_for() -> None:
    answers = [{"approved": True, "by": name} for name in ("ann", "bob")]
    found, _ = answered({"of": ["ann", "bob", "cid"], "quorum": 2}, *answers)
    assert found["by"] == ["ann", "bob"]


def test_a_second_answer_is_refused() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> bool:
        answer = await ctx.ask("ship", title="?")
        await ctx.receive("go")
        return answer.approved

    async def scene() -> None:
        run = await app.start(flow())
        await calm()
        await run.decide("ship", approved=True)
        with pytest.raises(weft.AlreadyDecided):
            await run.decide("ship", approved=False)
        await run.send("go")
        assert await run.result() is True
        with pytest.raises(weft.RunFinished):
            await run.decide("ship", approved=False)

    Desk(app).play(scene)


def test_the_same_key_is_one_answer() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> bool:
        answer = await ctx.ask("ship", title="?")
        await ctx.receive("go")
        return answer.approved

    async def scene() -> None:
        run = await app.start(flow())
        await calm()
        await run.decide("ship", approved=True, key="k")
        await run.decide("ship", approved=True, key="k")
        with pytest.raises(weft.KeyReused):
            await run.decide("ship", approved=False, key="k")

    Desk(app).play(scene, crash=True)


@pytest.mark.parametrize("name", ["shop", "", "ship#2", "wait"])
def test_a_question_that_was_not_asked_cannot_be_answered(name: str) -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> Any:
        await ctx.sleep("1s", name="wait")
        return await ctx.ask("ship", title="?")

    async def scene() -> None:
        run = await app.start(flow(), id="run")
        await asyncio.sleep(2)
        with pytest.raises(weft.NotFound):
            await run.decide(name, approved=True)

    Desk(app).play(scene, crash=True)


def test_an_answer_to_a_run_at_rest_wakes_it() -> None:
    app, flow = asking()

    async def begin() -> None:
        await app.start(flow(), id="run")

    async def end() -> Any:
        await asyncio.sleep(120)
        assert not desk.host.runs.actors
        run = app.get("run")
        await run.decide("ship", approved=True)
        return await run.result()

    desk = Desk(app)
    desk.play(begin)
    assert desk.play(end)["approved"] is True


def test_an_answer_is_refused_also_without_an_engine_when_its_form_is_wrong() -> None:
    app, flow = asking(form=Shipping)
    other = weft.App("memory://")

    async def begin() -> None:
        await app.start(flow(), id="run")

    async def elsewhere() -> None:
        run = other.get("run")
        with pytest.raises(weft.BadValue):
            await run.decide("ship", approved=True, form={"carrier": "pigeon"})
        await run.decide("ship", approved=True, form={"carrier": "dhl"})

    async def end() -> Any:
        return await app.get("run").result()

    desk = Desk(app)
    desk.play(begin)
    desk.play(elsewhere, app=other)
    assert desk.play(end)["form"]["carrier"] == "dhl"


def test_what_it_is_about_is_kept_and_may_be_large() -> None:
    app, flow = asking(about={"text": "x" * 50_000}, timeout="1s", on_timeout="approve")
    desk = Desk(app)
    assert desk.run(flow())["approved"] is True
    assert all(len(stored.body) < 5_000 for stored in desk.stored())


def test_a_large_form_comes_back_whole() -> None:
    app = weft.App("memory://")

    @dataclass
    class Letter:
        text: str

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        answer = await ctx.ask("write", title="?", form=Letter)
        await ctx.receive("go")
        return len(answer.form.text)

    async def begin() -> None:
        run = await app.start(flow(), id="run")
        await calm()
        await run.decide("write", approved=True, form={"text": "x" * 100_000})

    async def end() -> Any:
        run = app.get("run")
        await run.send("go")
        return await run.result()

    desk = Desk(app)
    desk.play(begin, crash=True)
    assert desk.play(end) == 100_000


class FilledIn(BaseModel):
    model_config = {"json_schema_extra": {"default": {"cents": 7}}}
    cents: int


@pytest.mark.parametrize(("given", "cents"), [({}, 7), ({"form": {"cents": 9}}, 9)])
def test_a_form_that_is_left_out_is_the_default_of_its_schema(given: dict[str, Any], cents: int) -> None:
    found, _ = answered({"form": FilledIn}, {"approved": True, **given})
    assert found["form"] == {"cents": cents}


@pytest.mark.parametrize(
    "options", [{"on_timeout": "maybe"}, {"quorum": 0}, {"quorum": "most"}, {"quorum": 3, "of": ["a"]}]
)
def test_a_question_that_makes_no_sense_is_refused(options: dict[str, Any]) -> None:
    app, flow = asking(**{"timeout": "1s", **options})
    assert Desk(app).fail(flow()).type == "BadValue"


@pytest.mark.parametrize("options", [{"title": "a\0"}, {"title": "\ud800"}, {"of": ["\ud800"]}, {"about": "\ud800"}])
def test_a_question_that_no_store_can_hold_is_refused_and_the_log_stays_whole(options: dict[str, Any]) -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        try:
            await ctx.ask("q", **{"title": "?", **options})
        except weft.BadValue:
            await ctx.sleep("1s")
            return "refused"
        return "?"

    desk = Desk(app)
    assert desk.run(flow()) == "refused"
    assert desk.kinds() == ["run_started", "timer_set", "timer_fired", "run_completed"]
