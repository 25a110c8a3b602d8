"""The loop that a workflow runs on: first in, first out, no clock, no I/O, and the same order in every process."""

from __future__ import annotations

import asyncio
import contextvars
from types import SimpleNamespace
from typing import Any

import pytest

import weft
from weft.runtime.run.private_loop import PrivateLoop, ScopedTask, make_loop
from weft.runtime.run.scopes import CURRENT, NameScope

DRIVER: Any = SimpleNamespace(program=SimpleNamespace(name="flow"))


def spawn(loop: PrivateLoop, coro: Any, prefix: str = "") -> Any:
    return loop.spawn(coro, NameScope(DRIVER, prefix))


def test_what_is_ready_runs_in_the_order_in_which_it_became_ready() -> None:
    loop = make_loop()
    order: list[str] = []

    async def talk(name: str) -> None:
        for n in range(3):
            order.append(f"{name}{n}")
            await asyncio.sleep(0)

    for name in "abc":
        spawn(loop, talk(name), f"{name}/")
    loop.pump()
    assert order == ["a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2", "c2"]


def test_pumping_ends_when_nothing_is_ready_and_leaves_the_outer_loop_as_it_was() -> None:
    async def main() -> None:
        outer = asyncio.get_running_loop()
        loop = make_loop()
        future = loop.create_future()

        async def wait() -> Any:
            assert asyncio.get_running_loop() is loop
            return await future

        task = spawn(loop, wait())
        loop.pump()
        assert not task.done()
        assert asyncio.get_running_loop() is outer
        future.set_result("x")
        loop.pump()
        assert task.result() == "x"

    asyncio.run(main())


def test_each_task_has_a_scope_numbered_in_its_parents() -> None:
    loop = make_loop()
    seen: list[str] = []

    async def leaf() -> None:
        seen.append(CURRENT.get().prefix)

    async def branch() -> None:
        seen.append(CURRENT.get().prefix)
        await asyncio.gather(leaf(), leaf())

    async def root() -> None:
        await asyncio.gather(branch(), branch())
        await asyncio.create_task(leaf())

    spawn(loop, root())
    loop.pump()
    assert seen == ["&0/", "&1/", "&0/&0/", "&0/&1/", "&1/&0/", "&1/&1/", "&2/"]


@pytest.mark.parametrize(
    "wish",
    [
        lambda loop: loop.call_later(1, print),
        lambda loop: loop.call_at(1, print),
        lambda loop: loop.time(),
        lambda loop: loop.run_in_executor(None, print),
        lambda loop: loop.call_soon_threadsafe(print),
        lambda loop: loop.create_connection(None),
        lambda loop: loop.getaddrinfo("x", 1),
        lambda loop: loop.sock_recv(None, 1),
        lambda loop: loop.add_reader(0, print),
        lambda loop: loop.subprocess_exec(None),
        lambda loop: loop.run_until_complete(None),
        lambda loop: loop.run_forever(),
    ],
)
def test_what_only_a_real_loop_could_give_is_a_typed_error_that_is_remembered(wish: Any) -> None:
    loop = make_loop()
    with pytest.raises(weft.ForeignAwait) as refused:
        wish(loop)
    assert loop.foreign is refused.value
    assert refused.value.hint


def test_the_hash_of_a_task_comes_from_its_place_and_not_from_a_count() -> None:
    async def nothing() -> None: ...

    def hashes(before: int) -> list[int]:
        loop = make_loop()
        for n in range(before):
            spawn(loop, nothing(), f"skipped/{n}/")
        tasks = [spawn(loop, nothing(), f"{name}/") for name in "abc"]
        loop.pump()
        return [hash(task) for task in tasks]

    assert hashes(0) == hashes(7)
    assert len(set(hashes(0))) == 3


def test_nothing_happens_in_a_frozen_loop_and_who_froze_it_goes_on_first() -> None:
    loop = make_loop()
    order: list[str] = []
    waiter = loop.create_future()

    async def freezer() -> None:
        order.append("freeze")
        await loop.frozen_until(waiter)
        order.append("thawed")

    async def other() -> None:
        order.append("other")

    spawn(loop, freezer(), "a/")
    spawn(loop, other(), "b/")
    loop.pump()
    assert order == ["freeze"]
    loop.pump()
    assert order == ["freeze"]
    loop.thaw(waiter)
    loop.pump()
    assert order == ["freeze", "thawed", "other"]


def test_ending_all_throws_into_every_task_in_its_own_scope_and_ignores_what_it_does() -> None:
    loop = make_loop()
    seen: list[str] = []

    async def wait(how: str) -> str:
        try:
            await loop.create_future()
        except weft.Evicted:
            seen.append(f"{how} {CURRENT.get().prefix}")
            if how == "stubborn":
                await loop.create_future()
            if how == "angry":
                raise ValueError(how) from None
        return how

    tasks = [spawn(loop, wait(how), f"{how}/") for how in ("plain", "stubborn", "angry")]
    loop.pump()
    loop.end_all(weft.Evicted)
    assert seen == ["plain plain/", "stubborn stubborn/", "angry angry/"]
    assert loop.tasks == {}
    del tasks


def test_a_loop_that_goes_round_without_waiting_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.runtime.run.private_loop.TURNS_MAX", 100)
    loop = make_loop()

    async def spin() -> None:
        while True:
            await asyncio.sleep(0)

    task = spawn(loop, spin())
    with pytest.raises(weft.LimitExceeded) as stopped:
        loop.pump()
    assert stopped.value.code == "code.spinning"
    loop.end_all(weft.Evicted)
    loop.ready.clear()
    del task


def test_tasks_of_many_runs_do_not_collide_in_the_set_of_all_tasks_of_the_process() -> None:
    compared = 0

    class Counted(ScopedTask):
        __hash__ = ScopedTask.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return self is other

    async def wait() -> None:
        await asyncio.get_running_loop().create_future()

    loops = [make_loop() for _ in range(300)]
    context = contextvars.copy_context()
    tasks = [Counted(wait(), place="", loop=loop, context=context) for loop in loops]
    assert len({hash(task) for task in tasks}) == 1, "in the code of a run their order comes from their place"
    assert compared < 300
    for task in tasks:
        task.end(weft.Evicted)
