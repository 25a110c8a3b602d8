"""Worker processes for calls that cannot be interrupted in a thread. They are killed when they take too long.

A worker runs one call at a time: bytes in, bytes out. If it does not reply in time, it is killed. If it dies for
another reason, it is replaced, and the call is repeated once, so calls must be pure. Workers start when they are first
needed. A forked child starts its own, and all end with the interpreter.

A frame consists of four bytes of length and a body. The first reply of a worker is empty and means that it is ready.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO, Final, cast
from weakref import WeakSet

_START_S_MAX: Final = 30.0
# Not multiprocessing, which would run the user's main module again.
_MAIN: Final = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from importlib import import_module; "
    "getattr(import_module(sys.argv[2]), sys.argv[3])()"
)


class WorkerKilled(Exception):
    """A call took too long, so its process was killed."""


class WorkerDied(Exception):
    """The process of a call died twice, or does not start."""


class KillableWorker:
    """A worker process, and the pipes to and from it."""

    def __init__(self, module: str, function: str) -> None:
        self.process = subprocess.Popen(  # noqa: S603  # our own interpreter and module
            [sys.executable, "-c", _MAIN, json.dumps(sys.path), module, function],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.killed = False
        if self._exchange(None, _START_S_MAX) is None:
            self.close()
            raise WorkerDied("the worker process does not start")

    def call(self, request: bytes, seconds: float) -> bytes | None:
        """Send a call and return the reply, or None if the worker died. ``killed`` then says whether it ran out of
        time.
        """
        return self._exchange(request, seconds)

    def close(self) -> None:
        """Kill the process, close the pipes and wait for its end."""
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):  # the pipe may hold a call that was never read
                cast("BinaryIO", pipe).close()
        self.process.wait()

    def _exchange(self, request: bytes | None, seconds: float) -> bytes | None:
        timer = threading.Timer(seconds, self._kill)
        timer.daemon = True
        timer.start()
        try:
            if request is not None:
                write_frame(cast("BinaryIO", self.process.stdin), request)
            return read_frame(cast("BinaryIO", self.process.stdout))
        except OSError:
            return None
        finally:
            timer.cancel()

    def _kill(self) -> None:
        self.killed = True
        self.process.kill()


class WorkerPool:
    """A few workers that all run the same function: a loop made of ``serve_calls``."""

    def __init__(self, module: str, function: str, *, size: int) -> None:
        self._module = module
        self._function = function
        self._size = size
        self._slots = threading.BoundedSemaphore(size)
        self.idle: list[KillableWorker] = []
        _pools.add(self)

    def call(self, request: bytes, seconds: float) -> bytes:
        """Run a call in a worker, and wait for its reply.

        Raises:
            WorkerKilled: the call took longer than this.
            WorkerDied: the worker died, and its replacement too.
        """
        with self._slots:
            for _ in range(2):
                try:
                    worker = self.idle.pop()
                except IndexError:
                    worker = KillableWorker(self._module, self._function)
                reply = self._call(worker, request, seconds)
                if reply is not None:
                    return reply
                if worker.killed:
                    raise WorkerKilled
        raise WorkerDied("the worker process died")

    def _call(self, worker: KillableWorker, request: bytes, seconds: float) -> bytes | None:
        """Send a call, and return the worker to the pool if it still runs."""
        reply = None
        try:
            reply = worker.call(request, seconds)
        finally:
            if reply is None or worker.killed:
                worker.close()
            else:
                self.idle.append(worker)
        return reply

    def close(self) -> None:
        """End the idle workers. The next call that needs one starts it again."""
        idle, self.idle = self.idle, []
        for worker in idle:
            worker.close()

    def forget(self) -> None:
        """Forget the workers after a fork. They belong to the parent, and another thread may have held the lock."""
        for worker in self.idle:
            worker.process.returncode = 0  # the parent waits for it; this prevents a warning here
        self.idle = []
        self._slots = threading.BoundedSemaphore(self._size)


_pools: WeakSet[WorkerPool] = WeakSet()


def serve_calls(run: Callable[[bytes], bytes], *, alarm_s: float) -> None:
    """Run calls until the input ends: what a worker does. While it is busy, an alarm ends it.

    The worker does not outlive its parent, because it ends when the pipe closes. The alarm has no handler, so it works
    whatever the call does.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which closes the pipe
    calls, replies = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    write_frame(replies, b"")
    while (frame := read_frame(calls)) is not None:
        _set_alarm(alarm_s)
        reply = run(frame)
        _set_alarm(0.0)
        write_frame(replies, reply)


def read_frame(stream: BinaryIO) -> bytes | None:
    """Return the body of the next frame, or None at the end of the stream."""
    head = _read_exactly(stream, 4)
    return None if head is None else _read_exactly(stream, int.from_bytes(head, "big"))


def write_frame(stream: BinaryIO, body: bytes) -> None:
    """Write a frame with this body."""
    stream.write(len(body).to_bytes(4, "big"))
    stream.write(body)
    stream.flush()


def _read_exactly(stream: BinaryIO, size: int) -> bytes | None:
    parts: list[bytes] = []
    while size:
        part = stream.read(size)
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _set_alarm(seconds: float) -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _close_all() -> None:
    for pool in list(_pools):
        pool.close()


def _forget_all() -> None:
    for pool in list(_pools):
        pool.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
atexit.register(_close_all)
