"""An async step that blocks the loop for longer than the lease, with two processes on one store."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import asyncio, logging, os, sys, time
import weft
from weft.runtime.clock import SystemClock, TimeIds
from weft.runtime.service import RunService
from weft.runtime.host import Host
from weft.runtime.surroundings import Surroundings
from weft.runtime.worker.executor import PoolExecutor
from weft.runtime.settings import Settings
from weft.stores import open_store

logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(message)s")
app = weft.App(sys.argv[1])

@app.step
async def crunch() -> int:
    with open("ledger", "a") as ledger:
        ledger.write(f"{os.getpid()}\\n")
    print("crunching", flush=True)
    time.sleep(3.0)
    return os.getpid()

@app.workflow
async def flow(ctx: weft.Context) -> int:
    return await crunch()

async def main() -> None:
    store = open_store(app.url)
    await store.open()
    settings = Settings(lease_seconds=0.6, scan_seconds=0.05, poll_seconds=0.02, heartbeat_thread=True)
    given = Surroundings(store=store, clock=SystemClock(), ids=TimeIds(), executor=PoolExecutor(), settings=settings)
    service = RunService(store, given.clock, given.ids)
    host = Host(given, app.catalogue(), service)
    app.bind(service)
    await host.start()
    print("ready", flush=True)
    handle = await app.start(flow(), id="run") if sys.argv[2] == "start" else app.get("run")
    print(await handle.result(timeout="60s"), flush=True)
    await host.stop()
    await store.close()

asyncio.run(main())
"""


def test_the_first_success_counts_and_the_step_is_named(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    url = f"sqlite:///{tmp_path}/shared.db"

    def start(role: str) -> subprocess.Popen[str]:
        program = subprocess.Popen(
            [sys.executable, "program.py", url, role],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        stack.callback(program.wait)
        stack.callback(program.kill)
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        return program

    with contextlib.ExitStack() as stack:
        first = start("start")
        second = start("watch")
        told, said = first.communicate(timeout=90)
        also_told, _ = second.communicate(timeout=90)

    (result,) = {line for line in (told + also_told).split() if line.isdigit()}
    performed = (tmp_path / "ledger").read_text().split()
    assert int(result) in {first.pid, second.pid}
    assert len(performed) <= 3, "it is taken over, and its first success ends that"
    assert "the step crunch (run run) has blocked the event loop" in said
