"""Deliberate mistakes with blocking handles and resources. Both checkers report every marked line, and no other."""

from collections.abc import AsyncIterator

import weft

app = weft.App("memory://")


class Pool:
    size: int = 1


@app.resource
async def database() -> AsyncIterator[Pool]:
    yield Pool()


@app.step
async def customers(country: str, *, pool: Pool = weft.injected) -> list[str]:
    return [country] * pool.width  # wrong: no such field


@app.workflow
async def order(ctx: weft.Context, order_id: str, cents: int = 100) -> str:
    return order_id


@app.resource  # wrong: a resource yields
async def plain() -> Pool:
    return Pool()


def blocking() -> None:
    count: int = app.sync.start(order("o-1")).result()  # wrong: it is a str
    handle: weft.BlockingHandle[int] = app.sync.start(order("o-1"))  # wrong: a handle of a str
    app.sync.start(order("o-1"), existing="replace")  # wrong: no such choice
    app.sync.start(order, ["o-1"])  # wrong: arguments are a mapping
    app.sync.start(17)  # wrong: not a call, a workflow or a name
    handle.result(timeout=[1])  # wrong: not a duration
    handle.send(17, {})  # wrong: names are strings
    handle.send("quote", body=1, to="x")  # wrong: no such parameter
    handle.decide("ship")  # wrong: an argument is missing
    text: int = handle.status()  # wrong: it is a str
    app.sync.get("x", order).result().cents  # noqa: B018  # wrong: no such field
    print(count, text)


async def waits() -> None:
    await app.sync.start(order("o-1"))  # wrong: it blocks, and gives a handle
    await app.sync.get("x").send("quote")  # wrong: it blocks, and gives nothing


def clients() -> None:
    with weft.Client("sqlite:///weft.db").sync as client:
        client.start(order("o-1"))  # wrong: a client starts by name
        client.get("x").result(1)  # wrong: only by name


@app.workflow
async def resources(ctx: weft.Context) -> None:
    await customers()  # wrong: an argument is missing
    await customers("DE", pool=17)  # wrong: not a Pool
    await customers("DE", Pool())  # wrong: only by name
    names: str = await customers("DE")  # wrong: a list
    print(names, database.value)  # wrong: no such field
