"""Bulks: a dry run that counts, and a durable run that does the same to many runs, once each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import msgspec
import pytest

import weft
from weft.observe.questions import OpenQuestion, all_open
from weft.ports.store import RunRow
from weft.runtime.bulk import BATCH, REVIEW, BulkService
from weft.runtime.bulk_plan import BulkFilter, BulkOrder
from weft.runtime.service import RunService
from weft.runtime.tenancy import TenantService
from weft.testing import World, crash_everywhere


def new_app() -> weft.App:
    app = weft.App("memory://")

    @app.step(retries=0)
    async def charge(order: str) -> str:
        return f"charged {order}"

    @app.workflow
    async def order(ctx: weft.Context, name: str) -> str:
        await ctx.receive("go")
        return await charge(name)

    return app


@pytest.fixture
def world() -> Iterator[World]:
    made = World(new_app())
    yield made
    made.close()


def start_orders(world: World, count: int) -> list[str]:
    order = world.app.registered.runnable_named("order")
    return [world.start(order, {"name": f"o-{n}"}, id=f"o-{n}").id for n in range(count)]


def plan(world: World, verb: str, *ids: str, **filters: Any) -> weft.Bulk:
    return world.perform(lambda: world.app.bulk(verb, *ids, **filters))


def apply(world: World, verb: str, *ids: str, **filters: Any) -> weft.BulkResult:
    bulk = plan(world, verb, *ids, **filters)
    key = world.new_key()

    async def done() -> weft.BulkResult:
        return await (await bulk.apply(reason="why", by="ann", key=key)).result()

    return world.perform(done)


def send_go(world: World, run: str) -> None:
    key = world.new_key()
    world.perform(lambda: world.app.get(run).send("go", key=key))


def statuses(world: World) -> dict[str, str]:
    world.settle()

    async def read() -> dict[str, str]:
        return {run.id: await run.status() async for run in world.app.list()}

    return world.perform(read)


def events(world: World, run: str, kind: str) -> list[dict[str, Any]]:
    async def read() -> list[dict[str, Any]]:
        return [event.data async for event in world.app.get(run).events() if event.kind == kind]

    return world.perform(read)


def test_a_dry_run_counts_by_reason_and_changes_nothing(world: World) -> None:
    start_orders(world, 4)
    world.perform(lambda: world.app.get("o-0").send("go"))
    world.perform(lambda: world.app.get("o-1").pause())

    bulk = plan(world, "pause", "o-0", "o-1", "o-2", "o-3", "o-3")

    assert (bulk.matched, bulk.would_apply, bulk.unchanged) == (4, 2, 1)
    assert [(group.code, group.status, group.count, group.example) for group in bulk.refused] == [
        ("run.finished", "completed", 1, "o-0"),
    ]
    assert statuses(world) == {"o-0": "completed", "o-1": "paused", "o-2": "running", "o-3": "running"}
    with pytest.raises(weft.NotFound, match=r"There are no runs 'missing', 'gone'\."):
        plan(world, "pause", "o-2", "missing", "gone")
    assert world.perform(lambda: count(world, "weft.bulk")) == 0


async def count(world: World, workflow: str) -> int:
    return len([run async for run in world.app.list(workflow=workflow)])


def test_a_bulk_does_it_to_each_run_with_the_identity_of_its_caller(world: World) -> None:
    start_orders(world, 3)

    result = apply(world, "pause", workflow="order")

    assert (result.verb, result.applied, result.refused) == ("pause", 3, [])
    assert statuses(world) == {"o-0": "paused", "o-1": "paused", "o-2": "paused"}
    assert [(event["reason"], event["by"]) for event in events(world, "o-1", "run_paused")] == [("why", "ann")]
    assert apply(world, "resume", workflow="order").applied == 3
    assert [(event["reason"], event["by"]) for event in events(world, "o-1", "run_resumed")] == [("why", "ann")]
    assert apply(world, "cancel", "o-0", "o-2").applied == 2
    assert [event["by"] for event in events(world, "o-2", "cancel_requested")] == ["ann"]
    assert statuses(world) == {"o-0": "cancelled", "o-1": "running", "o-2": "cancelled"}


def test_failed_runs_are_retried_once_each(world: World) -> None:
    charge = world.app.registered.find_step("charge")
    world.fake(charge, ValueError("down"))
    for run in start_orders(world, 3):
        send_go(world, run)
    assert set(statuses(world).values()) == {"failed"}
    world.fake(charge, "charged")

    result = apply(world, "retry", workflow="order", status="failed")

    assert result.applied == 3
    assert set(statuses(world).values()) == {"completed"}
    assert [(event["reason"], event["by"]) for event in events(world, "o-1", "run_retried")] == [("why", "ann")]


def test_a_refusal_is_recorded_and_stops_nothing(world: World) -> None:
    start_orders(world, 3)
    bulk = plan(world, "pause", workflow="order")
    world.perform(lambda: world.app.get("o-1").send("go"))  # it moves on after the dry run
    world.settle()

    async def done() -> weft.BulkResult:
        return await (await bulk.apply()).result()

    result = world.perform(done)

    assert result.applied == 2
    (group,) = result.refused
    assert (group.code, group.status, group.count, group.example) == ("run.finished", "completed", 1, "o-1")
    assert "nothing was changed" in group.message


def test_the_runs_of_a_bulk_are_fixed_by_its_dry_run(world: World) -> None:
    start_orders(world, 2)
    bulk = plan(world, "pause", workflow="order")
    order = world.app.registered.runnable_named("order")
    world.start(order, {"name": "late"}, id="late")

    async def done() -> weft.BulkResult:
        return await (await bulk.apply()).result()

    assert world.perform(done).applied == 2
    assert statuses(world)["late"] == "running"


def test_a_bulk_is_a_run_that_is_paused_resumed_and_shows_its_progress() -> None:
    app = new_app()
    world = World(app)
    start_orders(world, BATCH + 2)
    bulk = plan(world, "pause", workflow="order")
    world.crash(at="apply", when="before")  # its first batch is lost, and is repeated

    handle = world.perform(bulk.apply)
    world.perform(lambda: app.get(handle.id).result())

    kinds = [event["attributes"]["weft.progress"] for event in events(world, handle.id, "attributes_set")]
    assert kinds == [{"place": "runs", "done": n, "total": BATCH + 2} for n in (0, BATCH, BATCH + 2)]
    assert not world.missed_crashes()
    paused = [events(world, f"o-{n}", "run_paused") for n in range(BATCH + 2)]
    assert all(len(found) == 1 for found in paused)
    world.close()


def test_killed_at_every_write_a_bulk_goes_on_and_does_nothing_twice() -> None:
    def scenario(world: World) -> None:
        charge = world.app.registered.find_step("charge")
        world.fake(charge, ValueError("down"), ValueError("down"), "charged")
        for run in start_orders(world, 2):
            send_go(world, run)
        world.settle()
        assert apply(world, "retry", workflow="order", status="failed").applied == 2
        world.settle()
        for run in ("o-0", "o-1"):
            assert len(events(world, run, "run_retried")) == 1

    assert crash_everywhere(new_app(), scenario) > 20


def test_an_id_that_names_another_run_by_now_is_refused(world: World) -> None:
    start_orders(world, 1)

    async def done() -> Any:
        bulks = BulkService(world.app.service)
        found = await bulks.plan(BulkOrder(verb="pause", ids=["o-0"]))
        run = await bulks.start(msgspec.structs.replace(found, uids=["another"]))
        return await world.app.get(run).result()

    result = world.perform(done)
    assert [group["code"] for group in result["refused"]] == ["run.not_found"]
    assert statuses(world) == {"o-0": "running"}


class _CutService:
    """A service whose store does not answer when a run is judged."""

    def __init__(self, service: RunService) -> None:
        self._service = service

    def __getattr__(self, name: str) -> Any:
        return getattr(self._service, name)

    async def judge(self, row: RunRow, command: object) -> None:
        raise weft.Unavailable(f"the session was cut while {row.id} was read")


def test_a_dry_run_without_an_answer_of_the_store_counts_no_refusal(world: World) -> None:
    start_orders(world, 2)
    world.settle()

    async def dry_run() -> None:
        bulks = BulkService(cast("RunService", _CutService(world.app.service)))
        with pytest.raises(weft.Unavailable, match="was cut"):
            await bulks.plan(BulkOrder(verb="retry", filter=BulkFilter(workflow="order")))

    world.perform(dry_run)


def test_a_bulk_of_a_tenant_reaches_only_its_own_runs(world: World) -> None:
    start_orders(world, 1)
    order = world.app.registered.runnable_named("order")
    world.start(order, {"name": "a"}, id="@acme/o-0")

    async def done() -> Any:
        tenant = TenantService(world.app.service, "acme")
        bulks = BulkService(tenant)
        found = await bulks.plan(BulkOrder(verb="pause", filter=BulkFilter(workflow="order")))
        assert list(found.ids) == ["o-0"]
        run = await bulks.start(found)
        return await tenant.ending(run)

    world.perform(done)
    assert statuses(world) == {"@acme/o-0": "paused", "o-0": "running"}


def test_what_is_wrong_with_a_bulk_is_said_before_anything_starts(world: World) -> None:
    start_orders(world, 1)
    for code, words in {
        "bulk.no_runs": ("pause",),
        "bulk.unknown_verb": ("explode", "o-0"),
    }.items():
        with pytest.raises(weft.UsageError) as caught:
            plan(world, *words)
        assert caught.value.code == code
    with pytest.raises(weft.UsageError, match="no way back"):
        plan(world, "cancel", "o-0", workflow="order")
    with pytest.raises(weft.UsageError, match="start=7 is not possible; loud is none of its options") as caught:
        plan(world, "retry", "o-0", options={"start": 7, "loud": True})
    assert caught.value.code == "bulk.bad_option"


def test_the_same_key_finds_the_same_bulk(world: World) -> None:
    start_orders(world, 1)
    bulk = plan(world, "pause", "o-0")

    first, second = (world.perform(lambda: bulk.apply(key="k")).id for _ in range(2))

    assert first == second


def test_bulks_are_left_out_of_lists_and_of_other_bulks(world: World) -> None:
    start_orders(world, 1)
    apply(world, "pause", "o-0")

    assert plan(world, "retry", where={"none": 1}).matched == 0
    assert list(statuses(world)) == ["o-0"]
    assert world.perform(lambda: count(world, "weft.bulk")) == 1


def test_a_bulk_cannot_be_started_as_a_workflow(world: World) -> None:
    with pytest.raises(weft.UnknownWorkflow):
        world.perform(lambda: world.app.start("weft.bulk", {"verb": "pause", "ids": []}))


def test_the_review_of_a_bulk_is_in_the_inbox(world: World) -> None:
    start_orders(world, 1)
    bulk, key = plan(world, "pause", "o-0"), world.new_key()
    run = world.perform(lambda: bulk.apply(by="ann", review=["team:ops"], key=key))
    world.settle()

    async def inbox() -> list[OpenQuestion]:
        return [item async for item in all_open(world.app.service)]

    asked = world.perform(inbox)
    assert [(item.id, item.asked) for item in asked] == [(f"{run.id}:{REVIEW}", ["team:ops"])]
