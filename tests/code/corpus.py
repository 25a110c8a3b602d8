"""Small workflows that together use everything that code can do; their recorded histories are cut and played again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import weft

Body = Callable[[weft.Context, "Shop"], Coroutine[Any, Any, Any]]


@dataclass
class Form:
    n: int


class Shop:
    """The steps that the corpus calls."""

    def __init__(self, app: weft.App) -> None:
        self.work = app.step(name="work", retries=0)(self._work)
        self.other = app.step(name="other", retries=0)(self._work)
        self.bad = app.step(name="bad", retries=0, raises=[KeyError])(self._bad)
        self.book = app.step(name="book", retries=0)(self._work)
        self.book.undo(self.unbook)

    async def _work(self, n: int) -> int:
        return n * 10

    async def _bad(self) -> int:
        raise KeyError("bad")

    async def unbook(self, n: int) -> None: ...


def build(body: Body, name: str = "flow") -> weft.App:
    """An app whose workflow ``flow`` has this body."""
    app = weft.App("memory://")
    shop = Shop(app)

    @app.workflow(name="child")
    async def child(n: int) -> str:
        return str(n)

    @app.workflow(name=name)
    async def flow(ctx: weft.Context) -> Any:
        return await body(ctx, shop)

    return app


async def sequence(ctx: weft.Context, s: Shop) -> Any:
    return [await s.work(1), await s.other(2), await s.work(3)]


async def failing(ctx: weft.Context, s: Shop) -> Any:
    await s.book(1)
    try:
        await s.bad()
    except KeyError:
        await s.book(2)
    await s.bad()


async def inline(ctx: weft.Context, s: Shop) -> Any:
    return [await ctx.step("a", lambda: 1), await ctx.step("b", lambda: 2, ephemeral=True)]


async def sleeping(ctx: weft.Context, s: Shop) -> Any:
    await ctx.sleep("1m")
    await ctx.sleep_until(datetime(2026, 1, 2, tzinfo=UTC), name="until")
    return await s.work(1)


async def receiving(ctx: weft.Context, s: Shop) -> Any:
    first = await ctx.receive("a", int)
    many = await ctx.messages("a", "b", most=3)
    late = await ctx.receive("never", timeout="1m", default=None)
    return [first, len(many), late]


async def answering(ctx: weft.Context, s: Shop) -> Any:
    message = await ctx.receive("a", int, answer=True)
    await s.work(message.body)
    await message.answer(message.body * 2)
    return message.body


async def refusing(ctx: weft.Context, s: Shop) -> Any:
    return await ctx.receive("a", str, timeout="1m", default="none")


async def joining(ctx: weft.Context, s: Shop) -> Any:
    both = await ctx.join("both", {"x": s.work(1), "y": s.other(2)})
    three = await ctx.join("three", s.work(3), s.work(4), ctx.receive("a"))
    return [both, list(three)]


async def join_failing(ctx: weft.Context, s: Shop) -> Any:
    try:
        await ctx.join("both", {"x": s.bad(), "y": s.work(2), "z": s.bad()})
    except weft.BranchesFailed as failed:
        return sorted(failed.errors)


async def join_timing(ctx: weft.Context, s: Shop) -> Any:
    try:
        await ctx.join("both", {"x": ctx.receive("never"), "y": s.work(2)}, timeout="1m")
    except weft.TimedOut:
        return await s.work(9)


async def racing(ctx: weft.Context, s: Shop) -> Any:
    async def two(n: int) -> int:
        return await s.work(n) + await s.other(n)

    won = await ctx.race("first", {"x": two(1), "y": two(2), "z": ctx.receive("a")})
    return [won.name, await s.work(5)]


async def race_cleaning(ctx: weft.Context, s: Shop) -> Any:
    async def tidy(n: int) -> int:
        try:
            await ctx.receive("never")
        finally:
            await s.work(n)
        return n

    won = await ctx.race("first", {"x": tidy(1), "y": s.other(2)})
    again = await ctx.race("first", {"x": s.book(3), "y": tidy(4)})
    return [won.name, again.name]


async def race_timing(ctx: weft.Context, s: Shop) -> Any:
    try:
        await ctx.race("first", {"x": ctx.receive("never"), "y": ctx.receive("never")}, timeout="1m")
    except weft.TimedOut:
        return await s.work(1)


async def mapping(ctx: weft.Context, s: Shop) -> Any:
    return await ctx.map("items", s.work, range(6), width=2)


async def mapping_outcomes(ctx: weft.Context, s: Shop) -> Any:
    async def odd(n: int) -> int:
        return await s.bad() if n % 2 else await s.work(n)

    found = await ctx.map_outcomes("items", odd, range(4))
    return [isinstance(one, weft.Ok) for one in found]


async def looping(ctx: weft.Context, s: Shop) -> Any:
    async def body(n: int) -> weft.Turn[int, int]:
        await s.work(n)
        await ctx.sleep("1s")
        return weft.done(n) if n == 4 else weft.again(n + 1)

    return await ctx.loop("rounds", body, state=0, keep=1)


async def nested_loops(ctx: weft.Context, s: Shop) -> Any:
    async def outer(a: int) -> weft.Turn[int, int]:
        async def inner(b: int) -> weft.Turn[int, int]:
            await s.work(a * 10 + b)
            return weft.done(b) if b == 1 else weft.again(b + 1)

        both = await ctx.join("both", {"l": ctx.loop("inner", inner, state=0), "r": s.other(a)})
        return weft.done(both["l"]) if a == 2 else weft.again(a + 1)

    return await ctx.loop("outer", outer, state=0, keep=0)


async def gathering(ctx: weft.Context, s: Shop) -> Any:
    return list(await asyncio.gather(s.work(1), s.other(2), ctx.receive("a"), s.work(3)))


async def grouping(ctx: weft.Context, s: Shop) -> Any:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(s.work(n)) for n in range(4)]
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(s.bad())
            group.create_task(ctx.receive("never"))
    except* KeyError:
        pass
    return [task.result() for task in tasks]


async def completing(ctx: weft.Context, s: Shop) -> Any:
    tasks = [asyncio.create_task(s.work(n)) for n in range(5)]
    order = [await each for each in asyncio.as_completed(tasks)]
    await s.other(order[0])
    return order


async def waiting(ctx: weft.Context, s: Shop) -> Any:
    tasks = {asyncio.create_task(s.work(n)) for n in range(5)}
    order = []
    while tasks:
        done, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        order.append(sorted(task.result() for task in done))
        await s.other(len(order))
    return order


async def cancelling(ctx: weft.Context, s: Shop) -> Any:
    task = asyncio.create_task(s.work(1))
    other = asyncio.create_task(ctx.receive("never"))
    await s.other(1)
    other.cancel()
    await asyncio.wait([other])
    return [await task, other.cancelled()]


async def cleaning(ctx: weft.Context, s: Shop) -> Any:
    await s.book(1)
    try:
        await asyncio.gather(ctx.receive("never"), s.work(2), ctx.sleep("1h"))
    finally:
        await s.other(3)


async def children(ctx: weft.Context, s: Shop) -> Any:
    spawned = await ctx.spawn("child", {"n": 1})
    called = await ctx.call("child", {"n": 2}, timeout="1h")
    return [called, await spawned.result()]


async def escalating(ctx: weft.Context, s: Shop) -> Any:
    answer = await ctx.ask(
        "first", title="?", of=["eve"], remind="10s", timeout="1m", on_timeout={"escalate": ["ann"]}, four_eyes=True
    )
    return [answer.approved, answer.by, await s.work(1)]


async def asking(ctx: weft.Context, s: Shop) -> Any:
    first = await ctx.ask("first", title="?", form=Form, timeout="1m", on_timeout="approve")
    second = await ctx.ask("second", title="?")
    return [first.approved, second.by]


async def recording(ctx: weft.Context, s: Shop) -> Any:
    found = [str(await ctx.now()), await ctx.random(), str(await ctx.uuid()), await ctx.version("gate", 2)]
    await ctx.set(stage="one")
    await s.work(1)
    return [*found, await ctx.version("gate", 3)]


async def trying(ctx: weft.Context, s: Shop) -> Any:
    outcomes = [await ctx.try_step(s.bad()), await ctx.try_step(s.work(1))]
    return [type(outcome).__name__ for outcome in outcomes]


async def queueing(ctx: weft.Context, s: Shop) -> Any:
    queue: asyncio.Queue[int] = asyncio.Queue()
    lock = asyncio.Lock()

    async def produce(n: int) -> None:
        async with lock:
            await queue.put(await s.work(n))

    await asyncio.gather(*(produce(n) for n in range(3)))
    return [queue.get_nowait() for _ in range(3)]


CORPUS: dict[str, Body] = {
    body.__name__: body
    for body in (
        sequence, failing, inline, sleeping, receiving, answering, refusing, joining, join_failing, join_timing, racing,
        race_cleaning, race_timing, mapping, mapping_outcomes, looping, nested_loops, gathering, grouping, completing,
        waiting, cancelling, cleaning, children, asking, escalating, recording, trying, queueing,
    )
}  # fmt: skip
CONCURRENT = (
    "gathering",
    "grouping",
    "completing",
    "waiting",
    "cancelling",
    "cleaning",
    "racing",
    "race_cleaning",
    "mapping",
)
