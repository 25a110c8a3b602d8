"""CPU work in other processes.

Only JSON crosses, exceptions come back as what they are, a dead process costs one attempt.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

import weft

app = weft.App("memory://")


class TooSmall(Exception):
    pass


@app.step(run_in="process")
def square(n: int) -> dict[str, Any]:
    return {"value": n * n, "pid": os.getpid(), "key": weft.task().key}


@app.step(run_in="process", raises=[TooSmall])
def root(n: int) -> int:
    raise TooSmall(n)


@app.step(run_in="process", retries=weft.Retry(2, delay="1ms"))
def die(n: int) -> int:
    os._exit(n)


@app.step(run_in="process", effect="irreversible")
def pay(n: int) -> Any:
    return {n}


def cube(n: int) -> int:
    return n**3


cubed = app.step(run_in="process")(cube)


@app.workflow
async def cubes() -> int:
    return await cubed(3)


@app.workflow
async def numbers(ctx: weft.Context) -> dict[str, Any]:
    squared = await square(7)
    found = {"square": squared["value"], "elsewhere": squared["pid"] != os.getpid(), "key": squared["key"][-7:]}
    try:
        await root(-1)
    except TooSmall as small:
        found["small"] = small.args
    outcome = await ctx.try_step(die(3))
    found["died"] = outcome.failure.message if isinstance(outcome, weft.Err) else "no"
    paid = await ctx.try_step(pay(3))
    found["paid"] = paid.failure.code if isinstance(paid, weft.Err) else "no"
    found["again"] = (await square(3))["value"]
    return found


def test_a_step_in_a_process_answers_raises_and_may_die() -> None:
    async def scenario() -> dict[str, Any]:
        async with app:
            handle = await app.start(numbers())
            return await handle.result(timeout="60s")

    found = asyncio.run(scenario())

    assert found["square"] == 49
    assert found["elsewhere"] is True
    assert found["key"] == "/square"
    assert found["small"] == [-1]
    assert "died" in found["died"]
    assert found["paid"] == "step.outcome_unknown", "its result cannot be kept, but it was performed"
    assert found["again"] == 9


def test_a_step_that_another_process_cannot_find_is_refused_at_once() -> None:
    with pytest.raises(weft.UsageError, match="another process cannot find it"):

        @app.step(run_in="process")
        def hidden() -> None: ...


def test_a_step_that_another_process_cannot_find_fails_at_once_and_says_why() -> None:
    with pytest.raises(weft.RunFailed) as failed:
        app.run(cubes())

    failure = failed.value.failure
    assert failure is not None
    assert (failure.step, failure.attempts) == ("cube", 1)
    assert f"which looks for it at {__name__}.cube, and that is not the step" in failure.message
