"""Performs tasks in this process and reports how they ended.

The table of what is in flight outlives everything that happens to a run meanwhile (a reset, a reload): handing out what
is in it does nothing, and an entry stays until its report was taken. Slots are bounded; what has none waits in line.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from itertools import count
from typing import Protocol

import msgspec
from msgspec import Raw

from weft.core import commands as c
from weft.core.effects import PerformTask
from weft.core.ids import EntryId, RunUid
from weft.errors import Failure, OutcomeUnknown, StepTimedOut, UnknownStep
from weft.ports.boundary import boundary
from weft.ports.clock import Clock
from weft.ports.store import TaskOffer
from weft.ports.streams import NewChunk
from weft.runtime.catalogue import Catalogue
from weft.runtime.secrets import strike_json
from weft.runtime.streams import StreamWriter
from weft.steps.base import CURRENT_TASK, Executor, PerformedElsewhere, StepBody, Task
from weft.steps.failures import failure_of_step, text_of, told
from weft.steps.http.failures import AnsweredLater
from weft.steps.raised import BodyRaised, ends_host
from weft.steps.tracebacks import loggable

log = logging.getLogger("weft")

_get_running = asyncio._get_running_loop  # noqa: SLF001 - public in all but name

GRACE_SECONDS = 1.0
"""How long a body may clean up after it was cancelled. One that goes on for longer is abandoned."""

Report = c.ReportTaskSucceeded | c.ReportTaskFailed | c.ReportWorkAccepted


class _Recorded(msgspec.Struct):
    input: Raw
    result: Raw
    defaults: Raw = Raw(b"{}")


_recorded = msgspec.json.Decoder(_Recorded).decode
_arguments = msgspec.json.Decoder(dict[str, Raw]).decode
_encode = msgspec.json.Encoder().encode


class Flight(msgspec.Struct, eq=False):
    """One hand-out that has not been answered for."""

    uid: RunUid
    run_id: str
    effect: PerformTask
    body: StepBody | None
    offer: TaskOffer | None = None
    """Set if it was taken from the shared queue: its report goes to another host's run."""
    running: asyncio.Task[None] | None = None
    stalls: int = 0
    """How often this host had stood still when the store last said that this is its own."""
    since: float = 0.0
    """When it was handed out, on the monotonic clock."""
    begun: bool = False
    stopped: bool = False
    emitted: bool = False
    timer: asyncio.TimerHandle | None = None
    """When its timeout cancels it; every heartbeat of the body moves it. Afterwards: when it is abandoned."""
    timed_out: bool = False
    chunks: Iterator[int] = msgspec.field(default_factory=count)
    """Numbers for the chunks of output that its body writes, on whichever threads."""


class Guard(Protocol):
    """Asked before a body begins: its host may have been away so long that others perform it by now."""

    def is_doubtful(self, stalls: int) -> bool:
        """Whether what was its own after so many standstills may be in other hands by now."""
        ...

    async def confirm(self, flight: Flight) -> None:
        """Return when it is known to be in ours. If it is not, this never returns: the flight is stopped."""
        ...


_NONE: dict[EntryId, Flight] = {}


