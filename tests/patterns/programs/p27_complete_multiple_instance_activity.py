"""Searches run at once; when somebody says so, those that still run are stopped, and what was found counts."""

import weft

app = weft.App("memory://")


@app.step
async def look(place: str) -> str:
    return f"nothing in {place}"


@app.workflow
async def search(ctx: weft.Context, places: list[str]) -> list[str]:
    found: list[str] = []

    async def look_everywhere() -> str:
        async def look_at(place: str) -> None:
            found.append(await look(place))

        await ctx.map("places", look_at, places)
        return "all places"

    await ctx.race("until", {"all": look_everywhere(), "enough": ctx.receive("enough", str)})
    return found
