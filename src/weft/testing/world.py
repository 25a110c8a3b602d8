"""A simulated world for tests, in which you move time, fake steps and crash the process.

The app runs on a store in memory; its own database is never touched. Everything is synchronous and depends only on the
seed. There is one process at a time. When it dies, its memory is lost but the store is kept, and a new process
continues.
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack, overload

from weft.authoring.app import App
from weft.authoring.handles import Event, Handle
from weft.authoring.open_resources import OpenResources
from weft.authoring.policies import Duration
from weft.authoring.runnable import Runnable
from weft.core.commands import CancelRun, Mailed
from weft.core.durations import duration_ms
from weft.core.ids import RunId
from weft.errors import UsageError
from weft.observe.explanation import Waiting
from weft.observe.step_logs import LogLine
from weft.runtime.fork_order import ForkOptions
from weft.runtime.host import Host
from weft.runtime.local import LocalRuns
from weft.runtime.service import RunService
from weft.runtime.settings import Settings
from weft.runtime.surroundings import Surroundings
from weft.steps.output_capture import capture_output
from weft.steps.resources import OPEN_RESOURCES
from weft.stores.memory import MemoryStore
from weft.testing.clock import InlineExecutor, SeededIds, SimClock
from weft.testing.crashes import Crashes, When
from weft.testing.fakes import CallBook, StepCall
from weft.testing.faults import WiredStore
from weft.testing.loop import Process, SimLoop, make_loop

if TYPE_CHECKING:
    from weft.testing.models import ModelCall
    from weft.testing.recorded_tools import Bundle

R = TypeVar("R")
T = TypeVar("T")

_NEVER = 1e12
"""Seconds after which periodic work of the engine would run, which is never.