class Worker:
    """See the module."""

    def __init__(
        self,
        catalogue: Catalogue,
        executor: Executor,
        clock: Clock,
        *,
        slots: int,
        report: Callable[[Flight, Report], None],
        load: Callable[[bytes], Awaitable[bytes]],
        keep: Callable[[bytes], Awaitable[bytes]],
        streams: StreamWriter | None = None,
    ) -> None:
        self._catalogue = catalogue
        self._executor = executor
        self._clock = clock
        self._report = report
        self._load = load
        self._keep = keep
        self._streams = streams
        self._free = slots
        self.closed = False
        self.guard: Guard | None = None
        self.wrap_body: Callable[[Flight], StepBody | None] | None = None
        """Set by tests: what performs a task instead of its body."""
        self.failed: Callable[[str, BaseException], None] = _not_hosted
        """Told when an answer cannot be given."""
        self._context = contextvars.copy_context()
        self._line: deque[Flight] = deque()
        self.flights: dict[RunUid, dict[EntryId, Flight]] = {}
        self._stopping: dict[asyncio.Task[None], Flight] = {}
        """Bodies that were cancelled and may still clean up."""
        self._abandoned: set[asyncio.Task[None]] = set()
        """Bodies that went on after they were cancelled. Nobody waits for them."""

    def perform(self, flight: Flight) -> None:
        """Perform it as soon as there is a slot. What is in flight already is not performed again.

        Nor is what came before it: an old answer of the store may be heard after the task came anew from the queue.
        """
        if self.closed:
            return
        if self.wrap_body is not None:
            flight.body = self.wrap_body(flight)
        flights = self.flights.setdefault(flight.uid, {})
        present = flights.get(flight.effect.task)
        if present is not None:
            known, given = present.effect, flight.effect
            if (known.attempt, known.delivery) >= (given.attempt, given.delivery):
                return
            self._stop(present)
        flights[flight.effect.task] = flight
        flight.since = self._clock.monotonic()
        if self._free > 0:
            self._start(flight)
        else:
            self._line.append(flight)

    def answered(self, flight: Flight) -> None:
        """Its report was taken (or refused for good)."""
        if self._of(flight.uid).get(flight.effect.task) is flight:
            self._forget(flight.uid, flight.effect.task)

    def stop(self, uid: RunUid, task: EntryId) -> None:
        """Nobody waits for it: cancel what can be cancelled; an answer that still comes is dropped."""
        flight = self._of(uid).get(task)
        if flight is not None:
            self._forget(uid, task)
            self._stop(flight)

    def stop_all(self, uid: RunUid) -> None:
        """The run is over, or no longer ours."""
        for task in list(self._of(uid)):
            self.stop(uid, task)

    def stop_after(self, uid: RunUid, seq: int) -> None:
        """What began before it was durable, under numbers that the log may yet give to something else.

        What has a row is durable, whatever this host knew of the run when it took it.
        """
        for task in [task for task, flight in self._of(uid).items() if task > seq and flight.offer is None]:
            self.stop(uid, task)

    def has(self, uid: RunUid, task: EntryId, attempt: int, delivery: int) -> bool:
        """Whether this very hand-out is in flight here."""
        flight = self._of(uid).get(task)
        return flight is not None and (flight.effect.attempt, flight.effect.delivery) == (attempt, delivery)

    def is_busy(self, uid: RunUid) -> bool:
        """Whether anything of this run is in flight here."""
        return uid in self.flights

    def free_slots(self) -> int:
        return max(0, self._free - len(self._line))

    def _of(self, uid: RunUid) -> dict[EntryId, Flight]:
        return self.flights.get(uid, _NONE)

    def _forget(self, uid: RunUid, task: EntryId) -> None:
        flights = self.flights[uid]
        del flights[task]
        if not flights:
            del self.flights[uid]

    def _stop(self, flight: Flight) -> None:
        flight.stopped = True
        if flight.running is not None:
            self._cancel(flight, flight.running)
            if not flight.begun:
                flight.begun = True
                self._next()  # a task that is cancelled before its first step takes none

    def _cancel(self, flight: Flight, running: asyncio.Task[None]) -> None:
        """Cancel a body, and abandon it if it goes on for all that."""
        running.cancel()
        if flight.begun and not running.done():
            self._stopping[running] = flight
            _disarm(flight)
            flight.timer = running.get_loop().call_later(GRACE_SECONDS, self._abandon, flight, running)

    def _time_out(self, flight: Flight, running: asyncio.Task[None]) -> None:
        flight.timed_out = True
        self._cancel(flight, running)

    def _abandon(self, flight: Flight, running: asyncio.Task[None]) -> None:
        """The body swallowed its cancellation. Its attempt has timed out, or nobody waits for it any more."""
        _disarm(flight)
        flight.running = None
        del self._stopping[running]
        self._abandoned.add(running)
        log.warning(
            "weft: %s of %s goes on although it was cancelled; it is abandoned, and what it returns is ignored. "
            "Let asyncio.CancelledError pass.",
            flight.effect.location or flight.effect.step,
            flight.run_id,
        )
        if not flight.stopped:
            flight.stopped = True
            self._report(flight, self._failed(flight.effect, flight.body, TimeoutError()))
        self._next()

    def _start(self, flight: Flight) -> None:
        self._free -= 1
        # A context of its own: a body must not see the scope of the workflow whose turn happens to hand it out.
        flight.running = asyncio.get_running_loop().create_task(self._perform(flight), context=self._context.copy())

    def _next(self) -> None:
        self._free += 1
        self._fill()

    @contextlib.contextmanager
    def _away(self) -> Iterator[None]:
        """A body that waits for a run gives up its slot meanwhile: the run may need it."""
        self._free += 1
        self._fill()
        try:
            yield
        finally:
            self._free -= 1

    def _fill(self) -> None:
        while self._free > 0 and self._line:
            waiting = self._line.popleft()
            if not waiting.stopped:
                self._start(waiting)

    async def _perform(self, flight: Flight) -> None:
        flight.begun = True
        try:
            report: Report = await self._attempt(flight)
            if flight.emitted and self._streams is not None:
                await self._streams.flush()
            if not flight.stopped:
                boundary("step.after")
                self._report(flight, report)
        except asyncio.CancelledError:
            if not flight.stopped:
                raise
        except Exception as error:  # noqa: BLE001 - a defect of ours: its answer would be lost
            self.failed(f"performing {flight.effect.step}", error)
        finally:
            self._ended(flight)

    def _ended(self, flight: Flight) -> None:
        _disarm(flight)
        if flight.running is not None:
            self._stopping.pop(flight.running, None)
            self._next()
        else:
            self._abandoned.discard(asyncio.current_task())

    async def _attempt(self, flight: Flight) -> Report:
        effect = flight.effect
        body = flight.body
        CURRENT_TASK.set(
            Task(
                key=effect.key,
                attempt=effect.attempt,
                run_id=flight.run_id,
                step=effect.step,
                number=effect.task,
                away=self._away,
                beat=partial(self._beat, flight),
                emit=partial(self._emit, flight),
            )
        )
        try:
            if body is None:
                return self._failed(effect, None, _unknown(effect.step))
            given = await self._given(effect)
            if self.guard is not None and self.guard.is_doubtful(flight.stalls):
                await self.guard.confirm(flight)
            boundary("step.before")
            if effect.policy.timeout_ms:
                self._arm(flight)
            output = await body.perform(given, self._executor)
            _disarm(flight)
            kept = Raw(await self._keep(strike_json(output)))
            return c.ReportTaskSucceeded(effect.task, effect.attempt, effect.delivery, kept)
        except AnsweredLater:
            return c.ReportWorkAccepted(effect.task, effect.attempt, effect.delivery)
        except BaseException as error:
            if _ends_host(flight, error):
                raise
            # Whatever the body raises is its answer.
            return self._failed(effect, body, _raised(flight, error))

    def _arm(self, flight: Flight) -> None:
        """Let the timeout begin."""
        running = flight.running
        if running is not None:
            seconds = flight.effect.policy.timeout_ms / 1000
            flight.timer = running.get_loop().call_later(seconds, self._time_out, flight, running)

    def _extend(self, flight: Flight) -> None:
        if flight.timer is not None and not flight.timed_out and not flight.stopped:
            flight.timer.cancel()
            self._arm(flight)

    def _beat(self, flight: Flight) -> bool:
        """Let the timeout begin anew, on whichever thread the body runs; whether anybody still waits for it."""
        running = flight.running
        if not flight.stopped and flight.timer is not None and running is not None:
            loop = running.get_loop()
            if _get_running() is loop:
                self._extend(flight)
            else:
                loop.call_soon_threadsafe(self._extend, flight)
        return not flight.stopped

    def _emit(self, flight: Flight, stream: str, raw: bytes) -> None:
        """Output of a body, on whichever thread it runs; a hand-out that nobody waits for is not heard any more."""
        if self._streams is None or flight.stopped:
            return
        effect = flight.effect
        flight.emitted = True
        self._streams.emit(
            NewChunk(
                uid=flight.uid,
                stream=stream,
                key=f"{effect.task}.{effect.attempt}.{effect.delivery}.{next(flight.chunks)}",
                body=strike_json(raw),
                at=self._clock.now_ms(),
                by=effect.location,
                attempt=effect.attempt + effect.delivery - 1,
            )
        )

    async def _given(self, effect: PerformTask) -> bytes:
        """The arguments as JSON; those of an undo are picked from what its task was given and gave."""
        if effect.takes is None:
            return await self._load(bytes(effect.input))
        recorded = _recorded(effect.input)
        arguments = {**_arguments(recorded.defaults), **_arguments(await self._load(bytes(recorded.input)))}
        arguments["result"] = Raw(await self._load(bytes(recorded.result)))
        return _encode({name: arguments[name] for name in effect.takes if name in arguments})

    def _failed(self, effect: PerformTask, body: StepBody | None, error: BaseException) -> c.ReportTaskFailed:
        if isinstance(error, PerformedElsewhere):
            failure = msgspec.structs.replace(error.failure, location=effect.location)
            return c.ReportTaskFailed(effect.task, effect.attempt, effect.delivery, failure, not error.final)
        failure = failure_of_step(error, step=effect.step, location=effect.location, attempts=effect.attempt)
        if isinstance(error, TimeoutError) and effect.policy.timeout_ms and not text_of(error):
            failure = _timed_out(failure, effect)
        if effect.policy.effect == "irreversible" and told(lambda: getattr(error, "in_doubt", False), False):
            failure = msgspec.structs.replace(failure, type="OutcomeUnknown", code=OutcomeUnknown.code)
        retryable = body is not None and not body.is_final(error)
        wait_ms = told(lambda: getattr(error, "retry_after_ms", None), None) or 0
        return c.ReportTaskFailed(effect.task, effect.attempt, effect.delivery, failure, retryable, wait_ms)

    def give_up_waiting(self, since: float) -> list[Flight]:
        """Forget what has waited for a slot since then or longer, and could be performed elsewhere."""
        given = [
            flight
            for flight in self._line
            if flight.since <= since
            and not flight.stopped
            and flight.offer is None
            and self._catalogue.step(flight.effect.step) is flight.body
        ]
        for flight in given:
            self._line.remove(flight)
            self._forget(flight.uid, flight.effect.task)
        return given

    def begun(self) -> list[Flight]:
        """What is being performed. May be asked from another thread while the loop stands still."""
        return [flight for flights in list(self.flights.values()) for flight in list(flights.values()) if flight.begun]

    def next_in_line(self) -> Flight | None:
        """What has waited longest for a slot."""
        return self._line[0] if self._line else None

    async def drain(self, seconds: float) -> int:
        """Wait for what runs, at most that long; how many are left."""
        self._line.clear()
        running = [
            flight.running
            for flights in self.flights.values()
            for flight in flights.values()
            if flight.running is not None
        ]
        if running:
            await asyncio.wait(running, timeout=seconds)
        return sum(1 for task in running if not task.done())

    def abandon(self) -> None:
        """Stop everything now; unanswered tasks are for whoever comes next."""
        for uid in list(self.flights):
            self.stop_all(uid)
        self._line.clear()

    async def let_go(self) -> None:
        """Wait until what was stopped has cleaned up. What goes on for all that is hidden from the end of the loop.

        ``asyncio.run`` waits for every task that it knows.
        """
        if self._stopping:
            await asyncio.wait(self._stopping, timeout=GRACE_SECONDS)
        for task, flight in list(self._stopping.items()):
            self._abandon(flight, task)
        for task in self._abandoned:
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001 - it is dropped on purpose
            asyncio._unregister_task(task)  # noqa: SLF001 - documented for those who extend asyncio
        self._abandoned.clear()


