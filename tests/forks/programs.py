"""Small programs in three styles whose forks are compared with them, and a ledger of what was really performed."""

from __future__ import annotations

import asyncio
from collections import Counter
from types import SimpleNamespace
from typing import Any

import weft
from weft.testing import SimRun, World

GRAPHS: dict[str, dict[str, Any]] = {
    "graph line": {
        "a": {"step": "plain", "next": "p"},
        "p": {"step": "pay", "next": "b"},
        "b": {"step": "plain"},
    },
    "graph branches": {
        "a": {"step": "plain", "next": [{"to": ["x", "y"]}]},
        "x": {"step": "pay", "next": "j"},
        "y": {"step": "calculate", "next": "w"},
        "w": {"wait": "1h", "next": "j"},
        "j": {"join": "all", "next": "b"},
        "b": {"step": "plain", "with": {"n": 5}},
    },
    "graph people": {
        "a": {"step": "pay", "next": "q"},
        "q": {"ask": {"title": "Go on?"}, "next": "c"},
        "c": {"workflow": "child", "with": {"n": 2}, "next": "b"},
        "b": {"step": "plain"},
    },
    "graph failing": {
        "a": {"step": "book", "next": "p"},
        "p": {"step": "pay", "next": "b"},
        "b": {"step": "broken"},
    },
}


class Ledger:
    """What was performed: each call, and each call of a step whose effect is irreversible."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.paid: Counter[int] = Counter()

    def clear(self) -> None:
        self.calls.clear()


def build() -> tuple[weft.App, Ledger]:
    """An app with all programs."""
    app = weft.App("memory://")
    ledger = Ledger()

    @app.step(retries=0)
    async def plain(n: int = 1) -> dict[str, int]:
        ledger.calls["plain"] += 1
        return {"n": n + 1}

    @app.step(retries=0, effect="pure")
    async def calculate(n: int = 1) -> dict[str, int]:
        ledger.calls["calculate"] += 1
        return {"n": n * 7}

    @app.step(effect="irreversible")
    async def pay(n: int = 1) -> dict[str, int]:
        ledger.calls["pay"] += 1
        ledger.paid[n] += 1
        return {"n": n * 10}

    @app.step(retries=0)
    async def book(n: int = 1) -> dict[str, int]:
        ledger.calls["book"] += 1
        return {"n": n}

    @book.undo
    async def unbook(n: int = 1) -> None:
        ledger.calls["unbook"] += 1

    @app.step(retries=0)
    async def broken(n: int = 1) -> dict[str, int]:
        ledger.calls["broken"] += 1
        raise ValueError(n)

    @app.workflow(name="child")
    async def child(ctx: weft.Context, n: int = 1) -> dict[str, int]:
        await ctx.sleep("1h")
        return await plain(n)  # type: ignore[no-any-return]

    _code(app, SimpleNamespace(plain=plain, calculate=calculate, pay=pay, book=book, broken=broken, child=child))
    for name, nodes in GRAPHS.items():
        document = {"name": name.replace(" ", "_"), "nodes": nodes}
        app.graph(document)
    _goals(app, ledger)
    return app, ledger


def _code(app: weft.App, steps: SimpleNamespace) -> None:
    plain, pay, child = steps.plain, steps.pay, steps.child

    @app.workflow
    async def line(ctx: weft.Context, n: int = 1) -> Any:
        first = await plain(n)
        paid = await pay(first["n"])
        await ctx.sleep("1h")
        return await steps.calculate(paid["n"])

    @app.workflow
    async def parallel(ctx: weft.Context, n: int = 1) -> Any:
        both = await ctx.join("both", {"x": pay(n), "y": plain(n + 1)})
        won = await ctx.race("first", {"x": plain(n + 2), "y": ctx.receive("never")})
        mapped = await asyncio.gather(plain(n + 3), pay(n + 4))
        return [both["x"], won.name, mapped]

    @app.workflow
    async def people(ctx: weft.Context, n: int = 1) -> Any:
        word = await ctx.receive("word", str)
        done = await ctx.call(child, {"n": n})
        answer = await ctx.ask("go", title="Go on?")
        spent = await pay(done["n"])
        return [word, done, answer.approved, spent, await ctx.now() is not None]

    @app.workflow
    async def failing(ctx: weft.Context, n: int = 1) -> Any:
        await steps.book(n)
        await pay(n)
        return await steps.broken(n)

    @app.workflow
    async def rounds(ctx: weft.Context, n: int = 1) -> Any:
        total = 0
        for at in range(3):
            total += (await (pay if at == 1 else plain)(n + at))["n"]
        return total


def _goals(app: weft.App, ledger: Ledger) -> None:
    @app.step(gives="price", retries=0)
    async def price(order: int) -> int:
        ledger.calls["price"] += 1
        return order * 2

    @app.step(gives="receipt", effect="irreversible")
    async def charge(price: int) -> int:
        ledger.calls["charge"] += 1
        ledger.paid[1_000 + price] += 1
        return price + 1

    @app.step(gives="letter", retries=0)
    async def mail(receipt: int, price: int) -> int:
        ledger.calls["mail"] += 1
        return receipt + price

    app.goal("delivery", mail)


STARTS: dict[str, str] = {
    "line": "code",
    "parallel": "code",
    "people": "code",
    "failing": "code",
    "rounds": "code",
    **{name.replace(" ", "_"): "graph" for name in GRAPHS},
    "delivery": "goal",
}


def start(app: weft.App, world: World, name: str, run_id: str) -> SimRun[Any]:
    workflow = app.registered.runnable_named(name)
    given = {"order": 3} if name == "delivery" else {"n": 1}
    return world.start(workflow, given, id=run_id)


def play(run: SimRun[Any]) -> tuple[str, Any]:
    """Play a run to its end, answering what it asks: how it ended, and its result."""
    for _ in range(40):
        if run.status in ("completed", "failed", "cancelled"):
            break
        for waiting in run.waiting_for():
            if waiting.kind == "ask":
                run.answer(waiting.location, by="ann")
            elif waiting.kind == "message":
                run.send("word", "hello")
        run.world.advance("30m")
    if run.status == "completed":
        return "completed", run.result()
    return run.status, None
