"""Deliberate mistakes in calling steps and workflows. Both checkers must report every marked line, and no other."""

import asyncio
from dataclasses import dataclass

import weft

app = weft.App("memory://")


@dataclass
class Receipt:
    id: str
    cents: int


@app.step
async def charge(order_id: str, cents: int) -> Receipt:
    return Receipt(order_id, cents)


@app.step(retries=1)
def pack(item: str) -> str:
    return item


@app.workflow
async def order(ctx: weft.Context, order_id: str, cents: int = 100) -> str:
    return order_id


@app.workflow(version="2")
async def plain(order_id: str) -> int:
    return len(order_id)


@app.workflow
async def arguments(ctx: weft.Context) -> None:
    await charge("o-1", "42")  # wrong: a string where an int belongs
    await charge("o-1")  # wrong: an argument is missing
    await charge("o-1", 1, 2)  # wrong: one argument too many
    await charge("o-1", amount=1)  # wrong: no such parameter
    await pack(17)  # wrong: also behind @app.step(...)
    await order(17)  # wrong: the first argument is order_id, ctx is not given
    await order(ctx, "o-1")  # wrong: ctx is injected
    await plain(1)  # wrong: also behind @app.workflow(...)
    await charge.options(timeout="1s")("o-1", "42")  # wrong: options keep the signature


@app.workflow
async def forgotten(ctx: weft.Context) -> None:
    charge("o-1", 1)  # wrong: never awaited
    pack("soup")  # wrong: never awaited
    pack.options(timeout="1s")("soup")  # wrong: never awaited
    order("o-1")  # wrong: never awaited
    ctx.sleep("1h")  # wrong: never awaited
    ctx.map("each", pack, ["soup"])  # wrong: never awaited
    print(charge("o-1", 1).cents)  # wrong: a call has no fields
    text: str = pack("soup")  # wrong: a call is not its result
    if len(pack("soup")) > 3:  # wrong: a call is not its result
        print(text)
    print(order("o-1") + "!")  # wrong: a call is not its result


@app.workflow
async def results(ctx: weft.Context) -> int:
    receipt: str = await charge("o-1", 1)  # wrong: it is a Receipt
    count: int = await order("o-1")  # wrong: it is a str
    (await charge("o-1", 1)).total  # noqa: B018  # wrong: no such field
    first, second = await asyncio.gather(pack("soup"), pack("cake"))
    print(first, second.cents)  # wrong: both are strings
    print(receipt, count)
    return await order("o-1")  # wrong: this workflow returns an int


@app.step
def wrong_body(item: str) -> int:
    return item  # wrong: the body is checked like any function


def blocking() -> None:
    cents: int = app.run(order("o-1"))  # wrong: it is a str
    app.run(order("o-1"), name="x")  # wrong: no such option
    app.run(17)  # wrong: not a call, a workflow or a name
    app.run(order("o-1"), id=17)  # wrong: ids are strings
    app.start(order("o-1"))  # wrong: never awaited
    print(cents)


async def handles() -> None:
    handle: weft.Handle[int] = await app.start(order("o-1"))  # wrong: a Handle[str]
    text: str = await (await app.start(plain("o-1"))).result()  # wrong: it is an int
    count: int = await app.get("x", order).result()  # wrong: it is a str
    await handle.result(timeout=[1])  # wrong: not a duration
    await handle.send(17, {})  # wrong: names are strings
    handle.result()  # wrong: never awaited
    await app.start(order("o-1"), existing="replace")  # wrong: no such choice
    await app.start(order, ["o-1"])  # wrong: arguments are a mapping
    print(text, count)
