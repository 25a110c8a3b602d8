"""The same business, drawn as graphs: fan-outs, joins, a loop, a person, children, undo, a letter, large values."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import weft
from tests.crash.hosting import hosting, url_of
from tests.crash.scenario import BIG, Ledger
from weft.core import commands as c
from weft.core.ids import RunId
from weft.observe.dead_letters import all_dead_letters

ORDER: dict[str, Any] = {
    "weft": "graph/1",
    "name": "order",
    "nodes": {
        "reserve": {"step": "reserve", "with": {"order": "${input.name}"}, "next": "charge"},
        "charge": {
            "step": "charge", "with": {"note": "${input.note}"}, "retry": {"attempts": 3, "delay": "1ms"},
            "save": {"state.note": "${output}"},
            "next": [{"to": "pack", "for_each": "${[1, 2, 3]}", "as": "box", "width": 2, "when": "size(output) > 9"}],
        },
        "pack": {"step": "pack", "with": {"item": "${box}"}, "next": "packed"},
        "packed": {
            "join": "all", "merge": {"from": "output", "how": "append", "into": "state.boxes"},
            "next": [{"to": ["quick", "slow"]}],
        },
        "quick": {"step": "pack", "with": {"item": "${7}"}, "next": "first"},
        "slow": {"wait": "10s", "next": "first"},
        "first": {"join": "any", "pass": True, "next": "go"},
        "go": {"ask": {"title": "Ship ${input.name}?"}, "save": {"state.by": "${output.by}"}, "next": "turn"},
        "turn": {
            "step": "pack", "with": {"item": "${1}"},
            "repeat": {"while": "output < 11", "at_most": 2, "exhausted": "label"},
        },
        "label": {"pass": True, "next": [{"to": ["tag", "small", "never"]}]},
        "tag": {"workflow": "label", "with": {"order": "${input.name}"}, "next": "done"},
        "small": {"workflow": "small", "with": {"n": "${2}"}, "next": "done"},
        "never": {"pass": True, "next": [{"to": "skipped", "when": "input.name == 'x'"}, {"to": "done"}]},
        "skipped": {"pass": True, "next": "done"},
        "done": {"join": "edges", "pass": True, "save": {"state.tag": "${output.tag}", "state.n": "${output.small.n}"}},
    },
    "output": {name: f"${{state.{name}}}" for name in ("boxes", "by", "tag", "n", "note")},
}  # fmt: skip

SMALL: dict[str, Any] = {
    "weft": "graph/1",
    "name": "small",
    "nodes": {"only": {"step": "pack", "with": {"item": "${input.n}"}, "save": {"state.n": "${output}"}}},
    "output": {"n": "${state.n}"},
}

DOOMED: dict[str, Any] = {
    "weft": "graph/1",
    "name": "doomed",
    "nodes": {
        "one": {"step": "reserve", "with": {"order": "${input.name}"}, "next": [{"to": ["two", "three"]}]},
        "two": {"step": "pack", "with": {"item": "${1}"}, "next": "meet"},
        "three": {"step": "pack", "with": {"item": "${2}"}, "next": "meet"},
        "meet": {"join": "all", "step": "sink", "with": {}},
    },
}

BROKEN: dict[str, Any] = {
    "weft": "graph/1",
    "name": "broken",
    "nodes": {
        "before": {"step": "pack", "with": {"item": "${3}"}, "next": "bad"},
        "bad": {"step": "mendable", "with": {}, "save": {"state.said": "${output}"}},
    },
    "output": {"said": "${state.said}"},
}


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

    @app.step
    async def charge(note: str) -> str:
        done("charge")
        if weft.task().attempt == 1:
            raise RuntimeError("busy")
        return note

    @app.step
    def pack(item: int) -> int:
        done("pack")
        return item * 10

    @app.step
    async def sink() -> None:
        done("sink")
        raise weft.Critical("no way")

    @app.step
    async def mendable() -> str:
        done("mendable")
        if not (folder / "mended").exists():
            raise weft.Critical("broken")
        return "mended"

    @app.workflow
    async def label(ctx: weft.Context, order: str) -> str:
        await ctx.sleep("5ms")
        return f"label-{order}"

    for document in (ORDER, SMALL, DOOMED, BROKEN):
        app.graph(document)
    return app


EXPECTED = {"boxes": [10, 20, 30], "by": ["ann"], "tag": "label-o", "n": 20, "note": BIG}
STATUSES = {"main": "completed", "doomed": "failed", "broken": "completed"}


async def play(app: weft.App, folder: Path) -> None:
    """Start what is to be done, or go on with it; say in the ledger what was acknowledged."""
    ledger = Ledger(folder / "ledger.txt")
    async with hosting(app):
        main = await app.start("order", {"name": "o", "note": BIG}, id="main")
        doomed = await app.start("doomed", {"name": "d"}, id="doomed")
        broken = await app.start("broken", {}, id="broken")
        ledger.write("acked", "starts")
        await _answer(main)
        ledger.write("acked", "go")
        await _mend(app, broken, folder)
        ledger.write("acked", "mended")
        ledger.write("result", str(await main.result() == EXPECTED))
        ledger.write("result", str(await broken.result() == {"said": "mended"}))
        try:
            await doomed.result()
        except weft.RunFailed:
            ledger.write("result", "doomed-failed")


async def _answer(main: weft.Handle[Any]) -> None:
    """Answer as soon as the question is open."""
    while await main.status() == "running":
        try:
            await main.decide("go", approved=True, by="ann", key="the-go")
        except weft.NotFound:
            await asyncio.sleep(0.002)
        else:
            return


async def _mend(app: weft.App, broken: weft.Handle[Any], folder: Path) -> None:
    """What has failed for good is mended and tried again, once."""
    while (status := await broken.status()) == "running" and not (folder / "mended").exists():
        await asyncio.sleep(0.002)
    (folder / "mended").touch()
    if status == "failed" or await broken.status() == "failed":
        letters = [found.token async for found in all_dead_letters(app.service, "broken")]
        await app.service.tell(RunId("broken"), c.RequeueLetter(letters[0]))


def run(folder: Path) -> None:
    asyncio.run(play(build(folder), folder))
