"""LangGraph on its SQLite or Postgres saver with ``durability="sync"``, which commits a step before the next begins.

One node is one step and a conditional edge makes the loop (style ``graph``); W1 and W4 also run its functional API
(style ``code``), because only that one replays. There is no durable timer, so W5 cannot be run.
"""

import asyncio
import operator
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver  # type: ignore[import-not-found]
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver  # type: ignore[import-not-found]
from langgraph.func import entrypoint, task  # type: ignore[import-not-found]
from langgraph.graph import END, START, StateGraph  # type: ignore[import-not-found]
from langgraph.types import Send, interrupt  # type: ignore[import-not-found]
from psycopg.rows import dict_row  # type: ignore[import-not-found]
from psycopg_pool import AsyncConnectionPool  # type: ignore[import-not-found]

from bench.kill import announce_recorded, replay_inside
from bench.measure import (
    RESULT,
    Meter,
    Sample,
    Workload,
    latencies_of,
    main,
    repeats,
    rss_mb,
    runs_of,
    seconds_each,
    steady_of,
    steps_of,
    store_url,
    suspended_of,
)
from bench.peers.sealed import seal

AT_ONCE_MAX = 500
POOL_MAX = 16
marks: dict[str, float] = {}
graph_recorded = asyncio.Event()


class Counted(TypedDict, total=False):
    i: int
    n: int
    last: dict[str, Any]


class Spread(TypedDict, total=False):
    n: int
    results: Annotated[list[dict[str, Any]], operator.add]


async def _noop(state: Counted) -> Counted:
    return {"i": state["i"] + 1, "last": RESULT}


async def _hang_graph(_: Counted) -> Counted:
    """Behind the history: the recording process stays here until it is killed, the resumed one is done."""
    if "opened" not in marks:
        graph_recorded.set()
        await asyncio.sleep(3600)
    marks["past_graph"] = time.perf_counter()
    return {"i": 0}


async def _hang_code() -> None:
    if "opened" not in marks:
        announce_recorded()
        await asyncio.sleep(3600)


def sequence(saver: Any, last: str = END) -> Any:
    graph = StateGraph(Counted)
    graph.add_node("noop", _noop)
    graph.add_node("hang", _hang_graph)
    graph.add_edge(START, "noop")
    graph.add_conditional_edges("noop", lambda state: "noop" if state["i"] < state["n"] else last)
    graph.add_edge("hang", END)
    return graph.compile(checkpointer=saver)


def three(saver: Any) -> Any:
    """Three nodes, one behind the other, without a condition between them."""
    graph = StateGraph(Counted)
    for name in ("a", "b", "c"):
        graph.add_node(name, _noop)
    for source, target in ((START, "a"), ("a", "b"), ("b", "c"), ("c", END)):
        graph.add_edge(source, target)
    return graph.compile(checkpointer=saver)


def fan_out(saver: Any) -> Any:
    async def work(_: Any) -> Spread:
        return {"results": [RESULT]}

    graph = StateGraph(Spread)
    graph.add_node("work", work)
    graph.add_node("join", lambda state: {"n": len(state["results"])})
    graph.add_conditional_edges(START, lambda state: [Send("work", {}) for _ in range(state["n"])])
    graph.add_edge("work", "join")
    graph.add_edge("join", END)
    return graph.compile(checkpointer=saver)


def waiting(saver: Any) -> Any:
    graph = StateGraph(Counted)
    graph.add_node("wait", lambda state: {"last": interrupt("go")})
    graph.add_edge(START, "wait")
    graph.add_edge("wait", END)
    return graph.compile(checkpointer=saver)


def functional(saver: Any) -> Any:
    async def step() -> dict[str, Any]:
        return RESULT

    noop = task(step)

    async def long(given: Counted) -> int:
        marks["entered"] = time.perf_counter()
        for _ in range(given["n"]):
            await noop()
        marks["past"] = time.perf_counter()
        if given.get("i"):
            await task(_hang_code)()
        return given["n"]

    return entrypoint(checkpointer=saver)(long)


def config_of(thread: str, n: int) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread}, "recursion_limit": n + 20}


async def run(program: Any, given: Any, thread: str, n: int) -> Any:
    return await program.ainvoke(given, config_of(thread, n), durability="sync")


@asynccontextmanager
async def saver_of(directory: Path) -> AsyncIterator[Any]:
    """A file, or a pool of connections to the database that this process was given."""
    url = store_url()
    if not url:
        async with AsyncSqliteSaver.from_conn_string(str(directory / "langgraph.sqlite")) as saver:
            yield saver
        return
    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    async with AsyncConnectionPool(url, min_size=1, max_size=POOL_MAX, kwargs=options, open=False) as pool:
        yield AsyncPostgresSaver(pool)


def opened(directory: Path, body: Callable[[Any], Awaitable[list[Sample]]]) -> list[Sample]:
    async def main_task() -> list[Sample]:
        async with saver_of(directory) as saver:
            await saver.setup()
            return await body(saver)

    return asyncio.run(main_task())


