"""The simulated loop: virtual time, an order of the seed, processes that die and freeze, and no way out."""

from __future__ import annotations

import asyncio

import pytest

from weft.errors import UsageError
from weft.ports.boundary import ProcessDied
from weft.testing.loop import OUTSIDE, Process, SimLoop, make_loop


def in_process(loop: SimLoop, process: Process, coro: object) -> asyncio.Task[object]:
    return process.context.copy().run(loop.create_task, coro)  # type: ignore[arg-type]


def test_the_private_names_of_asyncio_that_the_kit_stands_on_are_there() -> None:
    assert callable(asyncio._get_running_loop)
    assert callable(asyncio._set_running_loop)
    loop = make_loop()
    task = loop.create_task(asyncio.sleep(0))
    assert getattr(task, "_log_destroy_pending", None) is True
    loop.close()


def test_a_year_passes_at_once() -> None:
    loop = make_loop()

    loop.run_until_complete(asyncio.sleep(365 * 86_400))

    assert loop.time() == 365 * 86_400


def order_of(seed: int) -> list[int]:
    loop = make_loop(seed)
    seen: list[int] = []
    for number in range(8):
        loop.call_soon(seen.append, number)
    while loop.turn():
        pass
    return seen


def test_the_seed_decides_what_comes_first() -> None:
    assert order_of(1) == order_of(1)
    assert len({tuple(order_of(seed)) for seed in range(20)}) > 10


def test_timers_of_the_same_moment_come_in_an_order_of_the_seed_and_never_early() -> None:
    loop = make_loop()
    seen: list[float] = []
    for delay in (3.0, 1.0, 2.0, 2.0):
        loop.call_later(delay, lambda: seen.append(loop.time()))
    loop.run_until_complete(asyncio.sleep(5))
    assert seen == [1.0, 2.0, 2.0, 3.0]


def test_waiting_for_nothing_is_an_error_and_not_for_ever() -> None:
    loop = make_loop()
    with pytest.raises(RuntimeError, match="forever"):
        loop.run_until_complete(loop.create_future())


def test_asyncio_works_in_it() -> None:
    async def timed_out() -> str:
        try:
            async with asyncio.timeout(5):
                await asyncio.Event().wait()
        except TimeoutError:
            pass
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(asyncio.sleep(i, i)) for i in range(3)]
        return f"{sum(task.result() for task in tasks)}"

    loop = make_loop()
    assert loop.run_until_complete(timed_out()) == "3"
    assert loop.time() == 7


@pytest.mark.parametrize("name", OUTSIDE)
def test_there_is_no_way_out(name: str) -> None:
    with pytest.raises(UsageError, match="simulated world has no"):
        getattr(make_loop(), name)()


def test_threads_are_refused_in_words() -> None:
    async def thread() -> None:
        await asyncio.to_thread(print)

    with pytest.raises(UsageError, match="no threads"):
        make_loop().run_until_complete(thread())


def test_nothing_of_a_dead_process_runs() -> None:
    loop = make_loop()
    process = Process("p")
    seen: list[str] = []

    async def live() -> None:
        try:
            await asyncio.sleep(1)
            seen.append("alive")
            await asyncio.sleep(1)
            seen.append("still alive")
        finally:
            seen.append("finally")

    in_process(loop, process, live())
    loop.call_later(1.5, process.die)
    loop.run_until_complete(asyncio.sleep(10))

    assert seen == ["alive"]
    loop.close()


def test_a_death_in_the_middle_of_a_callback_ends_the_process() -> None:
    loop = make_loop()
    process = Process("p")
    told: list[str] = []
    process.watchers.append(lambda: told.append("died"))

    def die() -> None:
        raise ProcessDied

    process.context.run(loop.call_soon, die)
    process.context.run(loop.call_later, 1, told.append, "never")
    loop.run_until_complete(asyncio.sleep(2))

    assert told == ["died"]
    assert not loop.errors


def test_a_frozen_process_goes_on_where_it_was() -> None:
    loop = make_loop()
    process = Process("p")
    seen: list[float] = []

    async def tick() -> None:
        for _ in range(3):
            await asyncio.sleep(1)
            seen.append(loop.time())

    in_process(loop, process, tick())
    loop.run_until_complete(asyncio.sleep(1.5))
    process.frozen = True
    loop.run_until_complete(asyncio.sleep(10))
    assert seen == [1.0]
    loop.thaw(process)
    loop.run_until_complete(asyncio.sleep(10))

    assert seen == [1.0, 11.5, 12.5]


def test_what_a_callback_raises_is_kept_for_the_world_to_look_at() -> None:
    loop = make_loop()
    loop.call_soon(lambda: 1 / 0)
    loop.turn()
    assert isinstance(loop.errors[0], ZeroDivisionError)
