"""Hooks: a step is performed once for every event that it was registered for, and never hurts the run."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

import weft
from weft.core.commands import RequeueLetter
from weft.core.ids import RunId
from weft.errors import BadHook, UnknownWorkflow
from weft.observe.dead_letters import all_dead_letters
from weft.observe.explain import explain
from weft.ports.run_query import RunQuery
from weft.ports.store import RunRow
from weft.runtime.hooks import WORKFLOW, HookTable
from weft.runtime.orders import StartOrder
from weft.testing import World

GRAPH = {"weft": "graph/1", "name": "parcels", "nodes": {"send": {"step": "post", "retry": 1}}}


class Shop:
    """An app in which everything happens that hooks can be told of."""

    def __init__(self) -> None:
        app = self.app = weft.App("memory://")

        @app.step(retries=2)
        async def charge(fails: int = 0) -> int:
            if weft.task().attempt <= fails:
                raise OSError("the bank is away")
            return weft.task().attempt

        @app.step
        async def post() -> None:
            raise weft.Critical("no such address")

        @app.workflow
        async def order(ctx: weft.Context, fails: int = 0, region: str = "") -> int:
            if region:
                await ctx.set(region=region)
            return await charge(fails)

        @app.workflow
        async def asking(ctx: weft.Context) -> bool:
            options: Any = {"of": ["ann"], "timeout": "1d", "on_timeout": "approve", "remind": "7h"}
            return (await ctx.ask("ship", title="Ship it?", **options)).approved

        self.order, self.asking, self.charge = order, asking, charge
        self.parcels = app.graph(GRAPH)


@pytest.fixture
def shop() -> Shop:
    return Shop()


def deliveries(world: World) -> list[RunRow]:
    world.settle()
    return list(world.perform(lambda: world.app.service.search(RunQuery(workflow=WORKFLOW))).rows)


# --- what is told ------------------------------------------------------------------------------------------------


def test_a_hook_is_told_of_a_run_that_fails_with_its_error(shop: Shop) -> None:
    heard: list[weft.HookEvent] = []

    @shop.app.on("run_failed")
    async def notify(event: weft.HookEvent) -> None:
        heard.append(event)

    world = World(shop.app)
    run = world.start(shop.order(3, "eu"), id="order-1")
    with pytest.raises(weft.RunFailed):
        run.result()
    world.settle()

    (event,) = heard
    assert (event.kind, event.run_id, event.workflow, event.status) == ("run_failed", "order-1", "order", "failed")
    assert event.attributes == {"region": "eu"}
    assert event.error is not None
    assert (event.error.step, event.place) == ("charge", "charge")
    assert "the bank is away" in event.error.message
    assert event.number == len(run.events)
    assert (event.tenant, event.parent, event.question) == ("", "", None)


def test_a_delivery_is_a_run_named_after_hook_run_and_event(shop: Shop) -> None:
    @shop.app.on("run_completed")
    async def notify(event: weft.HookEvent) -> None: ...

    world = World(shop.app)
    run = world.start(shop.order(), id="order-1")
    run.result()

    (row,) = deliveries(world)
    uid = world.perform(lambda: world.app.service.row(RunId("order-1"))).uid
    assert (row.id, row.workflow, row.status) == (f"hook/notify/{uid}/{len(run.events)}", "weft.hook", "completed")
    assert row.attributes == {"weft.hook": "notify", "weft.hook_run": "order-1"}
    assert row.parent is None


def test_each_kind_is_told_where_it_happens(shop: Shop) -> None:
    heard: list[weft.HookEvent] = []

    @shop.app.on("run_completed", "run_failed", "step_retried", "dead_letter", "question_opened", "question_reminded")
    def notify(event: weft.HookEvent) -> None:
        heard.append(event)

    world = World(shop.app)
    world.run(shop.order(1))
    with pytest.raises(weft.RunFailed):
        world.run(shop.parcels)
    asking = world.start(shop.asking())
    world.advance("8h")
    asking.answer("ship", by="ann")
    world.settle()

    def found(kind: str) -> list[weft.HookEvent]:
        return [event for event in heard if event.kind == kind]

    (retried,) = found("step_retried")
    assert (retried.place, retried.step, retried.attempt, retried.status) == ("charge", "charge", 1, "running")
    assert retried.retry_at is not None
    assert retried.retry_at > retried.at
    (letter,) = found("dead_letter")
    assert (letter.workflow, letter.place.partition("/")[0], letter.step) == ("parcels", "send", "post")
    (opened,) = found("question_opened")
    assert opened.question is not None
    assert (opened.question.title, opened.question.of, opened.place) == ("Ship it?", ["ann"], "ship")
    assert opened.question.id == f"{opened.run_id}:ship"
    assert opened.question.due_at is not None
    assert len(found("question_reminded")) == 1
    assert [event.workflow for event in found("run_completed")] == ["order", "asking"]
    assert [event.workflow for event in found("run_failed")] == ["parcels"]


def test_a_run_that_is_held_tells_why() -> None:
    app = weft.App("memory://")
    heard: list[weft.HookEvent] = []

    @app.workflow
    async def sleepy() -> None:
        await asyncio.sleep(1)

    @app.on("run_held")
    def notify(event: weft.HookEvent) -> None:
        heard.append(event)

    world = World(app)
    assert world.start(sleepy()).status == "held"
    world.settle()

    (event,) = heard
    assert event.error is not None
    assert (event.status, event.error.code) == ("held", "code.foreign_await")


def test_a_hook_may_be_a_step_with_policies_of_its_own(shop: Shop) -> None:
    @shop.app.on("run_completed")
    @shop.app.step(retries=weft.Retry(attempts=2, delay="1h"))
    async def notify(event: weft.HookEvent) -> None: ...

    world = World(shop.app)
    world.fake(notify, OSError("away"), None)
    world.run(shop.order())

    assert len(world.calls(notify)) == 1
    world.advance("1h")
    assert len({call.key for call in world.calls(notify)}) == 1
    assert [call.attempt for call in world.calls(notify)] == [1, 2]


def test_children_are_told_of_with_their_parent() -> None:
    app = weft.App("memory://")
    heard: list[tuple[str, str]] = []

    @app.workflow
    async def inner() -> None: ...

    @app.workflow
    async def outer() -> None:
        await inner()

    @app.on("run_completed")
    def notify(event: weft.HookEvent) -> None:
        heard.append((event.workflow, event.parent))

    world = World(app)
    world.run(outer(), id="o")
    world.settle()
    assert sorted(heard) == [("inner", "o"), ("outer", "")]


def test_an_event_that_is_too_large_goes_without_its_details() -> None:
    app = weft.App("memory://")
    heard: list[weft.HookEvent] = []

    @app.workflow
    async def big(ctx: weft.Context) -> None:
        await ctx.set(text="x" * 20_000, more="y" * 20_000)

    @app.on("run_completed", where="size(attributes.more) == 20000")
    def notify(event: weft.HookEvent) -> None:
        heard.append(event)

    world = World(app)
    world.run(big())
    world.settle()
    (event,) = heard
    assert (event.shortened, event.attributes, event.workflow) == (True, {}, "big")


# --- filters -----------------------------------------------------------------------------------------------------


def test_a_hook_is_told_only_of_what_its_filter_names(shop: Shop) -> None:
    heard: list[tuple[str, str]] = []

    def hear(name: str, **chosen: Any) -> None:
        @shop.app.on("run_completed", name=name, **chosen)
        @shop.app.step(name=f"{name}-step")
        async def notify(event: weft.HookEvent) -> None:
            heard.append((name, event.run_id))

    hear("all")
    hear("orders", workflow=shop.order)
    hear("others", workflow="asking")
    hear("eu", where="attributes.region == 'eu'")
    hear("acme", tenant="acme")
    hear("untenanted", tenant="")
    world = World(shop.app)
    world.run(shop.order(0, "eu"), id="a")
    world.run(shop.order(0, "us"), id="b")
    world.run(shop.order(), id="@acme/c")
    world.settle()

    assert {name: sorted(run for other, run in heard if other == name) for name, _ in heard} == {
        "all": ["@acme/c", "a", "b"],
        "orders": ["@acme/c", "a", "b"],
        "eu": ["a"],
        "acme": ["@acme/c"],
        "untenanted": ["a", "b"],
    }
    (of_tenant,) = [row.id for row in deliveries(world) if row.attributes["weft.hook"] == "acme"]
    assert of_tenant.startswith("@acme/hook/acme/")


def test_a_filter_that_fails_does_not_hold_and_says_so_once(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    @shop.app.on("run_completed", where="attributes.region > 3")
    def notify(event: weft.HookEvent) -> None: ...

    world = World(shop.app)
    with caplog.at_level(logging.WARNING, "weft"):
        for _ in range(2):
            world.run(shop.order(0, "eu"))
        world.run(shop.order())
    assert deliveries(world) == []
    assert [record.message for record in caplog.records if "hook notify" in record.message] != []
    assert len([record for record in caplog.records if "hook notify" in record.message]) == 1


@pytest.mark.parametrize(
    ("kinds", "chosen", "code", "words"),
    [
        ((), {}, "hook.bad_kind", "no kind"),
        (("run_fails",), {}, "hook.bad_kind", 'Did you mean "run_failed"'),
        (("run_failed", 7), {}, "hook.bad_kind", "'7'"),
        (("run_failed",), {"where": "attributes.region ="}, "hook.bad_filter", "CEL"),
        (("run_failed",), {"where": "attribute.region == 'eu'"}, "hook.bad_filter", 'Did you mean "attributes"'),
        (("run_failed",), {"where": 3}, "hook.bad_filter", "not a text"),
        (("run_failed",), {"workflow": 3}, "hook.invalid", "workflow=3"),
        (("run_failed",), {"name": "a/b"}, "value.bad_name", "not a valid name"),
    ],
)
def test_a_hook_that_cannot_be_is_refused_where_it_is_declared(
    shop: Shop, kinds: tuple[Any, ...], chosen: dict[str, Any], code: str, words: str
) -> None:
    with pytest.raises(weft.WeftError, match=words) as caught:
        shop.app.on(*kinds, **chosen)
    assert caught.value.code == code


def test_what_cannot_be_a_hook_is_refused(shop: Shop) -> None:
    async def nothing() -> None: ...
    async def two(a: weft.HookEvent, b: int) -> None: ...
    async def text(event: str) -> None: ...  # each delivery would fail, when it is too late
    async def several(events: list[weft.HookEvent]) -> None: ...

    for wrong in (nothing, two, text, several, shop.order, 7, Shop().charge):
        with pytest.raises(BadHook) as caught:
            shop.app.on("run_failed")(wrong)  # type: ignore[call-overload]
        assert caught.value.code == "hook.bad_function"


def test_two_hooks_need_two_names(shop: Shop) -> None:
    @shop.app.on("run_failed")
    def notify(event: weft.HookEvent) -> None: ...

    with pytest.raises(weft.NameTaken, match='Two hooks are called "notify"'):
        shop.app.on("run_completed")(notify)
    shop.app.on("run_completed", name="again")(notify)
    assert sorted(shop.app.registered.hooks.table.hooks) == ["again", "notify"]


def test_a_cell_of_a_notebook_declares_its_hook_again(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=object))
    heard: list[str] = []
    for cell in ("first", "second"):

        @shop.app.on("run_completed", name="notify")
        @shop.app.step(name="notify")
        def notify(event: weft.HookEvent, cell: str = cell) -> None:
            heard.append(cell)

    world = World(shop.app)
    world.run(shop.order())
    world.settle()
    assert heard == ["second"]


def test_a_hook_may_use_resources(shop: Shop) -> None:
    class Mailer: ...

    @shop.app.resource
    async def mailer() -> AsyncIterator[Mailer]:
        yield Mailer()

    used: list[Any] = []

    @shop.app.on("run_completed")
    async def notify(event: weft.HookEvent, mailer: Any = weft.injected) -> None:
        used.append(mailer)

    world = World(shop.app)
    world.run(shop.order())
    world.settle()
    assert [type(one) for one in used] == [Mailer]


def test_the_hooks_of_a_group_come_with_it_also_later_ones(shop: Shop) -> None:
    group = weft.Group("mail.")
    heard: list[str] = []

    @group.on("run_completed")
    def first(event: weft.HookEvent) -> None:
        heard.append("first")

    shop.app.include(group)

    @group.on("run_completed", name="named")
    def second(event: weft.HookEvent) -> None:
        heard.append("second")

    world = World(shop.app)
    world.run(shop.order())
    world.settle()
    assert sorted(heard) == ["first", "second"]
    assert sorted(row.attributes["weft.hook"] for row in deliveries(world)) == ["mail.first", "mail.named"]


# --- hooks and the run -------------------------------------------------------------------------------------------


def test_a_hook_that_raises_ends_as_a_dead_letter_and_the_run_is_none_the_worse(shop: Shop) -> None:
    @shop.app.on("run_completed")
    @shop.app.step(retries=1)
    async def notify(event: weft.HookEvent) -> None: ...

    @shop.app.on("run_failed", "dead_letter", "step_retried")
    async def other(event: weft.HookEvent) -> None: ...

    world = World(shop.app)
    world.fake(notify, OSError("away"))
    assert world.run(shop.order()) == 1
    world.advance("1h")

    (row,) = deliveries(world)
    assert row.status == "failed"

    async def letters() -> list[str]:
        return [item.id async for item in all_dead_letters(world.app.service)]

    (letter,) = world.perform(letters)
    assert letter.startswith(f"{row.id}:")
    assert world.calls(other) == [], "nothing is told of deliveries"
    world.fake(notify, None)
    token = letter.rpartition(":")[2]
    world.perform(lambda: world.app.service.tell(row.id, RequeueLetter(token)))
    world.settle()
    assert [one.status for one in deliveries(world)] == ["completed"]


def test_a_retried_run_that_fails_again_is_told_of_again(shop: Shop) -> None:
    numbers: list[int] = []

    @shop.app.on("run_failed")
    def notify(event: weft.HookEvent) -> None:
        numbers.append(event.number)

    world = World(shop.app)
    world.fake(shop.charge, weft.Critical("no"))
    run = world.start(shop.order(), id="x")
    assert run.status == "failed"
    world.perform(lambda: world.app.get("x").retry())
    assert run.status == "failed"
    assert len(numbers) == 2
    assert len(set(numbers)) == 2


def test_deliveries_are_not_listed_unless_they_are_named_and_cannot_be_started(shop: Shop) -> None:
    @shop.app.on("run_completed")
    def notify(event: weft.HookEvent) -> None: ...

    world = World(shop.app)
    world.run(shop.order(), id="x")
    world.settle()
    assert [row.id for row in world.perform(lambda: world.app.service.search(RunQuery())).rows] == ["x"]
    (row,) = deliveries(world)
    order = StartOrder(workflow=WORKFLOW, version=row.version, input={"kind": "run_failed"})
    with pytest.raises(UnknownWorkflow):
        world.perform(lambda: world.app.service.start(order))
    with pytest.raises(weft.UsageError, match="are Weft's own"):
        world.start(shop.order(), id="hook/notify/x/1")


def test_a_delivery_whose_hook_is_gone_waits_and_says_so(shop: Shop) -> None:
    """The app that runs afterwards has another hook, but not the one that the delivery is for."""

    @shop.app.on("run_completed")
    @shop.app.step(retries=weft.Retry(attempts=9, delay="1h"))
    async def gone(event: weft.HookEvent) -> None: ...

    world = World(shop.app)
    world.fake(gone, OSError("away"))
    world.run(shop.order(), id="x")
    world.settle()
    later = Shop()

    @later.app.on("run_failed")
    def other(event: weft.HookEvent) -> None: ...

    world.app = later.app
    world.restart()
    world.advance("1d")

    (row,) = deliveries(world)
    assert row.status == "running"
    found = world.perform(lambda: explain(world.app.service, row))
    assert "the step of its hook, which no host has" in found.summary
    assert "Declare it again" in found.hint
    world.app = shop.app
    world.fake(gone, None)
    world.restart()
    world.advance("1d")
    assert [one.status for one in deliveries(world)] == ["completed"]


def test_an_app_without_hooks_has_an_empty_table() -> None:
    table = weft.App("memory://").catalogue().hooks()
    assert isinstance(table, HookTable)
    assert table.hooks == {}


def test_a_question_about_repeated_irreversible_work_is_told(shop: Shop) -> None:
    """A fork that would perform irreversible work again asks first."""
    app = shop.app
    heard: list[weft.HookEvent] = []

    @app.step(effect="irreversible")
    async def fire(n: int) -> str:
        return "fired"

    @app.workflow
    async def launch(n: int) -> str:
        return await fire(n)

    @app.on("question_opened")
    def ask(event: weft.HookEvent) -> None:
        heard.append(event)

    world = World(app)
    run = world.start(launch(1), id="a")
    assert run.result() == "fired"
    run.fork(before="fire", input={"n": 2})
    world.settle()

    (event,) = heard
    assert event.question is not None
    assert event.question.id == f"{event.run_id}:fire"


def test_a_fork_without_effects_tells_nobody(shop: Shop) -> None:
    heard: list[str] = []

    @shop.app.on("run_completed")
    def note(event: weft.HookEvent) -> None:
        heard.append(event.run_id)

    world = World(shop.app)
    run = world.start(shop.order(), id="a")
    run.result()
    quiet = run.fork(before="charge", effects="none", set={"charge": 1})
    loud = run.fork(before="charge")
    assert (quiet.result(), loud.result()) == (1, 1)
    world.settle()
    assert heard == ["a", loud.id]
