"""Patches of code runs under fire: two runs of an old version, brought to a new one that another process hosts.

The first process hosts only the old version and the second one only the new one, so the patches are of runs that no
host has. A third run is patched while it is in memory.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import weft
from tests.crash.hosting import hosting, url_of
from tests.crash.scenario import BIG, Ledger

STATUSES: dict[str, str] = {}
LEFT = ["left-0", "left-1"]
"""Runs of a host that is gone."""
OWNED = "owned"


def build(folder: Path, *versions: str) -> weft.App:
    """The program, as a user would write it."""
    app = weft.App(url_of(folder))
    ledger = Ledger(folder / "ledger.txt")

    def step(name: str) -> Any:
        async def act(order: str) -> str:
            ledger.write("effect", name, weft.task().key)
            return BIG + order

        return app.step(name=name)(act)

    charge, ship, courier = step("charge"), step("ship"), step("courier")

    def version(sending: Any) -> Any:
        async def order(ctx: weft.Context, order: str) -> str:
            charged = await charge(order)
            await ctx.receive("packed")
            return f"{sending.name} {(await sending(charged))[-1]}"

        return order

    for name in versions:
        app.workflow(name="order", version=name)(version(ship if name == "1" else courier))
    return app


async def play(old: weft.App, new: weft.App, folder: Path) -> None:
    """Let two runs come to their wait with the old code, and all go on with the new."""
    ledger = Ledger(folder / "ledger.txt")
    async with hosting(old):
        for run in LEFT:
            await _wait(await old.start("order", {"order": run}, id=run))
    async with hosting(new):
        await _wait(await new.start("order@3", {"order": OWNED}, id=OWNED))
        for run in [*LEFT, OWNED]:
            plan = await new.get(run).patch(to="2", by="ann", reason="couriers", key="once")
            assert plan.version == "2"
            ledger.write("acked", run)
            await new.get(run).send("packed", key="packed")
            ledger.write("result", str(await new.get(run).result(timeout=100)))


async def _wait(run: weft.Handle[Any]) -> None:
    while "message_awaited" not in [event.kind async for event in run.events()]:
        await asyncio.sleep(0.01)


def run(folder: Path) -> None:
    asyncio.run(play(build(folder, "1"), build(folder, "2", "3"), folder))
