"""The program that the tests of the command line speak to: one app with a run of every kind worth looking at."""

APP = """
from dataclasses import dataclass
from typing import Literal

import weft

app = weft.App()


@dataclass
class Ship:
    carrier: Literal["dhl", "ups"]
    note: str = ""
    boxes: int = 1


@app.step
def charge(order_id: str, cents: int = 4200) -> str:
    return f"pay-{order_id}-{cents}"


@app.step(retries=weft.Retry(attempts=2, delay="1ms"))
def decline(order_id: str) -> str:
    raise ValueError(f"declined {order_id}")


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
async def doomed(order_id: str) -> str:
    await charge(order_id)
    return await decline(order_id)


@app.workflow
async def family(ctx: weft.Context) -> str:
    return await ctx.call(hello("child"))


@app.workflow
async def patient(ctx: weft.Context, who: str = "you") -> str:
    quote = await ctx.receive("quote", int)
    answer = await ctx.ask("ship", title=f"Ship for {quote}?", form=Ship, of=["role:ops"], timeout="2d")
    if not answer.approved:
        return f"rejected by {answer.by[0]}: {answer.reason}"
    return f"{answer.by[0]} ships with {answer.form.carrier}, {answer.form.note!r}, {answer.form.boxes}"
"""

HOST = """
import asyncio
import sys

from app import app


async def host() -> None:
    async with app:
        print("ready", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


asyncio.run(host())
"""
