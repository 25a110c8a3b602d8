"""An event loop with virtual time, a seeded order of callbacks, and processes that can die or freeze.

asyncio runs callbacks first in, first out. Here, the seed decides the order, so that nothing can rely on the order of
asyncio. Time moves only when nothing is ready, and then directly to the next timer. Threads, sockets, signals and
subprocesses raise an error, because a world with them could not be repeated. A callback belongs to the process in whose
context it was created. The callbacks of a dead process never run, as after SIGKILL, and those of a frozen process wait
until it thaws, as after SIGSTOP.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import math
import random
from collections.abc import Callable, Coroutine, Generator
from typing import Any, NoReturn, TypeVar

from weft.errors import UsageError
from weft.ports.boundary import ProcessDied
from weft.runtime.run.private_loop import IO_METHODS

T = TypeVar("T")

# Private functions that asyncio's own loops use. A test checks that they exist.
_get_running = asyncio._get_running_loop  # noqa: SLF001
_set_running = asyncio._set_running_loop  # noqa: SLF001


class Process:
    """One simulated operating-system process. Everything that runs in its context ends with it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.frozen = False
        self.held: list[SimHandle] = []
        """The callbacks that became ready while the process was frozen."""
        self.watchers: list[Callable[[], None]] = []
        """Functions that are called when the process dies. They run outside the process."""
        self.context = contextvars.Context()
        self.context.run(PROCESS.set, self)

    def die(self) -> None:
        """End the process. Its callbacks no longer run."""
        if self.alive:
            self.alive = False
            self.held.clear()
            for watcher in self.watchers:
                contextvars.Context().run(watcher)

    def __repr__(self) -> str:
        return f"<process {self.name}>"


PROCESS: contextvars.ContextVar[Process] = contextvars.ContextVar("weft_sim_process")


class SimHandle:
    """A callback that is ready or waits for its time."""

    __slots__ = ("_when", "args", "callback", "context", "dropped", "process")

    def __init__(
        self, callback: Callable[..., object], args: tuple[Any, ...], context: contextvars.Context, when: float
    ) -> None:
        self.callback = callback
        self.args = args
        self.context = context
        self.process = context.get(PROCESS)
        self.dropped = False
        self._when = when

    def cancel(self) -> None:
        self.dropped = True

    def cancelled(self) -> bool:
        return self.dropped

    def when(self) -> float:
        return self._when


