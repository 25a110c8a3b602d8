"""Large things for the UI: a run of 100,000 events, and a graph of 5,000 nodes."""

from __future__ import annotations

import os
from typing import Any

import weft

NODES = 5_000
ROW = 50
"""How many nodes of the graph stand side by side."""
PIECE = 1_000

app = weft.App(os.environ.get("WEFT_URL", "sqlite:///large.db"))


@app.step
async def work(n: int) -> int:
    return n


@app.workflow
async def long(ctx: weft.Context, steps: int) -> int:
    """Perform many steps. Each makes two events."""
    for start in range(0, steps, PIECE):
        await ctx.map("each", work, list(range(start, min(start + PIECE, steps))), width=100)
    return steps


def wide_graph() -> dict[str, Any]:
    """Return a document with rows of nodes. Each node leads to the one below and to the one beside that."""
    first = [{"when": f"output == {n}", "to": f"n{n}"} for n in range(1, ROW)]
    nodes: dict[str, Any] = {"n0": {"step": "work", "with": {"n": 0}, "next": [*first, {"to": f"n{ROW}"}]}}
    for number in range(1, NODES):
        below, beside = number + ROW, number + ROW + 1
        node: dict[str, Any] = {"step": "work", "with": {"n": number}}
        if beside < NODES:
            node["next"] = [{"when": "output % 2 == 0", "to": f"n{below}"}, {"to": f"n{beside}"}]
        nodes[f"n{number}"] = node
    return {"weft": "graph/1", "name": "wide", "nodes": nodes}


wide = app.graph(wide_graph())