No other process writes to this store, so no polling is needed. Skipping a year then costs no more than skipping a
minute.
"""
_SETTINGS = Settings(
    lease_seconds=_NEVER,
    poll_seconds=_NEVER,
    scan_seconds=_NEVER,
    idle_seconds=_NEVER,
    look_seconds=_NEVER,
    health_seconds=0,
)


class World:
    """A simulated world for one app. The same seed gives exactly the same world."""

    def __init__(self, app: App, seed: int = 0) -> None:
        self.seed = seed
        self.app = app
        self._loop = make_loop(seed)
        self._clock = SimClock(self._loop)
        self._ids = SeededIds(self._loop, seed)
        self._store = MemoryStore()
        self._book = CallBook(app)
        self._crashes = Crashes(self._book)
        self._services: list[RunService] = []
        """The services of all processes so far. The last one is the current process."""
        self._named = 0
        # The arguments must not refer to the world, or it would never be freed.
        self._finalizer = weakref.finalize(self, _close_all, self._loop, self._services)
        with self._bind_app():
            self._boot()

    # --- runs -----------------------------------------------------------------------------------------------------

    @overload
    def run(self, call: Coroutine[Any, Any, R], /, *, id: str | None = None) -> R: ...
    @overload
    def run(self, workflow: Runnable[R], input: Mapping[str, Any] = ..., /, *, id: str | None = None) -> R: ...
    def run(self, call: Any, input: Mapping[str, Any] | None = None, /, *, id: str | None = None) -> Any:
        """Start a run, skip time until it ends, and return its result. Raises RunFailed, RunCancelled."""
        return self.start(call, input or {}, id=id).result()

    @overload
    def start(self, call: Coroutine[Any, Any, R], /, *, id: str | None = None) -> SimRun[R]: ...
    @overload
    def start(
        self, workflow: Runnable[R], input: Mapping[str, Any] = ..., /, *, id: str | None = None
    ) -> SimRun[R]: ...
    def start(self, call: Any, input: Mapping[str, Any] | None = None, /, *, id: str | None = None) -> SimRun[Any]:
        """Start a run. It makes progress when time passes or the world settles."""
        invocation = self.app.registered.invocation(call, input)
        workflow = invocation.workflow
        self._named += 1
        # The id is chosen first, so that a start that is repeated after a crash is the same start.
        run_id = id if id is not None else f"{workflow.name}-{self._named}"

        started = self.perform(lambda: self.app.launch(invocation, run_id))
        # Another run may have taken the start, by the rule of its workflow.
        return SimRun(self, started.id, lambda: self.app.get(started.id, workflow))

    # --- time -----------------------------------------------------------------------------------------------------

    @property
    def now_ms(self) -> int:
        """The time in this world, in milliseconds since 1970."""
        return self._clock.now_ms()

    def advance(self, duration: Duration) -> None:
        """Let time pass, with everything that happens meanwhile."""
        until = self._loop.time() + duration_ms(duration) / 1000
        with self._bind_app():
            self._drive(lambda: False, until=until)

    def settle(self) -> None:
        """Run everything that can run without moving time."""
        self.advance(0)

    # --- steps ----------------------------------------------------------------------------------------------------

    def fake(self, step: object, *results_or_exceptions: Any) -> None:
        """Answer each attempt of a step with one of these values or exceptions, in order. The last one is repeated.

        A function is called with the step's arguments. A resource is faked by one value, which steps get as it is; an
        exception means that it cannot be opened.
        """
        self._book.fake(step, results_or_exceptions)

    def fake_model(self, alias: str, *replies: Any) -> None:
        """Answer the calls of a model with these replies, one per attempt. A call beyond the last one fails.

        A reply is a text, a value (its JSON), ``calls(refund={…})``, an exception, or a function of the request that
        returns one of these.
        """
        self._book.models.script(alias, replies, self.app.registered.models.aliases)

    def model_calls(self, alias: str) -> list[ModelCall]:
        """Return every call of a model so far, across crashes."""
        self.settle()
        return self._book.models.calls(alias)

    def fake_tools(self, bundle: Bundle) -> None:
        """Answer all steps with the results of recorded runs, by their arguments: nothing is performed live.

        Use it to try another model or prompt against the same world. ``bundle`` is a file of ``weft export``, or what
        ``export_events`` returns. A call that was not recorded fails, unless it is faked. Raises UsageError, Corrupt.
        """
        from weft.testing.recorded_tools import RecordedTools  # noqa: PLC0415 - few worlds need it

        self._book.recorded = RecordedTools(bundle)

    def calls(self, step: object) -> list[StepCall]:
        """Return every call of a step so far, across crashes."""
        self.settle()
        return self._book.calls(step)

    # --- crashes --------------------------------------------------------------------------------------------------

    def crash(self, *, at: object, when: When = "after", times: int = 1) -> None:
        """Plan a crash of the process at a step or location, before or after its result is committed.

        With ``before``, the body has run but its result is lost, so it runs again with the same key. With ``after``, it
        does not run again. The next process starts by itself.
        """
        self._crashes.plan(self._book.name_of(at), when, times)

    def restart(self) -> None:
        """Kill the process now and start a new one."""
        with self._bind_app():
            self._process.die()
            self._boot()

    @property
    def writes(self) -> list[str]:
        """Every write to the store so far. A crash can be planned before or after each of them."""
        return list(self._crashes.writes)

    def crash_at_write(self, place: tuple[int, When] | None) -> None:
        """Plan a crash before or after the write with this index, counted from the beginning of the world."""
        self._crashes.at_write = place

    def missed_crashes(self) -> list[str]:
        """Return the planned crashes that have not happened."""
        return self._crashes.pending()

    def new_key(self) -> str:
        """Return a new idempotency key, so that a command repeated after a crash counts once."""
        return self._ids.new()

    # --- internals ------------------------------------------------------------------------------------------------

    def perform(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine in the process until it is done, and skip waiting times.

        If the process dies, ``make`` is called again in the next process.
        """
        with self._bind_app():
            while True:
                process = self._process
                task: asyncio.Task[T] = process.context.copy().run(self._loop.create_task, make())
                if self._drive(lambda: task.done() or not process.alive):  # noqa: B023 - used within this round only
                    return task.result()

    def _tell(self, run_id: str, command: Mailed) -> None:
        """Send a command to a run. It counts once, even if it is repeated after a crash."""
        key = self.new_key()
        self.perform(lambda: self._service.tell(RunId(run_id), command, key=key))

    def _drive(self, over: Callable[[], bool], *, until: float | None = None) -> bool:
        """Run until ``over`` returns True. Returns False if the process died or the time was up before that."""
        loop = self._loop
        process = self._process
        while process.alive and not over():
            if loop.turn():
                continue
            if until is not None:
                if not loop.jump(until):
                    break
            elif loop.next_timer() - loop.time() > _NEVER / 10:
                raise self._stuck()
            else:
                loop.jump()
        if not process.alive:
            self._boot()
            return until is not None and self._drive(over, until=until)
        if self._loop.errors:
            raise self._loop.errors.pop(0)
        return over()

    def _stuck(self) -> UsageError:
        rows = [run for run in self._store.content.runs.values() if run.is_open]
        waits = "; ".join(f"{run.id} is {run.status}" for run in rows) or "no run is open"
        return UsageError(
            f"Nothing more can happen by itself in this world: {waits}.",
            hint="Use world.start(...), and then send() or answer() for what run.waiting_for() lists.",
            code="usage.simulated",
        )

    def _boot(self) -> None:
        """Start a new process on the same store.

        The runs of the previous process can be claimed at once, as when the system frees the locks of a dead process.
        """
        for local in _hosts_of(self._services[-1:]):
            self._store.content.hosts.pop(local.host, None)
        self._process = process = Process(f"process-{len(self._services) + 1}")
        # A world opens resources at first use, so that a test can fake them first.
        resources = OpenResources(self.app.registered.resources, self._book.faked_resource)
        process.context.run(OPEN_RESOURCES.set, resources)
        host = process.context.copy().run(self._open)
        # This stack is never closed, because a simulated process ends by dying.
        entered = contextlib.AsyncExitStack().enter_async_context(host)
        started = process.context.copy().run(self._loop.create_task, entered)
        if self._drive(lambda: started.done() or not process.alive):
            started.result()

    def _open(self) -> Host:
        store = WiredStore(self._store.share(), self._crashes.carry)
        given = Surroundings(
            store=store,
            clock=self._clock,
            ids=self._ids,
            executor=InlineExecutor(),
            settings=_SETTINGS,
            wrap_body=self._book.watched,
        )
        self._service = RunService(store, self._clock, self._ids)
        self._services.append(self._service)
        self.app.bind(self._service)
        return Host(given, self.app.catalogue(), self._service)

    @contextlib.contextmanager
    def _bind_app(self) -> Iterator[None]:
        """Bind the app to the service of this world, and keep what its steps print."""
        before = self.app.bind(self._services[-1] if self._services else None)
        end_capture = capture_output()
        try:
            yield
        finally:
            end_capture()
            self.app.bind(before)

    def close(self) -> None:
        """Stop everything that still runs. The world cannot be used afterwards. Also called on garbage collection."""
        self._finalizer()


