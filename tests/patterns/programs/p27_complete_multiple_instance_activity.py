"""Several searches run in parallel. A message ends the activity: running searches are cancelled, results are kept."""

import asyncio

import weft

app = weft.App("memory://")


@app.step
async def look(place: str) -> str:
    return f"nothing in {place}"


@app.workflow
async def search(ctx: weft.Context, places: list[str]) -> list[str]:
    searches = [asyncio.create_task(look(place)) for place in places]
    enough = asyncio.create_task(ctx.receive("enough", str))
    running = {enough, *searches}
    while not enough.done() and len(running) > 1:
        _, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    found = [one.result() for one in searches if one.done()]
    for task in (enough, *searches):
        task.cancel()
    await ctx.sleep("1m", name="write the report")
    return found
