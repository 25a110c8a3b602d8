"""The story of a graph with a bug, and many runs inside it: found, patched, killed in the middle, and all end right.

``python -m tests.crash.patch_story FOLDER RUNS PHASE`` plays one phase in a process of its own: ``begin`` with the old
code, ``patch`` with the new code (this process kills itself in the middle of the bulk), ``end``. Each prints one JSON
line.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import weft
from tests.crash.scenario import Ledger
from weft.ports.boundary import set_hook
from weft.runtime.bulk import BulkService

ODD = 2
"""How many runs stand where the patch would leave them no place."""
KEY = "mend"


def document(step: str) -> dict[str, Any]:
    """The graph. Its bug: the step that it names is gone in the new code."""
    return {
        "weft": "graph/1",
        "name": "leads",
        "input": {"odd": "boolean"},
        "nodes": {
            "sort": {"pass": True, "next": [{"when": "input.odd", "to": "hold"}, {"to": "wait"}]},
            "hold": {"receive": "release", "next": "price"},
            "wait": {"receive": "go", "next": "price"},
            "price": {"step": step, "with": {"cents": 90}, "save": {"state.cents": "${output}"}},
        },
        "output": {"cents": "${state.cents}"},
    }


MEND = {"op": "replace", "path": "/nodes/price/step", "value": "price"}
TIDY = [
    {"op": "remove", "path": "/nodes/hold"},
    {"op": "replace", "path": "/nodes/sort/next", "value": "wait"},
]
PATCH = {"ops": [MEND, *TIDY], "reason": "the step was renamed"}


def build(folder: Path, step: str) -> weft.App:
    app = weft.App(f"sqlite:///{folder}/story.db", durability="fast")
    ledger = Ledger(folder / "ledger.txt")

    @app.step(name=step)
    async def price(cents: int) -> int:
        ledger.write("effect", step, weft.task().run_id)
        return cents

    app.graph(document(step))
    return app


def ids(runs: int) -> list[str]:
    return [f"leads-{n}" for n in range(runs)]


async def begin(folder: Path, runs: int) -> dict[str, Any]:
    """Start all runs with the old code, and leave them at their waits."""
    app = build(folder, "price_old")
    async with app:
        for n, run in enumerate(ids(runs)):
            await app.start("leads", {"odd": n < ODD}, id=run)
    return {"started": runs}


async def patch(folder: Path, runs: int) -> dict[str, Any]:
    """Check, count, ask for a review, and die in the middle of the bulk."""
    app = build(folder, "price")
    report = await app.check_live()
    groups = [[group.verdict, group.place, group.count] for group in report.groups]
    async with app:
        bulk = await app.bulk("patch", workflow="leads", options={"patch": PATCH})
        refused = [[group.code, group.count] for group in bulk.refused]
        found = {"groups": groups, "would_apply": bulk.would_apply, "refused": refused}
        print(json.dumps(found), flush=True)
        handle = await bulk.apply(by="ann", reason="mend it", review=["ann", "bob"], key=KEY)
        while not (await handle.explain()).waiting:
            await asyncio.sleep(0.01)
        with contextlib.suppress(weft.NotAllowed):
            await handle.decide("review", approved=True, by="ann")
        assert {await app.get(run).status() for run in ids(runs)} == {"running"}
        _die_after(3 + runs // 40)
        await handle.decide("review", approved=True, by="bob")
        await handle.result()
    raise AssertionError("this process was to be killed")


def _die_after(commits: int) -> None:
    """Kill this process after so many more commits: the answer to the review, and patches of many runs each."""
    seen: list[str] = []

    def hook(name: str) -> None:
        seen.append(name)
        if seen.count("commit.after") >= commits:
            os.kill(os.getpid(), signal.SIGKILL)

    set_hook(hook)


async def end(folder: Path, runs: int) -> dict[str, Any]:
    """Let the bulk end, undo one patch and redo it, patch the two that were refused, and let all runs end."""
    app = build(folder, "price")
    async with app:
        found = await BulkService(app.service).find("patch", KEY)
        assert found is not None
        result = weft.BulkResult(**await app.get(found[0]).result())
        last = app.get(ids(runs)[-1])
        undone = await last.undo_patch(by="bob", reason="let us see")
        redone = await last.undo_patch(redo=True, by="bob", reason="it was right")
        for run in ids(runs)[:ODD]:
            await app.get(run).patch([MEND], by="ann", reason="this one may keep its node")
            await app.get(run).send("release")
        for run in ids(runs)[ODD:]:
            await app.get(run).send("go")
        outputs = [(await app.get(run).result())["cents"] for run in ids(runs)]
        revs = [len(await app.get(run).versions()) - 1 for run in ids(runs)]
    return {
        "applied": result.applied,
        "refused": [[group["code"], group["count"]] for group in result.refused],  # type: ignore[index]
        "approved_by": result.approved_by,
        "undone": [undone.applied, redone.applied],
        "outputs": sorted(set(outputs)),
        "revs": revs,
    }


if __name__ == "__main__":
    phases = {"begin": begin, "patch": patch, "end": end}
    said = asyncio.run(phases[sys.argv[3]](Path(sys.argv[1]), int(sys.argv[2])))
    print(json.dumps(said), flush=True)
