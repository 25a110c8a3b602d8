"""Steps and workflows with limits per key, in a simulated world."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.core.ids import HostId
from weft.ports.tasks import LimitedKey, TaskOffer
from weft.stores import open_store
from weft.stores.sqlite.tasks import SqliteTasks
from weft.testing import World, crash_everywhere


class Watch:
    """Sees every body begin and end: how many of a key at once, and when they began."""

    def __init__(self) -> None:
        self.running: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.began: list[tuple[str, float]] = []

    @contextmanager
    def body(self, key: object) -> Iterator[None]:
        name = str(key)
        self.running[name] += 1
        self.most[name] = max(self.most[name], self.running[name])
        self.began.append((name, asyncio.get_running_loop().time()))
        try:
            yield
        finally:
            self.running[name] -= 1

    def most_in(self, key: str, seconds: float) -> int:
        """How many of a key began in any stretch of this length."""
        times = [at for name, at in self.began if name == key]
        return max(sum(1 for at in times if since <= at < since + seconds) for since in times)

    def reset(self) -> None:
        self.running.clear()


def calls_app(watch: Watch, limit: weft.Limit, *, seconds: float = 1.0, url: str = "memory://") -> weft.App:
    app = weft.App(url)

    @app.step(limit=limit)
    async def call(customer: str, n: int) -> int:
        with watch.body(customer):
            await asyncio.sleep(seconds)
        return n

    @app.workflow
    async def many(ctx: weft.Context, customers: list[str]) -> int:
        return sum(await asyncio.gather(*(call(customer, n) for n, customer in enumerate(customers))))

    return app


def test_no_more_of_a_key_are_performed_at_once() -> None:
    watch = Watch()
    world = World(calls_app(watch, weft.Limit(concurrency=2, key="customer")))

    total = world.run("many", {"customers": ["ann"] * 7 + ["bob"] * 3 + ["cat"]})

    assert total == sum(range(11))
    assert watch.most == {"ann": 2, "bob": 2, "cat": 1}
    assert len(watch.began) == 11


def test_without_a_key_there_is_one_limit_for_all() -> None:
    watch = Watch()
    app = weft.App("memory://")

    @app.step(limit=weft.Limit(concurrency=3))
    async def call(n: int) -> None:
        with watch.body("all"):
            await asyncio.sleep(1)

    @app.workflow
    async def many(ctx: weft.Context) -> None:
        await asyncio.gather(*(call(n) for n in range(10)))

    World(app).run(many())

    assert watch.most == {"all": 3}


def test_no_more_of_a_key_begin_in_any_second() -> None:
    watch = Watch()
    world = World(calls_app(watch, weft.Limit(rate="3/s", key="customer"), seconds=0.01))

    world.run("many", {"customers": ["ann"] * 10 + ["bob"] * 2})

    assert watch.most_in("ann", 1.0) == 3
    assert watch.most_in("bob", 1.0) == 2
    ann = [at for name, at in watch.began if name == "ann"]
    assert ann[-1] - ann[0] < 4


def test_a_key_with_one_task_does_not_wait_for_a_key_with_many() -> None:
    watch = Watch()
    world = World(calls_app(watch, weft.Limit(concurrency=2, key="customer")))
    world.start("many", {"customers": ["ann"] * 200})
    world.advance("10s")
    world.start("many", {"customers": ["bob"]}, id="bob")

    world.advance("1100ms")

    assert world.app is not None
    assert [name for name, _ in watch.began].count("bob") == 1
    assert watch.running["bob"] == 0


def test_the_key_is_found_by_a_function_or_by_an_expression_over_nested_input_and_defaults() -> None:
    watch = Watch()
    app = weft.App("memory://")

    @app.step(limit=weft.Limit(concurrency=1, key=lambda given: given["order"]["customer"]))
    async def by_code(order: dict[str, Any]) -> None:
        with watch.body(f"code {order['customer']}"):
            await asyncio.sleep(1)

    @app.step(limit=weft.Limit(concurrency=1, key="region + string(size)"))
    async def by_cel(n: int, region: str = "eu", size: int = 7) -> None:
        with watch.body(f"cel {region}{size}"):
            await asyncio.sleep(1)

    @app.workflow
    async def many(ctx: weft.Context) -> None:
        orders = [by_code({"customer": number % 2}) for number in range(4)]
        await asyncio.gather(*orders, by_cel(1), by_cel(2), by_cel(3, "us"))

    world = World(app)
    world.run(many())

    assert watch.most == {"code 0": 1, "code 1": 1, "cel eu7": 1, "cel us7": 1}
    assert world.now_ms > 0


@pytest.mark.parametrize(
    ("key", "given", "why"),
    [
        ("customer.id", {"customer": {}}, "could not be found"),
        ("customer", {"customer": None}, "neither a text nor an integer"),
        ("customer", {"customer": True}, "neither a text nor an integer"),
        ("customer", {"customer": [1]}, "neither a text nor an integer"),
        ("customer", {"customer": "x" * 201}, "201 characters; the limit is 200"),
        (lambda given: given["nobody"], {"customer": 1}, "KeyError"),
        (lambda given: sys.exit(3), {"customer": 1}, "could not be found: SystemExit: 3."),
        (lambda given: 1.5, {"customer": 1}, "neither a text nor an integer"),
        (lambda given: "\ud800", {"customer": 1}, "cannot be stored"),
        (lambda given: "a\0b", {"customer": 1}, "has a character that cannot be stored"),
        (lambda given: 10**5000, {"customer": 1}, "could not be found"),
    ],
)
def test_a_key_that_is_no_text_and_no_integer_fails_the_step_at_once(key: Any, given: Any, why: str) -> None:
    app = weft.App("memory://")
    performed: list[Any] = []

    @app.step(limit=weft.Limit(concurrency=1, key=key), retries=5)
    async def call(customer: Any) -> None:
        performed.append(customer)

    @app.workflow
    async def one(ctx: weft.Context, customer: Any) -> tuple[str, str, int]:
        try:
            await call(customer)
        except weft.StepFailed as error:
            return error.failure.code, error.failure.message, error.failure.attempts
        return "", "", 0

    code, message, attempts = World(app).run("one", given)

    assert (code, attempts, performed) == ("limit.bad_key", 1, [])
    assert why in message


def test_a_failed_attempt_gives_its_place_back_and_waits_for_another() -> None:
    watch = Watch()
    app = weft.App("memory://")

    @app.step(limit=weft.Limit(concurrency=1, key="customer"), retries=2)
    async def call(customer: str, n: int) -> int:
        with watch.body(customer):
            await asyncio.sleep(1)
            if weft.task().attempt == 1:
                raise ValueError(n)
        return n

    @app.workflow
    async def many(ctx: weft.Context) -> list[int]:
        return list(await asyncio.gather(*(call("ann", n) for n in range(3))))

    assert World(app).run(many()) == [0, 1, 2]
    assert watch.most == {"ann": 1}
    assert len(watch.began) == 6


def test_a_step_that_is_cancelled_keeps_its_place_until_its_body_has_ended() -> None:
    watch = Watch()
    app = weft.App("memory://")

    @app.step(limit=weft.Limit(concurrency=1, key="customer"))
    async def call(customer: str, n: int) -> int:
        with watch.body(customer):
            try:
                await asyncio.sleep(10)
            finally:
                await asyncio.sleep(0.5)
        return n

    @app.workflow
    async def racing(ctx: weft.Context) -> None:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(call("ann", 1))
            await ctx.sleep("1s")
            task.cancel()

    @app.workflow
    async def waiting(ctx: weft.Context) -> int:
        return await call("ann", 2)

    world = World(app)
    world.start(racing())
    world.advance("100ms")
    second = world.start(waiting())
    assert second.result() == 2

    assert watch.most == {"ann": 1}


def test_a_run_that_is_cancelled_gives_its_places_back() -> None:
    watch = Watch()
    world = World(calls_app(watch, weft.Limit(concurrency=2, key="customer"), seconds=1000.0))
    first = world.start("many", {"customers": ["ann"] * 5})
    world.advance("1s")
    first.cancel()
    world.start("many", {"customers": ["ann"] * 2})
    world.advance("2s")

    assert first.status == "cancelled"
    assert watch.most == {"ann": 2}
    assert watch.running == {"ann": 2}
    assert len(watch.began) == 4


def test_places_come_back_when_the_process_dies() -> None:
    watch = Watch()
    world = World(calls_app(watch, weft.Limit(concurrency=2, key="customer")))
    run = world.start("many", {"customers": ["ann"] * 5})
    world.advance("500ms")
    assert watch.running == {"ann": 2}
    watch.reset()

    world.restart()

    assert run.result() == 10
    assert watch.most == {"ann": 2}


def test_a_host_that_stops_gives_its_places_back_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/weft.db"
    at_once = SqliteTasks.exchange

    async def much_later(
        self: SqliteTasks, host: HostId, finished: Sequence[TaskOffer], *more: Any, **options: Any
    ) -> Any:
        for _ in range(20_000 if finished else 0):
            await asyncio.sleep(0)
        return await at_once(self, host, finished, *more, **options)

    monkeypatch.setattr(SqliteTasks, "exchange", much_later)
    app = calls_app(Watch(), weft.Limit(concurrency=2, key="customer"), seconds=0, url=url)

    async def places_left() -> Sequence[LimitedKey]:
        async with app:
            handle = await app.start("many", {"customers": ["ann"] * 2})
            assert await handle.result() == 1
        store = open_store(url)
        await store.open()
        try:
            return await store.tasks.limited_keys(limit=10)
        finally:
            await store.close()

    assert asyncio.run(places_left()) == []


def test_a_crash_at_any_write_loses_no_place_and_no_task() -> None:
    watch = Watch()
    app = calls_app(watch, weft.Limit(concurrency=1, rate="5/s", key="customer"), seconds=0.1)

    def scenario(world: World) -> None:
        watch.reset()
        assert world.run("many", {"customers": ["ann", "ann", "bob"]}) == 3

    assert crash_everywhere(app, scenario) > 5


# --- workflows ----------------------------------------------------------------------------------------------------


def runs_app(watch: Watch, limit: weft.Limit) -> weft.App:
    app = weft.App("memory://")

    @app.workflow(limit=limit)
    async def order(ctx: weft.Context, customer: str) -> str:
        watch.running[customer] += 1
        watch.most[customer] = max(watch.most[customer], watch.running[customer])
        watch.began.append((customer, 0.0))
        await ctx.sleep("1s")
        watch.running[customer] -= 1
        return customer

    @app.workflow
    async def parent(ctx: weft.Context, count: int) -> list[str]:
        return list(await asyncio.gather(*(order("ann") for _ in range(count))))

    return app


def test_a_run_over_the_limit_of_its_workflow_stays_pending_and_begins_when_it_may() -> None:
    watch = Watch()
    world = World(runs_app(watch, weft.Limit(concurrency=1, key="customer")))
    runs = [world.start("order", {"customer": "ann"}) for _ in range(3)] + [world.start("order", {"customer": "bob"})]
    world.settle()

    assert [run.status for run in runs] == ["running", "pending", "pending", "running"]
    assert [run.result() for run in runs] == ["ann", "ann", "ann", "bob"]
    assert watch.most == {"ann": 1, "bob": 1}


def test_children_wait_for_the_limit_of_their_workflow_too() -> None:
    watch = Watch()
    world = World(runs_app(watch, weft.Limit(concurrency=2, key="customer")))

    assert world.run("parent", {"count": 5}) == ["ann"] * 5
    assert watch.most == {"ann": 2}


def test_no_more_runs_of_a_key_begin_than_the_rate_allows() -> None:
    watch = Watch()
    world = World(runs_app(watch, weft.Limit(rate="2/1m", key="customer")))
    runs = [world.start("order", {"customer": "ann"}) for _ in range(5)]

    begun = []
    for _ in range(3):
        world.advance("30s")
        begun.append(len(watch.began))
        world.advance("30s")

    assert begun == [2, 4, 5]
    assert {run.status for run in runs} == {"completed"}


def test_a_waiting_run_can_be_cancelled() -> None:
    watch = Watch()
    world = World(runs_app(watch, weft.Limit(concurrency=1, key="customer")))
    first, second, third = (world.start("order", {"customer": "ann"}) for _ in range(3))
    world.settle()

    second.cancel()
    assert (first.result(), third.result()) == ("ann", "ann")
    assert second.status == "cancelled"
    assert len(watch.began) == 2


def test_a_run_whose_key_cannot_be_found_fails_and_performs_nothing() -> None:
    app = weft.App("memory://")

    @app.workflow(limit=weft.Limit(concurrency=1, key="order.customer"))
    async def ship(ctx: weft.Context, order: dict[str, Any]) -> None: ...

    with pytest.raises(weft.RunFailed, match="could not be found") as failed:
        World(app).run("ship", {"order": {}})
    assert failed.value.failure.code == "limit.bad_key"


def test_a_run_goes_on_waiting_after_a_crash() -> None:
    watch = Watch()
    world = World(runs_app(watch, weft.Limit(concurrency=1, key="customer")))
    first, second = (world.start("order", {"customer": "ann"}) for _ in range(2))
    world.settle()
    watch.reset()

    world.restart()
    world.settle()

    assert (first.status, second.status) == ("running", "pending")
    assert (first.result(), second.result()) == ("ann", "ann")


def test_a_crash_at_any_write_loses_no_waiting_run() -> None:
    watch = Watch()
    app = runs_app(watch, weft.Limit(concurrency=1, key="customer"))

    def scenario(world: World) -> None:
        watch.reset()
        runs = [world.start("order", {"customer": "ann"}) for _ in range(3)]
        assert [run.result() for run in runs] == ["ann"] * 3

    assert crash_everywhere(app, scenario) > 5


# --- what is refused ----------------------------------------------------------------------------------------------


async def awaited_key(given: Mapping[str, Any]) -> str:
    return str(given["customer"])


@pytest.mark.parametrize(
    ("limit", "why"),
    [
        (5, "is not a weft.Limit"),
        (weft.Limit(concurrency=1, key=awaited_key), "is not a CEL expression or a plain function"),
        (weft.Limit(), "limits nothing"),
        (weft.Limit(key="customer"), "limits nothing"),
        (weft.Limit(concurrency=0), "concurrency=0"),
        (weft.Limit(concurrency=-1), "concurrency=-1"),
        (weft.Limit(concurrency=True), "concurrency=True"),
        (weft.Limit(concurrency=1.5), "concurrency=1.5"),  # type: ignore[arg-type]
        (weft.Limit(rate="20/x"), "rate='20/x'"),
        (weft.Limit(rate="0/s"), "rate='0/s'"),
        (weft.Limit(rate="20/0s"), "rate='20/0s'"),
        (weft.Limit(rate="20"), "rate='20'"),
        (weft.Limit(rate=20), "rate=20"),  # type: ignore[arg-type]
        (weft.Limit(concurrency=1, key="customer +"), "not a CEL expression"),
        (weft.Limit(concurrency=1, key="custmer"), "Did you mean"),
        (weft.Limit(concurrency=1, key=""), "key=''"),
        (weft.Limit(concurrency=1, key=3), "key=3"),  # type: ignore[arg-type]
    ],
)
@pytest.mark.parametrize("kind", ["step", "workflow"])
def test_a_bad_limit_is_refused_at_registration(kind: str, limit: Any, why: str) -> None:
    app = weft.App("memory://")

    async def call(customer: str) -> None: ...

    with pytest.raises(weft.BadValue, match=why) as refused:
        getattr(app, kind)(limit=limit)(call)
    assert refused.value.hint
    assert app.registered.step_names() == [] == app.registered.workflow_versions()
