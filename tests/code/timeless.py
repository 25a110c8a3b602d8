"""An event loop on which waiting takes no time: when nothing is ready, its clock jumps to the next thing that is due.

So a sleep of an hour costs microseconds, and ``await calm()`` returns when nothing more happens without time passing.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from hashlib import blake2b
from typing import Any, TypeVar

from weft.core.ids import Millis

T = TypeVar("T")

BEGIN_MS = 1_767_225_600_000
"""2026-01-01: when the time of every test begins."""
SECONDS_MAX = 86_400.0


class Stuck(Exception):
    """Nothing will ever happen again, or only after longer than any test waits."""


class _Jumping(selectors.SelectSelector):
    loop: TimelessLoop

    def select(self, timeout: float | None = None) -> list[Any]:
        found = super().select(0)
        if found or timeout == 0:
            return found
        self.loop.jump(timeout)
        return []


class TimelessLoop(asyncio.SelectorEventLoop):
    """See the module."""

    def __init__(self) -> None:
        self._passed = 0.0
        selector = _Jumping()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self._passed

    def jump(self, seconds: float | None) -> None:
        if seconds is None or self._passed > SECONDS_MAX:
            waited, self._passed = self._passed, 0.0
            raise Stuck(f"after {waited:.0f} s of virtual time")
        self._passed += seconds


class LoopClock:
    """Both clocks of a process, moved by its loop. ``skew_ms`` moves the one that people read."""

    def __init__(self, begin_ms: int = BEGIN_MS) -> None:
        self.begin_ms = begin_ms
        self.skew_ms = 0

    def now_ms(self) -> Millis:
        return Millis(self.begin_ms + self.skew_ms + round(asyncio.get_running_loop().time() * 1000))

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


class CountedIds:
    """Ids that are the same in every run of a test."""

    def __init__(self) -> None:
        self.made = 0

    def new(self) -> str:
        self.made += 1
        return f"{self.made:08x}{blake2b(str(self.made).encode(), digest_size=12).hexdigest()}"


class InPlace:
    """Performs plain functions where they are asked for: a thread would race with a clock that jumps."""

    async def in_thread(self, body: Callable[[], T]) -> T:
        return body()

    async def in_process(self, body: Callable[..., T], *arguments: Any) -> T:
        return body(*arguments)


async def calm() -> None:
    """Wait until nothing more happens by itself at this moment."""
    await asyncio.sleep(0.001)


def play(scene: Coroutine[Any, Any, T]) -> T:
    """Run to the end on a loop of its own."""
    with asyncio.Runner(loop_factory=TimelessLoop) as runner:
        return runner.run(scene)
