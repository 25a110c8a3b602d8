"""A small business under fire: one program that uses most of what code workflows have, with a ledger outside the
engine.

Every effect and every acknowledged command is one line in the ledger, on disk before anything else happens. The checker
compares ledgers and logs; it never asks the engine for its opinion.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import weft
from tests.crash.hosting import hosting, url_of

BIG = "x" * 40_000


class Ledger:
    """An append-only file that survives its process."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, *words: str) -> None:
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            os.write(handle, (" ".join(words) + "\n").encode())
            os.fsync(handle)
        finally:
            os.close(handle)

    def lines(self) -> list[list[str]]:
        return [line.split(" ") for line in self._path.read_text().splitlines()] if self._path.exists() else []


def build(folder: Path) -> weft.App:
    """The program, as a user would write it."""
    app = weft.App(url_of(folder))
    ledger = Ledger(folder / "ledger.txt")

    def done(step: str) -> None:
        ledger.write("effect", step, weft.task().key)

    @app.step
    async def reserve(order: str) -> str:
        done("reserve")
        return f"res-{order}"

    @reserve.undo
    async def release(result: str) -> None:
        done("release")

    @app.step(retries=weft.Retry(3, delay="1ms"))
    async def charge(order: str, note: str) -> str:
        done("charge")
        if weft.task().attempt == 1:
            raise RuntimeError("busy")
        return note

    @app.step
    def pack(item: int) -> int:
        done("pack")
        return item * 10

    @app.workflow
    async def label(ctx: weft.Context, order: str) -> str:
        await ctx.sleep("5ms")
        return f"label-{order}"

    async def one_round(at: int) -> weft.Turn[int, int]:
        total = at + await pack(at)
        return weft.done(total) if total > 20 else weft.again(total + 1)

    @app.workflow
    async def order(ctx: weft.Context, name: str) -> dict[str, object]:
        reserved = await reserve(name)
        big = await charge(name, BIG)
        packed = await ctx.map("boxes", pack, [1, 2, 3], width=2)
        first = await ctx.race("fast", {"a": pack(7), "b": ctx.sleep("10s")})
        go = await ctx.receive("go", int)
        looped = await ctx.loop("rounds", one_round, state=1)
        tag = await label(name)
        here = await ctx.step("here", lambda: done("here") or 5)
        return {
            "reserved": reserved,
            "big": len(big),
            "packed": packed,
            "first": first.name,
            "go": go,
            "looped": looped,
            "tag": tag,
            "here": here,
        }

    @app.workflow
    async def doomed(ctx: weft.Context, name: str) -> str:
        await reserve(name)
        await pack(1)
        raise weft.Rollback("no way")

    return app


EXPECTED = {
    "reserved": "res-o",
    "big": len(BIG),
    "packed": [10, 20, 30],
    "first": "a",
    "go": 42,
    "looped": 132,
    "tag": "label-o",
    "here": 5,
}
STATUSES = {"main": "completed", "doomed": "failed"}


async def play(app: weft.App, folder: Path) -> None:
    """Start what is to be done, or go on with it; say in the ledger what was acknowledged."""
    ledger = Ledger(folder / "ledger.txt")
    async with hosting(app):
        main = await app.start("order", {"name": "o"}, id="main")
        ledger.write("acked", "start-main")
        doomed = await app.start("doomed", {"name": "d"}, id="doomed")
        ledger.write("acked", "start-doomed")
        if await main.status() == "running":
            await main.send("go", 42, key="the-go")
        ledger.write("acked", "go")
        ledger.write("result", str(await main.result() == EXPECTED))
        try:
            await doomed.result()
        except weft.RunFailed:
            ledger.write("result", "doomed-failed")


def run(folder: Path) -> None:
    asyncio.run(play(build(folder), folder))
