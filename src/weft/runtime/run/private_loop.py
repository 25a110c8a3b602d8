"""The event loop of one code run: first in, first out, no clock, no I/O.

The code of a workflow runs only here, so that ``asyncio.gather``, ``TaskGroup`` and ``wait`` are deterministic. A
callback of the process's own loop pumps this loop until nothing is ready. Methods that need a real loop (time, sockets,
threads) raise a typed error that says what to write instead.

Rules: docs/internals/engine.md#rule-20.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import sys
import zlib
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from pathlib import PurePath
from types import FunctionType, MethodType
from typing import Any, NoReturn

from weft.core.durations import format_ms
from weft.errors import ForeignAwait, LimitExceeded, UsageError
from weft.runtime.run.scopes import CURRENT, NameScope
from weft.steps.failures import text_of
from weft.steps.frames import is_users
from weft.steps.raised import ends_host

log = logging.getLogger("weft")

SLICE_SECONDS = 0.005
"""How long a slice is. A run that has more to do continues after other runs had their turn."""
SPIN_SECONDS = 1.0
"""If the code runs this long without asking for anything, it spins."""
TURNS_MAX = 2_000_000
"""The same limit in turns, for simulated worlds in which no time passes while code runs."""
TURNS_PER_SLICE_MAX = 20_000
"""The same limit for slices."""
SWALLOWED_MAX = 8
"""How often code that ends may ask for something, and swallow ``weft.Evicted``, before it waits for ever."""
TURNS_PER_LOOK = 64
"""How many turns to run between two checks of the clock."""

_get_running = asyncio._get_running_loop  # noqa: SLF001 - used by asyncio itself
_set_running = asyncio._set_running_loop  # noqa: SLF001

_WRITTEN_IN_PYTHON = frozenset({FunctionType, MethodType, partial})
"""The types of callbacks that may be taken back. The steps of tasks, which are most of them, have other types."""

if sys.version_info >= (3, 12):
    _swap_current_task = asyncio.tasks._swap_current_task  # noqa: SLF001
else:

    def _swap_current_task(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any] | None) -> asyncio.Task[Any] | None:
        """Make a task the current one of a loop, or none. Returns the one before."""
        before = asyncio.current_task(loop)
        if before is not None:
            asyncio._leave_task(loop, before)  # noqa: SLF001
        if task is not None:
            asyncio._enter_task(loop, task)  # noqa: SLF001
        return before


IO_METHODS = (
    "create_connection",
    "create_server",
    "create_unix_connection",
    "create_unix_server",
    "create_datagram_endpoint",
    "getaddrinfo",
    "getnameinfo",
    "sendfile",
    "start_tls",
    "sock_recv",
    "sock_recv_into",
    "sock_recvfrom",
    "sock_sendall",
    "sock_sendto",
    "sock_connect",
    "sock_accept",
    "sock_sendfile",
    "add_reader",
    "add_writer",
    "add_signal_handler",
    "subprocess_exec",
    "subprocess_shell",
    "connect_read_pipe",
    "connect_write_pipe",
)
"""The methods of an event loop that reach the network, files, signals or other processes."""


class ScopedTask(asyncio.Task[Any]):
    """A task of a workflow. Its hash comes from its place, so that a set of tasks has the same order in every process.

    A count would not do: replay creates fewer tasks, because it does not begin losers and earlier rounds again.
    """

    def __init__(self, coro: Any, *, place: str, loop: PrivateLoop, context: contextvars.Context) -> None:
        # asyncio keeps all tasks of a process in one set, where tasks with the same place would collide.
        self._hash = id(self) >> 4
        self._own_context = context
        super().__init__(coro, loop=loop, context=context)
        self._hash = zlib.crc32(place.encode())

    def __hash__(self) -> int:
        return self._hash

    def runs_in(self, context: contextvars.Context | None) -> bool:
        return self._own_context is context

    def end(self, error: type[BaseException]) -> None:
        """Throw an error into the code, in the task's own scope, as if the task still ran."""
        self._log_destroy_pending = False  # the task is dropped on purpose
        coro = self.get_coro()
        if not self.done() and coro is not None:
            loop = self.get_loop()
            before = _swap_current_task(loop, self)  # anyio asks for the current task when its scopes end
            try:
                self._own_context.run(_throw_and_close, coro, error)
            finally:
                _swap_current_task(loop, before)


