"""A pool of worker processes for Lua calls with patterns that cannot be interrupted. Started when first needed.

A worker runs one call at a time. If it does not reply within ``WALL_S_MAX``, it is killed, and the call fails with a
time limit. If it dies for another reason, it is replaced, and the call is repeated once. A forked child starts its own
workers. All workers end with the interpreter.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from typing import BinaryIO, Final, cast

import msgspec

from weft.errors import WeftError
from weft.scripts.failures import script_failed
from weft.scripts.limits import WALL_S_MAX
from weft.scripts.lua.state import LuaOutcome
from weft.scripts.lua.worker import LuaCall, read_frame, write_frame

WORKERS_MAX: Final = 2
_START_S_MAX: Final = 30.0
# Not multiprocessing, which would run the user's main module again.
_MAIN: Final = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from weft.scripts.lua.worker import serve; serve()"
)


class Worker:
    """A worker process, and the pipes to and from it."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(  # noqa: S603  # our own interpreter and module
            [sys.executable, "-c", _MAIN, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.killed = False
        if self._exchange(None, _START_S_MAX) is None:
            self.close()
            raise script_failed("lua", "the worker process does not start")

    def call(self, request: bytes) -> bytes | None:
        """Send a call and return the reply, or None if the worker died.

        ``killed`` then says whether it ran out of time.
        """
        return self._exchange(request, WALL_S_MAX)

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


class _Pool:
    def __init__(self) -> None:
        self.slots = threading.BoundedSemaphore(WORKERS_MAX)
        self.idle: list[Worker] = []


_pools = [_Pool()]


def run_killable(text: str, arguments: bytes, *, truth: bool) -> LuaOutcome:
    """Run a chunk in a worker process, which is killed after ``WALL_S_MAX``."""
    request = msgspec.msgpack.encode(LuaCall(text, arguments, truth))
    pool = _pools[0]
    with pool.slots:
        for _ in range(2):
            try:
                worker = pool.idle.pop()
            except IndexError:
                worker = Worker()
            reply = _call(pool, worker, request)
            if reply is not None:
                return msgspec.msgpack.decode(reply, type=LuaOutcome)
            if worker.killed:
                return LuaOutcome("limit", b"time", 0)
    raise _worker_died()


def _call(pool: _Pool, worker: Worker, request: bytes) -> bytes | None:
    """Send a call, and return the worker to the pool if it still runs."""
    reply = None
    try:
        reply = worker.call(request)
    finally:
        if reply is None or worker.killed:
            worker.close()
        else:
            pool.idle.append(worker)
    return reply


def _worker_died() -> WeftError:
    return script_failed(
        "lua",
        "the worker process that ran the script died",
        hint="Check whether something else killed the process, such as a memory limit.",
    )


def close_workers() -> None:
    """End the idle workers. The next call that needs one starts it again."""
    idle, _pools[0].idle = _pools[0].idle, []
    for worker in idle:
        worker.close()


def _reset_after_fork() -> None:
    """Make a new pool after a fork. The workers belong to the parent, and another thread may have held the lock."""
    for worker in _pools[0].idle:
        worker.process.returncode = 0  # the parent waits for it; this prevents a warning here
    _pools[0] = _Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
atexit.register(close_workers)
