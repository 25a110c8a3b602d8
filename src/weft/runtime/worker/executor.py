"""Threads and processes for step bodies, created when they are first needed."""

from __future__ import annotations

import asyncio
import contextvars
import signal
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

T = TypeVar("T")


class PoolExecutor:
    """A pool of threads and a pool of processes.

    A body that outlives its timeout keeps its thread until it returns, because Python cannot stop a thread.
    """

    def __init__(self, *, threads_max: int = 64, processes_max: int | None = None) -> None:
        self._threads_max = threads_max
        self._processes_max = processes_max
        self._threads: ThreadPoolExecutor | None = None
        self._processes: ProcessPoolExecutor | None = None

    async def in_thread(self, body: Callable[[], T]) -> T:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._threads_max, thread_name_prefix="weft-step")
        context = contextvars.copy_context()
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(context.run, body))

    async def in_process(self, body: Callable[..., T], *arguments: Any) -> T:
        if self._processes is None:
            # Slow to import, and needed only for steps that run in processes.
            import multiprocessing  # noqa: PLC0415
            from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415

            self._processes = ProcessPoolExecutor(
                self._processes_max, mp_context=multiprocessing.get_context("spawn"), initializer=_ignore_interrupts
            )
        try:
            return await asyncio.get_running_loop().run_in_executor(self._processes, body, *arguments)
        except BrokenExecutor as error:
            # The next body gets a new pool, so that a body that killed its process does not break later ones.
            self._processes = None
            raise RuntimeError("the process that performed the step died") from error

    def close(self) -> None:
        """Close the pools without waiting for bodies that still run."""
        running = list((getattr(self._processes, "_processes", None) or {}).values())
        for pool in (self._threads, self._processes):
            if pool is not None:
                pool.shutdown(wait=False, cancel_futures=True)
        self._threads = self._processes = None
        for process in running:
            process.terminate()  # otherwise Python waits for it at exit; the next host repeats its step


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the host, which lets running steps finish."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
