"""A small app for programs without an event loop."""

from __future__ import annotations

import weft


def make_shop(url: str | None = None) -> weft.App:
    """Return a fresh app with a few workflows."""
    app = weft.App(url)

    @app.step
    def pack(item: str) -> str:
        return f"box of {item}"

    @app.step
    async def charge(cents: int) -> int:
        if cents < 0:
            raise weft.Critical("negative")
        return cents

    @app.workflow
    async def order(item: str, cents: int = 1) -> str:
        await charge(cents)
        return await pack(item)

    @app.workflow
    async def greeted(ctx: weft.Context) -> str:
        return f"hello {await ctx.receive('name', str)}"

    @app.workflow
    async def approved(ctx: weft.Context) -> bool:
        return (await ctx.ask("ship", title="Ship it?")).approved

    return app
