"""What the hosts of a storm run: one program with workflows of all three styles, and a ledger that only steps write.

``python -m tests.chaos.business URL FOLDER`` hosts it until it is told to stop, or killed. Every step writes one line,
in one call, to a file of its process before it does anything else; and it returns its key, so that the log says which
line it speaks of.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from typing import Annotated, Any, TypedDict

import weft

PACKING: dict[str, Any] = {
    "weft": "graph/1",
    "name": "packing",
    "input": {"n": "integer"},
    "nodes": {
        "reserve": {
            "step": "act",
            "with": {"what": "reserve", "n": "${input.n}"},
            "next": [{"to": "pack", "for_each": "${[1, 2, 3]}", "as": "box", "width": 2}],
        },
        "pack": {"step": "stumble", "with": {"what": "pack", "n": "${box}"}, "next": "packed"},
        "packed": {"join": "all", "pass": True, "next": "rest"},
        "rest": {"wait": "300ms", "next": "label"},
        "label": {"workflow": "label", "with": {"n": "${input.n}"}, "next": "done"},
        "done": {"step": "act", "with": {"what": "done", "n": "${input.n}"}, "save": {"state.n": "${output.n}"}},
    },
    "output": {"n": "${state.n}"},
}


class Done(TypedDict):
    """What every step returns: its key, and a number."""

    key: str
    n: int


class Loaded(TypedDict):
    order: Done
    boxes: list[int]


class Ledger:
    """An append-only file of one process."""

    def __init__(self, folder: Path) -> None:
        self._file = os.open(folder / f"ledger-{os.getpid()}.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def act(self, n: int) -> Done:
        """The effect: one line with the time at which it happened."""
        key = weft.task().key
        os.write(self._file, f"{time.time_ns() // 1_000_000} {key}\n".encode())
        return {"key": key, "n": n}


def build(url: str, ledger: Ledger) -> weft.App:
    app = weft.App(url)

    @app.step
    async def act(what: str, n: int) -> Done:
        return ledger.act(n)

    @app.step
    def slow(n: int) -> Done:
        done = ledger.act(n)
        time.sleep(0.05)
        return done

    @app.step(retries=weft.Retry(5, delay="20ms"))
    async def stumble(what: str, n: int) -> Done:
        done = ledger.act(n)
        if weft.task().attempt == 1:
            raise RuntimeError("busy")
        return done

    @app.workflow
    async def label(ctx: weft.Context, n: int) -> int:
        await ctx.sleep("100ms")
        return (await act("label", n))["n"]

    @app.workflow
    async def order(ctx: weft.Context, n: int) -> int:
        await act("reserve", n)
        told = await ctx.receive("go", int)
        await ctx.join("both", {"slow": slow(n), "stumble": stumble("charge", n)})
        await ctx.sleep("300ms")
        await label(n)
        return (await act("done", told))["n"]

    app.graph(PACKING)

    @app.step(gives=("order", "boxes"))
    async def load(n: int) -> Loaded:
        return {"order": ledger.act(n), "boxes": [1, 2]}

    @app.step(gives="packed")
    async def pack(box: Annotated[int, weft.Each("boxes")]) -> Done:
        done = ledger.act(box)
        await asyncio.sleep(0.05)
        return done

    @app.step
    async def ship(order: dict[str, Any], packed: list[Any]) -> Done:
        return ledger.act(order["n"])

    app.goal("shipping", ship)
    return app


async def host(url: str, folder: Path) -> None:
    app = build(url, Ledger(folder))
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    while not stopped.is_set():
        try:
            async with app:
                local = app.service.local
                assert local is not None
                print(local.host, flush=True)
                await stopped.wait()
        except weft.StoreError as error:
            # The database is away while this host starts: as any service manager would, try again.
            print(error, file=sys.stderr, flush=True)
            await asyncio.sleep(0.3)


if __name__ == "__main__":
    asyncio.run(host(sys.argv[1], Path(sys.argv[2])))
