"""What people are told about runs and steps that wait for a limit, for quiet, for more inputs or for a delay."""

import asyncio
from typing import Any

import pytest

import weft
from weft.core.ids import RunId
from weft.observe.activity import listed_activity, waits_text
from weft.ports.tasks import QueueLimits
from weft.testing import World


def shop() -> weft.App:
    app = weft.App("memory://")

    @app.step(limit=weft.Limit(rate="1/1h", key="customer"))
    async def call(customer: str, n: int) -> int:
        return n

    @app.workflow
    async def calls(ctx: weft.Context, customer: str) -> list[int]:
        return await ctx.map("calls", lambda n: call(customer, n), [1, 2])

    @app.workflow(limit=weft.Limit(concurrency=1, key="customer"))
    async def upload(ctx: weft.Context, customer: str) -> None:
        await ctx.receive("go")

    @app.workflow(singleton=weft.Singleton("customer", then="replace"))
    async def sync(ctx: weft.Context, customer: str) -> None:
        try:
            await ctx.receive("go")
        finally:
            await ctx.receive("cleaned")

    @app.workflow(debounce=weft.Debounce("1h", "customer"))
    async def publish(customer: str) -> str:
        return customer

    @app.workflow(batch=weft.Batch(size=9, wait="1h"))
    async def index(documents: list[str]) -> int:
        return len(documents)

    @app.workflow
    async def plain(customer: str) -> str:
        return customer

    return app


async def listed(app: weft.App, run: str) -> str:
    """What ``weft list`` and the web UI say that a run waits for."""
    service = app.service
    row = await service.row(RunId(run))
    return waits_text(row, await listed_activity(service, row, {}))


def test_a_run_over_the_limit_of_its_workflow_is_explained() -> None:
    app = shop()
    world = World(app)
    world.start("upload", {"customer": "ann"}, id="first")
    world.start("upload", {"customer": "ann"}, id="second")
    world.settle()

    found = world.perform(lambda: app.get("second").explain())

    assert (found.status, found.hint) == ("pending", "To see the keys of the limit: weft queue")
    assert found.summary == (
        "it waits for the limit of its workflow: at most 1 at once; 1 under way, 0 ahead of it (first)"
    )
    assert world.perform(lambda: listed(app, "second")) == "the limit of its workflow"


def test_a_step_that_waits_for_its_turn_says_for_which_key() -> None:
    app = shop()
    world = World(app)
    world.start("calls", {"customer": "ann"}, id="calls")
    world.settle()

    (wait,) = world.perform(lambda: app.get("calls").explain()).waiting

    assert wait.unblock == (
        "attempt 1, waits for its turn: call has a limit for the key 'ann': "
        "at most 1/h; 0 under way, 0 ahead of it (weft queue)"
    )


def test_a_step_that_waits_says_how_many_are_under_way_and_who_is_ahead() -> None:
    app = weft.App("memory://")

    @app.step(limit=weft.Limit(concurrency=1, key="customer"))
    async def call(customer: str) -> None:
        await asyncio.sleep(3600)

    @app.workflow
    async def calling(customer: str) -> None:
        await call(customer)

    world = World(app)
    for name in ("first", "second", "third"):
        world.start("calling", {"customer": "ann"}, id=name)
    world.start("calling", {"customer": "bob"}, id="other")
    world.settle()

    (wait,) = world.perform(lambda: app.get("third").explain()).waiting

    assert wait.unblock == (
        "attempt 1, waits for its turn: call has a limit for the key 'ann': "
        "at most 1 at once; 1 under way, 1 ahead of it (first, second) (weft queue)"
    )


def test_a_step_in_a_paused_queue_says_so() -> None:
    app = weft.App("memory://")

    @app.step(queue="mail")
    async def call() -> None: ...

    @app.workflow
    async def calling() -> None:
        await call()

    world = World(app)
    assert world._service.work is not None
    world.perform(lambda: app.service.store.tasks.limit("mail", QueueLimits(concurrency=0)))
    world.perform(world._service.work._shared.refresh)
    world.start("calling", {}, id="calling")
    world.settle()

    (wait,) = world.perform(lambda: app.get("calling").explain()).waiting

    assert wait.unblock == "attempt 1, waits in the queue mail: it is paused; 0 under way, 0 ahead of it"


@pytest.mark.parametrize(
    ("workflow", "given", "text"),
    [
        ("publish", {"customer": "ann"}, "quiet, until 2026-01-01 01:00:00 UTC"),
        ("index", {"documents": ["a"]}, "more inputs, until 2026-01-01 01:00:00 UTC"),
    ],
)
def test_a_list_says_until_when_a_rule_holds_a_run_back(workflow: str, given: dict[str, Any], text: str) -> None:
    app = shop()
    world = World(app)
    world.start(workflow, given, id="run")

    assert world.perform(lambda: listed(app, "run")) == text


def test_a_list_says_which_run_must_end_first() -> None:
    app = shop()
    world = World(app)
    world.start("sync", {"customer": "ann"}, id="first")
    world.settle()
    world.start("sync", {"customer": "ann"}, id="second")
    world.settle()

    assert world.perform(lambda: listed(app, "second")) == "the end of first"


def test_a_list_says_when_a_delayed_run_starts() -> None:
    app = shop()
    world = World(app)

    async def later() -> str:
        return (await app.start("plain", {"customer": "ann"}, id="later", delay="2h")).id

    assert world.perform(later) == "later"
    assert world.perform(lambda: listed(app, "later")) == "its start at 2026-01-01 02:00:00 UTC"