def _hosts_of(services: Sequence[RunService]) -> list[LocalRuns]:
    return [service.local for service in services if service.local is not None]


def _close_all(loop: SimLoop, services: Sequence[RunService]) -> None:
    for local in _hosts_of(services):
        for actor in local.all():
            actor.close()
    loop.close()


class SimRun(Generic[R]):
    """A run in a world. Reading anything settles the world first."""

    def __init__(self, world: World, run_id: str, handle: Callable[[], Handle[R]]) -> None:
        self.id = run_id
        self.world = world
        self._handle = handle

    def __repr__(self) -> str:
        return f"<weft run {self.id} in a world of seed {self.world.seed}>"

    def result(self) -> R:
        """Skip time until the run ends, and return its result. Raises RunFailed, RunCancelled."""
        return self.world.perform(lambda: self._handle().result())

    @property
    def status(self) -> str:
        """The status after the world has settled."""
        self.world.settle()
        return self.world.perform(lambda: self._handle().status())

    @property
    def events(self) -> list[Event]:
        """The log, oldest first."""
        self.world.settle()

        async def read() -> list[Event]:
            return [event async for event in self._handle().events()]

        return self.world.perform(read)

    @property
    def logs(self) -> list[LogLine]:
        """What steps printed and logged, oldest first."""
        self.world.settle()

        async def read() -> list[LogLine]:
            return [line async for line in self._handle().logs()]

        return self.world.perform(read)

    def send(self, name: str, body: Any = None, *, key: str | None = None) -> None:
        """Send a message."""
        key = key or self.world.new_key()
        self.world.perform(lambda: self._handle().send(name, body, key=key))

    def request(self, name: str, body: Any = None, *, key: str | None = None) -> Any:
        """Send a message and skip time until the run answers it."""
        key = key or self.world.new_key()
        return self.world.perform(lambda: self._handle().request(name, body, key=key))

    def answer(self, name: str, *, approved: bool = True, form: Any = None, by: str = "", reason: str = "") -> None:
        """Answer an open question."""
        self.world.settle()
        key = self.world.new_key()
        self.world.perform(
            lambda: self._handle().decide(name, approved=approved, form=form, by=by, reason=reason, key=key)
        )

    def cancel(self, reason: str = "", *, force: bool = False) -> None:
        """Ask the run to stop. ``force`` ends it without running its code."""
        self.world._tell(self.id, CancelRun(reason, force))  # noqa: SLF001 - a run is part of its world

    def fork(self, **options: Unpack[ForkOptions]) -> SimRun[R]:
        """Make a new run that shares the past of this one, as ``Handle.fork`` does."""
        self.world.settle()
        key = self.world.new_key()
        forked = self.world.perform(lambda: self._handle().fork(key=key, **options))

        def forked_handle() -> Handle[R]:
            made = self._handle()
            made.id = forked.id
            return made

        return SimRun(self.world, forked.id, forked_handle)

    def waiting_for(self) -> list[Waiting]:
        """Return what the run waits for, with kind, location, begin and end of each wait."""
        self.world.settle()

        async def explain() -> list[Waiting]:
            return (await self._handle().explain()).waiting

        return self.world.perform(explain)
