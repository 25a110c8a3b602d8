"""Runs that answer the messages they get, each with what it must give in a world without faults."""

from __future__ import annotations

from typing import Any

import weft
from tests.sim.workflows import ANY, BIG, PATIENT, Cast, Kind

app = weft.App("memory://sim-requests")


@app.step(retries=PATIENT, timeout="2s")
async def count(n: int) -> int:
    return n + 1


@app.step(retries=PATIENT, timeout="2s")
async def book(n: int) -> int:
    return n


@book.undo
async def unbook(n: int) -> None: ...


@app.workflow
async def counter(ctx: weft.Context, requests: int, patience: str) -> list[str | None]:
    """Does some work for each request, then answers it."""
    got: list[str | None] = []
    for number in range(requests):
        request = await ctx.receive("q", dict[str, str], timeout=patience, default=None, answer=True)
        if request is None:
            got.append(None)
            continue
        got.append(request.body["token"])
        await request.answer({"token": request.body["token"], "count": await count(number)})
    return got


@app.workflow
async def lavish(ctx: weft.Context, requests: int, patience: str) -> list[str | None]:
    """Answers at once, with what does not fit into the log."""
    got: list[str | None] = []
    for _ in range(requests):
        request = await ctx.receive("q", dict[str, str], timeout=patience, default=None, answer=True)
        if request is None:
            got.append(None)
            continue
        got.append(request.body["token"])
        await request.answer({"token": request.body["token"], "padding": "x" * BIG})
    return got


@app.workflow
async def plain(ctx: weft.Context, requests: int, patience: str) -> list[str | None]:
    """Takes requests as plain messages: each is answered with nothing."""
    got: list[str | None] = []
    for number in range(requests):
        body = await ctx.receive("q", dict[str, str], timeout=patience, default=None)
        got.append(body["token"] if body is not None else None)
        await count(number)
    return got


@app.workflow
async def failing(ctx: weft.Context, patience: str) -> None:
    """Answers one request and fails; the others are never answered."""
    await book(1)
    request = await ctx.receive("q", dict[str, str], timeout=patience, default=None, answer=True)
    if request is not None:
        await request.answer({"token": request.body["token"]})
    raise weft.Rollback("enough")


def _some(random: Any) -> dict[str, object]:
    return {"requests": random.randint(1, 3), "patience": random.choice(("1s", "6s"))}


REQUESTS = Cast(
    "requests",
    app,
    (
        Kind(counter, _some, lambda a: ANY, requests=("q",), weight=4),
        Kind(lavish, _some, lambda a: ANY, requests=("q",)),
        Kind(plain, _some, lambda a: ANY, requests=("q",)),
        Kind(
            failing,
            lambda random: {"patience": random.choice(("1s", "6s"))},
            lambda a: ANY,
            requests=("q",),
            fails="Rollback",
        ),
    ),
    lacks=(("count",), ("book", "unbook")),
    runs=(3, 6),
    fills_up=True,
)
