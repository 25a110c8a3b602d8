"""A host that has places under a limit is killed with SIGKILL: they come back, and no more run at once than allowed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import scale, servers
from tests.chaos.limited_host import limited_app
from tests.crash.hosting import QUICK, hosting
from weft.stores import open_store


def lines_of(folder: Path) -> list[list[str]]:
    return sorted(line.split() for file in folder.glob("*.txt") for line in file.read_text().splitlines())


@pytest.mark.parametrize("store", scale.first(1, ["postgres", "sqlite"]))
def test_the_places_of_a_killed_host_come_back(store: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/weft.db"
    if store == "postgres":
        url = servers.database("limits")
        servers.empty(url)
    lines = tmp_path / "lines"
    lines.mkdir()
    victim = subprocess.Popen([sys.executable, "-m", "tests.chaos.limited_host", url, str(lines)])
    try:
        until = time.monotonic() + 100
        while len(lines_of(lines)) < 2 and time.monotonic() < until:
            time.sleep(0.02)
    finally:
        victim.kill()
        victim.wait()
    killed_at = time.monotonic()
    assert [line[1] for line in lines_of(lines)] == ["began", "began"]

    async def go_on() -> int:
        app = limited_app(url, lines, seconds=0.01)
        async with asyncio.timeout(150), hosting(app, QUICK):
            handle = app.get("many")
            return int(await handle.result())

    assert asyncio.run(go_on()) == sum(range(6))
    after = [line for line in lines_of(lines) if float(line[0]) > killed_at]
    running = most = 0
    for line in after:
        running += 1 if line[1] == "began" else -1
        most = max(most, running)
    assert most == 2
    assert len([line for line in after if line[1] == "ended"]) == 6

    async def left() -> list[object]:
        opened = open_store(url)
        await opened.open()
        try:
            return list(await opened.tasks.limited_keys(limit=10))
        finally:
            await opened.close()

    assert asyncio.run(left()) == []
