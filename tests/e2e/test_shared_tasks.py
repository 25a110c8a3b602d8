"""A step that the owner of a run lacks is performed by another process on the same store."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import scale, servers

PROGRAM = """
import asyncio, os, sys
import weft

app = weft.App()
role = sys.argv[1]

if role == "owner":
    absent = weft.Group()

    @absent.step
    async def far(n: int) -> str: ...

    @app.workflow
    async def order(ctx: weft.Context, n: int) -> str:
        return await far(n)

    async def main() -> None:
        async with app:
            print(await (await app.start(order(21), id="x")).result(timeout="200s"), flush=True)
else:
    @app.step
    async def far(n: int) -> str:
        print("performing", flush=True)
        if role == "hanging":
            await asyncio.sleep(600)
        return f"{n * 2} by a worker"

    async def main() -> None:
        async with app:
            print("ready", flush=True)
            await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.fixture(params=scale.first(1, ["postgres", "sqlite"]))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/shared.db"
    found = servers.database("shared")
    servers.empty(found)
    return found


@contextmanager
def process(folder: Path, url: str, role: str) -> Iterator[subprocess.Popen[str]]:
    (folder / "program.py").write_text(PROGRAM)
    running = subprocess.Popen(
        [sys.executable, "program.py", role],
        cwd=folder,
        env=os.environ | {"WEFT_URL": url},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with running:
        try:
            yield running
        finally:
            running.kill()


def line(running: subprocess.Popen[str]) -> str:
    assert running.stdout is not None
    return running.stdout.readline().strip()


def test_a_step_that_only_another_process_has_is_performed_there(tmp_path: Path, url: str) -> None:
    with process(tmp_path, url, "worker") as worker:
        assert line(worker) == "ready"
        with process(tmp_path, url, "owner") as owner:
            assert line(owner) == "42 by a worker"
            assert owner.wait(200) == 0


@pytest.mark.proof
def test_a_task_whose_worker_is_killed_goes_to_the_next(tmp_path: Path, url: str) -> None:
    with process(tmp_path, url, "hanging") as first:
        assert line(first) == "ready"
        with process(tmp_path, url, "owner") as owner:
            assert line(first) == "performing"
            os.kill(first.pid, signal.SIGKILL)
            with process(tmp_path, url, "worker"):
                assert line(owner) == "42 by a worker"
                assert owner.wait(200) == 0
