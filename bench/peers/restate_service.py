"""The service that Restate's server calls: one handler per workload, served by hypercorn over HTTP/2.

W4 speaks with its driver through a file: what the file is called comes from the environment, and a process that was
given none does not hang behind its history.
"""

import asyncio
import json
import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import restate  # type: ignore[import-not-found]

from bench.measure import RESULT

RECORDED = os.environ.get("BENCH_RECORDED")
MARKS = os.environ.get("BENCH_MARKS")


async def noop() -> dict[str, Any]:
    return RESULT


async def hang() -> None:
    if RECORDED:
        Path(RECORDED).touch()
        await asyncio.sleep(3600)


async def sequence(ctx: restate.Context, n: int) -> float:
    started = time.perf_counter()
    for _ in range(n):
        await ctx.run_typed("noop", noop)
    return time.perf_counter() - started


async def fan_out(ctx: restate.Context, n: int) -> int:
    return len(await restate.gather(*[ctx.run_typed("noop", noop) for _ in range(n)]))


async def asleep(ctx: restate.Context, seconds: float) -> None:
    await ctx.sleep(timedelta(seconds=seconds))


async def waiting(ctx: restate.Context, _: int) -> None:
    _name, promise = ctx.awakeable()
    await promise


async def long(ctx: restate.Context, n: int) -> None:
    entered = time.perf_counter()
    for _ in range(n):
        await ctx.run_typed("noop", noop)
    if MARKS:
        Path(MARKS).write_text(json.dumps({"entered": entered, "past": time.perf_counter()}))
    await ctx.run_typed("hang", hang)


service = restate.Service("Bench")
for handler in (sequence, fan_out, asleep, waiting, long):
    service.handler()(handler)

app = restate.app([service])
