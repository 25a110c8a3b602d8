"""What the hosts of the proof run: chains of plain steps, and a ledger outside that only steps write.

``python -m tests.hot.proof_host URL LEDGER`` hosts it until it is killed; WEFT_REDIS and WEFT_HOT say how. Every step
writes one line, in one call, to one file of all processes before it does anything else. So the file has an order, and
whoever finds a step of a chain there knows that the steps before it were acknowledged.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

import weft

HOPS = 10
"""How many plain steps a chain has, before and after its message together."""
CHARGE = HOPS
"""The number of the irreversible step, which comes last."""


class Ledger:
    """An append-only file of all processes: time, run, number of the step, key."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write(self, run: str, number: int) -> None:
        os.write(self._file, f"{time.time():.3f} {run} {number} {weft.task().key}\n".encode())


def build(url: str, ledger: Ledger) -> weft.App:
    app = weft.App(url)

    @app.step
    async def hop(run: str, number: int, total: int) -> int:
        ledger.write(run, number)
        await asyncio.sleep(0.02)
        return total + number

    @app.step(effect="irreversible")
    async def charge(run: str, total: int) -> int:
        ledger.write(run, CHARGE)
        return total

    @app.workflow
    async def chain(ctx: weft.Context, run: str) -> dict[str, int]:
        total = 0
        for number in range(HOPS // 2):
            total = await hop(run, number, total)
        told = await ctx.receive("go", int)
        for number in range(HOPS // 2, HOPS):
            total = await hop(run, number, total)
        try:
            total = await charge(run, total)
        except weft.OutcomeUnknown:
            total = -1  # the host died with it in hand; nobody knows, and nobody repeats it
        return {"told": told, "total": total}

    return app


async def host(url: str, ledger: Path) -> None:
    app = build(url, Ledger(ledger))
    while True:
        try:
            async with app:
                print("ready", flush=True)
                await asyncio.Event().wait()
        except weft.StoreError as error:
            # The database is away while this host starts: as any service manager would, try again.
            print(error, file=sys.stderr, flush=True)
            await asyncio.sleep(0.3)


if __name__ == "__main__":
    asyncio.run(host(sys.argv[1], Path(sys.argv[2])))
