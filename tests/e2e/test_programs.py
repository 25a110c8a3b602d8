"""The code programs of `examples/` run as they stand: those with a main as users start them, others by the API."""

import asyncio
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import pytest

import weft
from weft.testing import World

R = TypeVar("R")
EXAMPLES = Path(__file__).parents[2] / "examples"


def program(name: str) -> list[str]:
    return [sys.executable, str(EXAMPLES / name)]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """An example as a module, its app kept in memory."""
    monkeypatch.setenv("WEFT_URL", "memory://")

    def imported(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    return imported


def run(app: weft.App, scenario: Callable[[], Coroutine[Any, Any, R]]) -> R:
    async def hosted() -> R:
        async with app:
            return await scenario()

    return asyncio.run(hosted())


async def waiting_at(handle: weft.Handle[Any], kind: str) -> None:
    """Until the run has recorded that it waits there."""
    async for event in handle.events(follow=True):
        if event.kind == kind:
            return
    raise AssertionError(f"{handle.id} ended without {kind}")


async def _until_asleep(url: str) -> None:
    async with weft.Client(url) as client:
        while not (found := [handle async for handle in client.list()]):
            await asyncio.sleep(0.02)
        await waiting_at(found[0], "timer_set")


async def _is_open(url: str) -> bool:
    async with weft.Client(url) as client:
        return await client.get("hello-world").status() == "running"


def _kill_in_its_sleep(folder: Path) -> bool:
    """Kill the program while its run sleeps. Returns False if the run ended first: the machine was too slow."""
    folder.mkdir()
    url = f"sqlite:///{folder / 'weft.db'}"
    first = subprocess.Popen(program("p01_hello.py"), cwd=folder)
    try:
        asyncio.run(_until_asleep(url))
    finally:
        first.kill()
        first.wait()
    return asyncio.run(_is_open(url))


@pytest.mark.proof
def test_p01_is_killed_in_its_sleep_and_goes_on(tmp_path: Path) -> None:
    folders = (tmp_path / f"try-{number}" for number in range(10))
    killed = next(folder for folder in folders if _kill_in_its_sleep(folder))

    second = subprocess.run(
        program("p01_hello.py"), cwd=killed, capture_output=True, text=True, timeout=120, check=False
    )
    assert second.stdout == "hello world!\n"
    assert second.stderr == "weft: hello-world goes on: 1 step recorded, not repeated\n"


def test_p02_charges_and_ships(tmp_path: Path) -> None:
    ran = subprocess.run(
        program("p02_retry_timeout.py"), cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    key, tracking = ran.stdout.split()
    assert tracking == "track-o-1"
    assert key.endswith("/charge")
    assert ran.stderr == ""


def test_p02_a_declared_error_crosses_as_itself(load: Callable[[str], Any]) -> None:
    p02 = load("p02_retry_timeout")

    async def scenario() -> str:
        handle = await p02.app.start(p02.order("o-1", 2_000_000))
        return str(await handle.result())

    assert run(p02.app, scenario) == "declined"


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ({"approved": True, "by": "anna", "form": {"carrier": "dhl"}}, "o-1:dhl"),
        ({"approved": False, "by": "anna", "reason": "too dear"}, "rejected by anna: too dear"),
    ],
)
def test_p03_a_person_decides(load: Callable[[str], Any], answer: dict[str, Any], result: str) -> None:
    p03 = load("p03_approval")

    async def scenario() -> str:
        handle = await p03.app.start(p03.order("o-1"), id="o-1")
        await handle.send("quote", {"cents": "five"})  # does not fit: refused, and the wait goes on
        await handle.send("quote", {"cents": 5})
        await waiting_at(handle, "ask_opened")
        with pytest.raises(weft.BadValue):
            await handle.decide("ship", approved=True, by="anna", form={"carrier": "pigeon"})
        await handle.decide("ship", **answer)
        return str(await handle.result())

    assert run(p03.app, scenario) == result


def test_p04_maps_with_a_width(load: Callable[[str], Any]) -> None:
    p04 = load("p04_map")
    urls = ["a", "bb", "ccc"]

    async def scenario() -> int:
        return int(await p04.crawl(urls))

    assert run(p04.app, scenario) == sum(len(url) + len(url + "?v=2") for url in urls) + sum(map(len, urls))


def test_p05_one_of_two_wins(load: Callable[[str], Any]) -> None:
    p05 = load("p05_race")

    async def scenario() -> str:
        return str(await p05.fastest("?"))

    assert run(p05.app, scenario) in {"a: a?", "b: b?"}


def test_p06_pages_until_the_last_one(load: Callable[[str], Any]) -> None:
    p06 = load("p06_loop")

    async def scenario() -> int:
        return int(await p06.sync_all())

    assert run(p06.app, scenario) == 0


@pytest.mark.proof
def test_p07_calls_and_starts_children(tmp_path: Path) -> None:
    ran = subprocess.run(
        program("p07_child.py"), cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    refunds = [f"refund-o-{n}-{n}00" for n in range(1, 6)]
    assert ran.stdout == f"{refunds}\n"
    assert ran.stderr == ""


@pytest.mark.proof
def test_p14_starts_a_report_on_every_working_day(load: Callable[[str], Any]) -> None:
    module = load("p14_cron")
    world = World(module.app)
    world.advance("6d")

    found = world.perform(lambda: module.app.schedules.get("daily-report"))
    assert (found.fired, found.missed) == (4, 0)
    assert world.perform(lambda: module.app.get("daily-report/20260105T080000Z").result()) == "eu 2026-01-05: 3"
    world.close()


@pytest.mark.proof
def test_p13_the_tests_of_a_user_pass_as_they_stand(tmp_path: Path) -> None:
    for name in ("p02_retry_timeout.py", "p03_approval.py", "test_p13_order.py"):
        shutil.copy(EXAMPLES / name, tmp_path)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    # The plugin of Weft is found by itself; those that others have installed take seconds.
    others = ("cacheprovider", "schemathesis", "hypothesispytest", "xdist", "randomly", "timeout", "anyio")
    others += ("langsmith_plugin", "platformdirs", "valkey")
    command = [sys.executable, "-m", "pytest", "-q", *(f"-pno:{name}" for name in others)]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "3 passed" in ran.stdout, ran.stdout + ran.stderr
