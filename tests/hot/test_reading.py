"""Reading a run whose newest events are in the log of another process: readers say `as of`, and ask for the rest."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest

import weft
from tests import servers
from tests.code.timeless import calm
from tests.contract.kit import OTHER, RUN
from tests.hot.hot_scene import HotScene, hot_scene
from tests.redis_server import RedisServer
from tests.server.kit import API, serving
from weft.cli.show import print_run

STEPS = 3


def test_an_owner_drains_a_run_that_others_look_at() -> None:
    async def acts(scene: HotScene) -> None:
        await scene.hop()
        await scene.hop(uid=OTHER)
        scene.durable.share().wals.ask_to_drain(RUN)
        await calm()
        assert (scene.stored().seq, scene.stored(OTHER).seq) == (1, 0)

    hot_scene(acts, others=(OTHER,))


def owner_of(url: str, redis: RedisServer, gate: Path) -> weft.App:
    """An app whose steps stay in Redis for longer than any test takes."""
    app = weft.App(url, redis=redis.url, hot="10m")

    @app.step
    async def double(n: int) -> int:
        return 2 * n

    @app.step
    async def wait() -> None:
        while not gate.exists():
            await asyncio.sleep(0.02)

    @app.workflow
    async def chain(ctx: weft.Context, n: int) -> int:
        for _ in range(STEPS):
            n = await double(n)
        await wait()
        return n

    return app


def test_another_process_says_as_of_when_it_knows_a_run_and_gets_the_rest(
    own_redis: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url, gate = servers.database("hot_reading"), tmp_path / "gate"
    monkeypatch.setenv("WEFT_REDIS", own_redis.url)

    def shown(run: str, *, json: bool = False) -> str:
        asyncio.run(print_run(run, children=False, url=url, app=None, json=json))
        return capsys.readouterr().out

    with serving(owner_of(url, own_redis, gate)) as owner, serving(weft.App(url, redis=own_redis.url)) as reader:
        run = owner.start("chain", n=1)
        path = f"{API}/runs/{run}"
        known = reader.get(path).json
        assert known["as_of"] == known["updated_at"]
        done = 0
        while done < STEPS:
            page = reader.get(f"{path}/events?limit=200").json
            done = sum(event["kind"] == "task_succeeded" for event in page["events"])
            time.sleep(0.02)
        assert page["as_of"] is not None
        assert owner.get(path).json["as_of"] is None, "it drains a run before it reads it"
        assert "as of   " in shown(run)
        assert json.loads(shown(run, json=True))["as_of"] is not None
        gate.touch()
        assert owner.result(run) is not None
        assert reader.get(path).json["as_of"] is None
        assert "as of" not in shown(run)
