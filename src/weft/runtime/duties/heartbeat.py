"""Send heartbeats: tell the store at intervals that this host is alive.

Heartbeats have their own thread and connection, so that neither a slow round of duties nor a busy loop makes a host
look dead. But a host whose loop is blocked cannot serve its runs: when the loop has not turned for half a lease, the
heartbeat stops on purpose, and other hosts take over.

Rules: docs/internals/engine.md#rule-6.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import PurePath

from weft.core.ids import HostId
from weft.errors import StoreError
from weft.ports.clock import Clock
from weft.ports.hosts import Hosts
from weft.runtime.background import BackgroundLoop, Failed
from weft.runtime.run.driver import CodeDriver
from weft.runtime.settings import Settings
from weft.runtime.worker.step_worker import StepWorker
from weft.steps.frames import is_users
from weft.steps.resources import TASK_PREFIX

log = logging.getLogger("weft")

Beat = Callable[[HostId], Awaitable[None]]

BEATS_PER_LEASE = 3
TRIES_PER_LEASE = 25
"""How often to try while the store does not answer. After its restart, other hosts must soon see this host."""
TURNS_PER_LEASE = 8


class Heartbeat:
    """Tells the store at intervals that this host is alive."""

    def __init__(
        self, hosts: Hosts, host: HostId, clock: Clock, worker: StepWorker, *, settings: Settings, failed: Failed
    ) -> None:
        self._hosts = hosts
        self._host = host
        self._clock = clock
        self._worker = worker
        self._has_own_thread = settings.heartbeat_thread
        self._failed = failed
        self._lease_seconds = settings.lease_seconds
        self._turned_at = 0.0
        self.stalls = 0
        """How often the loop was blocked for half a lease. Knowledge from before a stall may be outdated."""
        self._turning: asyncio.TimerHandle | None = None
        self._loop = BackgroundLoop("the heartbeat", self._beat_forever, failed)
        self._heartbeat_thread: _HeartbeatThread | None = None
        self._loop_here: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._warned_for = -1.0
        self._warn_after = 0.0

    def start(self) -> None:
        if not self._has_own_thread:
            self._loop.start()
            return
        self._check_loop_turns()
        self._thread = threading.get_ident()
        loop = self._loop_here = asyncio.get_running_loop()
        self._heartbeat_thread = _HeartbeatThread(
            self._run_in_thread, partial(_report_heartbeat_failure, loop, self._failed)
        )

    async def stop(self) -> None:
        """Send no more heartbeats."""
        if self._turning is not None:
            self._turning.cancel()
            self._turning = None
        if self._heartbeat_thread is not None:
            thread, self._heartbeat_thread = self._heartbeat_thread, None
            await asyncio.to_thread(thread.stop)
        await self._loop.stop()

    def is_turning(self) -> bool:
        """Return whether the loop has turned within half a lease."""
        return self._clock.monotonic() - self._turned_at < self._lease_seconds / 2

    def is_doubtful(self, stalls: int) -> bool:
        """Return whether the loop was blocked since ``stalls`` was read, so that other hosts may have taken over."""
        monotonic = self._clock.monotonic
        if stalls == self.stalls and monotonic() - self._turned_at < self._lease_seconds / 2:
            return False
        return self._heartbeat_thread is not None

    def _check_loop_turns(self) -> None:
        now = self._clock.monotonic()
        if self._turning is not None and now - self._turned_at >= self._lease_seconds / 2:
            log.warning(
                "weft: the event loop of this host was blocked for %.1f s; other hosts may have taken over its runs",
                now - self._turned_at,
            )
            self.stalls += 1
        self._turned_at = now
        self._turning = asyncio.get_running_loop().call_later(
            self._lease_seconds / TURNS_PER_LEASE, self._check_loop_turns
        )

    async def _beat_forever(self) -> None:
        while True:
            await asyncio.sleep(self._lease_seconds / BEATS_PER_LEASE)
            await self._send_beat(self._hosts.beat)

    async def _run_in_thread(self) -> None:
        sender = self._hosts.heartbeat_sender()
        try:
            while True:
                turning = self.is_turning()
                if not turning:
                    self._warn_of_blocking()
                confirmed = not turning or await self._send_beat(sender.beat)
                await asyncio.sleep(self._lease_seconds / (BEATS_PER_LEASE if confirmed else TRIES_PER_LEASE))
        finally:
            await sender.close()

    def _warn_of_blocking(self) -> None:
        """Log which code blocks the loop, at growing intervals. Called on the heartbeat thread."""
        seconds = self._clock.monotonic() - self._turned_at
        if self._warned_for != self._turned_at:
            self._warned_for, self._warn_after = self._turned_at, 0.0
        if seconds < self._warn_after or self._loop_here is None:
            return
        self._warn_after = 2 * seconds
        run, line = _blocking_code(self._thread)
        running = asyncio.current_task(self._loop_here)
        flight = next((one for one in self._worker.begun() if one.running is running), None)
        if run:
            log.warning(
                "weft: the workflow code of %s has blocked the event loop for %.1f s%s: nothing else runs in this "
                "host, and other hosts may take over the run and block too. Computing and I/O belong in a step. "
                "To end the run: weft cancel %s --force",
                run,
                seconds,
                line,
                run,
            )
        elif running is not None and flight is not None:
            log.warning(
                "weft: the step %s (run %s) has blocked the event loop for %.1f s%s: other hosts may perform it too. "
                "Make it a plain `def`, which runs in a thread, or await what takes long.",
                flight.effect.step,
                flight.run_id,
                seconds,
                line,
            )
        elif running is not None and running.get_name().startswith(TASK_PREFIX):
            log.warning(
                "weft: the resource %s has blocked the event loop for %.1f s%s: nothing else runs in this host, and "
                "other hosts may take over its runs. Await what takes long, such as asyncio.to_thread(connect).",
                running.get_name().removeprefix(TASK_PREFIX),
                seconds,
                line,
            )
        else:
            log.warning("weft: the event loop of this host has been blocked for %.1f s%s", seconds, line)

    async def _send_beat(self, beat: Beat) -> bool:
        """Send one heartbeat. Returns whether the store confirmed it."""
        try:
            await beat(self._host)
        except StoreError as error:
            log.debug("weft: the store did not confirm a heartbeat (%s)", error)
        except Exception:
            # Continue after any error: a host without heartbeats would lose all its runs.
            log.exception("weft: a heartbeat failed")
        else:
            return True
        return False


def _blocking_code(thread: int) -> tuple[str, str]:
    """Return the run whose code this thread executes, if any, and the innermost user line, as in " at app.py:12"."""
    line = ""
    frame = sys._current_frames().get(thread)  # noqa: SLF001 - the only way to look at another thread
    while frame is not None:
        if not line and is_users(frame.f_code.co_filename):
            line = f" at {PurePath(frame.f_code.co_filename).name}:{frame.f_lineno}"
        if frame.f_code is CodeDriver.advance.__code__:
            return frame.f_locals["self"].machine.state.run_id, line
        frame = frame.f_back
    return "", line


def _report_heartbeat_failure(loop: asyncio.AbstractEventLoop, failed: Failed, error: BaseException) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has ended, and the host with it
        loop.call_soon_threadsafe(failed, "the heartbeat", error)


class _HeartbeatThread:
    """A thread with its own event loop, for one coroutine."""

    def __init__(self, body: Callable[[], Awaitable[None]], failed: Callable[[BaseException], None]) -> None:
        self._body = body
        self._failed = failed
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._started = threading.Event()
        # A daemon thread, so that an engine that was not stopped does not keep its process alive.
        self._thread = threading.Thread(target=self._run_thread, name="weft-heartbeat", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread. Blocks until its connection is closed."""
        self._started.wait()
        if self._loop is not None and self._task is not None:
            try:
                self._loop.call_soon_threadsafe(self._task.cancel)
            except RuntimeError:
                # The thread has already ended.
                return
        self._thread.join()

    def _run_thread(self) -> None:
        with asyncio.Runner() as runner:
            try:
                runner.run(self._run_in_loop())
            except asyncio.CancelledError:
                return
            except BaseException as error:  # noqa: BLE001 - without a heartbeat the host would lose all its runs
                self._failed(error)
            finally:
                self._started.set()

    async def _run_in_loop(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._started.set()
        await self._body()
