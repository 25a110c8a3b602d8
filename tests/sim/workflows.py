"""Workflows of every kind, each with what it must give in a world without faults.

Bodies are pure: what goes wrong with them is done to them from outside, so an oracle is one line.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import weft

app = weft.App("memory://sim")
PATIENT = weft.Retry(60, backoff="fixed", delay="150ms")
BIG = 40_000


class Declined(Exception):
    """Declared: crosses as itself."""


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


@app.step(retries=PATIENT, raises=[Declined])
async def decline(n: int) -> int:
    raise Declined(n)


@app.step(retries=PATIENT)
async def hopeless(n: int) -> int:
    raise weft.Critical("never")


@app.step(effect="irreversible", timeout="3s")
async def fire(n: int) -> int:
    return n


@app.step(retries=PATIENT, timeout="2s")
async def reserve(n: int) -> str:
    return f"r{n}"


@reserve.undo
async def unreserve(n: int, result: str | None) -> None: ...


@app.step(retries=PATIENT)
async def blow_up(n: int) -> str:
    return "x" * (BIG + n)


@app.workflow
async def sequence(n: int, length: int) -> int:
    for _ in range(length):
        n = await bump(n)
    return n


@app.workflow
async def gathered(n: int) -> int:
    return sum(await asyncio.gather(bump(n), plain(n), *(bump(n + i) for i in range(2))))


@app.workflow
async def mapped(ctx: weft.Context, n: int, width: int) -> list[int]:
    return await ctx.map("m", bump, [n + i for i in range(4)], width=width)


@app.workflow
async def outcomes(ctx: weft.Context, n: int) -> list[bool]:
    async def one(i: int) -> int:
        return await (hopeless(i) if i % 2 else bump(i))

    return [isinstance(each, weft.Ok) for each in await ctx.map_outcomes("o", one, [n, n + 1, n + 2])]


@app.workflow
async def raced(ctx: weft.Context, n: int) -> int:
    async def slow() -> int:
        await ctx.sleep("400ms")
        return await bump(n + 1)

    won = await ctx.race("r", {"quick": bump(n), "slow": slow()})
    return await bump(won.value)


@app.workflow
async def looped(ctx: weft.Context, n: int, rounds: int) -> int:
    async def turn(state: dict[str, int]) -> weft.Turn[dict[str, int], int]:
        total = await bump(state["total"])
        if state["round"] + 1 == rounds:
            return weft.done(total)
        return weft.again({"round": state["round"] + 1, "total": total})

    return await ctx.loop("l", turn, state={"round": 0, "total": n}, keep=1)


@app.workflow
async def parent(ctx: weft.Context, n: int) -> int:
    alone = await sequence(n, 1)
    spawned = await ctx.spawn(sequence(n + 1, 2))
    both = await ctx.join("both", sequence(n + 2, 1), bump(n))
    return alone + sum(both) + await spawned.result()


@app.workflow
async def endless(ctx: weft.Context) -> str:
    await ctx.sleep("10d")
    return "woken"


@app.workflow
async def impatient(ctx: weft.Context, n: int) -> str:
    try:
        await ctx.call(endless(), timeout="2s")
    except weft.TimedOut:
        return f"gave up after {await bump(n)}"
    return "woken"


@app.workflow
async def mailbox(ctx: weft.Context, count: int, patience: str) -> list[str | None]:
    got: list[str | None] = []
    for _ in range(count):
        body = await ctx.receive("m", dict[str, str], timeout=patience, default=None)
        got.append(body["token"] if body is not None else None)
        await bump(len(got))
    return got


@app.workflow
async def collector(ctx: weft.Context, rounds: int) -> list[str]:
    got: list[str] = []
    for _ in range(rounds):
        got += [message.body["token"] for message in await ctx.messages("m", "other", most=2, timeout="3s")]
    return got


@app.workflow
async def asked(ctx: weft.Context, patience: str) -> str:
    answer = await ctx.ask("ok", title="Go on?", timeout=patience, on_timeout="reject")
    return f"{answer.approved} {','.join(answer.by)}"


@app.workflow
async def sleeper(ctx: weft.Context, n: int) -> int:
    await ctx.sleep("1s")
    n = await bump(n)
    await ctx.sleep("700ms")
    return await plain(n)


@app.workflow
async def flaky(n: int) -> int:
    return await third_time(n) + await third_time(n + 1)


@app.workflow
async def declined(ctx: weft.Context, n: int) -> str:
    try:
        await decline(n)
    except Declined as error:
        return f"declined {error.args[0]} {isinstance(await ctx.try_step(hopeless(n)), weft.Err)}"
    return "accepted"


@app.workflow
async def undone(ctx: weft.Context, n: int, sleep: bool) -> str:
    first = await reserve(n)
    await asyncio.gather(reserve(n + 1), reserve(n + 2))
    if sleep:
        await ctx.sleep("2s")
    raise weft.Rollback(f"after {first}")


@app.workflow
async def betting(ctx: weft.Context, n: int) -> str:
    """What the loser has done is undone before the run completes."""

    async def quick() -> str:
        await ctx.sleep("300ms")
        return "quick"

    async def bet() -> str:
        await reserve(n)
        await reserve(n + 1)
        await ctx.sleep("9s")
        return "bet"

    return (await ctx.race("r", {"quick": quick(), "bet": bet()})).value


@app.workflow
async def inline(ctx: weft.Context, n: int) -> int:
    packed = await ctx.step("pack", lambda: n + 1, retries=PATIENT)
    seen = await ctx.step("see", lambda: packed + 1, ephemeral=True, retries=PATIENT)

    async def later() -> int:
        return seen + 1

    return await ctx.step("later", later, retries=PATIENT, timeout="2s")


@app.workflow
async def once(n: int) -> str:
    try:
        return f"fired {await fire(n)}"
    except weft.OutcomeUnknown:
        return "unknown"
    except weft.StepFailed as failed:
        return f"failed {failed.failure.type}"


@app.workflow
async def big(ctx: weft.Context, n: int) -> str:
    blown = await blow_up(n)
    return await ctx.step("again", lambda: blown + "y", retries=PATIENT) + "z"


@app.workflow
async def recorded(ctx: weft.Context, n: int) -> list[Any]:
    before = await ctx.now()
    await ctx.set(n=n, kind="recorded")
    value, name, version = await ctx.random(), await ctx.uuid(), await ctx.version("v", 2)
    n = await bump(n)
    after = await ctx.now()
    return [0 <= value < 1, len(name.hex), version, n, after >= before]


@app.workflow
async def grouped(n: int) -> int:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(bump(n + i)) for i in range(3)]
    done, _ = await asyncio.wait([asyncio.create_task(plain(10 * n + i)) for i in range(4)])
    total = sum(task.result() for task in tasks)
    for task in done:  # a set, and what follows is recorded in its order
        total += await plain(task.result())
    return total


@app.workflow
async def ordered(n: int) -> list[int]:
    """What is recorded depends on the order in which results came."""
    results = asyncio.as_completed([asyncio.create_task(bump(n + i)) for i in range(3)])
    return sorted([await plain(await result) for result in results])


@app.workflow(timeout="4s")
async def deadline(ctx: weft.Context, n: int) -> str:
    await reserve(n)
    await ctx.sleep("1h")
    return "slept"


@app.workflow
async def careful(ctx: weft.Context, n: int) -> str:
    """Cleans up after a cancel, with a step."""
    try:
        await reserve(n)
        await ctx.sleep("3s")
        return "done"
    finally:
        await bump(n)


@dataclass(frozen=True)
class Kind:
    """A workflow, how to draw its arguments, and what it must give.

    That is the result, a set of possible results, a function that says whether it is one, or the type of its failure.
    """

    workflow: Any
    draw: Callable[[Any], dict[str, Any]]
    gives: Callable[[dict[str, Any]], Any]
    messages: tuple[str, ...] = ()
    requests: tuple[str, ...] = ()
    """Messages whose senders wait for an answer."""
    asks: bool = False
    letters: bool = False
    """What fails in it can be mended and tried again."""
    fails: str = ""
    weight: int = field(default=2)


class Cast:
    """What is played in a world: an app, its kinds of runs, and which steps some hosts may lack."""

    def __init__(
        self,
        name: str,
        app: weft.App,
        kinds: Sequence[Kind],
        *,
        lacks: Sequence[tuple[str, ...]],
        runs: tuple[int, int],
        cache_bytes: int = 0,
        fills_up: bool = False,
        hot: bool = False,
        patches: Mapping[str, str] | None = None,
        versions: Sequence[str] = (),
        draw_patch: Callable[[Random, str, Sequence[str]], dict[str, Any]] | None = None,
    ) -> None:
        """``patches``: by workflow, a step that a patch makes a goal. ``versions``: what users bring code runs to.

        ``draw_patch`` draws a patch of a graph run.
        """
        self.name = name
        self.versions = versions
        self.patches = patches
        self.draw_patch = draw_patch
        self.app = app
        self.runs = runs
        """How many of them there are in one world: at least, at most."""
        self.kinds = {kind.workflow.name: kind for kind in kinds}
        self.names = [kind.workflow.name for kind in kinds for _ in range(kind.weight)]
        self.lacks = lacks
        self.cache_bytes = cache_bytes
        """In half of the worlds, how little of the blobs stays in memory."""
        self.fills_up = fills_up
        """In half of the worlds, the store has no room for a while."""
        self.hot = hot
        """Whether there is a Redis before the store."""


ANY = object()
"""A result that depends on what people did, or when."""


def _n(random: Any) -> dict[str, Any]:
    return {"n": random.randrange(100)}


CODE = Cast(
    "code",
    app,
    (
        Kind(sequence, lambda r: {**_n(r), "length": r.randint(1, 4)}, lambda a: a["n"] + a["length"], weight=3),
        Kind(gathered, _n, lambda a: 4 * a["n"] + 5),
        Kind(mapped, lambda r: {**_n(r), "width": r.randint(1, 4)}, lambda a: [a["n"] + i + 1 for i in range(4)]),
        Kind(outcomes, lambda r: {"n": 2 * r.randrange(50)}, lambda a: [True, False, True]),
        Kind(raced, _n, lambda a: {a["n"] + 2, a["n"] + 3}),
        Kind(looped, lambda r: {**_n(r), "rounds": r.randint(1, 5)}, lambda a: a["n"] + a["rounds"]),
        Kind(parent, _n, lambda a: 4 * a["n"] + 8),
        Kind(impatient, _n, lambda a: f"gave up after {a['n'] + 1}"),
        Kind(
            mailbox, lambda r: {"count": r.randint(1, 3), "patience": r.choice(("1s", "6s"))}, lambda a: ANY, ("m",),
            weight=5,
        ),
        Kind(collector, lambda r: {"rounds": r.randint(1, 3)}, lambda a: ANY, ("m", "other"), weight=3),
        Kind(asked, lambda r: {"patience": r.choice(("1s", "6s"))}, lambda a: ANY, asks=True, weight=3),
        Kind(sleeper, _n, lambda a: a["n"] + 2),
        Kind(flaky, _n, lambda a: 2 * a["n"] + 1),
        Kind(declined, _n, lambda a: f"declined {a['n']} True"),
        Kind(undone, lambda r: {**_n(r), "sleep": r.random() < 0.5}, lambda a: ANY, fails="Rollback", weight=3),
        Kind(betting, _n, lambda a: {"quick", "bet"}, weight=3),
        Kind(inline, _n, lambda a: a["n"] + 3),
        Kind(once, _n, lambda a: {f"fired {a['n']}", "unknown", "failed Flake"}, weight=3),
        Kind(big, _n, lambda a: "x" * (BIG + a["n"]) + "yz", weight=1),
        Kind(recorded, _n, lambda a: [True, 32, 2, a["n"] + 1, True]),
        Kind(grouped, _n, lambda a: 43 * a["n"] + 20),
        Kind(ordered, _n, lambda a: [a["n"] + 2, a["n"] + 3, a["n"] + 4]),
        Kind(deadline, _n, lambda a: ANY, fails="TimedOut"),
        Kind(careful, _n, lambda a: "done"),
    ),
    lacks=(("bump",), ("plain", "unreserve"), ("fire", "third_time")),
    runs=(3, 6),
)  # fmt: skip
