"""As many readings as pages come in, each begun at once; how many there will be nobody knows before the last one."""

import asyncio

import weft

app = weft.App("memory://")


@app.step
async def read(page: str) -> str:
    return page.upper()


@app.workflow
async def reading(ctx: weft.Context) -> list[str]:
    under_way: list[asyncio.Task[str]] = []
    while (page := await ctx.receive("page", str, timeout="1h", default="")) != "":
        under_way.append(asyncio.create_task(read(page)))
    return list(await asyncio.gather(*under_way))
