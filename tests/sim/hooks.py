"""Runs that hooks are told of, and what must have been delivered of each of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import weft
from tests.sim.workflows import ANY, PATIENT, Cast, Kind
from weft.core import events as e

app = weft.App("memory://sim-hooks")
HOOK = "weft.hook"


@app.step(retries=PATIENT, timeout="2s")
async def third_time(n: int) -> int:
    if weft.task().attempt < 3:
        raise RuntimeError("not yet")
    return n


@app.step(retries=PATIENT)
async def stubborn(n: int) -> int:
    """The world lets it fail until somebody mends it."""
    return n


@app.workflow
async def steady(ctx: weft.Context, n: int) -> int:
    await ctx.set(odd=bool(n % 2))
    return await third_time(n)


@app.workflow
async def plain(n: int) -> int:
    return n


@app.workflow
async def asking(ctx: weft.Context, patience: str) -> bool:
    answer = await ctx.ask("ok", title="Sure?", timeout=patience, on_timeout="reject", remind="400ms")
    return answer.approved


@app.workflow
async def failing(n: int) -> None:
    await third_time(n)
    raise weft.Rollback("enough")


@app.workflow
async def parent(n: int) -> int:
    return await steady(n) + await plain(n)


letters = app.graph(
    {
        "weft": "graph/1",
        "name": "letters",
        "input": {"n": "integer"},
        "nodes": {"work": {"step": "stubborn", "with": {"n": "${input.n}"}, "save": {"state.n": "${output}"}}},
        "output": {"n": "${state.n}"},
    }
)


@app.on("run_failed", "run_completed", "step_retried", "dead_letter", "question_opened", "question_reminded")
@app.step(retries=PATIENT, timeout="2s")
async def everything(event: weft.HookEvent) -> None: ...


@app.on("run_completed", workflow=steady, where="attributes.odd")
@app.step(retries=PATIENT, timeout="2s")
async def odd(event: weft.HookEvent) -> None: ...


def deliveries_of(workflow: str, events: Sequence[e.AnyEvent]) -> Iterator[tuple[str, int]]:
    """Yield what must be delivered of a run, in plain words: the hook and the number of the event."""
    is_odd = False
    for number, event in enumerate(events, 1):
        match event:
            case e.AttributesSet(attributes=attributes):
                is_odd = attributes["odd"]
            case e.TaskFailed(retry_at=0):
                pass
            case e.RunCompleted() | e.RunFailedEvent() | e.TaskFailed() | e.FailureRaised():
                yield "everything", number
            case e.AskOpened() | e.AskReminded():
                yield "everything", number
        if isinstance(event, e.RunCompleted) and workflow == "steady" and is_odd:
            yield "odd", number


def _n(random: Any) -> dict[str, Any]:
    return {"n": random.randrange(100)}


HOOKS = Cast(
    "hooks",
    app,
    (
        Kind(steady, _n, lambda a: a["n"], weight=3),
        Kind(parent, _n, lambda a: 2 * a["n"]),
        Kind(asking, lambda r: {"patience": r.choice(("1s", "6s"))}, lambda a: ANY, asks=True),
        Kind(failing, _n, lambda a: ANY, fails="Rollback"),
        Kind(letters, _n, lambda a: {"n": a["n"]}, fails="Critical", letters=True),
    ),
    lacks=(("third_time",), ("everything",), ("odd", "stubborn")),
    runs=(3, 6),
)