class ReadyCall(tuple[Callable[..., object], tuple[Any, ...], contextvars.Context]):
    """A callback with its arguments and context that runs soon: what ``call_soon`` returns."""

    __slots__ = ()

    def cancel(self) -> None:
        """Take the callback back. Works in the code of the run, which is where callbacks are made."""
        loop = _get_running()
        if isinstance(loop, PrivateLoop):
            kept = [call for call in loop.ready if call is not self]
            loop.ready.clear()
            loop.ready.extend(kept)


class PrivateLoop(asyncio.AbstractEventLoop):
    """A deterministic event loop for the code of one run."""

    get_debug = staticmethod(bool)  # False; asyncio asks for every task and future
    # Initial values are class attributes, because many runs never change them.
    workflow = ""
    """The name of the workflow, for errors."""
    foreign: ForeignAwait | None = None
    unfinished = False
    """The slice is over, and something is still ready."""
    has_asked = False
    """Set when the code asks for something, recorded or new, or is told a fact: then it does not spin."""
    swallowed = 0
    """How often the code went on asking after it was told to end."""
    _outer: asyncio.AbstractEventLoop | None = None
    _turns = 0
    _looked_at: float | None = None
    _slice_ends = 0.0
    _slice_began = 0
    _spun = 0.0
    _turns_asked = 0

    def __init__(self) -> None:
        self.ready: deque[tuple[Callable[..., object], tuple[Any, ...], contextvars.Context]] = deque()
        self.tasks: dict[int, ScopedTask] = {}
        self.frozen = False
        self.stray: BaseException | None = None
        """An exception that a callback of the code raised outside any task."""
        self.monotonic: Callable[[], float] = _frozen_clock
        """The clock that measures slices."""

    def begin_slice(self) -> None:
        """Give the code another few milliseconds."""
        self.unfinished = False
        self._looked_at = None
        self._slice_began = self._turns

    def is_over_time(self) -> bool:
        """Count a request that is answered at once. Returns whether its answer must wait for the next slice."""
        self._turns += 1
        if not self._turns % TURNS_PER_LOOK:
            self._look_at_clock()
        return self.unfinished

    def is_over_time_after(self, requests: int) -> bool:
        """Count requests that were answered at once. Returns whether the next answer must wait for the next slice."""
        self._turns += requests
        self._look_at_clock()
        return self.unfinished

    def _look_at_clock(self) -> None:
        self.has_asked = True
        self.unfinished = self._slice_is_over(None)

    def pump(self) -> None:
        """Run until nothing is ready, or the slice is over."""
        ready = self.ready
        if not ready or self.unfinished:
            return
        outer = self._outer = _get_running()
        _set_running(self)
        try:
            while ready and not self.frozen:
                callback, args, context = ready.popleft()
                try:
                    context.run(callback, *args)
                except BaseException as error:
                    if ends_host(error):
                        raise
                    self._on_callback_error(error)
                self._turns += 1
                if not self._turns % TURNS_PER_LOOK and self._slice_is_over(context):
                    self.unfinished = True
                    break
        finally:
            _set_running(outer)

    def _slice_is_over(self, context: contextvars.Context | None) -> bool:
        """Return whether the slice is over. Raises LimitExceeded if the code spins. ``context`` is of its last turn."""
        _set_running(self._outer)  # the clock of a simulated world is its loop
        now = self.monotonic()
        _set_running(self)
        if self.has_asked:
            self.has_asked = False
            self._spun = 0.0
            self._turns_asked = self._turns
        elif self._looked_at is not None:
            self._spun += now - self._looked_at
        if self._looked_at is None:
            self._slice_ends = now + SLICE_SECONDS
        self._looked_at = now
        if self._spun >= SPIN_SECONDS or self._turns - self._turns_asked > TURNS_MAX:
            raise LimitExceeded(
                f"The workflow loops{self._current_line(context)} without waiting for anything.",
                hint="Wait in every round: ctx.sleep, ctx.receive or a step. Long computing belongs in a step.",
                code="code.spinning",
            )
        return now >= self._slice_ends or self._turns - self._slice_began > TURNS_PER_SLICE_MAX

    def _current_line(self, context: contextvars.Context | None) -> str:
        """Return the current line of the task with this context; if that has ended, the line of the first task."""
        tasks = list(self.tasks.values())
        candidates = [task for task in tasks if task.runs_in(context)] + tasks[:1]
        return next(filter(None, map(line_of, candidates)), "")

    def _on_callback_error(self, error: BaseException) -> None:
        """Keep an error that a callback of the code raised, outside any task.

        asyncio also raises SystemExit and KeyboardInterrupt of a task out of the loop; these belong to the task.
        """
        if not any(task.done() and not task.cancelled() and task.exception() is error for task in self.tasks.values()):
            self.stray = self.stray or error

    def spawn(self, coro: Coroutine[Any, Any, Any], scope: NameScope[Any]) -> ScopedTask:
        """Create a task that runs in this scope."""
        context = contextvars.copy_context()
        context.run(CURRENT.set, scope)
        return self._make_task(coro, scope, context)

    def _make_task(
        self, coro: Coroutine[Any, Any, Any], scope: NameScope[Any], context: contextvars.Context
    ) -> ScopedTask:
        task = ScopedTask(coro, place=scope.prefix, loop=self, context=context)
        self.tasks[id(task)] = task
        task.add_done_callback(self._forget_task)
        return task

    def _forget_task(self, task: asyncio.Task[Any]) -> None:
        self.tasks.pop(id(task), None)

    def end_all(self, error: type[BaseException]) -> None:
        """Throw an error into every task, in the task's own context. The reaction of the code is ignored."""
        tasks = list(self.tasks.values())
        outer = _get_running()
        _set_running(self)
        try:
            for task in tasks:
                task.end(error)
        finally:
            _set_running(outer)
        self.tasks.clear()
        _drop_callbacks(tasks)

    def ignores_end(self) -> bool:
        """Return whether the code was told to end, and has swallowed it again and again."""
        return self.swallowed > SWALLOWED_MAX

    async def block_if_end_ignored(self) -> None:
        """Wait for ever in such code."""
        while self.ignores_end():
            await self.create_future()

    async def frozen_until(self, waiter: asyncio.Future[None]) -> None:
        """Run nothing else in this loop until ``thaw``, so that the caller continues as if it had not waited."""
        self.frozen = True
        await waiter

    def thaw(self, waiter: asyncio.Future[None]) -> None:
        """End a freeze. The caller of ``frozen_until`` continues first."""
        self.frozen = False
        if waiter.done():
            return
        rest = list(self.ready)
        self.ready.clear()
        waiter.set_result(None)
        self.ready.extend(rest)

    # --- the interface of an event loop ---------------------------------------------------------------------------

    def call_soon(  # type: ignore[override]  # only what is written in Python gets a handle: nobody sees the others
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> ReadyCall | None:
        call = (callback, args, context if context is not None else contextvars.copy_context())
        if type(callback) not in _WRITTEN_IN_PYTHON:
            self.ready.append(call)
            return None
        handle = ReadyCall(call)
        self.ready.append(handle)
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Generator[Any, None, Any] | Coroutine[Any, Any, Any],
        *,
        name: object = None,
        context: contextvars.Context | None = None,
        **_: Any,
    ) -> asyncio.Task[Any]:
        _refuse_unordered(sys._getframe(1))  # noqa: SLF001
        scope = CURRENT.get().for_task()
        inner = context if context is not None else contextvars.copy_context()
        inner.run(CURRENT.set, scope)
        return self._make_task(coro, scope, inner)  # type: ignore[arg-type]

    def get_task_factory(self) -> None:
        """Return None: tasks are made in one way only. anyio asks."""

    def is_running(self) -> bool:
        return _get_running() is self

    def is_closed(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Ignore exceptions of tasks that were never awaited, as ``asyncio.gather`` does."""

    async def shutdown_asyncgens(self) -> None:
        """Do nothing, because asynchronous generators end with the code that created them."""

    def _raise_foreign_await(self, what: str, instead: str) -> NoReturn:
        where = _user_line()
        who = self.workflow or "The workflow"
        error = ForeignAwait(
            f"{who} waits{where} for something Weft cannot record: {what}. After a restart it would wait again.",
            hint=instead,
        )
        self.foreign = self.foreign or error
        raise error

    def call_later(self, delay: float, callback: object, *args: object, context: object = None) -> NoReturn:
        if sys._getframe(1).f_code.co_name == "sleep":  # noqa: SLF001
            instead = f'Write: await ctx.sleep("{format_ms(int(delay * 1000))}"); other I/O belongs in a step.'
            self._raise_foreign_await(f"asyncio.sleep({delay:g})", instead)
        self.call_at(delay, callback, *args)

    def call_at(self, when: float, callback: object, *args: object, context: object = None) -> NoReturn:
        self._raise_foreign_await(
            "a timer of asyncio", 'Write: await ctx.sleep("1h"), or give timeout=… to the call that may take too long.'
        )

    def time(self) -> NoReturn:
        self._raise_foreign_await(
            "the clock of asyncio", "Write: await ctx.now(), or timeout=… on the call that may take too long."
        )

    def run_in_executor(self, executor: object, func: object, *args: object) -> NoReturn:
        self._raise_foreign_await(
            "a thread", "Put the work into a step: a plain `def` step runs in a thread by itself."
        )

    def call_soon_threadsafe(self, callback: object, *args: object, context: object = None) -> NoReturn:
        self._raise_foreign_await(
            "a thread", "Put the work into a step: a plain `def` step runs in a thread by itself."
        )


def _throw_and_close(coro: Any, error: type[BaseException]) -> None:
    try:
        coro.throw(error())
        coro.close()
    except BaseException:  # noqa: BLE001 - the code is being closed
        if getattr(coro, "cr_frame", None) is not None:
            _keep_for_ever(coro)


def _drop_callbacks(tasks: list[ScopedTask]) -> None:
    """Mark tasks that ended, and what they wait for, as cancelled, so that they drop their callbacks.

    A task and what it waits for refer to each other. Without the cycle, the memory of a run is freed at once.
    """
    futures: list[Any] = [*tasks, *(task._fut_waiter for task in tasks)]  # type: ignore[attr-defined]  # noqa: SLF001
    for future in futures:
        # Not future.cancel(): a task would wait for its code to end, and ``asyncio.gather`` for its tasks.
        if isinstance(future, asyncio.Future) and asyncio.Future.cancel(future):
            futures.extend(getattr(future, "_children", ()))  # of asyncio.gather


def _keep_for_ever(coro: Any) -> None:
    """Keep code that swallows its end in memory for ever.

    Python would close it when it frees it, outside its run: there every request fails at once, and the code would loop.
    """
    import ctypes  # noqa: PLC0415 - hardly ever needed

    log.warning("weft: %s swallows weft.Evicted and every other exception; it stays in memory", coro.__qualname__)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(coro))


def _frozen_clock() -> float:
    return 0.0


def error_of_task(task: asyncio.Task[Any]) -> BaseException | None:
    """Return the exception of a task that is done. Call it once: a cancelled task returns its exception once."""
    try:
        return task.exception()
    except asyncio.CancelledError as error:
        return error


def line_of(task: asyncio.Task[Any]) -> str:
    """Return the current line of a task in the user's code: " at app.py:12", or an empty string."""
    where = ""
    coro: Any = task.get_coro()
    while (frame := getattr(coro, "cr_frame", None)) is not None:
        path = frame.f_code.co_filename
        if not where or is_users(path):
            where = f" at {path.rpartition('/')[2]}:{frame.f_lineno}"
        coro = getattr(coro, "cr_await", None)
    return where


def make_loop() -> PrivateLoop:
    """Make a loop for one run."""
    return PrivateLoop()  # type: ignore[abstract]  # the missing methods are added below; they raise errors


def _forbid_method(name: str) -> None:
    def refuse(self: PrivateLoop, *_: object, **__: object) -> NoReturn:
        self._raise_foreign_await(f"{name} of asyncio", "Other I/O belongs in a step.")

    setattr(PrivateLoop, name, refuse)


for _name in (*IO_METHODS, "run_until_complete", "run_forever"):
    _forbid_method(_name)


def _refuse_unordered(frame: Any) -> None:
    """Reject coroutines in ``asyncio.as_completed``, which puts them into a set with no stable order."""
    for _ in range(3):
        if frame is None or frame.f_globals.get("__name__") != "asyncio.tasks":
            return
        if "completed" in frame.f_code.co_qualname.lower():
            raise UsageError(
                "asyncio.as_completed over coroutines has no fixed order, so it cannot be replayed.",
                hint="Make tasks first: asyncio.as_completed([asyncio.create_task(c) for c in calls]).",
                code="code.unordered",
            )
        frame = frame.f_back


def _user_line() -> str:
    """Return the current line of the user's code: the innermost frame outside Weft, Python and installed packages."""
    frame = sys._getframe(2)  # noqa: SLF001
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            return f" at {PurePath(frame.f_code.co_filename).name}:{frame.f_lineno}"
        if frame.f_back is None:
            break
        frame = frame.f_back
    return ""


def is_foreign(error: BaseException | None) -> bool:
    """Return whether an error comes from a future of another loop."""
    return isinstance(error, RuntimeError) and "attached to a different loop" in text_of(error)


def foreign_await(workflow: str, main: asyncio.Task[Any] | None, detail: str = "") -> ForeignAwait:
    """Make the error about code that waits for something that cannot be recorded."""
    where = line_of(main) if main is not None else ""
    return ForeignAwait(
        f"{workflow} waits{where} for something Weft cannot record{detail}. After a restart it would wait again.",
        hint='Write: await ctx.sleep("1h"); other I/O belongs in a step.',
    )
