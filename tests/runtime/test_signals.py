"""SIGTERM and Ctrl-C end a hosted app in order: running steps finish, and the run goes on next time."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import scale

SHOP = """
import asyncio, os, time, weft

app = weft.App()

@app.step
async def charge() -> str:
    print("charging", flush=True)
    while not os.path.exists("go"):
        await asyncio.sleep(0.01)
    return "charged"

@app.step
async def block() -> None:
    print("blocking", flush=True)
    while True:
        time.sleep(0.01)

@app.step
async def ship(receipt: str) -> str:
    return f"{receipt} and shipped"

@app.workflow
async def order(ctx: weft.Context) -> str:
    return await ship(await charge())

@app.workflow
async def stuck(ctx: weft.Context) -> None:
    await block()

@app.step
async def stay() -> None:
    print("staying", flush=True)
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

@app.workflow
async def guest(ctx: weft.Context) -> None:
    await stay.options(timeout="10ms", retries=0)()
"""
RUN = 'if __name__ == "__main__":\n    print(app.run(order(), id="o-1"))\n'
HOST = """
async def main():
    async with app:
        handle = await app.start(order(), id="o-1")
        try:
            print(await handle.result())
        except asyncio.CancelledError:
            print("stopping", flush=True)
            raise

if __name__ == "__main__":
    asyncio.run(main())
"""
LEAVE = """
async def main():
    async with app:
        await app.start(order(), id="o-1")
        while not os.path.exists("leave"):
            await asyncio.sleep(0.01)
        asyncio.get_running_loop().call_later(0.05, lambda: print("draining", flush=True))

if __name__ == "__main__":
    asyncio.run(main())
"""
GUEST = 'if __name__ == "__main__":\n    app.run(guest(), id="g-1")\n'
STUCK = 'if __name__ == "__main__":\n    app.run(stuck(), id="s-1")\n'

OPENING = """
from collections.abc import AsyncIterator

@app.resource
async def pool() -> AsyncIterator[int]:
    print("opening", flush=True)
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if not STUBBORN:
                raise
    yield 1

@app.step
async def query(*, pool: int = weft.injected) -> int:
    return pool

if __name__ == "__main__":
    app.run(order(), id="o-1")
"""


@contextlib.contextmanager
def start(folder: Path, code: str) -> Iterator[subprocess.Popen[str]]:
    (folder / "shop.py").write_text(SHOP + code)
    program = subprocess.Popen(
        [sys.executable, "shop.py"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Where tests run in the background, Ctrl-C is ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )
    with program:
        try:
            yield program
        finally:
            program.kill()


@pytest.mark.parametrize(("number", "code"), scale.first(1, [(signal.SIGTERM, 143), (signal.SIGINT, 130)]))
def test_app_run_drains_and_says_where_it_stands(tmp_path: Path, number: int, code: int) -> None:
    with start(tmp_path, RUN) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "charging\n"
        assert program.stderr is not None
        program.send_signal(number)
        stopping = program.stderr.readline()
        (tmp_path / "go").touch()
        _, said = program.communicate(timeout=200)
    assert stopping.startswith("weft: stopping")
    assert program.returncode == code, said
    assert "un this again and it goes on" in said
    assert "Traceback" not in said
    with start(tmp_path, RUN) as again:
        printed, said = again.communicate(timeout=200)
    assert (again.returncode, printed) == (0, "charged and shipped\n"), said


@pytest.mark.proof
def test_a_block_that_hosts_the_app_drains_on_sigterm(tmp_path: Path) -> None:
    with start(tmp_path, HOST) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "charging\n"
        program.send_signal(signal.SIGTERM)
        assert program.stdout.readline() == "stopping\n"
        (tmp_path / "go").touch()
        _, said = program.communicate(timeout=200)
    assert program.returncode == 143, said
    assert "Traceback" not in said
    with start(tmp_path, HOST) as again:
        printed, said = again.communicate(timeout=200)
    assert (again.returncode, printed) == (0, "charged and shipped\n"), said


@pytest.mark.proof
def test_sigterm_while_the_block_is_already_left_lets_it_drain(tmp_path: Path) -> None:
    with start(tmp_path, LEAVE) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "charging\n"
        (tmp_path / "leave").touch()
        assert program.stdout.readline() == "draining\n"
        program.send_signal(signal.SIGTERM)
        (tmp_path / "go").touch()
        _, said = program.communicate(timeout=200)
    assert program.returncode == 143, said
    assert "Traceback" not in said


def test_a_real_ctrl_c_in_the_middle_of_a_step_stops_the_host(tmp_path: Path) -> None:
    """The first asks the loop, which the step blocks; the second is raised inside the step, and is not its failure."""
    with start(tmp_path, STUCK) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "blocking\n"
        program.send_signal(signal.SIGINT)
        for _ in range(100):
            program.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                program.wait(0.2)
                break
        printed, _said = program.communicate(timeout=200)
    assert program.returncode in (130, -signal.SIGINT)  # one more may come while Python itself ends
    assert "blocking" not in printed, "a Ctrl-C is no failed attempt"


@pytest.mark.proof
def test_a_second_sigterm_ends_a_host_whose_loop_is_blocked(tmp_path: Path) -> None:
    with start(tmp_path, STUCK) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "blocking\n"
        while program.poll() is None:
            program.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                program.wait(0.2)
        _, said = program.communicate(timeout=200)
    assert program.returncode == 143, said
    assert "weft: stopped at once, because code blocks the event loop at shop.py:" in said


@pytest.mark.proof
def test_a_process_ends_although_a_step_swallows_every_cancellation(tmp_path: Path) -> None:
    with start(tmp_path, GUEST) as program:
        printed, said = program.communicate(timeout=100)
    assert printed == "staying\n"
    assert program.returncode == 1, said
    assert "stay took longer than 10 ms" in said
    assert "stay of g-1 keeps running although it was cancelled" in said
    assert "Exception ignored" not in said


@pytest.mark.parametrize(
    "stubborn",
    scale.first(1, [True, False]),
    ids=lambda stubborn: "swallows its cancellation" if stubborn else "patient",
)
def test_sigterm_ends_a_host_whose_resource_is_still_opening(tmp_path: Path, *, stubborn: bool) -> None:
    with start(tmp_path, f"\nSTUBBORN = {stubborn}\n{OPENING}") as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "opening\n"
        program.send_signal(signal.SIGTERM)
        _, said = program.communicate(timeout=100)
    assert program.returncode == 143, said
    assert "Does a step cancel tasks" not in said
    assert ("the resource pool keeps running although it was cancelled" in said) == stubborn
