"""Patches that wait until they are allowed, and patches that people review, in graph and goal runs."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from weft.ports.definitions import VERSION_MARK
from weft.runtime.asked_patches import PatchRequest
from weft.testing import SimRun, World, crash_everywhere

SHORTER = {
    "name": "order",
    "nodes": {
        "a": {"receive": "go", "next": "c"},
        "c": {"receive": "on", "next": "d"},
        "d": {"step": "new", "save": {"state.done": "${output}"}},
    },
}
"""A document without b, so that it is refused while a token is there."""
RENEWED = [{"op": "replace", "path": "/nodes/d/step", "value": "new"}]


def shop(**document: Any) -> weft.App:
    app = weft.App("memory://")

    @app.step
    async def old() -> str:
        return "old"

    @app.step
    async def new() -> str:
        return "new"

    @app.step(gives="total", retries=weft.Retry(attempts=2, delay="1d"))
    async def total(n: int) -> int:
        return n * 2

    @app.step(gives="note")
    async def note(n: int) -> str:
        return f"for {n}"

    nodes = {
        "a": {"receive": "go", "next": "b"},
        "b": {"receive": "go", "next": "c"},
        "c": {"receive": "on", "next": "d"},
        "d": {"step": "old", "save": {"state.done": "${output}"}},
    }
    app.graph({"name": "order", "nodes": nodes, **document})
    return app


def order(world: World, id: str = "o-1") -> SimRun[Any]:
    """A run whose token is at b."""
    run = world.start(world.app.registered.runnable_named("order"), {}, id=id)
    run.send("go")
    world.settle()
    return run


def patch(run: SimRun[Any], ops: Any = None, **options: Any) -> Any:
    options.setdefault("by", "ann")
    found = run.world.perform(lambda: run.world.app.get(run.id).patch(ops, **options))
    run.world.settle()
    return found


def requests(run: SimRun[Any]) -> list[PatchRequest]:
    run.world.settle()
    return run.world.perform(lambda: run.world.app.get(run.id).patch_requests())


def kinds(run: SimRun[Any]) -> list[str]:
    words = ("patch_asked", "patch_review_asked", "patch_dropped", "run_patched")
    return [event.kind for event in run.events if event.kind in words]


def test_a_patch_waits_until_it_is_allowed() -> None:
    world = World(shop())
    run = order(world)

    with pytest.raises(weft.UsageError, match=r"patch\(\*\*document\)"):
        patch(run, {"document": SHORTER})
    plan = patch(run, document=SHORTER, wait="2h")

    assert (plan.applied, plan.asked > 0) == (False, True)
    assert [one.code for one in plan.refusals] == ["patch.node_removed"]
    assert [(one.asked, one.status, one.by) for one in requests(run)] == [(plan.asked, "waiting", "ann")]
    world.restart()
    run.send("go")
    assert [(one.status, one.rev) for one in requests(run)] == [("applied", 1)]
    run.send("on")
    assert run.result() == {"done": "new"}
    assert kinds(run) == ["patch_asked", "run_patched"]


def test_a_patch_that_is_allowed_now_does_not_wait() -> None:
    run = order(World(shop()))

    assert patch(run, RENEWED, wait="2h").applied
    assert requests(run) == []


def test_a_patch_that_is_not_allowed_in_time_is_dropped_even_if_nobody_hosts_the_run_meanwhile() -> None:
    world = World(shop())
    run = order(world)
    patch(run, document=SHORTER, wait="2h")

    world.advance("1h")
    world.restart()
    world.advance("61m")

    assert [(one.status, one.code) for one in requests(run)] == [("dropped", "patch.not_in_time")]
    run.send("go")
    run.send("on")
    assert run.result() == {"done": "old"}


def test_a_patch_waits_until_all_tokens_are_at_a_node() -> None:
    world = World(shop())
    run = order(world)

    plan = patch(run, RENEWED, wait="2h", at="c")

    assert (plan.ok, plan.applied) == (True, False)
    assert requests(run)[0].status == "waiting"
    run.send("go")
    assert requests(run)[0].status == "applied"
    with pytest.raises(weft.Refused, match="no node 'nowhere'"):
        patch(run, RENEWED, wait="2h", at="nowhere")
    other = order(run.world, "o-2")
    for refused_now in ({"document": SHORTER}, {"ops": [], "expect": "0" * 64}):
        with pytest.raises(weft.Refused, match="no node 'nowhere'"):
            patch(other, wait="2h", at="nowhere", **refused_now)
    with pytest.raises(weft.UsageError, match="only for some time"):
        patch(run, RENEWED, at="c")


@pytest.mark.parametrize("way", ["withdraw", "another patch", "cancel"])
def test_a_patch_that_waits_is_taken_back(way: str) -> None:
    run = order(World(shop()))
    patch(run, document=SHORTER, wait="2h")

    def withdraw() -> Any:
        return run.world.app.get(run.id).withdraw_patch(by="bob", reason="not needed")

    if way == "withdraw":
        run.world.perform(withdraw)
    elif way == "cancel":
        run.cancel("enough")
    else:
        patch(run, RENEWED, by="bob")

    codes = {"withdraw": "patch.withdrawn", "another patch": "patch.stale_base", "cancel": "patch.run_ended"}
    assert [(one.status, one.code) for one in requests(run)] == [("dropped", codes[way])]
    with pytest.raises(weft.RunFinished if way == "cancel" else weft.NotFound):
        run.world.perform(withdraw)


def test_a_run_that_ends_drops_its_patches_in_the_same_append() -> None:
    run = order(World(shop()))
    patch(run, RENEWED, review=["bob"])

    run.send("go")
    run.send("on")

    assert run.result() == {"done": "old"}
    assert [event.kind for event in run.events][-2:] == ["patch_dropped", "run_completed"]


def test_a_reviewed_patch_is_applied_once_somebody_else_agrees() -> None:
    world = World(shop())
    run = order(world)

    plan = patch(run, RENEWED, review=["ann", "bob"], reason="the old one is gone")

    question = f"patch@{plan.asked}"
    assert requests(run)[0].status == "in_review"
    with pytest.raises(weft.NotAllowed, match="somebody else"):
        run.answer(question, by="ann")
    with pytest.raises(weft.NotAllowed, match="names nobody"):
        run.answer(question)
    world.restart()
    run.answer(question, by="bob")
    assert [(one.status, one.approved_by) for one in requests(run)] == [("applied", ["bob"])]
    patched = next(event for event in run.events if event.kind == "run_patched")
    assert (patched.data["by"], patched.data["approved_by"]) == ("ann", ["bob"])
    assert patched.data["digest"] == plan.digest
    with pytest.raises(weft.AlreadyDecided):
        run.answer(question, by="bob")


def test_a_rejected_patch_is_dropped() -> None:
    run = order(World(shop()))
    plan = patch(run, RENEWED, review=["bob"])

    run.answer(f"patch@{plan.asked}", approved=False, by="bob", reason="not now")

    assert [(one.code, one.message) for one in requests(run)] == [("patch.rejected", "by bob: not now")]
    assert kinds(run) == ["patch_asked", "patch_review_asked", "patch_dropped"]


def test_people_are_asked_again_if_the_plan_has_changed_and_the_patch_is_dropped_if_it_is_refused() -> None:
    world = World(shop())
    run = order(world)
    move = [{"node": "b", "to": "d"}]
    plan = patch(run, [], move=move, reason="skip c", review=["bob"])
    shorter = patch(run, document=SHORTER, wait="1d", review=["bob"])
    run.send("go")
    assert [one.status for one in requests(run)] == ["in_review", "in_review"], "the second is allowed by now"

    run.answer(f"patch@{plan.asked}", by="bob")
    run.answer(f"patch@{shorter.asked}", by="bob")

    assert [(one.status, one.code) for one in requests(run)] == [("dropped", "patch.unknown_token"), ("applied", "")]
    assert kinds(run).count("patch_review_asked") == 2
    again = patch(run, [{"op": "add", "path": "/nodes/d/timeout", "value": "1m"}], review=["bob"])
    patch(run, [], set={"state.x": 1}, reason="meanwhile", by="bob")
    run.answer(f"patch@{again.asked}", by="bob")
    assert requests(run)[-1].status == "in_review", "the plan is for another revision now"
    run.answer(f"patch@{again.asked}", by="bob")
    assert requests(run)[-1].status == "applied"


def test_a_document_says_who_reviews_and_cannot_permit_itself() -> None:
    run = order(World(shop(changes={"review": ["bob"]})))

    with pytest.raises(weft.Refused, match="must say who asks"):
        patch(run, RENEWED, by="")
    plan = patch(run, [{"op": "remove", "path": "/changes"}], review=["ann", "eve"])

    assert plan.review == ["bob"]
    with pytest.raises(weft.NotAllowed, match="is for bob"):
        run.answer(f"patch@{plan.asked}", by="eve")
    run.answer(f"patch@{plan.asked}", by="bob")
    assert patch(run, RENEWED).applied, "the new document asks nobody"


def test_the_patch_of_a_failed_run_is_reviewed_too() -> None:
    world = World(shop(changes={"review": ["bob"]}))
    run = order(world)
    world.fake("old", weft.Critical("gone"))
    run.send("go")
    run.send("on")
    assert run.status == "failed"

    with pytest.raises(weft.Refused, match="could wait for"):
        patch(run, RENEWED, wait="1h")
    dropped = patch(run, RENEWED)
    run.world.perform(lambda: world.app.get(run.id).withdraw_patch(by="ann"))
    plan = patch(run, RENEWED)
    run.answer(f"patch@{plan.asked}", by="bob")

    assert [(one.asked, one.status) for one in requests(run)] == [
        (dropped.asked, "dropped"),
        (plan.asked, "applied"),
    ]
    world.perform(lambda: world.app.get(run.id).retry())
    assert run.result() == {"done": "new"}


def test_a_hook_is_told_of_reviews_also_of_a_run_that_is_over() -> None:
    app = shop(changes={"review": ["bob"]})
    told: list[tuple[str, str]] = []

    @app.on("question_opened")
    def ask(event: weft.HookEvent) -> None:
        assert event.question is not None
        told.append((event.status, event.question.id))

    world = World(app)
    run = order(world)
    first = patch(run, RENEWED)
    run.answer(f"patch@{first.asked}", approved=False, by="bob")
    world.fake("old", weft.Critical("gone"))
    run.send("go")
    run.send("on")
    assert run.status == "failed"
    second = patch(run, RENEWED)
    world.settle()

    assert told == [("running", f"o-1:patch@{first.asked}"), ("failed", f"o-1:patch@{second.asked}")]


def test_a_goal_says_who_must_agree_to_every_patch() -> None:
    app = shop()
    world = World(app)
    world.fake("total", ValueError("busy"), 4)
    run = world.start(app.goal("pricing", "total", changes={"review": ["team:ops"]}), {"n": 2}, id="g-1")
    world.settle()

    plan = patch(run, goals={"add": ["note"]}, catalogue="now", review=["ann"])
    assert (plan.review, plan.applied) == (["team:ops"], False)
    world.perform(lambda: app.get("g-1").decide(f"patch@{plan.asked}", approved=True, by="bob"))
    world.advance("2d")

    assert dict(run.result()) == {"n": 2, "total": 4, "note": "for 2"}
    with pytest.raises(weft.NameTaken):
        app.goal("pricing", "total")


def test_a_goal_run_waits_and_is_reviewed_in_the_same_way() -> None:
    app = shop()
    world = World(app)
    world.fake("total", ConnectionError("later"), 4)
    run = world.start(app.goal("pricing", "total"), {"n": 2}, id="g-1")
    world.settle()

    patch(run, given={"n": 3}, wait="1w")
    plan = patch(run, goals={"add": ["note"]}, catalogue="now", review=["bob"])

    world.restart()
    run.answer(f"patch@{plan.asked}", by="bob")
    assert run.result()["note"] == "for 2"
    assert [(one.status, one.code) for one in requests(run)] == [("dropped", "patch.run_ended"), ("applied", "")]


def test_crashes_at_every_write_of_a_patch_that_waits_and_of_one_that_is_reviewed() -> None:
    def scenario(world: World) -> None:
        run = order(world)
        key = world.new_key()
        plan = patch(run, document=SHORTER, wait="2h", review=["bob"], key=key)
        run.send("go")
        run.answer(f"patch@{plan.asked}", by="bob")
        run.send("on")
        assert run.result() == {"done": "new"}
        assert [(one.status, one.rev) for one in requests(run)] == [("applied", 1)]

    assert crash_everywhere(shop(), scenario) > 10


def test_the_version_of_a_waiting_patch_is_kept() -> None:
    world = World(shop())
    run = order(world)

    patch(run, document=SHORTER, wait="30d")

    assert [request.status for request in requests(run)] == ["waiting"]
    row = world.perform(lambda: world.app.service.row(run.id))  # type: ignore[arg-type]  # an id is text
    marks = [name.removeprefix(VERSION_MARK) for name in row.attributes if name.startswith(VERSION_MARK)]
    assert len(marks) == 1
    assert marks != [row.version]
    world.close()
