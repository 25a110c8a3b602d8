"""Goals under fire: facts that lead to others, a list worked on in items, a failure that passes, a tree of all styles.

In the tree, code achieves a goal whose step runs a graph whose node runs code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

import weft
from tests.crash.hosting import hosting, url_of
from tests.crash.scenario import BIG, Ledger


class Customer(TypedDict):
    name: str
    boxes: list[int]


def build(folder: Path) -> weft.App:
    """The program, as a user would write it."""
    app = weft.App(url_of(folder))
    ledger = Ledger(folder / "ledger.txt")

    def done(step: str) -> None:
        ledger.write("effect", step, weft.task().key)

    @app.step(gives=("name", "boxes"))
    async def load(order: str) -> Customer:
        done("load")
        return {"name": f"customer-{order}", "boxes": [1, 2, 3]}

    @app.step(gives="packed", width=2)
    def pack(box: Annotated[int, weft.Each("boxes")]) -> int:
        done("pack")
        return box * 10

    @app.step(gives="note", retries=weft.Retry(3, delay="1ms"))
    async def describe(name: str) -> str:
        done("describe")
        if weft.task().attempt == 1:
            raise RuntimeError("busy")
        return BIG

    @app.step(gives="label", when="size(note) > 9")
    async def label(name: str, note: str) -> str:
        done("label")
        return f"{name}:{len(note)}"

    @app.step
    async def ship(packed: list[Any], label: str) -> str:
        done("ship")
        return label

    @app.step(gives="stamp")
    async def stamp(order: str) -> str:
        done("stamp")
        raise weft.Critical("the stamp is lost")

    @app.step(gives="letter")
    async def post(stamp: str, order: str) -> str:
        done("post")
        return f"{order} with {stamp}"

    @app.step(gives="receipt")
    async def receive(letter: str) -> str:
        done("receive")
        return f"received {letter}"

    @app.step(gives="lost")
    async def lose(order: str) -> str:
        done("lose")
        raise weft.Critical("no way")

    @app.step
    async def never(lost: str) -> None:
        done("never")

    _plant_tree(app, done)
    app.goal("order", ship)
    app.goal("letter", post)
    app.goal("doomed", never)
    return app


def _plant_tree(app: weft.App, done: Callable[[str], None]) -> None:
    @app.step
    async def lift(order: str) -> str:
        done("lift")
        return f"lifted {order}"

    @app.workflow
    async def pick(ctx: weft.Context, order: str) -> str:
        await ctx.sleep("1ms")
        return await lift(order)

    app.graph(
        {
            "weft": "graph/1",
            "name": "packing",
            "input": {"order": "string"},
            "nodes": {
                "pick": {"workflow": "pick", "with": {"order": "${input.order}"}, "save": {"state.parcel": "${output}"}}
            },
            "output": {"parcel": "${state.parcel}"},
        },
        gives=["parcel"],
    )

    @app.step
    async def announce(parcel: str) -> str:
        done("announce")
        return f"sent {parcel}"

    @app.workflow
    async def fulfil(ctx: weft.Context, order: str) -> str:
        facts = await ctx.achieve(announce, given={"order": order})
        return str(facts.of(announce))


STATUSES = {"main": "completed", "doomed": "failed"}
COMMANDS = 0
UNDONE = False


async def play(app: weft.App, folder: Path) -> None:
    """Start what is to be done, or go on with it; say in the ledger what was acknowledged."""
    ledger = Ledger(folder / "ledger.txt")
    async with hosting(app):
        main = await app.start("order", {"order": "o"}, id="main")
        ledger.write("acked", "start-main")
        doomed = await app.start("doomed", {"order": "d"}, id="doomed")
        ledger.write("acked", "start-doomed")
        tree = await app.start("fulfil", {"order": "t"}, id="tree")
        ledger.write("acked", "start-tree")
        ledger.write("result", str(await _mended(app, ledger) == "received p with a coin"))
        ledger.write("result", str(_is_right(await main.result())))
        ledger.write("result", str(await tree.result() == "sent lifted t"))
        try:
            await doomed.result()
        except weft.RunFailed:
            ledger.write("result", "doomed-failed")


async def _mended(app: weft.App, ledger: Ledger) -> Any:
    """A run that fails is patched and tried again. The patch has a key, so that it is made once."""
    handle = await app.start("letter", {"order": "p"}, id="patched")
    patched = ["acked", "patch"] in ledger.lines()
    if not patched:
        while await handle.status() not in ("failed", "completed"):
            await asyncio.sleep(0.001)
        if await handle.status() == "failed":
            given = {"stamp": "a coin"}
            plan = await handle.patch(given=given, goals={"add": ["receive"]}, catalogue="now", key="mend")
            assert plan.applied
        ledger.write("acked", "patch")
    if await handle.status() == "failed":
        await handle.retry()
    return (await handle.result())["receipt"]


def _is_right(facts: Any) -> bool:
    packed = sorted(one["packed"] for one in facts["packed"]) == [10, 20, 30]
    return packed and facts["label"] == f"customer-o:{len(BIG)}"


def run(folder: Path) -> None:
    asyncio.run(play(build(folder), folder))
