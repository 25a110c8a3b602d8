"""``python -m tests.chaos.kills 100``: kill a host over SQLite so often with SIGKILL, and count what went wrong.

Runs of all three styles are started all the time by another process. Each host is killed at a random moment soon after
it is ready, in the middle of what it found, and the next one goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import random
import signal
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import weft
from tests.chaos.business import Ledger, build
from tests.chaos.storm import STARTERS, STYLES, Host
from tests.chaos.verdict import Findings, judge

PAUSE_SECONDS = 0.4
"""Of each of the starters, between the end of a run and the next one."""
LIFE_SECONDS_MAX = 3.0
PATIENCE_SECONDS = 300.0


class Kills:
    """See the module."""

    def __init__(self, kills: int, seed: int, folder: Path) -> None:
        self._kills = kills
        self._draw = random.Random(seed)
        self._folder = folder
        self._file = folder / "weft.db"
        self._url = f"sqlite:///{self._file}"
        self._numbers = itertools.count()
        self._over = asyncio.Event()
        self.findings = Findings()

    async def play(self) -> Findings:
        began = time.monotonic()
        host = await self._host(0)
        starters = asyncio.create_task(self._business())
        try:
            for number in range(1, self._kills + 1):
                await asyncio.sleep(self._draw.uniform(0.0, LIFE_SECONDS_MAX))
                host.end(signal.SIGKILL)
                self.findings.kills += 1
                host = await self._host(number)
            self._over.set()
            await starters
            await self._until_all_over()
        finally:
            starters.cancel()
            host.end(signal.SIGKILL)
        self.findings.seconds = time.monotonic() - began
        await judge(self.findings, self._url, self._folder, next(self._numbers))
        return self.findings

    async def _host(self, number: int) -> Host:
        host = Host(self._url, self._folder, number)
        await host.announced()
        return host

    async def _business(self) -> None:
        # It hosts nothing: it only knows the workflows, as a web server of the same program would.
        app = build(self._url, Ledger(self._folder))

        async def starter() -> None:
            while not self._over.is_set():
                n = next(self._numbers)
                style = STYLES[n % len(STYLES)]
                await app.start(style, {"n": n}, id=f"{style}-{n}")
                run = app.get(f"{style}-{n}")
                if style == "order":
                    await run.send("go", n, key=f"go-{n}")
                # On a slow machine a backlog would lose the same tasks at every kill, until they fail for it.
                with contextlib.suppress(weft.WeftError, TimeoutError):  # what went wrong is judged at the end
                    await run.result(timeout=PATIENCE_SECONDS)
                await asyncio.sleep(PAUSE_SECONDS)

        async with weft.Client(self._url) as client:
            app.bind(client.service)
            await asyncio.gather(*(starter() for _ in range(STARTERS)))

    async def _until_all_over(self) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        with closing(sqlite3.connect(self._file)) as connection:
            while time.monotonic() < deadline:
                (left,) = connection.execute("SELECT count(*) FROM runs WHERE ended_at IS NULL").fetchone()
                if not left:
                    return
                await asyncio.sleep(0.2)


def killed(kills: int, seed: int) -> Findings:
    with tempfile.TemporaryDirectory(prefix="weft-kills-") as folder:
        return asyncio.run(Kills(kills, seed, Path(folder)).play())


def main() -> None:
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    seed = int(os.environ.get("SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
    print(f"{kills} kills, seed {seed}", flush=True)
    findings = killed(kills, seed)
    summary = findings.summary()
    for absent in ("freezes", "restarts", "takeover_seconds"):
        del summary[absent]
    print(json.dumps(summary, indent=1))
    sys.exit(0 if findings.is_clean() else 1)


if __name__ == "__main__":
    main()
