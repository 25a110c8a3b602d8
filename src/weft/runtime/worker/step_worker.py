"""Perform tasks in this process and report how they ended.

The table of flights does not depend on what happens to a run meanwhile (a reset, a reload): dispatching a task that is
in the table does nothing, and an entry stays until its report is delivered. Tasks without a free slot wait in a queue.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

from msgspec import Raw

from weft.core import commands as c
from weft.core import values
from weft.core.ids import EntryId, RunUid
from weft.ports import boundary as boundaries
from weft.ports.boundary import boundary
from weft.ports.clock import Clock
from weft.ports.streams import NewChunk
from weft.runtime.catalogue import HostCatalogue
from weft.runtime.secrets import REVEALED, strike_json
from weft.runtime.step_logs import StepLogWriter
from weft.runtime.streams import StreamWriter
from weft.runtime.task_policy import TaskPolicy
from weft.runtime.worker.arguments import arguments_of
from weft.runtime.worker.eager import EagerStart
from weft.runtime.worker.failures import AttemptTimedOut, ends_attempt, report_failure, report_raised, unknown_step
from weft.runtime.worker.flight import PRINTED, STREAMED, ConfirmsTasks, Flight, Report, TracesAttempts
from weft.runtime.worker.spending import note_spending, with_spent
from weft.runtime.worker.tool_meter import ToolMeter
from weft.steps.task import CURRENT_TASK, Executor, StepBody, Task
from weft.steps.task_permissions import PERMITS
from weft.steps.tracebacks import loggable_error

log = logging.getLogger("weft")

_get_running = asyncio._get_running_loop  # noqa: SLF001 - used by asyncio itself

GRACE_SECONDS = 1.0
"""How long a body may clean up after it was cancelled. After that it is abandoned."""

WAITING_STEPS_MAX = 1_000

_NONE: dict[EntryId, Flight] = {}


class StepWorker:
    """Tracks every task that is in flight here, and performs as many at once as there are slots."""

    def __init__(
        self,
        catalogue: HostCatalogue,
        executor: Executor,
        clock: Clock,
        *,
        slots: int,
        held: bool = False,
        report: Callable[[Flight, Report], None],
        load: Callable[[bytes], Awaitable[bytes]],
        keep: Callable[[bytes], Awaitable[bytes]],
        streams: StreamWriter | None = None,
        step_logs: StepLogWriter | None = None,
    ) -> None:
        self._catalogue = catalogue
        self._executor = executor
        self._clock = clock
        self._report = report
        self._load = load
        self._keep = keep
        self._streams = streams
        self._step_logs = step_logs
        self._free = slots
        self._held = held
        self.closed = False
        self.guard: ConfirmsTasks | None = None
        self.wrap_body: Callable[[Flight], StepBody | None] | None = None
        """Set by tests: a substitute for the bodies of tasks."""
        self.traces: TracesAttempts | None = None
        """Traces attempts, if traces are configured."""
        self.policy: TaskPolicy | None = None
        """Says what bodies may do, if there is a policy."""
        self.failed: Callable[[str, BaseException], None] = _not_hosted
        """Called when a report cannot be delivered."""
        self.on_over: Callable[[Flight], None] = _keep_row
        """Called when a flight from the shared queue is over: its report was delivered, or it was stopped and its body
        has ended."""
        self.tools = ToolMeter()
        self._context = contextvars.copy_context()
        self._eager = EagerStart()
        self._waiting_steps: set[str] = set()
        """Steps that have waited for something. They begin in tasks of their own."""
        self._queue: deque[Flight] = deque()
        self.flights: dict[RunUid, dict[EntryId, Flight]] = {}
        self._stopping: dict[asyncio.Task[None], Flight] = {}
        """Bodies that were cancelled and may still clean up."""
        self._abandoned: dict[Flight, asyncio.Task[None]] = {}
        """Bodies that kept running after they were cancelled. Their results are ignored."""

    def perform(self, flight: Flight) -> None:
        """Perform a task as soon as there is a free slot. A task that is already in flight is not performed again.

        Neither is an earlier delivery: an old answer of the store may arrive after the task came again from the queue.
        """
        if self.closed:
            return
        if self.wrap_body is not None:
            flight.body = self.wrap_body(flight)
        uid, task = flight.uid, flight.effect.task
        flights = self.flights.get(uid)
        if flights is None:
            flights = self.flights[uid] = {task: flight}
        else:
            present = flights.get(task)
            if present is not None:
                known, given = present.effect, flight.effect
                if (known.attempt, known.delivery) >= (given.attempt, given.delivery):
                    return
                self._stop(present)
            flights[task] = flight
        monotonic = self._clock.monotonic
        flight.since = monotonic()
        if self._free > 0 and not self._held:
            # The tasks of a fan-out take turns: if each began at once, those that never wait would block the loop.
            self._start(flight, at_once=len(flights) == 1)
        elif not self._queue or self._queue[-1].priority >= flight.priority:
            self._queue.append(flight)
        else:
            behind = next(n for n, waiting in enumerate(self._queue) if waiting.priority < flight.priority)
            self._queue.insert(behind, flight)

    def release(self) -> None:
        """Begin the steps that were held since the host started."""
        self._held = False
        self._fill()

    def answered(self, flight: Flight) -> None:
        """Forget a flight whose report was delivered (or finally refused)."""
        task = flight.effect.task
        flights = self.flights.get(flight.uid)
        if flights is not None and flights.get(task) is flight:
            del flights[task]
            if not flights:
                del self.flights[flight.uid]
        if flight.offer is not None:
            self._let_go(flight)  # also if it was stopped between the end of its body and this answer

    def stop(self, uid: RunUid, task: EntryId) -> None:
        """Cancel a task whose result is no longer needed; a late answer is dropped."""
        flight = self._flights_of(uid).get(task)
        if flight is not None:
            self._forget(uid, task)
            self._stop(flight)

    def stop_all(self, uid: RunUid) -> None:
        """Cancel all tasks of a run that is over, or that this host no longer owns."""
        if uid in self.flights:
            for task in list(self.flights[uid]):
                self.stop(uid, task)

    def stop_after(self, uid: RunUid, seq: int) -> None:
        """Cancel tasks that began before they were durable: the log may still give their numbers to other entries.

        A task with a row in the shared queue is durable, whatever this host knows about the run.
        """
        for task in [task for task, flight in self._flights_of(uid).items() if task > seq and flight.offer is None]:
            self.stop(uid, task)

    def has(self, uid: RunUid, task: EntryId, attempt: int, delivery: int) -> bool:
        """Return whether exactly this delivery of a task is in flight here."""
        flight = self._flights_of(uid).get(task)
        return flight is not None and (flight.effect.attempt, flight.effect.delivery) == (attempt, delivery)

    def is_busy(self, uid: RunUid) -> bool:
        """Return whether any task of this run is in flight here."""
        return uid in self.flights

    def free_slots(self) -> int:
        return max(0, self._free - len(self._queue))

    def _flights_of(self, uid: RunUid) -> dict[EntryId, Flight]:
        return self.flights.get(uid, _NONE)

    def _forget(self, uid: RunUid, task: EntryId) -> None:
        flights = self.flights[uid]
        del flights[task]
        if not flights:
            del self.flights[uid]

    def _stop(self, flight: Flight) -> None:
        flight.stopped = True
        if flight.running is not None and not flight.ended:
            self._cancel(flight, flight.running)
            if not flight.begun:
                flight.begun = True
                self._next()  # a task that is cancelled before its first step takes none
                self._let_go(flight)
        elif not flight.ended:
            self._let_go(flight)

    def _let_go(self, flight: Flight) -> None:
        """Say that a flight is over, if it is from the shared queue."""
        if flight.offer is not None:
            self.on_over(flight)

    def _cancel(self, flight: Flight, running: asyncio.Task[None]) -> None:
        """Cancel a body; abandon it if it keeps running."""
        running.cancel()
        if flight.begun and not running.done():
            self._stopping[running] = flight
            flight.disarm()
            flight.timer = running.get_loop().call_later(GRACE_SECONDS, self._abandon, flight, running)

    def _time_out(self, flight: Flight, running: asyncio.Task[None]) -> None:
        flight.timed_out = True
        self._cancel(flight, running)

    def _abandon(self, flight: Flight, running: asyncio.Task[None]) -> None:
        """Abandon a body that ignored its cancellation. Its attempt timed out, or its result is no longer needed."""
        flight.disarm()
        flight.running = None
        del self._stopping[running]
        self._abandoned[flight] = running
        log.warning(
            "weft: %s of %s keeps running although it was cancelled; it is abandoned, and its result is ignored. "
            "Let asyncio.CancelledError pass.",
            flight.effect.location or flight.effect.step,
            flight.run_id,
        )
        if not flight.stopped:
            flight.stopped = True
            self._report(flight, report_failure(flight.effect, flight.body, AttemptTimedOut()))
        else:
            self._let_go(flight)
        self._next()

    def _start(self, flight: Flight, *, at_once: bool = False) -> None:
        self._free -= 1
        loop = asyncio.get_running_loop()
        # A separate context: a body must not see the scope of the workflow whose turn dispatches it.
        body, context = self._perform(flight), self._context.copy()
        step = flight.effect.step
        task = self._eager.spare(loop) if at_once and step not in self._waiting_steps else None
        if task is None:
            flight.running = loop.create_task(body, context=context)
            return
        flight.running = task
        if not self._eager.begin(loop, body, context):
            flight.running = None
        elif len(self._waiting_steps) < WAITING_STEPS_MAX:
            self._waiting_steps.add(step)

    def _next(self) -> None:
        self._free += 1
        self._fill()

    @contextlib.contextmanager
    def _lend_slot(self) -> Iterator[None]:
        """Free the slot of a body while it waits for a run, which may need the slot."""
        self._free += 1
        self._fill()
        try:
            yield
        finally:
            self._free -= 1

    def _fill(self) -> None:
        while self._free > 0 and self._queue and not self._held:
            waiting = self._queue.popleft()
            if not waiting.stopped:
                self._start(waiting)

    async def _perform(self, flight: Flight) -> None:
        """Attempt a task and report how it ended. One coroutine does both, because calls are expensive."""
        effect, body = flight.effect, flight.body
        flight.begun = True
        CURRENT_TASK.set(partial(self._task_of, flight))
        traces = self.traces
        span: Any = None
        try:
            try:
                if body is None:
                    raise unknown_step(effect.step)  # noqa: TRY301 - reported like what a body raises
                given = bytes(effect.input)
                if effect.takes is not None or given.startswith(values.MARKED):
                    given = await arguments_of(effect, self._load)
                if self.policy is not None and (self.policy.current.checks_bodies or effect.policy.agent):
                    permits = await self.policy.permits(
                        flight.uid, flight.run_id, flight.workflow, flight.caller, effect
                    )
                    permits.bind(given)
                    PERMITS.set(permits)
                if self.guard is not None and self.guard.is_doubtful(flight.stalls):
                    await self.guard.confirm(flight)
                if boundaries.hook is not None:
                    boundary("step.before")
                if effect.policy.timeout_ms:
                    self._arm(flight)
                if effect.cover is not None:
                    flight.began = self._clock.monotonic()
                if traces is not None:
                    span = traces.begin(flight, given)
                output = await body.perform(given, self._executor)
                if traces is not None and span is not None:
                    traces.end(flight, span, output, None)
                    span = None
                if REVEALED:
                    output = strike_json(output)
                if flight.timer is not None:
                    flight.disarm()
                kept = values.seal_inline(output) or await self._keep(output)
                report: Report = c.ReportTaskSucceeded(effect.task, effect.attempt, effect.delivery, Raw(kept))
            except BaseException as error:
                if traces is not None and span is not None:
                    traces.end(flight, span, b"", error)
                if ends_attempt(flight, error):
                    raise
                report = report_raised(flight, error)
            if effect.cover is not None or flight.reported is not None:
                report = self._settled(flight, report)
            if flight.output:
                await self._store_output(flight)
            if not flight.stopped:
                if boundaries.hook is not None:
                    boundary("step.after")
                self._ended(flight)  # before the report: the run may continue at once, and end this flight
                deliver = self._report
                deliver(flight, report)
        except asyncio.CancelledError:
            if not flight.stopped:
                raise
        except Exception as error:  # noqa: BLE001 - a bug in Weft: the report would be lost
            self.failed(f"performing {effect.step}", error)
        finally:
            if not flight.ended:
                self._ended(flight)

    def _settled(self, flight: Flight, report: Report) -> Report:
        """Return the report with what the attempt has spent, and count it if it was a tool call."""
        elapsed = self._clock.monotonic() - flight.began if flight.began else 0.0
        if flight.effect.cover is not None:
            self.tools.count(flight.effect.cover, report, elapsed)
        return with_spent(flight, report, elapsed)

    async def _store_output(self, flight: Flight) -> None:
        """Store the output streams before the report. What was printed is stored soon after it."""
        if flight.output & PRINTED and self._step_logs is not None:
            self._step_logs.finish(flight)
        if flight.output & STREAMED and self._streams is not None:
            await self._streams.flush()

    def _task_of(self, flight: Flight) -> Task:
        """Make the task that a body sees."""
        effect = flight.effect
        return Task(
            key=effect.key,
            attempt=effect.attempt,
            run_id=flight.run_id,
            step=effect.step,
            number=effect.task,
            release_slot=self._lend_slot,
            beat=partial(self._extend_timeout, flight),
            emit=partial(self._emit, flight),
            place=effect.location,
            note=partial(self._step_logs.note, flight) if self._step_logs is not None else None,
            spend=partial(note_spending, flight),
            output_tokens=effect.cover.output if effect.cover is not None else 0,
        )

    def _ended(self, flight: Flight) -> None:
        flight.ended = True
        if flight.stopped:
            self._let_go(flight)
        if flight.timer is not None:
            flight.disarm()
        if flight.running is not None:
            if self._stopping:
                self._stopping.pop(flight.running, None)
            self._free += 1
            if self._queue:
                self._fill()
        else:
            self._abandoned.pop(flight, None)  # perhaps without a loop, when Python ends

    def _arm(self, flight: Flight) -> None:
        """Start the timeout."""
        running = flight.running
        if running is not None:
            seconds = flight.effect.policy.timeout_ms / 1000
            flight.timer = running.get_loop().call_later(seconds, self._time_out, flight, running)

    def _extend(self, flight: Flight) -> None:
        if flight.timer is not None and not flight.timed_out and not flight.stopped:
            flight.timer.cancel()
            self._arm(flight)

    def _extend_timeout(self, flight: Flight) -> bool:
        """Restart the timeout, from any thread. Returns whether the result is still needed."""
        running = flight.running
        if not flight.stopped and flight.timer is not None and running is not None:
            loop = running.get_loop()
            if _get_running() is loop:
                self._extend(flight)
            else:
                loop.call_soon_threadsafe(self._extend, flight)
        return not flight.stopped

    def _emit(self, flight: Flight, stream: str, raw: bytes, *, at_root: bool = False) -> None:
        """Write output of a body, from any thread. Output is dropped if the result is no longer needed."""
        if self._streams is None or flight.stopped:
            return
        effect = flight.effect
        flight.output |= STREAMED
        key, by = f"{effect.task}.{effect.attempt}.{effect.delivery}.{next(flight.chunks)}", effect.location
        root = flight.root if at_root else ""
        self._streams.emit(
            NewChunk(
                uid=RunUid(root) if root else flight.uid,
                stream=stream,
                key=f"{flight.uid}/{key}" if root else key,
                body=strike_json(raw),
                at=self._clock.now_ms(),
                by=f"{flight.run_id}:{by}" if root else by,
                attempt=effect.attempt + effect.delivery - 1,
            )
        )

    def withdraw_queued(self, since: float) -> list[Flight]:
        """Remove and return tasks that have waited for a slot since this time, if other hosts could perform them."""
        given = [
            flight
            for flight in self._queue
            if flight.since <= since
            and not flight.stopped
            and flight.offer is None
            and self._catalogue.step(flight.effect.step) is flight.body
        ]
        for flight in given:
            self._queue.remove(flight)
            self._forget(flight.uid, flight.effect.task)
        return given

    def begun(self) -> list[Flight]:
        """Return the flights whose bodies have begun. May be called from another thread while the loop is blocked."""
        return [flight for flights in list(self.flights.values()) for flight in list(flights.values()) if flight.begun]

    def next_queued(self) -> Flight | None:
        """Return the flight that has waited longest for a slot."""
        return self._queue[0] if self._queue else None

    async def drain(self, seconds: float) -> int:
        """Wait for running bodies, at most this long. Returns how many are left."""
        self._queue.clear()
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
        """Stop all tasks now. The next host performs those without a delivered report.

        Those from the shared queue keep their rows, which is how other hosts notice that they are lost.
        """
        self.on_over = _keep_row
        for uid in list(self.flights):
            self.stop_all(uid)
        self._queue.clear()

    async def finish_stopped(self) -> None:
        """Wait until stopped bodies have cleaned up. Bodies that keep running are hidden from asyncio.

        ``asyncio.run`` would otherwise wait for them.
        """
        await self._eager.close()
        if self._stopping:
            await asyncio.wait(self._stopping, timeout=GRACE_SECONDS)
        for task, flight in list(self._stopping.items()):
            self._abandon(flight, task)
        for task in self._abandoned.values():
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001 - it is dropped on purpose
            asyncio._unregister_task(task)  # noqa: SLF001 - documented for those who extend asyncio
        self._abandoned.clear()


def _keep_row(_: Flight) -> None:
    """Do nothing when a flight is over."""


def _not_hosted(what: str, error: BaseException) -> None:
    log.error("weft: %s failed", what, exc_info=loggable_error(error))
