"""The steps that the graphs of simulated worlds are made of.

Bodies are pure: what goes wrong with them is done to them from outside.
"""

from __future__ import annotations

import asyncio
from typing import Any

import weft
from tests.sim.workflows import PATIENT

app = weft.App("memory://sim-graphs")
BIG = 34_000
"""A value of so many characters lies in a blob."""


@app.step(retries=PATIENT, timeout="2s")
async def bump(n: int) -> int:
    return n + 1


@app.step(retries=PATIENT)
def plain(n: int) -> int:
    return n + 1


@app.step(retries=PATIENT, timeout="2s")
async def third_time(n: int) -> int:
    if weft.task().attempt < 3:
        raise RuntimeError("not yet")
    return n


@app.step(retries=PATIENT)
async def idle(n: int) -> int:
    """Takes long enough to be overtaken."""
    await asyncio.sleep(0.4 * (n % 5))
    return n


@app.step(retries=PATIENT)
async def hopeless(n: int) -> int:
    raise weft.Critical("never")


@app.step(retries=PATIENT)
async def stall(n: int) -> int:
    """Does not end by itself, not even before a deadline that was set by a clock far ahead."""
    await asyncio.sleep(36_000)
    return n


@app.step(retries=PATIENT)
async def stubborn(n: int) -> int:
    """The world lets it fail until somebody mends it."""
    return n


@app.step(effect="irreversible", timeout="3s")
async def fire(n: int) -> int:
    return n


@app.step(retries=PATIENT, timeout="2s")
async def reserve(n: int) -> str:
    return f"r{n}"


@reserve.undo
async def unreserve(n: int, result: str | None) -> None: ...


@app.step(retries=PATIENT, timeout="2s")
async def hesitate(n: int) -> str:
    """Does not succeed at once, and then takes its time."""
    if weft.task().attempt == 1:
        raise RuntimeError("not yet")
    await asyncio.sleep(0.3)
    return f"h{n}"


@hesitate.undo
async def unhesitate(n: int) -> None: ...


@app.step(retries=PATIENT, timeout="2s")
async def book(n: int) -> dict[str, int]:
    return {"id": n}


@app.step(retries=PATIENT)
async def unbook(id: int | None) -> None: ...


@app.step(retries=PATIENT)
async def blow_up(n: int) -> dict[str, Any]:
    return {"text": "x" * (BIG + n), "n": n}


@app.step(retries=PATIENT)
async def measure(text: str) -> int:
    return len(text)


@app.step(retries=PATIENT)
async def say(what: str, n: int) -> str:
    return f"{what} {n}"


@app.step(retries=PATIENT)
async def total(numbers: list[int]) -> int:
    return sum(numbers)
