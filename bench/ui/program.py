"""The program that is served: runs of every size, and a graph of 2,000 nodes."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import weft

NODES = 2_000
ROW = 40
"""How many nodes of the graph stand side by side."""
PIECE = 500

app = weft.App(os.environ["WEFT_URL"])


@app.step
async def work(n: int) -> int:
    return n


@app.step
async def pause(n: int) -> int:
    await asyncio.sleep(0.1)
    return n


@app.workflow
async def quick(ctx: weft.Context, n: int) -> int:
    """End at once."""
    return n


@app.workflow
async def busy(ctx: weft.Context, steps: int) -> int:
    """Perform many steps. Each makes two events."""
    for start in range(0, steps, PIECE):
        await ctx.map("each", work, list(range(start, min(start + PIECE, steps))), width=50)
    return steps


@app.workflow
async def steady(ctx: weft.Context, seconds: int) -> int:
    """Make about 1,000 events per second."""
    for _ in range(seconds):
        await ctx.map("each", pause, list(range(PIECE)), width=50)
    return seconds


def wide_graph() -> dict[str, Any]:
    """Return a document with rows of nodes. Each node leads to the one below and to the next one."""
    nodes: dict[str, Any] = {}
    for number in range(NODES):
        node: dict[str, Any] = {"step": "work", "with": {"n": number}}
        below, beside = min(number + ROW, NODES - 1), number + 1
        if beside < NODES:
            node["next"] = [{"when": "output % 2 == 0", "to": f"n{below}"}, {"to": f"n{beside}"}]
        nodes[f"n{number}"] = node
    return {"weft": "graph/1", "name": "wide", "nodes": nodes}


wide = app.graph(wide_graph())
