"""A small app to test the kit with."""

from __future__ import annotations

from dataclasses import dataclass

import weft

app = weft.App("sqlite:///never-touched.db")


@dataclass
class Receipt:
    id: str
    cents: int


@app.step(retries=weft.Retry(5, delay="1s", max_delay="1m"))
async def charge(order: str, cents: int) -> Receipt:
    return Receipt(f"real-{order}", cents)


@charge.undo
async def refund(result: Receipt) -> None: ...


@app.step
def pack(order: str) -> str:
    return f"box-{order}"


@app.step
async def loop_step(order: str) -> str:
    import asyncio

    return await asyncio.to_thread(lambda: order)


@app.workflow
async def order(ctx: weft.Context, name: str, cents: int = 100) -> str:
    receipt = await charge(name, cents)
    box = await pack(name)
    await ctx.sleep("3d")
    label = await ctx.step("label", lambda: f"{box}!")
    return f"{receipt.id} {label}"


@app.workflow
async def signed(ctx: weft.Context, name: str) -> str:
    note = await ctx.receive("note", str)
    answer = await ctx.ask("sign", title=f"Sign {name}?", timeout="2d")
    return f"{note} {answer.approved} {','.join(answer.by)}"


@app.workflow
async def threaded(name: str) -> str:
    return await loop_step(name)


@app.workflow
async def doomed(name: str) -> str:
    await charge(name, 1)
    raise weft.Rollback("no")


@app.workflow
async def family(ctx: weft.Context, name: str) -> str:
    return await ctx.call(order(name, 5), timeout="10d")
