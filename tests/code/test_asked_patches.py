"""Patches of code runs that wait until they are allowed, or that people must agree to."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

import weft
from tests.code.hosted_store import Store
from tests.code.timeless import calm, play
from weft.runtime.patches import PatchOptions, PatchService
from weft.testing import World, crash_everywhere

OPS = ["team:ops"]


def build(*versions: str, review: dict[str, Any] | None = None, effect: Any = "idempotent") -> weft.App:
    """An app with these versions of one workflow. Version 2 does not fit while the race of version 1 is open."""
    app = weft.App("memory://")

    @app.step(effect=effect)
    async def charge(name: str) -> str:
        return f"charged {name}"

    @app.step
    async def mail(name: str) -> str:
        return f"mailed {name}"

    @app.step
    async def look_up(name: str) -> str:
        await asyncio.sleep(36_000)
        return name

    @app.step
    async def search(name: str) -> str:
        await asyncio.sleep(36_000)
        return name

    async def first(ctx: weft.Context, name: str) -> str:
        await charge(name)
        await ctx.race("address", {"told": ctx.receive("told"), "found": look_up(name)})
        await ctx.receive("go")
        return "by post"

    async def second(ctx: weft.Context, name: str) -> str:
        await charge(name)
        await ctx.race("address", {"told": ctx.receive("told"), "found": search(name)})
        await ctx.receive("go")
        return await mail(name)

    async def third(ctx: weft.Context, name: str) -> str:
        await mail(name)
        return "never"

    bodies = {"1": first, "2": second, "3": third}
    for version in versions:
        app.workflow(name="order", version=version, changes=(review or {}).get(version))(bodies[version])
    return app


@pytest.fixture
def world() -> Iterator[World]:
    made = World(build("2", "3", "1"))
    yield made
    made.close()


def start(world: World, run: str = "o-1") -> Any:
    found = world.start(world.app.registered.runnable_named("order"), {"name": "ann"}, id=run)
    world.settle()
    return found


def patch(world: World, run: str = "o-1", **said: Any) -> weft.PatchPlan:
    plan = world.perform(lambda: world.app.get(run).patch(**said))
    world.settle()
    return plan


def agree(world: World, number: int, *, approved: bool = True, by: str = "bo") -> None:
    world.perform(lambda: world.app.get("o-1").decide(f"patch@{number}", approved=approved, by=by))
    world.settle()


def requests(world: World, run: str = "o-1") -> list[tuple[str, str]]:
    return [(one.status, one.code) for one in world.perform(lambda: world.app.get(run).patch_requests())]


def kinds(run: Any) -> list[str]:
    return [event.kind for event in run.events]


def test_a_patch_waits_until_the_version_fits(world: World) -> None:
    run = start(world)
    with pytest.raises(weft.PatchRefused, match="does not fit the log"):
        patch(world, to="2")

    plan = patch(world, to="2", wait="2h", by="ann", reason="we mail now")
    assert (plan.applied, bool(plan.asked), requests(world)) == (False, True, [("waiting", "")])
    run.send("told")
    world.settle()

    assert requests(world) == [("applied", "")]
    run.send("go")
    assert run.result() == "mailed ann"
    assert len(world.calls("charge")) == 1
    versions = world.perform(lambda: world.app.get("o-1").versions())
    assert [(one.version, one.by, one.reason) for one in versions][1:] == [("2", "ann", "we mail now")]


def test_a_patch_that_is_not_allowed_in_time_is_dropped_and_so_is_one_of_a_run_that_ends(world: World) -> None:
    run, other = start(world), start(world, "o-2")
    patch(world, to="2", wait="2h")
    patch(world, "o-2", to="3", wait="20h")

    world.advance("3h")
    assert requests(world) == [("dropped", "patch.not_in_time")]
    for one in (run, other):
        one.send("told")
        one.send("go")
        assert one.result() == "by post"
    assert requests(world, "o-2") == [("dropped", "patch.run_ended")]


def test_a_patch_is_withdrawn_and_cannot_wait_at_a_place(world: World) -> None:
    start(world)
    with pytest.raises(weft.Refused, match="only wait at a node of a graph"):
        patch(world, to="2", wait="2h", at="charge")

    patch(world, to="2", wait="2h")
    world.perform(lambda: world.app.get("o-1").withdraw_patch(reason="not needed"))

    assert requests(world) == [("dropped", "patch.withdrawn")]


def test_people_are_asked_about_a_patch_and_it_is_applied_when_they_agree(world: World) -> None:
    run = start(world)
    run.send("told")
    world.settle()

    plan = patch(world, to="2", review=OPS, by="ann")
    assert (plan.review, plan.applied, requests(world)) == (OPS, False, [("in_review", "")])
    with pytest.raises(weft.NotAllowed):
        agree(world, plan.asked, by="ann")
    agree(world, plan.asked)

    assert requests(world) == [("applied", "")]
    run.send("go")
    assert run.result() == "mailed ann"


def test_a_rejected_patch_is_dropped(world: World) -> None:
    run = start(world)
    run.send("told")
    world.settle()
    agree(world, patch(world, to="2", review=OPS, by="ann").asked, approved=False)

    assert requests(world) == [("dropped", "patch.rejected")]
    run.send("go")
    assert run.result() == "by post"


def test_a_run_that_goes_on_meanwhile_is_replayed_again(world: World) -> None:
    """The same plan needs no second question, and a version that no longer fits is not followed."""
    run = start(world)
    run.send("told")
    world.settle()
    fits = patch(world, to="2", review=OPS, by="ann")
    run.send("other")  # nothing waits for it, but it is recorded
    world.settle()
    agree(world, fits.asked)
    assert requests(world) == [("applied", "")]

    back = patch(world, to="1", review=OPS, by="ann")
    run.send("go")
    assert run.result() == "mailed ann"
    assert requests(world)[1:] == [("dropped", "patch.run_ended")]
    assert back.version == "1"


def test_a_paused_and_a_failed_run_can_be_reviewed_too(world: World) -> None:
    run = start(world)
    run.send("told")
    world.settle()
    world.perform(lambda: world.app.get("o-1").pause())
    agree(world, patch(world, to="2", review=OPS, by="ann").asked)
    assert (run.status, requests(world)) == ("paused", [("applied", "")])
    world.perform(lambda: world.app.get("o-1").resume())
    world.fake("mail", weft.Critical("no paper"))
    run.send("go")
    with pytest.raises(weft.RunFailed):
        run.result()

    with pytest.raises(weft.Refused, match="nothing happens in it"):
        patch(world, to="1", wait="2h")
    agree(world, patch(world, to="1", review=OPS, by="ann").asked)

    assert requests(world) == [("applied", ""), ("applied", "")]
    world.perform(lambda: world.app.get("o-1").retry())
    assert run.result() == "by post"


def test_a_held_run_goes_on_when_people_agree() -> None:
    world = World(build("1"))
    start(world).send("told")
    world.settle()
    changed = build("2", "3", "1")
    changed.registered.programs["order", "1"] = changed.registered.programs["order", "3"]
    world.app = changed
    world.restart()
    world.perform(lambda: changed.get("o-1").send("other"))
    world.settle()
    assert world.perform(lambda: changed.get("o-1").status()) == "held"

    plan = patch(world, to="2", review=OPS, by="ann")
    assert not plan.applied
    agree(world, plan.asked)

    world.perform(lambda: changed.get("o-1").send("go"))
    assert world.perform(lambda: changed.get("o-1").result()) == "mailed ann"
    world.close()


def test_a_patch_that_waits_is_applied_once_whatever_dies() -> None:
    def scenario(world: World) -> None:
        run = start(world)
        key = world.new_key()
        patch(world, to="2", wait="9h", review=OPS, by="ann", key=key)
        run.send("told")
        world.settle()
        (request,) = world.perform(lambda: world.app.get("o-1").patch_requests())
        if request.status == "in_review":
            with contextlib.suppress(weft.AlreadyDecided):  # the answer was recorded before the crash
                agree(world, request.asked)
        run.send("go")
        assert run.result() == "mailed ann"
        assert kinds(run).count("run_patched") == 1
        assert len({call.key for call in world.calls("charge")}) == 1

    assert crash_everywhere(build("2", "1"), scenario) >= 10


# --- what the code declares --------------------------------------------------------------------------------------


def test_a_workflow_says_who_must_agree_to_every_patch() -> None:
    """The version that a run comes to cannot permit itself, and its own people count from then on."""
    world = World(build("2", "1", review={"1": {"review": OPS}, "2": {"review": "team:law"}}))
    run = start(world)
    run.send("told")
    world.settle()

    with pytest.raises(weft.Refused, match="must say who asks for it"):
        patch(world, to="2")
    plan = patch(world, to="2", by="ann", review=["ann", "team:friends"])
    assert (plan.review, plan.applied) == (OPS, False)
    agree(world, plan.asked)
    assert requests(world) == [("applied", "")]

    back = patch(world, to="1", by="ann")
    assert (back.review, back.applied) == (["team:law"], False)
    world.close()


@pytest.mark.parametrize("changes", [{"reviews": OPS}, {"review": [1]}, {"review": 7}, {"review": [" "]}, ["team:ops"]])
def test_changes_that_say_something_else_are_refused(changes: Any) -> None:
    with pytest.raises(weft.UsageError, match="of order"):
        build("1", review={"1": changes})


# --- many hosts --------------------------------------------------------------------------------------------------


def test_a_host_without_the_code_leaves_a_patch_to_one_that_has_it() -> None:
    async def scene() -> None:
        store, old, new = Store(), build("1"), build("2", "1")
        async with store.host(old) as service:
            await old.start("order", {"name": "ann"}, id="o-1")
            await calm()
            plan = await PatchService(service).patch("o-1", {"to": "2"}, PatchOptions(wait_ms=3_600_000))
            assert plan.refusals[0].code == "patch.not_hosted"
            await old.get("o-1").send("told")
            await calm()
            assert [one.status for one in await old.get("o-1").patch_requests()] == ["waiting"]
        async with store.host(new):
            await new.get("o-1").send("go")
            assert await new.get("o-1").result() == "mailed ann"

    play(scene())
