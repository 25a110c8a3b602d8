"""People see how far a run is while it works, with and without a terminal, and that nobody works on it."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Weft

APP = """
import pathlib, time, weft

app = weft.App()

def wait_for(name: str) -> None:
    while not pathlib.Path(name).exists():
        time.sleep(0.02)

@app.step
def work(n: int) -> int:
    if n >= 3:
        wait_for("go")
    return n

@app.step(retries=weft.Retry(attempts=3, delay="30ms"))
def flaky() -> None:
    if not pathlib.Path("mended").exists():
        raise OSError("down")

@app.workflow
async def many(ctx: weft.Context) -> int:
    return len(await ctx.map("items", work, range(500), width=8))

@app.workflow
async def sleeper(ctx: weft.Context) -> None:
    await ctx.sleep("1h")
"""
WEFT = str(Path(sys.executable).with_name("weft"))


@pytest.fixture
def app(folder: Path) -> Path:
    (folder / "many.py").write_text(APP)
    return folder


class Terminal:
    """A command at a terminal of its own."""

    def __init__(self, folder: Path, *words: str, columns: int = 100) -> None:
        self.master, slave = pty.openpty()
        environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm"}
        self.running = subprocess.Popen(
            [WEFT, *words], cwd=folder, stdin=slave, stdout=slave, stderr=slave, env=environment
        )
        os.close(slave)
        self.raw, self.seen = b"", ""

    def until(self, pattern: str) -> "re.Match[str]":
        """Read until the screen has shown it."""
        end = time.monotonic() + 200
        while not (found := re.search(pattern, self.seen)):
            assert time.monotonic() < end, self.seen
            if select.select([self.master], [], [], 0.2)[0]:
                self.raw += os.read(self.master, 65_536)
                self.seen = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.raw.decode(errors="replace"))
        return found

    def close(self) -> None:
        self.running.kill()
        self.running.wait()
        os.close(self.master)


@pytest.fixture
def at_terminal(app: Path) -> Iterator[list[Terminal]]:
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        terminal.close()


def test_run_and_watch_show_progress_at_a_terminal(app: Path, at_terminal: list[Terminal], weft: Weft) -> None:
    run = Terminal(app, "run", "many.py", "many", "--id", "m-1")
    at_terminal.append(run)
    run.until(r"m-1 running: items 3 of 500; work")

    watch = Terminal(app, "watch", "m-1", columns=60)
    at_terminal.append(watch)
    watch.until(r"running +for \d+\w+ +items 3 of 500")
    assert "items 3 of 500; step work" in weft("list").out
    shown = weft("show", "m-1").out
    assert re.search(r"● items +\S+ +3 of 500", shown)
    assert "under way" in shown

    (app / "go").touch()
    watch.until(r"→ 500")
    run.until(r"\b500\r\n")
    assert run.running.wait(200) == 0


@pytest.mark.proof
def test_what_nobody_performs_is_not_under_way(app: Path, at_terminal: list[Terminal], weft: Weft) -> None:
    run = Terminal(app, "run", "many.py", "many", "--id", "m-1")
    at_terminal.append(run)
    run.until(r"items 3 of 500")
    os.kill(run.running.pid, signal.SIGKILL)
    run.running.wait()

    shown = weft("show", "m-1").out
    assert "under way" not in shown
    assert "no process hosts it now" in shown
    assert "attempt 1, no process hosts it now" in weft("explain", "m-1").out
    assert "No process hosts many now." in weft("explain", "m-1").out


@pytest.mark.proof
def test_a_sleeping_run_goes_on_by_itself_only_if_somebody_hosts_it(
    app: Path, at_terminal: list[Terminal], weft: Weft
) -> None:
    run = Terminal(app, "run", "many.py", "sleeper", "--id", "s-1")
    at_terminal.append(run)
    run.until(r"s-1 running: waits for a timer")
    assert "it continues by itself" in weft("explain", "s-1").out

    os.kill(run.running.pid, signal.SIGKILL)
    run.running.wait()

    explained = weft("explain", "s-1").out
    assert "it continues by itself" not in explained
    assert "it continues when it is hosted" in explained
    assert "No process hosts sleeper now." in explained


@pytest.mark.proof
def test_without_a_terminal_there_is_a_line_now_and_then(app: Path) -> None:
    running = subprocess.Popen(
        [WEFT, "run", "many.py", "many", "--id", "m-1"],
        cwd=app,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with running:
        assert running.stderr is not None
        assert running.stderr.readline().startswith("weft: m-1 running: items 3 of 500; work, ")
        (app / "go").touch()
        out, _ = running.communicate(timeout=200)
    assert out == "500\n"
