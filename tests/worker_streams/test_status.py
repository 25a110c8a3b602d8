"""What people are told of streams: which queues are streams, what is out, and what is wrong with them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.redis_server import RedisServer
from tests.redis_server import own_redis as own_redis  # noqa: PLC0414 - a fixture
from tests.redis_server import two_nodes as two_nodes  # noqa: PLC0414 - a fixture
from tests.worker_streams.kit import QUEUE, choir, hosted, until
from weft.cli.run_list import print_status
from weft.ports.tasks import QueueLimits
from weft.ports.worker_streams import StreamsInCluster
from weft.runtime import redis_watch
from weft.stores import open_store
from weft.stores.redis.streams import RedisStreams

SECONDS_MAX = 60


def test_the_status_shows_what_is_published_and_which_answers_were_bad(
    own_redis: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path / 'weft.db'}"
    monkeypatch.setattr(redis_watch, "LOOK_SECONDS", 0.05)
    monkeypatch.setenv("WEFT_REDIS_PREFIX", prefix := f"{tmp_path.name}:")
    absent = weft.Group()
    app = weft.App(url, redis=own_redis.url)

    @absent.step(queue=QUEUE)
    async def shout(text: str) -> str: ...

    @app.workflow
    async def say(ctx: weft.Context, text: str) -> str:
        return await shout(text)

    async def status() -> Any:
        await print_status(url=url, app=None, json=True)
        return json.loads(capsys.readouterr().out)

    async def seen(wanted: Callable[[Any], bool]) -> Any:
        async with asyncio.timeout(SECONDS_MAX):
            while not wanted(found := await status()):
                await asyncio.sleep(0.02)
        return found

    async def play() -> None:
        store = open_store(url)
        await store.open()
        await store.tasks.limit(QUEUE, QueueLimits(stream=True))
        await store.close()
        async with app:
            await app.start("say", {"text": "hi"})
            found = await seen(lambda found: found["streams"][0]["published"] == 1)
            assert found["streams"] == [{"queue": QUEUE, "published": 1, "waiting": 0}]
            own_redis.command("XADD", f"{prefix}wf.done", "*", "token", "forged", "status", "completed")
            await seen(lambda found: bool(found["redis"]) and found["redis"][0]["bad_answers"] == 1)
            await print_status(url=url, app=None, json=False)
            shown = capsys.readouterr().out
            assert f"stream  {QUEUE}: 1 published, 0 waiting" in shown
            assert "stream  1 answer could not be used" in shown

    asyncio.run(play())

    asyncio.run(print_status(url=url, app=None, json=False))
    assert "No host has Redis, so nothing is published" in capsys.readouterr().out


def test_a_cluster_is_refused_by_name_and_the_task_stays(two_nodes: list[RedisServer]) -> None:
    async def play() -> None:
        async with hosted(choir(), two_nodes[0], prefix="") as streams:
            counts = streams.host.worker_streams.counts
            assert counts is not None
            run = await streams.app.start("say", {"text": "hi"})
            await until(lambda: "is a cluster, which cannot carry streams" in counts.trouble)
            assert await run.status() == "running"

    asyncio.run(play())


@pytest.mark.parametrize(
    "call",
    [
        lambda server: server.read(["wf.done", "t:acme:wf.done"], count=1, wait_ms=1),
        lambda server: server.prepare([f"wf.tasks.{n}" for n in range(20)]),
        lambda server: server.set_if_missing("wf.owner", "me"),
    ],
    ids=["read", "prepare", "hold"],
)
def test_every_call_names_the_cluster(
    two_nodes: list[RedisServer], call: Callable[[RedisStreams], Awaitable[object]]
) -> None:
    async def play() -> None:
        refused = 0
        for node in two_nodes:
            server = RedisStreams(node.url)
            try:
                await call(server)
            except StreamsInCluster:
                refused += 1
            await server.close()
        assert refused, "one of the nodes does not have it"

    asyncio.run(play())
