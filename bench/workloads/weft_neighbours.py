"""The app that ``weft serve`` hosts while its callers are measured beside attackers."""

import asyncio
import os

import weft

app = weft.App(os.environ["BENCH_SERVED"])


@app.step
async def add(number: int) -> int:
    return number + 1


@app.workflow
async def order(ctx: weft.Context, number: int) -> int:
    return await add(number)


@app.workflow
async def slow_order(ctx: weft.Context, number: int) -> int:
    """Something to do before, while and after the disk is full."""
    for _ in range(4):
        number = await add(number)
        await ctx.sleep("1s")
    return number


@app.workflow
async def again(ctx: weft.Context) -> None:
    """Starts itself twice and waits, until a limit stops the tree."""
    children = [await ctx.spawn(again()) for _ in range(2)]
    await asyncio.gather(*(child.result() for child in children))
