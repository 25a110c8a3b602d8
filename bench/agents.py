"""The cost of an agent's loop: ``python -m bench.agents [TURNS]``.

An agent on SQLite calls one tool per turn. Its model is scripted, on loopback, in another process. Printed are the time
and the CPU time per turn, HTTP of the agent's side included, and the commits per turn. The same number of requests,
without an agent, say how much of the CPU time is HTTP. The least CPU time of 20 turns in a row is what other work on
the machine disturbs least.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from typing import Any

import aiohttp

import weft
from bench.scripted_model import scripted_process
from weft.core.ids import RunId

TURNS = 200
IN_A_ROW = 20


def script(turns: int) -> list[tuple[str, str]]:
    return [("find", f'{{"n":{n}}}') for n in range(turns)]


async def measure(turns: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        with scripted_process(script(turns)) as url:
            app = weft.App(f"sqlite:///{folder}/weft.db")
            app.model("fast", url=url)

            @app.step(effect="pure")
            async def find(n: int) -> str:
                """Find something."""
                at.append(time.process_time())
                return f"found {n}"

            agent = app.agent("finder", model="fast", tools=[find], turns=turns + 1)
            commits = 0
            at: list[float] = []

            def count(_actor: object, _draft: object) -> None:
                nonlocal commits
                commits += 1

            async with app:
                app.service.commits.observe(count)
                began, cpu = time.perf_counter(), time.process_time()
                await (await app.start(agent("Go."), id="a-1")).result()
                spent = time.perf_counter() - began, time.process_time() - cpu
                row = await app.service.row(RunId("a-1"))
        return {
            "turns": turns,
            "ms per turn": round(spent[0] / turns * 1000, 2),
            "CPU ms per turn": round(spent[1] / turns * 1000, 2),
            "CPU ms per turn, the best 20 in a row": round(_best_ms(at), 2),
            "commits per turn": round(commits / turns, 2),
            "events per turn": round(row.seq / turns, 2),
        }


def _best_ms(at: Sequence[float]) -> float:
    """Return the least milliseconds per turn of some turns in a row."""
    return min((later - now) * 1_000 for now, later in zip(at, at[IN_A_ROW:], strict=False)) / IN_A_ROW


async def measure_http(turns: int) -> float:
    """Return the CPU milliseconds of one request to the scripted model, each over a connection of its own."""
    with scripted_process(script(turns)) as url:
        body = {"model": "fast", "stream": True, "messages": [{"role": "user", "content": "Go."}]}
        cpu = time.process_time()
        for _ in range(turns):
            async with (
                aiohttp.ClientSession() as session,
                session.post(f"{url}/chat/completions", json=body) as answer,
            ):
                await answer.read()
        return round((time.process_time() - cpu) / turns * 1000, 2)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.agents", description=__doc__)
    parser.add_argument("turns", type=int, nargs="?", default=TURNS)
    turns = parser.parse_args().turns
    asyncio.run(measure(IN_A_ROW + 1))  # imports everything
    for name, value in asyncio.run(measure(turns)).items():
        print(f"{name}: {value}")
    print(f"CPU ms of HTTP alone: {asyncio.run(measure_http(turns))}")


if __name__ == "__main__":
    main()
