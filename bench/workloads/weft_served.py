"""The app that ``weft serve`` hosts while starts over HTTP are measured."""

import os
from typing import Any

import weft
from bench.measure import RESULT

app = weft.App(os.environ["BENCH_SERVED"])


@app.step
async def noop() -> dict[str, Any]:
    return RESULT


@app.workflow
async def sequence(ctx: weft.Context, n: int) -> None:
    for _ in range(n):
        await noop()
