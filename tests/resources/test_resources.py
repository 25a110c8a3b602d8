"""Resources: what a host opens once for its steps, and closes."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from typing import Annotated, Any

import pytest

import weft
from tests.resources.kit import BigPool, Named, Pool, Shop, add_database
from weft.authoring.app_catalogue import WorkerCatalogue


def test_a_resource_is_opened_once_for_all_steps_and_closed_at_the_end(app: weft.App, said: list[str]) -> None:
    add_database(app, said)

    @app.step
    async def by_type(order: str, pool: Pool = weft.injected) -> str:
        pool.used += 1
        return f"{order} {pool.name} {pool.used}"

    @app.step
    def by_name(*, database: Any = weft.injected) -> str:
        database.used += 1
        return f"{database.name} {database.used}"

    @app.workflow
    async def both(order: str) -> list[str]:
        return [await by_type(order), await by_name(), await by_type(order)]

    with app.sync:
        assert said == ["open database"]
        assert app.sync.start(both("o-1")).result() == ["o-1 real 1", "real 2", "o-1 real 3"]
        assert app.sync.start(both("o-2")).result()[0] == "o-2 real 4"
    assert said == ["open database", "close database"]


def test_each_host_opens_its_own(app: weft.App, said: list[str]) -> None:
    add_database(app, said)

    @app.step
    def used(*, pool: Pool = weft.injected) -> int:
        pool.used += 1
        return pool.used

    @app.workflow
    async def once() -> int:
        return await used()

    assert app.run(once()) == 1
    assert app.run(once()) == 1
    assert said == ["open database", "close database"] * 2


def test_a_resource_may_need_another_and_they_are_closed_in_reverse(app: weft.App, said: list[str]) -> None:
    @app.resource
    async def shop(pool: Pool, retries: int = 3) -> AsyncIterator[Shop]:
        said.append(f"open shop on {pool.name}, {retries}")
        yield Shop(pool)
        said.append("close shop")

    add_database(app, said)

    @app.step
    def buy(*, shop: Shop = weft.injected, database: Pool = weft.injected) -> bool:
        return shop.pool is database

    @app.workflow
    async def bought() -> bool:
        return await buy()

    assert app.run(bought()) is True
    assert said == ["open database", "open shop on real, 3", "close shop", "close database"]


def test_only_what_the_steps_of_a_host_need_is_opened(app: weft.App, said: list[str]) -> None:
    add_database(app, said)

    @app.workflow
    async def nothing() -> None: ...

    app.run(nothing())
    assert said == []


def test_the_name_decides_between_two_of_one_type(app: weft.App) -> None:
    @app.resource(name="primary")
    async def opens_primary() -> AsyncIterator[Pool]:
        yield Pool("primary")

    @app.resource
    async def replica() -> AsyncIterator[Pool]:
        yield Pool("replica")

    @app.step
    def names(*, primary: Pool = weft.injected, replica: Pool = weft.injected) -> list[str]:
        return [primary.name, replica.name]

    @app.workflow
    async def named() -> list[str]:
        return await names()

    assert app.run(named()) == ["primary", "replica"]


def test_a_subclass_fits_and_a_protocol_goes_by_name(app: weft.App) -> None:
    @app.resource
    async def big() -> AsyncIterator[BigPool]:
        yield BigPool("big")

    @app.step
    def read(*, pool: Pool = weft.injected, big: Annotated[Any, "of any type"] = weft.injected) -> str:
        named: Named = big
        return pool.name + named.name

    @app.workflow
    async def reads() -> str:
        return await read()

    assert app.run(reads()) == "bigbig"


def test_groups_bring_their_resources(app: weft.App, said: list[str]) -> None:
    group = weft.Group(prefix="shop.")
    app.include(group)

    @group.resource
    async def database() -> AsyncIterator[Pool]:
        yield Pool("of the group")

    @group.step
    def read(*, pool: Pool = weft.injected) -> str:
        return pool.name

    @app.workflow
    async def reads() -> str:
        return await read()

    assert app.run(reads()) == "of the group"
    other = weft.Group()
    add = other.resource(name="database")

    @add
    async def another() -> AsyncIterator[Pool]:
        yield Pool("other")

    with pytest.raises(weft.NameTaken, match="database"):
        app.include(other)


def test_an_undo_and_a_step_outside_a_workflow_get_resources_too(app: weft.App, said: list[str]) -> None:
    add_database(app, said)

    @app.step
    async def charge(cents: int, *, pool: Pool = weft.injected) -> int:
        return cents

    @charge.undo
    async def refund(cents: int, *, pool: Pool = weft.injected) -> None:
        said.append(f"refund {cents} by {pool.name}")

    @app.workflow
    async def fails() -> None:
        await charge(7)
        raise weft.Rollback("no")

    with pytest.raises(weft.RunFailed):
        app.run(fails())
    assert "refund 7 by real" in said

    async def outside() -> int:
        async with app:
            return await charge(8)

    assert asyncio.run(outside()) == 8
    with pytest.raises(weft.NotRunning, match=r"charge\.fn"):
        asyncio.run(charge(9))
    assert asyncio.run(charge.fn(9, pool=Pool("given"))) == 9


def test_what_is_registered_while_the_host_runs_is_opened_at_first_use(app: weft.App, said: list[str]) -> None:
    with app.sync:
        add_database(app, said)

        @app.step
        def read(*, pool: Pool = weft.injected) -> str:
            return pool.name

        @app.workflow
        async def reads() -> list[str]:
            return await asyncio.gather(read(), read())

        assert said == []
        assert app.sync.start(reads()).result() == ["real", "real"]
        assert said == ["open database"]
    assert said == ["open database", "close database"]


def test_one_that_cannot_be_opened_later_fails_the_attempt_which_is_retried(app: weft.App) -> None:
    attempts: list[str] = []
    with app.sync:

        @app.resource
        async def shaky() -> AsyncIterator[Pool]:
            attempts.append("open")
            if len(attempts) < 2:
                raise OSError("not yet")
            yield Pool("shaky")

        @app.step(retries=weft.Retry(3, delay="1ms"))
        def read(*, pool: Pool = weft.injected) -> str:
            return pool.name

        @app.workflow
        async def reads() -> str:
            return await read()

        assert app.sync.start(reads()).result() == "shaky"
    assert attempts == ["open", "open"]


def test_a_resource_may_hold_a_task_group_and_is_opened_again_when_it_ends_early(
    app: weft.App, caplog: pytest.LogCaptureFixture
) -> None:
    """A task group must be left in the task that entered it, and cancels that task when one of its own fails."""
    opened: list[tuple[asyncio.Event, asyncio.Event]] = []

    @app.resource
    async def listener() -> AsyncIterator[Pool]:
        fails, ended = asyncio.Event(), asyncio.Event()
        opened.append((fails, ended))

        async def listen() -> None:
            await fails.wait()
            raise OSError("connection lost")

        try:
            async with asyncio.TaskGroup() as tasks:
                listening = tasks.create_task(listen())
                yield Pool(f"listener {len(opened)}")
                listening.cancel()
        finally:
            ended.set()

    @app.step
    async def read(*, pool: Pool = weft.injected) -> str:
        return pool.name

    @app.step
    async def break_it() -> None:
        fails, ended = opened[0]
        fails.set()
        await ended.wait()

    @app.workflow
    async def reads() -> list[str]:
        first = await read()
        await break_it()
        return [first, await read()]

    with caplog.at_level(logging.ERROR, "weft"):
        assert app.run(reads()) == ["listener 1", "listener 2"]
    assert [record.getMessage() for record in caplog.records] == [
        "weft: the resource listener ended while it was in use"
    ]


def test_a_host_of_one_queue_opens_only_what_its_steps_need(app: weft.App, said: list[str]) -> None:
    add_database(app, said)

    @app.resource
    async def gpu() -> AsyncIterator[Shop]:
        said.append("open gpu")
        yield Shop(Pool("gpu"))

    @app.step(queue="gpu")
    def train(*, gpu: Shop = weft.injected) -> None: ...

    @app.step
    def read(*, database: Pool = weft.injected) -> None: ...

    app.host_only(lambda registered: WorkerCatalogue(registered, ["gpu"]))
    with app.sync:
        assert said == ["open gpu"]


def test_a_hook_can_take_a_resource(app: weft.App, said: list[str]) -> None:
    add_database(app, said)
    told = threading.Event()

    @app.on("run_completed", workflow="noted")
    async def mail(event: weft.HookEvent, *, pool: Pool = weft.injected) -> None:
        said.append(f"{event.run_id} by {pool.name}")
        told.set()

    @app.workflow
    async def noted() -> None: ...

    with app.sync:
        app.sync.start(noted(), id="n-1").result()
        told.wait()
    assert "n-1 by real" in said
