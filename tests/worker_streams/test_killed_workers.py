"""A worker may be killed before any of its lines: no task is lost, and every attempt has the same key."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import pytest

import weft
from tests.redis_server import shared_redis
from tests.servers import free_port
from tests.worker_streams.kit import QUEUE, WORKERS, hosted, until, worker

WORKER = WORKERS / "worker.py"
TRACED = Path(__file__).with_name("traced.py")
SOURCE = WORKER.read_text().splitlines()
LEASE = 1.0
SAMPLE = "server.xadd(done"


def line_of(text: str) -> int:
    (found,) = [number for number, line in enumerate(SOURCE, 1) if text in line]
    return found


AWAY = range(line_of("except redis.RedisError"), len(SOURCE) + 1)
"""What is reached only if Redis does not answer."""
FAILS = {line_of("raise LookupError"), line_of("except Exception"), line_of('"failed"')}
"""What is reached only if the step fails."""


def lines(code: CodeType) -> Iterator[int]:
    """All lines of a program that do something."""
    yield from (line for _, _, line in code.co_lines() if line)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from lines(constant)


# The last case is the line of the loop again, when all was done.
LINES = sorted(set(lines(compile("\n".join(SOURCE), WORKER.name, "exec"))))
CASES = [*(f"{line}:1" for line in LINES), f"{line_of('server.xreadgroup')}:2"]


def app_of(name: str) -> weft.App:
    """An app whose only step, performed elsewhere, has this name."""
    app, absent = weft.App("memory://"), weft.Group()

    @absent.step(queue=QUEUE, name=name, retries=0)
    async def shout(text: str) -> str: ...

    @app.workflow
    async def say(ctx: weft.Context, text: str) -> str:
        return await shout(text)

    return app


async def die_and_go_on(case: str, keys: Path) -> None:
    """Let a worker die, another one go on, and look at what became of the run."""
    line = int(case.partition(":")[0])
    fails = line in FAILS
    async with hosted(app_of("whisper" if fails else "shout"), shared_redis(), lease=LEASE) as streams:
        handle = await streams.app.start("say", {"text": "hello"}, id="r1")
        await until(lambda: streams.length(f"wf.tasks.{QUEUE}") == 1)
        told = {"KEYS": str(keys)} | ({"REDIS_URL": f"redis://127.0.0.1:{free_port()}"} if line in AWAY else {})
        program = (sys.executable, TRACED, WORKER)
        with worker(shared_redis(), streams.prefix, *program, KILL_AT=case, **told) as first:
            assert await asyncio.to_thread(first.wait, 60) == -signal.SIGKILL
        with worker(shared_redis(), streams.prefix, *program, KILL_AT="", KEYS=str(keys)):
            if fails:
                with pytest.raises(weft.RunFailed, match="LookupError"):
                    await handle.result(timeout=60)
            else:
                assert await handle.result(timeout=60) == "HELLO"
            await streams.is_empty()
        assert streams.counts["answered"] == 1
        performed = keys.read_text().splitlines()
        assert len(set(performed)) == 1
        assert len(performed) <= streams.counts["lost"] + 1, "who performs a task again waits until it is lost"


def test_a_worker_that_is_killed_before_its_answer_loses_nothing(tmp_path: Path) -> None:
    asyncio.run(die_and_go_on(f"{line_of(SAMPLE)}:1", tmp_path / "keys"))


@pytest.mark.proof
@pytest.mark.parametrize("case", CASES)
def test_a_worker_that_is_killed_at_any_line_loses_nothing(case: str, tmp_path: Path) -> None:
    asyncio.run(die_and_go_on(case, tmp_path / "keys"))
