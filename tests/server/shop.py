"""An app with something for every route."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec

import weft

log = logging.getLogger("shop")

REMOTE = {
    "weft": "graph/1",
    "name": "picture",
    "input": {"file": "string"},
    "output": {"size": "${state.size}"},
    "nodes": {
        "resize": {
            "step": "resize",
            "queue": "elsewhere",
            "with": {"file": "${input.file}"},
            "save": {"state.size": "${output.size}"},
            "retry": {"attempts": 3, "delay": "1ms"},
        }
    },
}
DOOMED = {
    "weft": "graph/1",
    "name": "unlucky",
    "input": {"n": "integer"},
    "nodes": {"break": {"step": "break_down", "with": {"n": "${input.n}"}, "retry": 1}},
}


class Parcel(msgspec.Struct):
    carrier: str
    grams: int = 0


def shop(url: str = "memory://") -> weft.App:
    """A new app with a store of its own."""
    app = weft.App(url)
    mended: list[int] = []

    @app.step
    async def greet(name: str) -> str:
        log.info("greeting")
        return f"hello {name}"

    @app.step(retries=0)
    async def break_down(n: int) -> int:
        if n not in mended:
            mended.append(n)
            raise OSError(f"broken {n}")
        return n

    @app.step
    async def speak(words: list[str]) -> int:
        for word in words:
            weft.task().emit("tokens", word)
            await asyncio.sleep(0)
        return len(words)

    @app.workflow
    async def hello(ctx: weft.Context, name: str, tail: str = "!") -> str:
        """Greets somebody."""
        await ctx.set(name=name)
        return await greet(name) + tail

    @app.workflow
    async def order(ctx: weft.Context, order_id: str) -> str:
        quote = await ctx.receive("quote", int)
        return f"{order_id} for {quote}"

    @app.workflow
    async def ship(ctx: weft.Context, order_id: str) -> dict[str, Any]:
        answer = await ctx.ask("carrier", title=f"Ship {order_id}?", form=Parcel, about={"order": order_id})
        return {"approved": answer.approved, "by": answer.by, "carrier": answer.form.carrier if answer.form else None}

    @app.workflow
    async def fragile(ctx: weft.Context, n: int) -> int:
        return await break_down(n)

    @app.workflow
    async def family(ctx: weft.Context) -> str:
        return await ctx.call(hello("child"), id=f"{ctx.run_id}.child")

    @app.workflow
    async def stubborn(ctx: weft.Context) -> None:
        while True:
            try:
                await ctx.receive("never")
            except asyncio.CancelledError:
                await ctx.set(swallowed=True)

    @app.workflow
    async def talk(ctx: weft.Context, words: list[str]) -> int:
        await ctx.emit("tokens", "begin")
        spoken = await speak(words)
        await ctx.receive("enough")
        return spoken

    app.graph(REMOTE)
    app.graph(DOOMED)
    return app
