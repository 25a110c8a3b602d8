"""Patches of code runs: the log is replayed against another version first, and then the run follows that version."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import Raw

import weft
from tests.code.hosted_store import Store
from tests.code.timeless import calm, play
from weft.core.commands import PatchRun
from weft.core.ids import RunId
from weft.runtime.patches import PatchOptions, PatchService
from weft.runtime.service import RunService
from weft.testing import World, crash_everywhere


def build(*versions: str, effect: Any = "irreversible", like: dict[str, str] | None = None, slow: str = "") -> weft.App:
    """An app with these versions of one workflow. Version 3 renames a step, and version 4 fails.

    ``like`` says which versions have the code of another one, ``slow`` which step takes an hour.
    """
    app = weft.App("memory://")

    @app.step(effect=effect)
    async def charge(name: str) -> str:
        await asyncio.sleep(3600 if slow == "charge" else 0)
        return f"charged {name}"

    @app.step
    async def ship(name: str) -> str:
        await asyncio.sleep(3600 if slow == "ship" else 0)
        return f"shipped {name}"

    @app.step
    async def mail(name: str) -> str:
        return f"mailed {name}"

    @app.step(effect="irreversible")
    async def charge_card(name: str) -> str:
        return f"charged the card of {name}"

    async def first(ctx: weft.Context, name: str) -> str:
        await charge(name)
        await ctx.receive("go")
        return await ship(name)

    async def second(ctx: weft.Context, name: str) -> str:
        await charge(name)
        await ctx.receive("go")
        return await mail(name)

    async def third(ctx: weft.Context, name: str) -> str:
        await charge_card(name)
        await ctx.receive("go")
        return await ship(name)

    async def fourth(ctx: weft.Context, name: str) -> str:
        raise ValueError("no such thing")

    async def fifth(ctx: weft.Context, name: int) -> str:
        return str(name)

    async def sixth(ctx: weft.Context, name: str) -> str:
        await ctx.receive("go")
        return "without a charge"

    bodies = {"1": first, "2": second, "3": third, "4": fourth, "5": fifth, "6": sixth}
    for version in versions:
        app.workflow(name="order", version=version)(bodies[(like or {}).get(version, version)])
    return app


@pytest.fixture
def world() -> Iterator[World]:
    made = World(build("2", "3", "4", "5", "6", "1"))
    yield made
    made.close()


def start(world: World, run: str = "o-1") -> Any:
    return world.start(world.app.registered.runnable_named("order"), {"name": "ann"}, id=run)


def patch(world: World, run: str = "o-1", **said: Any) -> weft.PatchPlan:
    world.settle()
    return world.perform(lambda: world.app.get(run).patch(**said))


def calls(world: World, step: str) -> int:
    return len(world.calls(world.app.registered.find_step(step)))


def test_a_run_goes_on_with_the_version_that_it_was_brought_to(world: World) -> None:
    run = start(world)

    plan = patch(world, to="2", by="ann", reason="we mail now", dry_run=True)
    assert (plan.base, plan.version, plan.rev, plan.refusals, plan.applied) == ("1", "2", 1, [], False)
    assert patch(world, to="2", by="ann", reason="we mail now", expect=plan.digest).applied

    run.send("go")
    assert run.result() == "mailed ann"
    assert (calls(world, "charge"), calls(world, "ship")) == (1, 0)
    (patched,) = [event for event in run.events if event.kind == "run_patched"]
    assert (patched.data["base"], patched.data["version"], patched.data["by"]) == ("1", "2", "ann")
    versions = world.perform(lambda: world.app.get("o-1").versions())
    assert [(one.rev, one.version, one.reason) for one in versions] == [(0, "1", ""), (1, "2", "we mail now")]


@pytest.mark.parametrize(
    ("to", "code", "both", "place"),
    [
        ("3", "patch.diverges", ("the step `charge`", "charge_card"), "charge"),
        ("4", "patch.raises", ("", ""), ""),
        ("5", "patch.value", ("the input of its start", "other parameters"), ""),
        ("7", "patch.not_hosted", ("", ""), ""),
    ],
)
def test_a_version_that_does_not_fit_is_refused_with_both_sides_and_a_way_out(
    world: World, to: str, code: str, both: tuple[str, str], place: str
) -> None:
    run = start(world)
    before = [event.kind for event in run.events]

    with pytest.raises(weft.PatchRefused) as refused:
        patch(world, to=to)

    (finding,) = refused.value.plan.refusals
    assert (finding.code, finding.place, finding.recorded, finding.asked) == (code, place, *both)
    assert finding.hint
    if place:
        assert f"weft fork o-1 --before {place} --to {to}" in finding.hint
    assert [event.kind for event in run.events] == before
    run.send("go")
    assert run.result() == "shipped ann"


def test_entries_that_the_version_no_longer_comes_to_are_a_note(world: World) -> None:
    run = start(world)

    plan = patch(world, to="6")

    assert plan.notes == ["Version 6 no longer comes to charge. The run goes on without it."]
    run.send("go")
    assert run.result() == "without a charge"


@pytest.mark.parametrize("patched", [{}, {"to": ""}, {"to": "2", "move": []}, {"ops": []}])
def test_a_patch_of_a_code_run_has_nothing_but_a_version(world: World, patched: dict[str, Any]) -> None:
    start(world)
    with pytest.raises(weft.BadPatch, match="not valid"):
        patch(world, **patched)


def test_a_run_that_does_not_fit_is_forked_to_the_version_and_nothing_is_done_twice(world: World) -> None:
    run = start(world)
    patch(world, to="2")
    world.perform(lambda: world.app.workflows.tag("order", "card", "3"))

    fork = run.fork(before="charge", to="card", set={"charge_card": "charged before"}, id="o-1-card")
    fork.send("go")

    assert fork.result() == "shipped ann"
    assert (calls(world, "charge"), calls(world, "charge_card")) == (1, 0)
    with pytest.raises(weft.Refused, match="no host has order in version 7"):
        run.fork(before="charge", to="7")


def test_undo_and_redo_are_judged_like_every_patch(world: World) -> None:
    run = start(world)
    patch(world, to="2")

    assert world.perform(lambda: world.app.get("o-1").undo_patch()).version == "1"
    assert world.perform(lambda: world.app.get("o-1").undo_patch(redo=True)).version == "2"
    run.send("go")
    assert run.result() == "mailed ann"

    other = start(world, "o-2")
    patch(world, "o-2", to="6")
    other.send("go")
    assert other.result() == "without a charge"
    with pytest.raises(weft.RunFinished):
        world.perform(lambda: world.app.get("o-2").undo_patch())


def test_a_patch_that_was_written_against_another_version_is_stale(world: World) -> None:
    start(world)
    with pytest.raises(weft.StaleBase):
        patch(world, to="2", base="6")


def test_a_tag_names_the_version(world: World) -> None:
    run = start(world)
    world.perform(lambda: world.app.workflows.tag("order", "next", "2"))

    assert patch(world, to="next").version == "2"

    run.send("go")
    assert run.result() == "mailed ann"


def test_a_paused_run_stays_paused_and_a_failed_one_waits_for_its_retry(world: World) -> None:
    run = start(world)
    world.perform(lambda: world.app.get("o-1").pause())
    patch(world, to="2")
    assert run.status == "paused"
    world.perform(lambda: world.app.get("o-1").resume())
    world.fake("mail", weft.Critical("no paper"), "mailed at last")
    run.send("go")
    with pytest.raises(weft.RunFailed):
        run.result()

    plan = patch(world, to="1")
    assert plan.notes == ["The run has failed. It follows this version when it is retried."]
    assert run.status == "failed"
    world.perform(lambda: world.app.get("o-1").retry())
    assert run.result() == "shipped ann"
    assert calls(world, "charge") == 1


def test_a_run_that_is_held_because_its_code_diverged_goes_on_with_another_version() -> None:
    world = World(build("1"))
    start(world)
    changed = build("2", "1", like={"1": "3"})
    world.settle()
    world.app = changed
    world.restart()
    world.perform(lambda: changed.get("o-1").send("go"))
    world.settle()
    assert world.perform(lambda: changed.get("o-1").status()) == "held"

    plan = patch(world, to="2")

    assert plan.notes == ["The run is held. It goes on with this version."]
    assert world.perform(lambda: changed.get("o-1").result()) == "mailed ann"
    world.close()


def test_a_patch_counts_once_whatever_dies() -> None:
    def scenario(world: World) -> None:
        run = start(world)
        world.settle()
        key = world.new_key()
        assert world.perform(lambda: world.app.get("o-1").patch(to="2", key=key)).version == "2"
        run.send("go")
        assert run.result() == "mailed ann"
        assert len([event for event in run.events if event.kind == "run_patched"]) == 1
        assert len({call.key for call in world.calls("charge")}) == 1

    # A step that must not be repeated would fail if it died with the process.
    assert crash_everywhere(build("2", "1", effect="idempotent"), scenario) >= 10


# --- many hosts --------------------------------------------------------------------------------------------------


async def patched(service: RunService, **options: Any) -> weft.PatchPlan:
    return await PatchService(service).patch("o-1", {"to": "2"}, PatchOptions(**options))


def test_a_host_lets_go_of_a_run_whose_new_version_it_does_not_have() -> None:
    async def scene() -> None:
        store, old, new = Store(), build("1"), build("2")
        async with store.host(old), store.host(new) as service:
            await old.start("order", {"name": "ann"}, id="o-1")
            await calm()
            assert (await patched(service)).applied
            await new.get("o-1").send("go")
            assert await new.get("o-1").result() == "mailed ann"

    play(scene())


def test_a_run_whose_version_is_gone_is_patched_without_a_host() -> None:
    async def scene() -> None:
        store, old, new = Store(), build("1"), build("2")
        async with store.host(old):
            await old.start("order", {"name": "ann"}, id="o-1")
            await calm()
        with pytest.raises(weft.PatchRefused, match="No host has order in version 2"):
            await patched(store.without_host(new))
        async with store.host(new):
            with pytest.raises(weft.PatchRefused, match="is not in this process"):
                await patched(store.without_host(old))
            assert (await patched(store.without_host(new), key="k")).applied
            assert (await patched(store.without_host(new), key="k")).applied
            await new.get("o-1").send("go")
            assert await new.get("o-1").result() == "mailed ann"
            assert [one.version for one in await new.get("o-1").versions()] == ["1", "2"]

    play(scene())


def test_the_work_of_a_host_that_died_is_not_performed_again() -> None:
    """The step was in flight when its host died, so its outcome is unknown, whoever goes on with the run."""

    async def scene() -> str:
        store, old, new = Store(), build("1", slow="charge"), build("2")
        async with store.host(old, dies=True):
            await old.start("order", {"name": "ann"}, id="o-1")
            await calm()
        async with store.host(new) as service:
            assert (await patched(service)).applied
            with pytest.raises(weft.RunFailed) as failed:
                await new.get("o-1").result()
        return failed.value.failure.code

    assert play(scene()) == "step.outcome_unknown"


def test_a_patch_that_was_sent_to_a_host_that_had_just_died_is_carried_out() -> None:
    """No other host has the version that the run follows, so none would ever read its mail."""

    async def scene() -> None:
        store, old, new = Store(), build("1"), build("2")
        async with store.host(new) as service:
            async with store.host(old, dies=True, is_missed=False):
                await old.start("order", {"name": "ann"}, id="o-1")
                await calm()
            assert (await patched(service, key="k")).applied
            assert (await patched(service, key="k")).applied
            await new.get("o-1").send("go")
            assert await new.get("o-1").result() == "mailed ann"
            kinds = [event.kind async for event in new.get("o-1").events()]
            assert kinds.count("run_patched") == 1
            assert not await service.store.log.inbox((await service.row(RunId("o-1"))).uid)

    play(scene())


def test_a_run_that_has_gone_on_since_its_replay_is_replayed_again() -> None:
    """Version 2 does not have what the run does after "go", so it does not fit any more."""

    class Late(PatchService):
        async def replay(self, row: Any, version: str) -> Any:
            found = await super().replay(row, version)
            await old.get("o-1").send("go")
            await calm()
            return found

    old = build("2", "1", slow="ship")

    async def scene() -> None:
        async with Store().host(old) as service:
            await old.start("order", {"name": "ann"}, id="o-1")
            await calm()
            with pytest.raises(weft.PatchRefused) as refused:
                await Late(service).patch("o-1", {"to": "2"})
            assert [(one.code, one.place) for one in refused.value.findings] == [("patch.diverges", "ship")]

    play(scene())


def test_a_patch_that_is_judged_again_is_the_same_command_under_its_key() -> None:
    """Its host does not answer: it has died, and nobody knows that yet."""

    async def scene() -> None:
        store, app = Store(), build("2", "1")
        async with store.host(app, dies=True) as service:
            await app.start("order", {"name": "ann"}, id="o-1")
            await calm()
            owner = service.local.host  # type: ignore[union-attr]
        await store.memory.hosts.join(owner, lease_ms=60_000)
        other = store.without_host(app)
        for seq in (5, 6):
            command = PatchRun(patch=Raw(b'{"to":"2"}'), version="2", prepared=Raw(b'{"seq":%d}' % seq))
            await other.tell(RunId("o-1"), command, key="k")
        with pytest.raises(weft.KeyReused):
            await other.tell(RunId("o-1"), PatchRun(patch=Raw(b'{"to":"1"}'), version="1"), key="k")

    play(scene())
