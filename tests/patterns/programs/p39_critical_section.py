"""Two lines of work that go on side by side, except where both need the only printer."""

import asyncio

import weft

app = weft.App("memory://")


@app.step
async def write(name: str) -> str:
    return name


@app.step
async def load_paper(name: str) -> str:
    return name


@app.step
async def print_out(name: str) -> str:
    return name


@app.workflow
async def office(names: list[str]) -> None:
    printer = asyncio.Lock()

    async def report(name: str) -> None:
        await write(name)
        async with printer:
            await load_paper(name)
            await print_out(name)

    await asyncio.gather(*(report(name) for name in names))
