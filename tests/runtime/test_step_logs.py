"""What steps print is kept with its run, place and attempt; never in the way of the step, and bounded."""

from __future__ import annotations

import asyncio
import logging
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

import weft
from tests import scale
from weft.core.ids import RunId
from weft.errors import UsageError
from weft.runtime.log_limits import project_log_limits, read_log_limits
from weft.testing import World

app = weft.App("memory://")
log = logging.getLogger("shop.orders")


@app.step
async def pay(cents: int) -> int:
    print("paying", cents)
    await asyncio.to_thread(print, "in a thread of asyncio")
    log.warning("%d cents is a lot", cents)
    return cents


@app.step
def pack(what: str) -> None:
    print(f"packing {what}", end="")


@app.step(run_in="process")
def weigh(what: str) -> int:
    print("weighing", what)
    logging.getLogger("scale").error("too heavy")
    return len(what)


@app.step(retries=weft.Retry(attempts=2, delay="1ms"))
async def stumble() -> None:
    print(f"attempt {weft.task().attempt}")
    if weft.task().attempt == 1:
        raise OSError("once")


@app.step
def flood(lines: int) -> None:
    for n in range(lines):
        print(f"{n:099}")


@app.step
async def silent() -> None:
    pass


@app.step
async def own_thread() -> None:
    thread = threading.Thread(target=print, args=("nobody asked",))
    thread.start()
    thread.join()


@app.workflow
async def order(ctx: weft.Context) -> None:
    print("workflow code is repeated, so what it prints is not kept")
    await pay(4200)
    await pack("tea")
    await stumble()


@app.workflow
async def parcel(ctx: weft.Context) -> None:
    await pack("tea")
    await stumble()


@app.workflow
async def heavy(ctx: weft.Context) -> int:
    return await weigh("anvil")


@app.workflow
async def noisy(ctx: weft.Context, lines: int) -> None:
    await flood(lines)


@app.workflow
async def quiet(ctx: weft.Context) -> None:
    await silent()
    await own_thread()


async def lines_of(call: Any, **options: Any) -> list[weft.LogLine]:
    async with app:
        handle = await app.start(call, **options)
        await handle.result(timeout="60s")
        return [line async for line in handle.logs()]


def said(lines: list[weft.LogLine]) -> list[tuple[str, int, str, str]]:
    return [(line.place, line.attempt, line.source, line.text) for line in lines]


def test_steps_of_every_kind_are_heard(capfd: pytest.CaptureFixture[str]) -> None:
    lines = asyncio.run(lines_of(order()))

    assert said(lines) == [
        ("pay", 1, "stdout", "paying 4200"),
        ("pay", 1, "stdout", "in a thread of asyncio"),
        ("pay", 1, "shop.orders", "4200 cents is a lot"),
        ("pack", 1, "stdout", "packing tea"),
        ("stumble", 1, "stdout", "attempt 1"),
        ("stumble", 2, "stdout", "attempt 2"),
    ]
    assert [line.level for line in lines] == ["info", "info", "warning", "info", "info", "info"]
    assert [line.number for line in lines] == [1, 2, 3, 4, 5, 6]
    assert "paying 4200\n" in capfd.readouterr().out


def test_a_step_in_another_process_is_heard() -> None:
    assert said(asyncio.run(lines_of(heavy()))) == [
        ("weigh", 1, "stdout", "weighing anvil"),
        ("weigh", 1, "scale", "too heavy"),
    ]


def test_who_prints_nothing_has_no_lines() -> None:
    assert asyncio.run(lines_of(quiet())) == []


@pytest.mark.parametrize("count", scale.first(1, [10_000, 100_000]))
def test_megabytes_in_a_loop_leave_the_beginning_the_end_and_a_number(count: int) -> None:
    lines = asyncio.run(lines_of(noisy(count)))

    assert len(lines) == 1_100
    ends = [int(line.text) for line in (lines[0], lines[999], lines[1_000], lines[-1])]
    assert ends == [0, 999, count - 100, count - 1]
    assert lines[-1].number == count
    assert lines[1_000].number == count - 99


