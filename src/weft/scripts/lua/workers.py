"""Worker processes for patterns that cannot be interrupted: started when first needed, then kept.

A worker runs one call at a time. One that does not answer in `WALL_S_MAX` is killed, and the call ends with a typed
error. One that died otherwise is replaced, and the call is repeated once. A forked child starts its own workers. They
end with the interpreter.
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
from weft.scripts.failures import failed
from weft.scripts.limits import WALL_S_MAX
from weft.scripts.lua.state import LuaOutcome
from weft.scripts.lua.worker import LuaCall, read_frame, write_frame

WORKERS_MAX: Final = 2
_START_S_MAX: Final = 30.0
# Not multiprocessing, which would run the user's main module again.
_BEGIN: Final = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from weft.scripts.lua.worker import serve; serve()"
)


class Worker:
    """One process and its two pipes."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(  # noqa: S603  # our own interpreter and module
            [sys.executable, "-c", _BEGIN, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.killed = False
        if self._answer(None, _START_S_MAX) is None:
            self.close()
            raise failed("lua", "the process for long patterns does not start")

    def ask(self, question: bytes) -> bytes | None:
        """Return the answer, or None if the worker is gone; `killed` says whether it ran out of time."""
        return self._answer(question, WALL_S_MAX)

    def close(self) -> None:
        """Kill it and leave nothing behind."""
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):  # a call that was never read
                cast("BinaryIO", pipe).close()
        self.process.wait()

    def _answer(self, question: bytes | None, seconds: float) -> bytes | None:
        watch = threading.Timer(seconds, self._kill)
        watch.daemon = True
        watch.start()
        try:
            if question is not None:
                write_frame(cast("BinaryIO", self.process.stdin), question)
            return read_frame(cast("BinaryIO", self.process.stdout))
        except OSError:
            return None
        finally:
            watch.cancel()

    def _kill(self) -> None:
        self.killed = True
        self.process.kill()


class _Pool:
    def __init__(self) -> None:
        self.slots = threading.BoundedSemaphore(WORKERS_MAX)
        self.idle: list[Worker] = []


_pools = [_Pool()]


def run_killable(text: str, given: bytes, *, truth: bool) -> LuaOutcome:
    """Call a chunk in a worker, within `WALL_S_MAX`."""
    question = msgspec.msgpack.encode(LuaCall(text, given, truth))
    pool = _pools[0]
    with pool.slots:
        for _ in range(2):
            try:
                worker = pool.idle.pop()
            except IndexError:
                worker = Worker()
            answer = _ask(pool, worker, question)
            if answer is not None:
                return msgspec.msgpack.decode(answer, type=LuaOutcome)
            if worker.killed:
                return LuaOutcome("limit", b"time", 0)
    raise _lost()


def _ask(pool: _Pool, worker: Worker, question: bytes) -> bytes | None:
    """Ask, and put the worker back if it can be asked again."""
    answer = None
    try:
        answer = worker.ask(question)
    finally:
        if answer is None or worker.killed:
            worker.close()
        else:
            pool.idle.append(worker)
    return answer


def _lost() -> WeftError:
    return failed("lua", "the process that ran it died", hint="Was it killed from outside?")


def close_workers() -> None:
    """End the workers at rest; the next call that needs one starts it."""
    idle, _pools[0].idle = _pools[0].idle, []
    for worker in idle:
        worker.close()


def _reset_after_fork() -> None:
    """Forget the workers after a fork: they belong to the parent, and another thread may hold the lock."""
    for worker in _pools[0].idle:
        worker.process.returncode = 0  # not ours to wait for, so do not warn about it
    _pools[0] = _Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
atexit.register(close_workers)
