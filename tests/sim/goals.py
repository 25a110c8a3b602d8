"""Goals of every kind, with code and graphs that ask for them, each with what it must give without faults."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

import weft
from tests.sim.workflows import ANY, PATIENT, Cast, Kind

app = weft.App("memory://sim-goals")
BIG = 34_000


# --- one behind the other ----------------------------------------------------------------------------------------


@app.step(retries=PATIENT, timeout="2s", gives="one")
async def first(n: int) -> int:
    return n + 1


@app.step(retries=PATIENT, gives="two")
def second(one: int) -> int:
    return one + 1


@app.step(retries=PATIENT, timeout="2s", gives="three")
async def third(two: int, add: int = 1) -> int:
    if weft.task().attempt < 2:
        raise RuntimeError("not yet")
    return two + add


line = app.goal("line", third)


# --- many at once ------------------------------------------------------------------------------------------------


@app.step(retries=PATIENT, timeout="2s", gives="squared", width=2)
async def square(item: Annotated[int, weft.Each("items")]) -> int:
    return item * item


@app.step(retries=PATIENT, gives="sum")
async def add_up(squared: list[dict[str, int]]) -> int:
    return sum(entry["squared"] for entry in squared)


spread = app.goal("spread", add_up)


# --- competition, gates and choices --------------------------------------------------------------------------------


@app.step(retries=PATIENT, timeout="2s", gives="price")
async def ask_left(n: int) -> str:
    return f"left {n}"


@app.step(retries=PATIENT, timeout="2s", gives="price")
async def ask_right(n: int) -> str:
    return f"right {n}"


@app.step(retries=PATIENT, gives="bill")
async def make_bill(price: str) -> str:
    return f"bill of {price}"


rivals = app.goal("rivals", make_bill)


@app.step(retries=PATIENT, gives="side")
async def choose(n: int) -> str:
    return "even" if n % 2 == 0 else "odd"


@app.step(retries=PATIENT, gives="word")
async def say_even(n: int, side: Annotated[str, weft.Fact("side", match="value == 'even'")]) -> str:
    return f"{n} is even"


@app.step(retries=PATIENT, gives="word")
async def say_odd(n: int, side: Annotated[str, weft.Fact("side", match="value == 'odd'")]) -> str:
    return f"{n} is odd"


@app.step(retries=PATIENT)
async def speak(word: str) -> str:
    return word


gated = app.goal("gated", speak)


@app.step(retries=PATIENT, gives="gift", when="n > 50")
async def give(n: int) -> int:
    return n


chosen = app.goal("chosen", give)


# --- failing and taking back -----------------------------------------------------------------------------------------


@app.step(retries=PATIENT, timeout="2s", gives="seat")
async def book(n: int) -> str:
    return f"seat {n}"


@book.undo
async def unbook(n: int, result: str | None) -> None: ...


@app.step(retries=PATIENT, gives="ticket")
async def hopeless(seat: str) -> str:
    raise weft.Critical("never")


undone = app.goal("undone", hopeless)


@app.step(retries=PATIENT, timeout="2s", gives="tried", width=2)
async def stubborn(piece: Annotated[int, weft.Each("pieces")], price: str) -> int:
    """Fails for good until somebody mends it."""
    return piece + 1


@app.step(retries=PATIENT, gives="told")
async def tell(tried: list[dict[str, int]], one: int) -> int:
    return one + sum(entry["tried"] for entry in tried)


mended = app.goal("mended", tell)


@app.step(retries=PATIENT, timeout="2s", gives="room")
async def hold_left(n: int) -> str:
    return f"left {n}"


@hold_left.undo
async def free_left(n: int, result: str | None) -> None: ...


@app.step(retries=PATIENT, timeout="2s", gives="room")
async def hold_right(n: int) -> str:
    """Takes its time, so that it often loses after it has begun."""
    await asyncio.sleep(0.3)
    return f"right {n}"


@hold_right.undo
async def free_right(n: int, result: str | None) -> None: ...


@app.step(retries=PATIENT, gives="key")
async def hand_over(room: str) -> str:
    return f"key of {room}"


hedged = app.goal("hedged", hand_over)
"""What the loser has done is undone before the run completes."""


# --- inputs that are made when a step starts -------------------------------------------------------------------------


@app.step(retries=PATIENT, timeout="2s")
async def show(doubled: int, key: str, three: int) -> dict[str, Any]:
    return {"shown": [doubled, key == weft.task().key, three >= 0]}


app.steps({
    "steps": {
        "shape": {
            "step": "show",
            "needs": {
                "one": {"type": "integer", "name": "doubled", "mapping": {"ale": "(* doubled 2)"}},
                "key": {"meta": "key"},
                "three": {"type": "integer", "default": 0},
            },
            "gives": ["shown"],
            "when": {"jpath": "$.doubled"},
        }
    }
})  # fmt: skip
shaped = app.goal("shaped", "shape")


# --- waiting, other runs, large values -------------------------------------------------------------------------------


@app.workflow(gives="rested")
async def rest(ctx: weft.Context, n: int) -> int:
    await ctx.sleep("3s")
    return n


@app.step(retries=PATIENT, gives="done")
async def finish(rested: int, two: int) -> int:
    return rested + two


family = app.goal("family", finish)


@app.step(retries=PATIENT, gives="text")
async def write(n: int) -> str:
    return "x" * (BIG + n)


@app.step(retries=PATIENT, gives="length")
async def measure(text: str) -> int:
    return len(text)


big = app.goal("big", measure)


@app.workflow
async def wanting(ctx: weft.Context, n: int) -> list[Any]:
    """Code that reaches goals, and lives with one that cannot be reached."""
    facts = await ctx.achieve(third, given={"n": n})
    try:
        await ctx.achieve(hopeless, given={"n": n})
    except weft.RunFailed:
        return [facts["three"], "failed"]
    return [facts["three"], "reached"]


asking = app.graph(
    {
        "weft": "graph/1",
        "name": "asking",
        "nodes": {
            "plan": {"goal": ["add_up"], "with": {"items": "${input.items}"}, "save": {"state.sum": "${output.sum}"}}
        },
        "output": {"sum": "${state.sum}"},
    }
)


def _n(random: Any) -> dict[str, Any]:
    return {"n": random.randrange(100)}


def _items(random: Any) -> dict[str, Any]:
    return {"items": [random.randrange(50) for _ in range(random.randint(0, 4))]}


def _pieces(random: Any) -> dict[str, Any]:
    return {"n": random.randrange(100), "pieces": [random.randrange(50) for _ in range(random.randint(1, 4))]}


def _facts(make: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[dict[str, Any]], Any]:
    """These facts, whatever else was found out."""
    return lambda given: lambda told: all(told["facts"].get(name) == value for name, value in make(given).items())


def _one_bill(given: dict[str, Any]) -> Any:
    possible = {f"bill of {side} {given['n']}" for side in ("left", "right")}
    return lambda told: (
        told["facts"].get("bill") in possible and told["facts"]["bill"] == f"bill of {told['facts']['price']}"
    )


def _one_key(given: dict[str, Any]) -> Any:
    possible = {f"left {given['n']}", f"right {given['n']}"}
    return lambda told: (
        told["facts"].get("room") in possible and told["facts"]["key"] == f"key of {told['facts']['room']}"
    )


def _given_or_not(given: dict[str, Any]) -> Any:
    return lambda told: told["facts"].get("gift") == given["n"] if given["n"] > 50 else told["skipped"] == ["give"]


KINDS = (
    Kind(line, _n, _facts(lambda a: {"three": a["n"] + 3}), weight=3),
    Kind(spread, _items, _facts(lambda a: {"sum": sum(i * i for i in a["items"])}), weight=4),
    Kind(rivals, _n, _one_bill, weight=4),
    Kind(hedged, _n, _one_key, weight=4),
    Kind(gated, _n, _facts(lambda a: {"word": f"{a['n']} is {'odd' if a['n'] % 2 else 'even'}"}), weight=3),
    Kind(chosen, _n, _given_or_not, weight=2),
    Kind(undone, _n, lambda a: ANY, fails="goal_failed", weight=4),
    Kind(
        mended,
        _pieces,
        _facts(lambda a: {"told": a["n"] + 1 + sum(piece + 1 for piece in a["pieces"])}),
        fails="goal_failed",
        letters=True,
        weight=4,
    ),
    Kind(family, _n, _facts(lambda a: {"done": 2 * a["n"] + 2}), weight=3),
    Kind(big, _n, _facts(lambda a: {"length": BIG + a["n"]}), weight=2),
    Kind(wanting, _n, lambda a: [a["n"] + 3, "failed"], weight=3),
    Kind(shaped, _n, _facts(lambda a: {"shown": [2 * a["n"] + 2, True, True]}), weight=2),
    Kind(asking, _items, lambda a: {"sum": sum(i * i for i in a["items"])}, weight=3),
)
LACKS = (("first",), ("second", "unbook"), ("square",))
GOALS = Cast("goals", app, KINDS, lacks=LACKS, runs=(1, 3))
PATCHES = {
    "line": "second", "spread": "square", "rivals": "ask_left", "gated": "choose", "mended": "first", "big": "write",
    "family": "second",
}  # fmt: skip
PATCHED_GOALS = Cast("goal-patches", app, KINDS, lacks=LACKS, runs=(1, 3), patches=PATCHES)
"""The same, and users patch the runs."""
