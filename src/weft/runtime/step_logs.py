"""Collect what steps print and log, and write it in groups.

Lines wait for a moment, so that what many steps print goes into one transaction, and none is written for each line. A
crash loses what was printed in that moment. Memory is bounded: while the store cannot keep up, lines are left out and
counted. No step ever waits for its output to be stored.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import islice

from weft.core.ids import HostId, Millis, RunUid
from weft.ports.clock import Clock
from weft.ports.step_logs import LogBatch, LogLimits, NewLine, StepLogs
from weft.runtime.background_tasks import BackgroundTasks
from weft.runtime.retries import RetryUntilAvailable
from weft.runtime.worker.flight import PRINTED, Flight
from weft.steps.attempt_log import AttemptLog, PrintedLine

log = logging.getLogger("weft")

WAIT_SECONDS = 0.2
"""How long lines wait for others that are written with them."""
LINES_PER_WRITE = 2_000
WAITING_CHARS_MAX = 8 * 1024 * 1024

Written = Callable[[RunUid, str], None]


class StepLogWriter:
    """Collects lines from any thread and writes them in groups."""

    def __init__(
        self,
        logs: StepLogs,
        host: HostId,
        clock: Clock,
        background: BackgroundTasks,
        retry: RetryUntilAvailable,
        *,
        limits: LogLimits,
    ) -> None:
        self._logs = logs
        self._host = host
        self._clock = clock
        self._background = background
        self._retry_until_available = retry
        self._limits = limits
        # Reentrant: the garbage collector may run a finalizer that prints while the lock is held.
        self._lock = threading.RLock()
        self._attempts: dict[Flight, AttemptLog] = {}
        self._waiting: deque[NewLine] = deque()
        self._chars = 0
        self._dropped: dict[RunUid, int] = {}
        """How many lines of runs were left out, because too many were waiting. Told with their next line."""
        self._armed = False
        self._batches = 0
        self._writing: asyncio.Task[None] | None = None
        self._watchers: list[Written] = []
        self.on_line: Callable[[Flight, PrintedLine], None] | None = None
        """Called with every line, on the thread that printed it."""

    def start(self) -> None:
        """Write lines on the running loop of this thread."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._context = contextvars.copy_context()

    def watch(self, watcher: Written) -> Callable[[], None]:
        """Call back with (run, "") when there are new lines to read. Returns a function that unsubscribes."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    def note(self, flight: Flight, source: str, text: str, level: int | None) -> None:
        """Add what an attempt printed or, with a ``level``, logged. From any thread."""
        at = self._clock.now_ms()
        with self._lock:
            attempt = self._attempts.get(flight)
            if attempt is None:
                if flight.ended:
                    return  # it is left running, and nobody waits for what it does
                attempt = self._attempts[flight] = AttemptLog()
                flight.output |= PRINTED
            if level is None:
                for line in attempt.print(source, text, at):
                    self._add_line(flight, line)
            else:
                added = attempt.add(level, source, text, at)
                if added is not None:
                    self._add_line(flight, added)
            if self._armed:
                return
            self._armed = True
        if threading.get_ident() == self._thread:
            self._schedule_write()
        else:
            with contextlib.suppress(RuntimeError):  # the loop is closed, and with it the host
                self._loop.call_soon_threadsafe(self._schedule_write, context=self._context)

    def finish(self, flight: Flight) -> None:
        """Add the last lines of an attempt that has ended."""
        with self._lock:
            attempt = self._attempts.pop(flight, None)
            if attempt is not None:
                for line in attempt.finish(self._clock.now_ms()):
                    self._add_line(flight, line)
            if not self._waiting or self._armed:
                return
            self._armed = True
        self._schedule_write()

    async def flush(self) -> None:
        """Wait until everything that was printed so far is stored."""
        if self._writing is not None:
            await asyncio.wait([self._writing])
        self._begin_write()
        if self._writing is not None:
            await asyncio.wait([self._writing])

    async def drain(self, seconds: float) -> None:
        """Wait until everything that was printed so far is stored, at most this long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.flush()

    def _add_line(self, flight: Flight, line: PrintedLine) -> None:
        if self.on_line is not None:
            self.on_line(flight, line)
        uid, effect = flight.uid, flight.effect
        if self._chars > WAITING_CHARS_MAX:
            self._dropped[uid] = self._dropped.get(uid, 0) + 1 + line.lost
            return
        self._chars += len(line.text)
        self._waiting.append(
            NewLine(
                uid=uid,
                at=Millis(line.at),
                place=effect.location,
                attempt=effect.attempt + effect.delivery - 1,
                level=line.level,
                source=line.source,
                text=line.text,
                lost=line.lost + self._dropped.pop(uid, 0),
            )
        )

    def _schedule_write(self) -> None:
        self._loop.call_later(WAIT_SECONDS, self._begin_write, context=self._context)

    def _begin_write(self) -> None:
        """Write what is waiting, unless a write is under way, which then writes it, too."""
        self._armed = False
        self._finish_cancelled()
        if self._waiting and (self._writing is None or self._writing.done()):
            self._writing = self._background.spawn(self._write_waiting(), may_fail=True)

    def _finish_cancelled(self) -> None:
        """Add the last lines of attempts that ended without a report."""
        with self._lock:
            for flight in [flight for flight in self._attempts if flight.ended]:
                for line in self._attempts.pop(flight).finish(self._clock.now_ms()):
                    self._add_line(flight, line)

    async def _write_waiting(self) -> None:
        while batch := self._next_batch():
            self._batches += 1
            number = self._batches
            try:
                await self._retry_until_available(
                    partial(self._logs.write, LogBatch(host=self._host, number=number, lines=batch), self._limits)
                )
            except Exception:
                log.exception("weft: could not store %d lines that steps printed", len(batch))
            for uid in {line.uid: None for line in batch}:
                for watcher in list(self._watchers):
                    watcher(uid, "")

    def _next_batch(self) -> list[NewLine]:
        with self._lock:
            lines = list(islice(self._waiting, LINES_PER_WRITE))
            for line in lines:
                self._waiting.popleft()
                self._chars -= len(line.text)
            return lines
