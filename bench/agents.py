"""The cost of an agent's loop: ``python -m bench.agents [TURNS]``.

An agent on SQLite calls one tool per turn. Its model is scripted, on loopback, in another process. Printed are the time
and the CPU time per turn, HTTP of the agent's side included, and the commits per turn. The same number of requests,
without an agent, say how much of the CPU time is HTTP.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from typing import Any

import aiohttp

import weft
from bench.scripted_model import scripted_process
from weft.core.ids import RunId

TURNS = 200


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
                return f"found {n}"

            agent = app.agent("finder", model="fast", tools=[find], turns=turns + 1)
            commits = 0

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
            "commits per turn": round(commits / turns, 2),
            "events per turn": round(row.seq / turns, 2),
        }


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
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else TURNS
    asyncio.run(measure(5))  # imports everything
    for name, value in asyncio.run(measure(turns)).items():
        print(f"{name}: {value}")
    print(f"CPU ms of HTTP alone: {asyncio.run(measure_http(turns))}")


if __name__ == "__main__":
    main()
