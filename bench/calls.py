"""Ordinary callers of a server: requests at a fixed pace, whether or not earlier ones have been answered.

A caller that waits for each answer before it asks again would ask less while the server is slow, and so see less of it.
Only the standard library is imported.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from bench.load import HEADERS_END, place_of

TIMEOUT_SECONDS = 60.0


class Caller:
    """Keeps connections open and takes another when all are in use."""

    def __init__(self, url: str) -> None:
        self._place = place_of(url)
        self._free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request; its status and its JSON."""
        async with asyncio.timeout(TIMEOUT_SECONDS):
            connection = self._free.pop() if self._free else await asyncio.open_connection(*self._place)
            status, keeps, raw = await _exchange(*connection, method, path, body)
            if keeps:
                self._free.append(connection)
            else:
                connection[1].close()
        return status, json.loads(raw) if raw.startswith(b"{") else None


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, method: str, path: str, body: Any
) -> tuple[int, bool, bytes]:
    data = b"" if body is None else json.dumps(body).encode()
    kind = "Content-Type: application/json\r\n" if data else ""
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{kind}Content-Length: {len(data)}\r\n\r\n"
    writer.write(head.encode() + data)
    first, *lines = (await reader.readuntil(HEADERS_END)).decode().lower().splitlines()
    headers = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    raw = await reader.readexactly(int(headers.get("content-length", 0)))
    return int(first.split()[1]), headers.get("connection") != "close", raw


@dataclass(slots=True)
class Heard:
    """What callers got in one phase."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    """By the kind of call: how long each took, counted from when it was due."""
    wrong: Counter[str] = field(default_factory=Counter)
    """Answers that no ordinary caller should get."""

    def p99_ms(self, kind: str) -> float:
        ordered = sorted(self.seconds[kind])
        return ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))] * 1e3


Call = Callable[[], Awaitable[str | None]]
"""Returns what was wrong with the answer, if anything."""


async def call_for(seconds: float, per_second: float, kinds: dict[str, Call]) -> Heard:
    """Make every kind of call so often in a second, for so long, and wait for all the answers."""
    heard = Heard({kind: [] for kind in kinds})

    async def once(kind: str, due: float) -> None:
        try:
            wrong = await kinds[kind]()
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            wrong = type(error).__name__
        heard.seconds[kind].append(time.perf_counter() - due)
        if wrong is not None:
            heard.wrong[f"{kind}: {wrong}"] += 1

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(int(seconds * per_second)):
            # The kinds take turns, so that they do not wait for each other in this process.
            for turn, kind in enumerate(kinds):
                due = began + (number + turn / len(kinds)) / per_second
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                group.create_task(once(kind, due))
    return heard
