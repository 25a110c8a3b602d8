"""Weft, goal runs on SQLite with ``synchronous=FULL``; what a plan from a large catalogue and a script call cost.

Written with the public surface only, as a user would write it, but for the scripts, which are called by steps alone.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import weft
from bench.conditions import measure
from bench.measure import (
    RESULT,
    Meter,
    Sample,
    directory_given,
    latencies_of,
    main,
    parts_of,
    runs_of,
    seconds_each,
)
from weft.scripts import compile_script

PLANS = 10

app = weft.App(f"sqlite:///{directory_given()}/weft.db")


@app.step(gives="first")
async def one(order: str) -> dict[str, Any]:
    return RESULT


@app.step(gives="second")
async def two(first: dict[str, Any]) -> dict[str, Any]:
    return RESULT


@app.step(gives="third")
async def three(second: dict[str, Any]) -> dict[str, Any]:
    return RESULT


@app.step(gives="done", width=10_000)
async def work(item: Annotated[int, weft.Each("items")]) -> dict[str, Any]:
    return RESULT


in_three = app.goal("in_three", three)
spread = app.goal("spread", work)
frozen = app.graph(app.plan(three, given=["order"]).freeze("frozen"))
"""The very same plan as a graph: the same steps, handed the same values."""


def hosted(body: Callable[[], Awaitable[list[Sample]]]) -> list[Sample]:
    async def main_task() -> list[Sample]:
        async with app:
            await run_three()
            await fan_out(3)
            return await body()

    return [replace(sample, style="goal") for sample in asyncio.run(main_task())]


async def run_three() -> None:
    await (await app.start(in_three, {"order": "o-1"})).result()


async def fan_out(n: int) -> float:
    started = time.perf_counter()
    facts = await (await app.start(spread, {"items": list(range(n))})).result()
    assert len(facts["done"]) == n
    return time.perf_counter() - started


def a2(n: int, _: Path) -> Iterable[Sample]:
    async def body() -> list[Sample]:
        meter = Meter()
        await asyncio.gather(*[run_three() for _ in range(n)])
        return runs_of("A2", n, 3, meter)

    return hosted(body)


def a2_frozen(n: int, _: Path) -> Iterable[Sample]:
    async def once() -> None:
        await (await app.start(frozen, {"order": "o-1"})).result()

    async def body() -> list[Sample]:
        await once()
        meter = Meter()
        await asyncio.gather(*[once() for _ in range(n)])
        return [Sample("A2", f"frozen_{sample.metric}", sample.value, n) for sample in runs_of("A2", n, 3, meter)]

    return hosted(body)


def a2_latency(n: int, _: Path) -> Iterable[Sample]:
    async def body() -> list[Sample]:
        return latencies_of("A2", await seconds_each(n, run_three))

    return hosted(body)


def a8(n: int, _: Path) -> Iterable[Sample]:
    """One step of ``n`` work items."""

    async def body() -> list[Sample]:
        return await parts_of("A8", "item", n, fan_out)

    return hosted(body)


# --- planning ----------------------------------------------------------------------------------------------------


def p(n: int, _: Path) -> Iterable[Sample]:
    """``n`` registered steps, one behind the other: a goal that takes all of them, and a goal that takes three."""
    large = weft.App("memory://plans")
    large.steps({"weft": "steps/1", "steps": {f"s{number:05}": _link(number) for number in range(n)}})
    last, near = f"s{n - 1:05}", "s00002"
    assert len(large.plan(last, given=["f0"]).steps) == n
    yield Sample("P", "all_ms", _plan_ms(large, last), n, style="goal")
    yield Sample("P", "three_ms", _plan_ms(large, near), n, style="goal")


def _link(number: int) -> dict[str, Any]:
    return {"needs": {f"f{number}": "any"}, "gives": {f"f{number + 1}": "any"}, "script": {"lua": "return {}"}}


def _plan_ms(catalogue: weft.App, goal: str) -> float:
    """The processor's time, the best of several, each from other names: a plan that was made is not made again."""
    taken: list[float] = []
    for number in range(PLANS):
        meter = Meter()
        catalogue.plan(goal, given=["f0", f"other{number}"])
        taken.append(meter.cpu_seconds * 1e3)
    return min(taken)


# --- scripts -----------------------------------------------------------------------------------------------------

LUA = "local sum = qty * price; if sum > 100 then sum = sum - 5 end; return {total = sum, label = name}"
ALE = "(let [sum (* qty price)] (if (and (> sum 10) (not (= qty 0))) {:total (- sum 5) :label (str name)} {:total 0}))"
"""Ten forms: let, if, and, not, the call of str, and five of arithmetic and comparison."""
SCRIPTS = {"lua_us": ("lua", LUA), "ale_us": ("ale", ALE)}
GIVEN = {"qty": 3, "price": 20, "name": "ann"}


def s(n: int, _: Path) -> Iterable[Sample]:
    for metric, (language, source) in SCRIPTS.items():
        script = compile_script(language, source, sorted(GIVEN))
        assert script.call(GIVEN)["label"] == "ann"
        yield Sample("S", metric, measure(lambda script=script: script.call(GIVEN), n), n, style="goal")  # type: ignore[misc]


if __name__ == "__main__":
    main({"A2": a2, "A2-frozen": a2_frozen, "A2-latency": a2_latency, "A8": a8, "P": p, "S": s})
