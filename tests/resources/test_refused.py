"""Resources that cannot be used as they are declared, and that nothing of them is recorded."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Annotated, Any

import pytest

import weft
from tests.resources.kit import Pool, Settings, Shop, add_database


def start(app: weft.App) -> None:
    app.sync.open()


def test_a_resource_that_is_not_there_stops_the_start(app: weft.App, said: list[str]) -> None:
    @app.step
    def read(*, pool: Pool = weft.injected) -> None: ...

    with pytest.raises(weft.BadResource, match=r"read needs pool, and no resource .* type Pool.* none") as refused:
        start(app)
    assert refused.value.code == "resource.unknown"
    add_database(app, said)
    start(app)


def test_a_resource_of_another_type_stops_the_start(app: weft.App, said: list[str]) -> None:
    add_database(app, said)

    @app.step
    def read(*, database: Shop = weft.injected) -> None: ...

    with pytest.raises(weft.BadResource, match="gives Pool, not Shop"):
        start(app)
    assert said == []


def test_one_of_several_without_a_name_stops_the_start(app: weft.App, said: list[str]) -> None:
    add_database(app, said)

    @app.resource
    async def replica() -> AsyncIterator[Pool]:
        yield Pool("replica")

    @app.step
    def read(*, pool: Pool = weft.injected) -> None: ...

    with pytest.raises(weft.BadResource, match="database, replica") as refused:
        start(app)
    assert refused.value.code == "resource.ambiguous"


def test_a_circle_stops_the_start(app: weft.App) -> None:
    @app.resource
    async def first(second: Any) -> AsyncIterator[Pool]:
        yield Pool("first")

    @app.resource
    async def second(first: Pool) -> AsyncIterator[Shop]:
        yield Shop(first)

    @app.step
    def read(*, first: Pool = weft.injected) -> None: ...

    with pytest.raises(weft.BadResource, match="first → second → first") as refused:
        start(app)
    assert refused.value.code == "resource.cycle"


def test_a_resource_that_fails_to_open_stops_the_start_and_is_named(app: weft.App, said: list[str]) -> None:
    add_database(app, said)

    @app.resource
    async def broken(database: Pool) -> AsyncIterator[Shop]:
        raise OSError("connection refused")
        yield Shop(database)

    @app.step
    def read(*, shop: Shop = weft.injected) -> None: ...

    with pytest.raises(weft.ResourceFailed, match="broken could not be opened: OSError: connection refused") as failed:
        start(app)
    assert (failed.value.resource, failed.value.code) == ("broken", "resource.failed")
    assert isinstance(failed.value.__cause__, OSError)
    assert said == ["open database", "close database"]


def test_a_resource_that_fails_while_closing_is_logged_and_the_others_are_closed(
    app: weft.App, said: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    add_database(app, said)

    @app.resource
    async def fragile(database: Pool) -> AsyncIterator[Shop]:
        yield Shop(database)
        raise OSError("lost")

    @app.step
    def read(*, shop: Shop = weft.injected) -> str:
        return shop.pool.name

    @app.workflow
    async def reads() -> str:
        return await read()

    with caplog.at_level(logging.ERROR, "weft"):
        assert app.run(reads()) == "real"
    assert [record.getMessage() for record in caplog.records] == ["weft: the resource fragile failed while closing"]
    assert said == ["open database", "close database"]


def test_an_input_that_is_also_a_resource_is_refused(app: weft.App) -> None:
    @app.resource
    async def settings() -> AsyncIterator[Settings]:
        yield Settings("x")

    @app.step
    def read(settings: Settings) -> None: ...

    with pytest.raises(weft.BadResource, match=r"read\(settings\) is an input") as refused:
        start(app)
    assert refused.value.code == "resource.is_input"


def test_a_resource_that_is_also_a_fact_is_refused(app: weft.App) -> None:
    with pytest.raises(weft.BadResource, match="both a resource and an input"):

        @app.step(gives="total")
        def read(*, pool: Annotated[Pool, weft.Fact(name="pool")] = weft.injected) -> int:
            return 1


def test_a_resource_cannot_be_given(app: weft.App, said: list[str]) -> None:
    add_database(app, said)

    @app.step
    def read(order: str, pool: Pool = weft.injected) -> None: ...

    for call in (lambda: read("o-1", pool=Pool("mine")), lambda: read("o-1", Pool("mine"))):
        with pytest.raises(weft.BadValue):
            call()
    with pytest.raises(weft.BadValue, match=r"pool is a resource of read.*read\.fn"):
        read("o-1", pool=Pool("mine"))


def test_functions_that_cannot_be_resources_are_refused(app: weft.App) -> None:
    async def plain() -> Pool:
        return Pool("plain")

    with pytest.raises(weft.BadResource, match="not an async generator"):
        app.resource(plain)  # type: ignore[call-overload]
    with pytest.raises(weft.BadResource, match="is a workflow"):

        @app.workflow
        async def order(*, pool: Pool = weft.injected) -> None: ...

    with pytest.raises(weft.UsageError, match="cannot stand before an input"):

        @app.step
        def read(pool: Pool = weft.injected, order: str = "") -> None: ...

    with pytest.raises(weft.BadValue, match=r"weft\.injected"):

        @app.step
        def unmarked(pool: Pool) -> None: ...


def test_a_step_in_a_process_has_no_resources(app: weft.App) -> None:
    with pytest.raises(weft.UsageError, match="another process"):
        app.step(run_in="process")(in_process)


def in_process(*, pool: Pool = weft.injected) -> None: ...


def test_two_resources_of_one_name_are_refused(app: weft.App, said: list[str]) -> None:
    add_database(app, said)
    with pytest.raises(weft.NameTaken, match="database"):
        add_database(app, said)


def test_nothing_of_a_resource_is_recorded_or_in_a_schema(app: weft.App, said: list[str]) -> None:
    add_database(app, said)

    @app.step(gives="total")
    def price(order: str, *, pool: Pool = weft.injected) -> int:
        pool.used += 1
        return pool.used

    node = {"step": "price", "with": {"order": "${input.order}"}, "save": {"state.total": "${output}"}}
    graph = app.graph(
        {
            "weft": "graph/1",
            "name": "priced",
            "input": {"order": "string"},
            "state": {"total": "integer"},
            "output": {"total": "${state.total}"},
            "nodes": {"price": node},
        }
    )
    goal = app.goal("total", price)
    assert price.signature.schema()["properties"] == {"order": {"type": "string"}}
    assert set(app.plan(price, given=["order"]).missing) == set()
    assert app.plan(price).missing.keys() == {"order"}
    assert app.registered.step_parameters("price") == ["order"]
    with app.sync:
        handle = app.sync.start(graph, {"order": "o-1"})
        assert handle.result() == {"total": 1}
        assert app.sync.start(goal, {"order": "o-1"}).result()["total"] == 2
        assert all("pool" not in str(event.data) for event in handle.events())


def test_a_graph_cannot_give_a_resource(app: weft.App, said: list[str]) -> None:
    add_database(app, said)

    @app.step
    def price(order: str, *, pool: Pool = weft.injected) -> int:
        return 1

    graph = app.graph(
        {
            "weft": "graph/1",
            "name": "priced",
            "nodes": {"price": {"step": "price", "with": {"order": "x", "pool": "y"}}},
        }
    )
    with app.sync, pytest.raises(weft.BadGraph, match="pool"):
        app.sync.start(graph, {}).result()
