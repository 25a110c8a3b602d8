"""The story of a workflow that changes under its open runs: each comes to its end, and nothing is done twice.

``python -m tests.crash.code_story FOLDER RUNS PHASE`` plays one phase in a process of its own: ``begin`` with the old
code, ``hasty`` with code that was edited in place, ``move`` with a new version beside the old one (this process kills
itself in the middle of the bulk), ``end``. Each prints one JSON line.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

import weft
from tests.crash.scenario import Ledger
from weft.ports.boundary import set_hook
from weft.runtime.bulk import BulkService

GIFTS = 6
"""How many runs have wrapped a gift, by a step that the new code calls otherwise."""
STAYING = 2
"""How many of these end with the old version. One is held by the hasty deploy, and the others are forked."""
KEY = "couriers"


def build(folder: Path, code: str) -> weft.App:
    """The app with the ``old`` code, the ``hasty`` edit of it, or the ``new`` versions beside the old one."""
    app = weft.App(f"sqlite:///{folder}/story.db", durability="fast")
    ledger = Ledger(folder / "ledger.txt")

    def irreversible(step: str) -> Any:
        async def act(name: str) -> str:
            ledger.write("effect", step, name)
            return f"{step} {name}"

        return app.step(name=step, effect="irreversible")(act)

    charge, wrap, wrap_gift = irreversible("charge"), irreversible("wrap"), irreversible("wrap_gift")
    ship, courier = irreversible("ship"), irreversible("courier")

    def version(wrapping: Any, sending: Any) -> Any:
        async def order(ctx: weft.Context, name: str, gift: bool) -> str:
            await charge(name)
            if gift:
                await wrapping(name)
            await ctx.receive("packed")
            return str(await sending(name))

        return order

    if code == "new":
        app.workflow(name="order", version="3")(version(wrap, courier))
        app.workflow(name="order", version="2")(version(wrap_gift, courier))
    app.workflow(name="order", version="1")(version(wrap_gift if code == "hasty" else wrap, ship))
    return app


def ids(runs: int) -> list[str]:
    return [f"order-{n}" for n in range(runs)]


def grouped(report: weft.LiveReport) -> list[list[Any]]:
    return [[group.verdict, group.place, group.count] for group in report.groups]


async def begin(folder: Path, runs: int) -> dict[str, Any]:
    """Start all runs with the old code, and leave them at their waits."""
    app = build(folder, "old")
    async with app:
        for n, run in enumerate(ids(runs)):
            await app.start("order", {"name": run, "gift": n < GIFTS}, id=run)
        for run in ids(runs):
            while not any(one.kind == "message" for one in (await app.get(run).explain()).waiting):
                await asyncio.sleep(0.01)
    return {"started": runs}


async def hasty(folder: Path, runs: int) -> dict[str, Any]:
    """Check the edit before its deploy, and deploy it all the same: the run that goes on is held, and acts no more."""
    app = build(folder, "hasty")
    report = await app.check_live(save=folder / "live")
    async with app:
        held = app.get(ids(runs)[0])
        await held.send("packed")
        while await held.status() != "held":
            await asyncio.sleep(0.01)
    return {"groups": grouped(report), "saved": sorted(path.name for path in (folder / "live").iterdir())}


async def move(folder: Path, runs: int) -> dict[str, Any]:
    """Check the new version before its deploy, bring all runs there that fit, and die in the middle."""
    app = build(folder, "new")
    report = await app.check_live(workflow="order", to="2")
    async with app:
        bulk = await app.bulk("patch", workflow="order", options={"patch": {"to": "2"}})
        refused = sorted([group.code, group.status, group.count] for group in bulk.refused)
        found = {"groups": grouped(report), "would_apply": bulk.would_apply, "refused": refused}
        print(json.dumps(found), flush=True)
        _die_after(3)
        await (await bulk.apply(by="ann", reason="the post is on strike", key=KEY)).result()
    raise AssertionError("this process was to be killed")


def moved(folder: Path) -> int:
    """How many runs the store has in the new version."""
    with contextlib.closing(sqlite3.connect(folder / "story.db")) as database:
        return int(database.execute("SELECT count(*) FROM runs WHERE version = '2'").fetchone()[0])


def _die_after(commits: int) -> None:
    """Kill this process after so many more commits. The bulk moves only some runs at the same time."""
    seen: list[str] = []

    def hook(name: str) -> None:
        seen.append(name)
        if seen.count("commit.after") >= commits:
            os.kill(os.getpid(), signal.SIGKILL)

    set_hook(hook)


async def end(folder: Path, runs: int) -> dict[str, Any]:
    """Let the bulk end, and bring each of the others to its end: by another version, the old one, or a fork."""
    app = build(folder, "new")
    before = moved(folder)
    async with app:
        found = await BulkService(app.service).find("patch", KEY)
        assert found is not None
        done = weft.BulkResult(**await app.get(found[0]).result())
        held, *gifts = ids(runs)[:GIFTS]
        mended = await app.get(held).patch(to="3", by="ann", reason="it knows the old name of the step")
        ending = [held, *gifts[:STAYING], *ids(runs)[GIFTS:]]
        for run in gifts[STAYING:]:
            edits: dict[str, Any] = {
                "set": {"wrap_gift": f"wrap {run}"},
                "approved": ["courier"],
            }  # it is wrapped already
            forked = await app.get(run).fork(before="wrap", to="2", id=f"{run}-moved", key="once", **edits)
            await app.get(run).cancel("it goes on as a fork")
            with contextlib.suppress(weft.RunCancelled):
                await app.get(run).result()
            ending.append(forked.id)
        for run in ending[1:]:
            await app.get(run).send("packed")
        results = sorted([str(await app.get(run).result()) for run in ending])
        revs = [len(await app.get(run).versions()) - 1 for run in ids(runs)[GIFTS:]]
        left = [run.id async for run in app.list() if await run.status() not in ("completed", "cancelled")]
    return {
        "moved_before": before,
        "applied": done.applied,
        "refused": sorted([group["code"], group["status"], group["count"]] for group in done.refused),  # type: ignore[index]
        "notes": mended.notes,
        "results": results,
        "revs": sorted(set(revs)),
        "left": left,
    }


if __name__ == "__main__":
    phases = {"begin": begin, "hasty": hasty, "move": move, "end": end}
    said = asyncio.run(phases[sys.argv[3]](Path(sys.argv[1]), int(sys.argv[2])))
    print(json.dumps(said), flush=True)
