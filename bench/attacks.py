"""``python -m bench.attacks NAME URL SECONDS``: one attacker of a server, in a process of its own.

Prints ``begun`` before it begins and what the server answered at the end. It stands for another machine, so it takes
what the server and its callers leave of this one. Only the standard library is imported.
"""

import argparse
import asyncio
import json
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress

from bench.calls import Caller
from bench.load import open_files_many, place_of

BEGUN = "begun"
SOCKETS = 1_000
COLONS = ":" * 60_000
STEPS = 2_000
PER_SECOND = 100
NICE = 5


async def sockets(url: str, deadline: float) -> Counter[str]:
    """Hold 1,000 connections that send one byte each; one that the server closes is opened again."""
    found: Counter[str] = Counter()

    async def hold() -> None:
        while time.monotonic() < deadline:
            reader, writer = await asyncio.open_connection(*place_of(url))
            writer.write(b"G")
            found["opened"] += 1
            with suppress(TimeoutError, ConnectionError):
                async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                    await reader.read()
                    found["closed by the server"] += 1
            writer.close()

    await asyncio.gather(*(hold() for _ in range(SOCKETS)))
    return found


async def colons(url: str, deadline: float) -> Counter[str]:
    """Send ids, names and paths of 60,000 colons, 100 requests in a second."""
    asked = (
        ("GET", f"/api/v1/runs/{COLONS}", None),
        ("POST", "/api/v1/runs", {"workflow": "order", "id": COLONS, "input": {"number": 1}}),
        ("GET", f"/{COLONS}", None),
        ("POST", "/api/v1/runs", {"workflow": COLONS, "input": {}}),
        ("POST", f"/api/v1/runs/fixed:{COLONS[:4_900]}/messages", {"name": COLONS, "body": 1}),
        ("GET", f"/api/v1/runs?workflow={COLONS[:8_000]}", None),
    )
    found: Counter[str] = Counter()
    caller = Caller(url)

    async def ask(number: int) -> None:
        status, _ = await caller.ask(*asked[number % len(asked)])
        found[str(status)] += 1

    began = time.monotonic()
    async with asyncio.TaskGroup() as group:
        number = 0
        while time.monotonic() < deadline:
            group.create_task(ask(number))
            number += 1
            await asyncio.sleep(max(0.0, began + number / PER_SECOND - time.monotonic()))
    return found


def _document(*numbers: int, seconds: int = 1) -> dict[str, object]:
    step = {"step": "add", "gives": {"fact": "string"}, "timeout": f"{seconds}s"}
    return {"document": {"weft": "steps/1", "steps": {f"s{number}": step for number in numbers}}}


async def document(url: str, deadline: float) -> Counter[str]:
    """Register 2,000 steps that give one fact in one request, and replace all of them again and again."""
    found: Counter[str] = Counter()
    caller, method = Caller(url), "POST"
    while time.monotonic() < deadline:
        status, _ = await caller.ask(method, "/api/v1/steps", _document(*range(STEPS), seconds=1 + found.total()))
        found[f"{method} {status}"] += 1
        method = "PUT"
    return found


async def one_by_one(url: str, deadline: float) -> Counter[str]:
    """Register 2,000 steps that give one fact, each with a request of its own."""
    found: Counter[str] = Counter()
    caller, number = Caller(url), 0
    while time.monotonic() < deadline and number < STEPS:
        status, _ = await caller.ask("POST", "/api/v1/steps", _document(number))
        found[str(status)] += 1
        number += 1
    return found


async def itself(url: str, deadline: float) -> Counter[str]:
    """Start a run that starts itself; when a limit has ended it, start it again."""
    found: Counter[str] = Counter()
    caller = Caller(url)

    async def ended(run: str) -> bool:
        while time.monotonic() < deadline:
            status, answer = await caller.ask("GET", f"/api/v1/runs/{run}/result?wait=1")
            if status != 202:
                found[f"ended with {answer.get('failure', {}).get('code', status)}"] += 1
                return True
        return False

    while time.monotonic() < deadline:
        run = f"again-{found['trees']}"
        found["trees"] += 1
        await caller.ask("POST", "/api/v1/runs", {"workflow": "again", "id": run, "input": {}})
        if not await ended(run):
            await caller.ask("POST", f"/api/v1/runs/{run}/cancel", {})
    return found


ATTACKS: dict[str, Callable[[str, float], Awaitable[Counter[str]]]] = {
    "sockets": sockets,
    "colons": colons,
    "document": document,
    "one-by-one": one_by_one,
    "itself": itself,
}


async def _attack(name: str, url: str, seconds: float) -> Counter[str]:
    print(BEGUN, flush=True)
    return await ATTACKS[name](url, time.monotonic() + seconds)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.attacks")
    parser.add_argument("name", choices=ATTACKS)
    parser.add_argument("url")
    parser.add_argument("seconds", type=float)
    given = parser.parse_args()
    open_files_many()
    os.nice(NICE)
    print(json.dumps(asyncio.run(_attack(given.name, given.url, given.seconds))))


if __name__ == "__main__":
    main()