def _raised(flight: Flight, error: BaseException) -> BaseException:
    """What ended an attempt, as its body or its timeout meant it."""
    if isinstance(error, BodyRaised):
        return error.error
    if flight.timed_out and isinstance(error, asyncio.CancelledError):
        late = TimeoutError()
        late.__cause__ = error  # it says where the body was
        return late
    return error


def _disarm(flight: Flight) -> None:
    if flight.timer is not None:
        flight.timer.cancel()
        flight.timer = None


def _ends_host(flight: Flight, error: BaseException) -> bool:
    """Whether this ends the hand-out from outside: the host stopped it, or is going down."""
    if isinstance(error, asyncio.CancelledError):
        return flight.stopped
    if isinstance(error, GeneratorExit):
        # A coroutine that is thrown away is closed from outside its task.
        return _get_running() is None or asyncio.current_task() is not flight.running
    return ends_host(error)


def _not_hosted(what: str, error: BaseException) -> None:
    log.error("weft: %s failed", what, exc_info=loggable(error))


def _unknown(step: str) -> UnknownStep:
    hint = "Import the module that has it before the engine starts."
    return UnknownStep(f'No step "{step}" is registered here.', hint=hint)


def _timed_out(failure: Failure, effect: PerformTask) -> Failure:
    unknown = effect.policy.effect == "irreversible"
    return msgspec.structs.replace(
        failure,
        type="OutcomeUnknown" if unknown else "TimedOut",
        message=f"{effect.step} took longer than {effect.policy.timeout_ms} ms",
        code=OutcomeUnknown.code if unknown else StepTimedOut.code,
        where="",
    )