class SimLoop(asyncio.AbstractEventLoop):
    """An asyncio event loop with virtual time. The seed decides the order of callbacks."""

    def __init__(self, seed: int = 0) -> None:
        self.errors: list[BaseException] = []
        """The exceptions of callbacks and of tasks that were never awaited. A correct world has none."""
        self.turns = 0
        self._random = random.Random(seed)  # noqa: S311 - it must be repeatable, not secret
        self._now = 0.0
        self._ready: list[SimHandle] = []
        self._timers: list[tuple[float, int, SimHandle]] = []
        self._made = 0
        self._tasks: list[asyncio.Task[Any]] = []
        self._tasks_kept = 256
        self._closed = False

    # --- turns ----------------------------------------------------------------------------------------------------

    def time(self) -> float:
        return self._now

    def turn(self) -> bool:
        """Run the callbacks that are ready, in an order drawn from the seed. Returns False if there are none."""
        ready = self._ready
        if not ready:
            return False
        self._ready = []
        if len(ready) > 1:
            self._random.shuffle(ready)
        outer = _get_running()
        _set_running(self)
        try:
            for handle in ready:
                self._run(handle)
        finally:
            _set_running(outer)
        self.turns += 1
        return True

    def _run(self, handle: SimHandle) -> None:
        process = handle.process
        if handle.dropped:
            return
        if process is not None:
            if not process.alive:
                return
            if process.frozen:
                process.held.append(handle)
                return
        try:
            handle.context.run(handle.callback, *handle.args)
        except (KeyboardInterrupt, SystemExit):
            raise
        except ProcessDied:
            if process is not None:
                process.die()
        except BaseException as error:  # noqa: BLE001 - the world raises it later; it must not end the loop
            self.errors.append(error)

    def next_timer(self) -> float:
        """Return the time of the next timer; infinity if there is none."""
        timers = self._timers
        while timers and (timers[0][2].dropped or _is_dead(timers[0][2])):
            heapq.heappop(timers)
        return timers[0][0] if timers else math.inf

    def jump(self, until: float = math.inf) -> bool:
        """Move time to the next timer. If that is later than ``until``, move time to ``until`` and return False."""
        due = self.next_timer()
        if due > until or due == math.inf:
            if until != math.inf:
                self._now = max(self._now, until)
            return False
        self._now = max(self._now, due)
        timers = self._timers
        while timers and timers[0][0] <= self._now:
            self._ready.append(heapq.heappop(timers)[2])
        return True

    def thaw(self, process: Process) -> None:
        """Let a frozen process continue where it stopped."""
        process.frozen = False
        self._ready.extend(process.held)
        process.held.clear()

    def run_until_complete(self, future: Generator[Any, None, T] | Coroutine[Any, Any, T] | Any) -> T:
        """Run until the future is done, and skip waiting times. Raises RuntimeError if it can never be done."""
        task: asyncio.Future[T] = future if isinstance(future, asyncio.Future) else self.create_task(future)
        while not task.done():
            if not self.turn() and not self.jump():
                raise RuntimeError("Nothing is ready and no timer is set, so this would wait forever.")
        return task.result()

    def is_running(self) -> bool:
        return _get_running() is self

    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Drop all callbacks and close all coroutines. Whatever they do then is ignored."""
        self._closed = True
        self._ready.clear()
        self._timers.clear()
        for task in self._tasks:
            if task.done():
                continue
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001 - it is dropped on purpose
            coro = task.get_coro()
            try:
                if coro is not None:
                    coro.close()
            except BaseException:  # noqa: BLE001, S112 - the world is closed
                continue
        self._tasks.clear()
        self._ready.clear()

    # --- the interface of asyncio ---------------------------------------------------------------------------------

    def call_soon(  # type: ignore[override]  # asyncio's own loops do not promise the types of arguments either
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> Any:
        handle = SimHandle(callback, args, context if context is not None else contextvars.copy_context(), self._now)
        self._ready.append(handle)
        return handle

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> Any:
        handle = SimHandle(callback, args, context if context is not None else contextvars.copy_context(), when)
        self._made += 1
        heapq.heappush(self._timers, (when, self._made, handle))
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> Any:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Generator[Any, None, Any] | Coroutine[Any, Any, Any],
        *,
        name: str | None = None,
        context: contextvars.Context | None = None,
        **_: Any,
    ) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, name=name or "sim", context=context)
        self._tasks.append(task)
        if len(self._tasks) > self._tasks_kept:
            self._tasks = [each for each in self._tasks if not each.done()]
            self._tasks_kept = 256 + 2 * len(self._tasks)
        return task

    def get_debug(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep the exception of a task or future that was never awaited."""
        error = context.get("exception")
        if error is not None and not isinstance(error, ProcessDied):
            self.errors.append(error)

    async def shutdown_asyncgens(self) -> None:
        """Do nothing, because asynchronous generators end with the code that created them."""

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Do nothing, because there is no executor."""


def make_loop(seed: int = 0) -> SimLoop:
    """Return a loop that draws the order of callbacks from this seed."""
    return SimLoop(seed)  # type: ignore[abstract]  # the missing methods are set below


def _is_dead(handle: SimHandle) -> bool:
    return handle.process is not None and not handle.process.alive


def _refused_method(name: str) -> Callable[..., NoReturn]:
    what = "threads" if name in ("run_in_executor", "call_soon_threadsafe") else f"outside ({name})"

    def refuse(*_: object, **__: object) -> NoReturn:
        raise UsageError(
            f"A simulated world has no {what}.",
            hint="Fake the step or the resource that needs it: world.fake(step, result).",
            code="usage.simulated",
        )

    return refuse


OUTSIDE = (*IO_METHODS, "run_in_executor", "call_soon_threadsafe", "run_forever")
# These are set as methods, because __getattribute__ would slow down every use of the loop.
for _name in OUTSIDE:
    setattr(SimLoop, _name, _refused_method(_name))
