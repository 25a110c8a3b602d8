"""Hosts that publish tasks on streams, and workers that are real processes or a few lines of Python."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import weft
from tests.redis_server import RedisServer
from tests.servers import die_with_parent
from weft.ports.tasks import QueueLimits
from weft.runtime.clock import SystemClock, TimeIds
from weft.runtime.host import Host
from weft.runtime.service import RunService
from weft.runtime.settings import Settings
from weft.runtime.surroundings import Surroundings
from weft.runtime.worker.executor import PoolExecutor
from weft.stores import open_store

WORKERS = Path(__file__).parents[2] / "examples/workers"
QUEUE = "shout"
SECONDS_MAX = 100


def new_prefix() -> str:
    """A prefix of one's own on a server that tests share."""
    return f"{uuid.uuid4().hex[:8]}:"


def choir(**options: Any) -> weft.App:
    """An app whose only step is performed elsewhere."""
    app, absent = weft.App("memory://"), weft.Group()

    @absent.step(queue=QUEUE, **options)
    async def shout(text: str) -> str: ...

    @app.workflow
    async def say(ctx: weft.Context, text: str) -> str:
        return await shout(text)

    return app


class Streams:
    """A host, and what a worker sees of it in Redis."""

    def __init__(self, host: Host, service: RunService, app: weft.App, redis: RedisServer, prefix: str) -> None:
        self.host, self.service, self.app, self.redis, self.prefix = host, service, app, redis, prefix

    @property
    def counts(self) -> Mapping[str, int]:
        assert self.host.worker_streams.counts is not None
        return self.host.worker_streams.counts.happened

    def name(self, text: str) -> str:
        return f"{self.prefix}{text}"

    def command(self, *words: str | int | bytes) -> Any:
        return self.redis.command(*words)

    def length(self, stream: str) -> int:
        return int(self.command("XLEN", self.name(stream)))

    def read(
        self, *, worker: str = "w", queue: str = QUEUE, tenant: str = "", limit: int = 10_000
    ) -> list[dict[str, str]]:
        """Read new tasks as a worker does; each has its entry's id as ``id``."""
        stream = self.name(f"{f't:{tenant}:' if tenant else ''}wf.tasks.{queue}")
        try:
            found = self.command("XREADGROUP", "GROUP", "weft", worker, "COUNT", limit, "STREAMS", stream, ">")
        except RuntimeError as error:
            if "NOGROUP" not in str(error):
                raise
            return []
        entries = found[0][1] if found else []
        return [{"id": number, "stream": stream, **fields_of(words)} for number, words in entries]

    def answer(self, token: str | bytes, *, tenant: str = "", **fields: Any) -> None:
        """Answer as a worker does."""
        words = [
            word for name, value in {"token": token, "status": "completed", **fields}.items() for word in (name, value)
        ]
        self.command("XADD", self.name(f"{f't:{tenant}:' if tenant else ''}wf.done"), "*", *words)

    def forget(self, task: Mapping[str, str]) -> None:
        """Acknowledge and delete a task, as a worker does after its answer."""
        self.command("XACK", task["stream"], "weft", task["id"])
        self.command("XDEL", task["stream"], task["id"])

    async def tasks(self, count: int = 1, **where: Any) -> list[dict[str, str]]:
        """Wait until a worker has read so many tasks."""
        found: list[dict[str, str]] = []

        def is_enough() -> bool:
            found.extend(self.read(**where))
            return len(found) >= count

        await until(is_enough)
        return found

    async def is_empty(self) -> None:
        """Wait until there are neither tasks nor answers in Redis."""
        await until(lambda: not self.length("wf.done") and not self.length(f"wf.tasks.{QUEUE}"))

    def bad(self) -> list[dict[str, str]]:
        """What is in wf.bad."""
        return [fields_of(words) for _, words in self.command("XRANGE", self.name("wf.bad"), "-", "+")]


def fields_of(words: list[str]) -> dict[str, str]:
    return dict(zip(words[::2], words[1::2], strict=True))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS_MAX):
        while not condition():
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def hosted(
    app: weft.App,
    redis: RedisServer,
    *,
    url: str = "memory://",
    prefix: str | None = None,
    lease: float = 30.0,
    streams: tuple[str, ...] = (QUEUE,),
) -> AsyncIterator[Streams]:
    """Host an app on a store whose queues are streams."""
    store = open_store(url)
    await store.open()
    prefix = new_prefix() if prefix is None else prefix
    for queue in streams:
        await store.tasks.limit(queue, QueueLimits(stream=True))
    settings = Settings(
        redis=redis.url,
        redis_prefix=prefix,
        stream_lease_seconds=lease,
        poll_seconds=0.01,
        scan_seconds=0.05,
        drain_seconds=1.0,
    )
    executor = PoolExecutor()
    given = Surroundings(store=store, clock=SystemClock(), ids=TimeIds(), executor=executor, settings=settings)
    service = RunService(store, given.clock, given.ids)
    host = Host(given, app.catalogue(), service)
    app.bind(service)
    await host.start()
    try:
        yield Streams(host, service, app, redis, prefix)
    finally:
        await host.stop()
        executor.close()
        await store.close()


@contextlib.contextmanager
def worker(
    redis: RedisServer, prefix: str, *command: str | Path, queue: str = QUEUE, **environment: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A worker in a process of its own; by default, the example in Python."""
    program = command or (sys.executable, WORKERS / "worker.py")
    process = subprocess.Popen(
        [*map(str, program), queue],
        env={**os.environ, "REDIS_URL": redis.url, "PREFIX": prefix, **environment},
        stderr=subprocess.DEVNULL,
        preexec_fn=die_with_parent,  # noqa: PLW1509  # no threads here
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def as_json(value: Any) -> str:
    return json.dumps(value)
