"""Timers of runs in memory: at or after their time, once, whatever the clocks do."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

from tests.code.timeless import BEGIN_MS, LoopClock, play
from weft.core.ids import EntryId, RunUid
from weft.runtime.timers import Timers

A, B = RunUid("a"), RunUid("b")


class Watch:
    """Timers on a clock of their own, and what they fired at which time."""

    def __init__(self, look_seconds: float = 1.0) -> None:
        self.clock = LoopClock()
        self.fired: list[tuple[str, int, int]] = []
        self.timers = Timers(self.clock, self._fire, look_seconds=look_seconds)

    def _fire(self, uid: RunUid, entry: EntryId) -> None:
        self.fired.append((uid, entry, self.clock.now_ms() - BEGIN_MS))

    def arm(self, uid: RunUid, entry: int, after_ms: int) -> None:
        self.timers.arm(uid, EntryId(entry), BEGIN_MS + after_ms)


def on_a_loop(scene: Callable[[], Awaitable[Any]]) -> None:
    async def run() -> None:
        await scene()

    play(run())


def test_a_timer_fires_once_at_or_after_its_time() -> None:
    async def scene() -> None:
        watch = Watch()
        watch.arm(A, 1, 5_000)
        watch.arm(A, 2, 2_500)
        watch.arm(B, 1, 60_000)
        await asyncio.sleep(100)
        assert [(uid, entry) for uid, entry, _ in watch.fired] == [(A, 2), (A, 1), (B, 1)]
        assert all(at >= due for (_, _, at), due in zip(watch.fired, (2_500, 5_000, 60_000), strict=True))
        assert len(watch.timers) == 0

    on_a_loop(scene)


def test_a_time_that_has_passed_fires_at_the_next_turn_and_not_inside_arm() -> None:
    async def scene() -> None:
        watch = Watch()
        watch.arm(A, 1, -1000)
        assert watch.fired == []
        await asyncio.sleep(0.001)
        assert len(watch.fired) == 1

    on_a_loop(scene)


def test_arming_again_replaces_the_time() -> None:
    async def scene() -> None:
        watch = Watch()
        watch.arm(A, 1, 1_000)
        watch.arm(A, 1, 5_000)
        watch.arm(A, 2, 9_000)
        watch.arm(A, 2, 3_000)
        await asyncio.sleep(20)
        assert [(entry, round(at, -2)) for _, entry, at in watch.fired] == [(2, 3_000), (1, 5_000)]

    on_a_loop(scene)


def test_what_is_disarmed_does_not_fire() -> None:
    async def scene() -> None:
        watch = Watch()
        for entry in range(4):
            watch.arm(A, entry, 1_000)
            watch.arm(B, entry, 1_000)
        watch.timers.disarm(A, EntryId(2))
        watch.timers.disarm(A, EntryId(99))
        watch.timers.disarm_run(B)
        assert len(watch.timers) == 3
        await asyncio.sleep(5)
        assert [entry for _, entry, _ in watch.fired] == [0, 1, 3]

    on_a_loop(scene)


def test_a_clock_that_jumps_forward_is_noticed_within_a_look() -> None:
    async def scene() -> None:
        watch = Watch(look_seconds=1.0)
        watch.arm(A, 1, 3_600_000)
        await asyncio.sleep(10)
        watch.clock.skew_ms = 3_600_000
        begun = asyncio.get_running_loop().time()
        while not watch.fired:
            await asyncio.sleep(0.1)
        assert asyncio.get_running_loop().time() - begun <= 1.1

    on_a_loop(scene)


def test_a_clock_that_jumps_back_makes_nothing_early() -> None:
    async def scene() -> None:
        watch = Watch()
        watch.arm(A, 1, 10_000)
        await asyncio.sleep(5)
        watch.clock.skew_ms = -60_000
        await asyncio.sleep(100)
        ((_, _, at),) = watch.fired
        assert at >= 10_000

    on_a_loop(scene)


def test_thousands_that_are_armed_and_disarmed_leave_nothing_behind() -> None:
    async def scene() -> None:
        watch = Watch()
        chance = random.Random(7)
        for n in range(5_000):
            watch.arm(A, n, chance.randrange(100_000))
            if n % 10:
                watch.timers.disarm(A, EntryId(n))
        assert len(watch.timers) == 500
        assert len(watch.timers._heap) < 2_000
        await asyncio.sleep(200)
        assert len(watch.fired) == 500
        assert [at for _, _, at in watch.fired] == sorted(at for _, _, at in watch.fired)

    on_a_loop(scene)


def test_nothing_fires_after_closing() -> None:
    async def scene() -> None:
        watch = Watch()
        watch.arm(A, 1, 1_000)
        watch.timers.close()
        await asyncio.sleep(5)
        assert watch.fired == []
        assert len(watch.timers) == 0

    on_a_loop(scene)