def as_graph(samples: Iterable[Sample]) -> list[Sample]:
    return [replace(sample, style="graph") for sample in samples]


def w1(n: int, directory: Path) -> Iterable[Sample]:
    async def body(saver: Any) -> list[Sample]:
        graph, code = sequence(saver), functional(saver)
        await run(graph, {"i": 0, "n": 3}, "warm-graph", 3)
        await run(code, {"n": 3}, "warm-code", 3)
        meter = Meter()
        await run(graph, {"i": 0, "n": n}, "graph", n)
        found = as_graph(steps_of("W1", n, meter))
        meter = Meter()
        await run(code, {"n": n}, "code", n)
        return found + steps_of("W1", n, meter)

    return opened(directory, body)


def at_once(workload: str, program: Callable[[Any], Any]) -> Workload:
    """So many runs of three nodes, at most ``AT_ONCE_MAX`` of them under way."""

    def measure(n: int, directory: Path) -> Iterable[Sample]:
        return opened(directory, lambda saver: runs(program(saver), n))

    async def runs(graph: Any, n: int) -> list[Sample]:
        await run(graph, {"i": 0, "n": 3}, "warm", 3)
        gate = asyncio.Semaphore(AT_ONCE_MAX)

        async def one(index: int) -> None:
            async with gate:
                await run(graph, {"i": 0, "n": 3}, str(index), 3)

        meter = Meter()
        await asyncio.gather(*[one(index) for index in range(n)])
        return as_graph(runs_of(workload, n, 3, meter))

    return measure


def w2_latency(n: int, directory: Path) -> Iterable[Sample]:
    async def body(saver: Any) -> list[Sample]:
        graph = sequence(saver)
        await run(graph, {"i": 0, "n": 3}, "warm", 3)
        threads = iter(range(n))
        taken = await seconds_each(n, lambda: run(graph, {"i": 0, "n": 3}, str(next(threads)), 3))
        return as_graph(latencies_of("W2", taken))

    return opened(directory, body)


def spread(workload: str) -> Workload:
    """One fan-out of so many branches, and a join."""

    def measure(n: int, directory: Path) -> Iterable[Sample]:
        async def body(saver: Any) -> list[Sample]:
            graph = fan_out(saver)
            await run(graph, {"n": 3}, "warm", 3)
            meter = Meter()
            await run(graph, {"n": n}, "spread", n)
            return as_graph([Sample(workload, "seconds", meter.seconds, n)])

        return opened(directory, body)

    return measure


def w4_record(n: int, directory: Path) -> Iterable[Sample]:
    async def body(saver: Any) -> list[Sample]:
        graph = asyncio.create_task(run(sequence(saver, "hang"), {"i": 0, "n": n}, "graph", n))
        await graph_recorded.wait()
        await asyncio.gather(run(functional(saver), {"n": n, "i": 1}, "code", n), graph)
        return []

    return opened(directory, body)


def w4_resume(n: int, directory: Path) -> Iterable[Sample]:
    async def body(saver: Any) -> list[Sample]:
        marks["opened"] = time.perf_counter()
        await run(sequence(saver, "hang"), None, "graph", n)
        graph = Sample("W4", "seconds", marks["past_graph"] - marks["opened"], n)
        marks["opened"] = time.perf_counter()
        await run(functional(saver), None, "code", n)
        return [
            *as_graph([graph]),
            Sample("W4", "us_per_step", (marks["past"] - marks["entered"]) / n * 1e6, n),
            Sample("W4", "seconds", marks["past"] - marks["opened"], n),
        ]

    return opened(directory, body)


def w6(n: int, directory: Path) -> Iterable[Sample]:
    async def body(saver: Any) -> list[Sample]:
        graph = sequence(saver)
        await run(graph, {"i": 0, "n": 3}, "warm", 3)
        threads = iter(range(repeats(n)))
        taken = await seconds_each(repeats(n), lambda: run(graph, {"i": 0, "n": n}, str(next(threads)), n))
        return as_graph(steady_of(n, taken))

    return opened(directory, body)


def w7(n: int, directory: Path) -> Iterable[Sample]:
    async def body(saver: Any) -> list[Sample]:
        graph = waiting(saver)
        await run(graph, {"i": 0, "n": 1}, "warm", 1)
        before = rss_mb()
        for index in range(n):
            await run(graph, {"i": 0, "n": 1}, str(index), 1)
        return as_graph(await suspended_of(n, before))

    return opened(directory, body)


if __name__ == "__main__":
    seal()
    main(
        {
            "W1": w1,
            "W2": at_once("W2", sequence),
            "W2-latency": w2_latency,
            "W3": spread("W3"),
            "W4": replay_inside("bench.peers.langgraph_bench"),
            "W4-record": w4_record,
            "W4-resume": w4_resume,
            "W6": w6,
            "W7": w7,
            "G2": at_once("G2", three),
            "G3": spread("G3"),
        }
    )
