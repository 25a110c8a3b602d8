"""A message waits for the run that is not ready for it yet."""

import weft

app = weft.App("memory://")


@app.workflow
async def delivery(ctx: weft.Context) -> str:
    await ctx.sleep("2h", name="drive")
    return f"left with {await ctx.receive('neighbour', str)}"
