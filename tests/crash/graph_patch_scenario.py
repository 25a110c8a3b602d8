"""Patches of graph runs under fire: a node put in between, a token that goes back, and work that begins again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import weft
from tests.crash.hosting import hosting, url_of
from tests.crash.scenario import BIG, Ledger

STATUSES: dict[str, str] = {}
LINE: dict[str, Any] = {
    "weft": "graph/1",
    "name": "line",
    "nodes": {
        "first": {
            "step": "pack", "with": {"note": "${input.note}"}, "next": "hold",
            "save": {"state.n": "${output}", "state.more": "${0}"},
        },
        "hold": {"receive": "go", "next": "last"},
        "last": {
            "step": "pack",
            "with": {"note": "${input.note}"},
            "save": {"state.last": "${output}"},
            "next": "wait",
        },
        "wait": {"step": "stay", "with": {}},
    },
    "output": {"n": "${state.n}", "last": "${state.last}", "more": "${state.more}"},
}  # fmt: skip
BETWEEN = [
    {"op": "add", "path": "/nodes/more", "value": {
        "step": "pack", "with": {"note": "more"}, "save": {"state.more": "${output}"}, "next": "last"}},
    {"op": "replace", "path": "/nodes/hold/next", "value": "more"},
]  # fmt: skip
PATCHES: dict[str, tuple[str, dict[str, Any]]] = {
    "between": ("message_awaited", {"ops": BETWEEN}),
    "back": ("message_awaited", {"ops": BETWEEN, "move": [{"node": "hold", "to": "first"}], "reason": "once more"}),
    "again": ("stays", {"ops": [], "restart": ["wait"], "reason": "it hangs"}),
}
"""By run: when it is patched, and how."""


def build(folder: Path) -> weft.App:
    """The program, as a user would write it."""
    app = weft.App(url_of(folder))
    ledger = Ledger(folder / "ledger.txt")

    @app.step
    async def pack(note: str) -> int:
        ledger.write("effect", "pack", weft.task().key)
        return len(note)

    @app.step
    async def stay() -> None:
        ledger.write("effect", "stay", weft.task().key)
        ledger.write("stays", weft.task().run_id)
        while weft.task().run_id == "again" and ["acked", "again"] not in ledger.lines():
            await asyncio.sleep(0.002)

    app.graph(LINE)
    return app


async def play(app: weft.App, folder: Path) -> None:
    """Patch each run once, where it stands, and let it end."""
    ledger = Ledger(folder / "ledger.txt")
    async with hosting(app):
        await asyncio.gather(*(_patched(app, ledger, run) for run in PATCHES))
        ledger.write("result", "ended")


async def _patched(app: weft.App, ledger: Ledger, run: str) -> None:
    when, patch = PATCHES[run]
    handle = await app.start("line", {"note": BIG}, id=run)
    if when == "stays":
        await handle.send("go", 1, key=f"{run}-go")
    while not await _has_come(handle, ledger, when):
        await asyncio.sleep(0.002)
    if ["acked", run] not in ledger.lines():
        plan = await handle.patch(**patch, key=f"{run}-patch")
        assert plan.applied, plan
        ledger.write("acked", run)
    if when != "stays" and await handle.status() == "running":
        await handle.send("go", 1, key=f"{run}-go")
    output = await handle.result(timeout=100)
    more = 0 if when == "stays" else 4
    ledger.write("result", str(output == {"n": len(BIG), "last": len(BIG), "more": more}))


async def _has_come(handle: weft.Handle[Any], ledger: Ledger, when: str) -> bool:
    if when == "stays":
        return ["stays", handle.id] in ledger.lines()
    return when in [event.kind async for event in handle.events()]


def run(folder: Path) -> None:
    asyncio.run(play(build(folder), folder))