def test_lines_are_written_in_groups(tmp_path: Path) -> None:
    async def scenario() -> int:
        async with app:
            real, writes = app.service.store.step_logs.write, []

            async def counted(*args: Any) -> None:
                writes.append(args)
                await real(*args)

            app.service.store.step_logs.write = counted  # type: ignore[method-assign]
            handles = [await app.start(order()) for _ in range(50)]
            for handle in handles:
                await handle.result(timeout="60s")
                assert len([line async for line in handle.logs()]) == 6
            return len(writes)

    assert asyncio.run(scenario()) <= 50


def test_lines_survive_the_process(tmp_path: Path) -> None:
    kept = weft.App(f"sqlite:///{tmp_path}/weft.db")
    kept.include(group())
    kept.run("greet", id="g")

    async def again() -> list[str]:
        async with kept:
            return [line.text async for line in kept.get("g").logs(follow=True)]

    assert asyncio.run(again()) == ["hello"]


def group() -> weft.Group:
    made = weft.Group()

    @made.step
    async def say() -> None:
        print("hello")

    @made.workflow
    async def greet(ctx: weft.Context) -> None:
        await say()

    return made


def test_lines_do_not_change_the_log_of_events() -> None:
    world = World(app)
    run = world.start(parcel())
    run.result()

    kinds = [event.kind for event in run.events]
    assert len(run.logs) == 3
    assert [event.kind for event in run.events] == kinds
    assert "packing" not in str(run.events)


def test_a_world_hears_what_steps_print_also_after_a_crash() -> None:
    world = World(app)
    world.crash(at=pack, when="before")
    run = world.start(parcel())
    run.result()

    packed = [line for line in run.logs if line.place == "pack"]
    assert [line.text for line in packed] in (["packing tea"], ["packing tea", "packing tea"])
    assert packed[-1].attempt == 2


@pytest.mark.parametrize("value", ["off", "on"])
def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("WEFT_LOGS", value)

    assert len(asyncio.run(lines_of(order()))) == (6 if value == "on" else 0)


def test_the_project_can_set_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEFT_LOGS", raising=False)
    file = tmp_path / "pyproject.toml"
    file.write_text("[tool.weft.logs]\nlines = 5\n")
    found = project_log_limits(file)
    assert found is not None
    assert (found.lines, found.size_bytes) == (5, 1024 * 1024)

    file.write_text("[tool.weft.logs]\nkeep = false\n")
    assert project_log_limits(file) is None
    monkeypatch.setenv("WEFT_LOGS", "on")
    assert project_log_limits(file) is not None
    assert project_log_limits(tmp_path / "none.toml") is not None


@pytest.mark.parametrize("section", [7, {"lines": 0}, {"lines": True}, {"keep": "no"}, {"bytes": 1}])
def test_a_setting_that_makes_no_sense_is_refused(section: Any) -> None:
    with pytest.raises(UsageError, match=r"\[tool.weft.logs\]"):
        read_log_limits(section)


def test_a_switch_that_is_neither_on_nor_off_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_LOGS", "maybe")

    with pytest.raises(UsageError, match="on, off"):
        project_log_limits()


def test_a_store_that_is_down_costs_lines_and_no_step() -> None:
    async def scenario() -> list[weft.LogLine]:
        async with app:
            logs = app.service.store.step_logs
            real, failures = logs.write, [1, 2, 3]

            async def flaky(*args: Any) -> None:
                if failures:
                    failures.pop()
                    raise weft.Unavailable("no disk")
                await real(*args)

            logs.write = flaky  # type: ignore[method-assign]
            handle = await app.start(order())
            await handle.result(timeout="60s")
            return [line async for line in handle.logs()]

    assert len(asyncio.run(scenario())) == 6


def test_lines_of_a_deleted_run_go_with_it() -> None:
    async def scenario() -> int:
        async with app:
            handle = await app.start(order(), id="gone")
            await handle.result(timeout="60s")
            assert [line async for line in handle.logs()]
            store = app.service.store
            uid = (await app.service.row(RunId("gone"))).uid
            await handle.delete("asked")
            while (await store.retention.clear(limit=500)).rows:
                pass
            return (await store.step_logs.totals(uid)).lines

    assert asyncio.run(scenario()) == 0


def test_a_line_is_plain_data() -> None:
    (line, *_) = asyncio.run(lines_of(order()))

    assert msgspec.json.decode(msgspec.json.encode(line))["text"] == "paying 4200"
