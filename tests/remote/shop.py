"""The app whose store the command line reads in two ways: a run of every kind worth looking at."""

from __future__ import annotations

import logging
from typing import Any

import weft

# Nothing is printed: the server runs in the process of the tests, which read what commands print.
log = logging.getLogger("shop")
log.setLevel(logging.INFO)
log.addHandler(logging.NullHandler())

PACKING: dict[str, Any] = {
    "weft": "graph/1",
    "name": "packing",
    "input": {"n": "integer"},
    "nodes": {
        "reserve": {"step": "reserve", "with": {"n": "${input.n}"}, "next": [{"to": "pack", "for_each": "${[1, 2]}"}]},
        "pack": {"step": "pack", "with": {"n": "${item}"}, "next": "packed"},
        "packed": {"join": "any", "pass": True, "next": "done"},
        "done": {"step": "reserve", "with": {"n": 3}},
    },
}
STAMPING: dict[str, Any] = {
    "weft": "graph/1",
    "name": "stamping",
    "nodes": {"stamp": {"step": "pack", "with": {"n": 2}}},
}
STEPS = """
weft: steps/1
steps:
  price:
    step: quote
    needs: {order_id: string}
    gives: {total: number}
"""


def shop(url: str) -> weft.App:
    app = weft.App(url)

    @app.step
    def charge(order_id: str, cents: int = 4200) -> str:
        log.info("charging %s", order_id)
        return f"pay-{order_id}-{cents}"

    @app.step(retries=0)
    def decline(order_id: str) -> str:
        raise ValueError(f"declined {order_id}")

    @app.step(retries=0)
    def reserve(n: int) -> int:
        return n

    @app.step(retries=0)
    def pack(n: int) -> int:
        if n == 2:
            raise ValueError("no box")
        return n

    @app.step
    def quote(order_id: str) -> dict[str, float]:
        return {"total": 3.5}

    @app.step
    def ship(total: float) -> str:
        return f"shipped for {total}"

    @app.workflow
    async def order(ctx: weft.Context, order_id: str, n: int = 1, note: str | None = None) -> dict[str, object]:
        await ctx.set(customer=order_id, n=n)
        await charge(order_id)
        boxes = await ctx.map("boxes", charge, [f"b{k}" for k in range(n)])
        return {"order": order_id, "boxes": boxes, "note": note}

    @app.workflow
    async def hello(name: str) -> str:
        return f"hello {name}"

    @app.workflow
    async def large(letters: int) -> str:
        return "x" * letters

    @app.workflow
    async def doomed(order_id: str) -> str:
        await charge(order_id)
        return await decline(order_id)

    @app.workflow(debounce=weft.Debounce("1h", "who"))
    async def calm(ctx: weft.Context, who: str) -> None:
        return

    @app.workflow
    async def family(ctx: weft.Context) -> str:
        return await ctx.call(hello("child"))

    @app.workflow
    async def patient(ctx: weft.Context, who: str = "you") -> str:
        quote = await ctx.receive("quote", int)
        answer = await ctx.ask("ship", title=f"Ship for {quote}?", of=["role:ops"], timeout="2d")
        return f"{answer.approved} by {answer.by[0]}"

    app.graph(PACKING)
    app.graph(STAMPING)
    return app
