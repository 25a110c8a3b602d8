"""Code that cancels or blocks what is not its own: the process ends with a message, or says who does it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import scale

VANDAL = """
import asyncio, sys, weft

app = weft.App("sqlite:///runs.db")

@app.step(retries=weft.Retry(3, delay="1ms"))
async def vandal() -> None:
    for task in asyncio.all_tasks():
        task.cancel()

@app.step(retries=weft.Retry(3, delay="1ms"))
async def bystander(n: int) -> int:
    await asyncio.sleep(0.05)
    return n

@app.workflow
async def flow(ctx: weft.Context) -> None:
    await asyncio.gather(vandal(), *(bystander(n) for n in range(20)))

async def main() -> None:
    async with app:
        await (await app.start(flow(), id="r")).result()

if __name__ == "__main__":
    app.run(flow(), id="r") if sys.argv[1] == "run" else asyncio.run(main())
"""
BLOCKER = """
import threading, weft
import logging
import time

heard = threading.Event()

class Hears(logging.Handler):
    def emit(self, record):
        print(record.getMessage(), flush=True)
        heard.set()

logging.getLogger("weft").addHandler(Hears())
app = weft.App("memory://")

@app.workflow
async def flow(ctx: weft.Context) -> str:
    while not heard.is_set():
        time.sleep(0.01)  # the line
    return "went on"

if __name__ == "__main__":
    print(app.run(flow(), id="blocks"))
"""

LATE_RESOURCE = """
import asyncio, weft
import logging
import threading
import time
from collections.abc import AsyncIterator

heard = threading.Event()

class Hears(logging.Handler):
    def emit(self, record):
        print(record.getMessage(), flush=True)
        heard.set()

logging.getLogger("weft").addHandler(Hears())
app = weft.App("memory://")

async def main() -> None:
    async with app:
        @app.resource
        async def pool() -> AsyncIterator[str]:
            while not heard.is_set():
                time.sleep(0.01)  # the line
            yield "went on"

        @app.step
        async def use(pool: str = weft.injected) -> str:
            return pool

        @app.workflow
        async def flow(ctx: weft.Context) -> str:
            return await use()

        print(await (await app.start(flow())).result())

asyncio.run(main())
"""


def run(folder: Path, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(code)
    return subprocess.run(
        [sys.executable, "program.py", *arguments], cwd=folder, capture_output=True, text=True, timeout=110, check=False
    )


@pytest.mark.parametrize("way", scale.first(1, ["run", "with"]))
def test_a_host_whose_tasks_are_all_cancelled_ends_and_says_little(tmp_path: Path, way: str) -> None:
    ended = run(tmp_path, VANDAL, way)
    assert ended.returncode == 1, ended.stderr
    assert len(ended.stderr) < 20_000
    assert "ConnectionClosedError" not in ended.stderr
    if way == "run":
        assert "The task that hosts the engine was cancelled" in ended.stderr


def test_workflow_code_that_blocks_its_host_is_named_with_its_line(tmp_path: Path) -> None:
    ended = run(tmp_path, BLOCKER)
    assert ended.returncode == 0, ended.stderr
    first = ended.stdout.splitlines()[0]
    assert "the workflow code of blocks has blocked the event loop for" in first
    assert " at program.py:" in first
    assert ended.stdout.splitlines()[-1] == "went on"


def test_a_resource_that_blocks_its_host_while_it_is_opened_is_named_with_its_line(tmp_path: Path) -> None:
    ended = run(tmp_path, LATE_RESOURCE)
    assert ended.returncode == 0, ended.stderr
    first = ended.stdout.splitlines()[0]
    assert "the resource pool has blocked the event loop for" in first
    assert " at program.py:" in first
    assert ended.stdout.splitlines()[-1] == "went on"
