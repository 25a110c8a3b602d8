"""Threads and processes for step bodies, made when the first one is needed."""

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
    """A pool of each kind. A body that outlives its timeout keeps its thread until it returns.

    Python cannot stop it.
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
            # Heavy, and only for those who ask for processes.
            import multiprocessing  # noqa: PLC0415
            from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415

            self._processes = ProcessPoolExecutor(
                self._processes_max, mp_context=multiprocessing.get_context("spawn"), initializer=_ignore_interrupts
            )
        try:
            return await asyncio.get_running_loop().run_in_executor(self._processes, body, *arguments)
        except BrokenExecutor as error:
            # The next one gets a new pool: a body that took its process down must not take others with it for ever.
            self._processes = None
            raise RuntimeError("the process that performed it died") from error

    def close(self) -> None:
        """Let go of the pools; bodies that still run are not waited for."""
        running = list((getattr(self._processes, "_processes", None) or {}).values())
        for pool in (self._threads, self._processes):
            if pool is not None:
                pool.shutdown(wait=False, cancel_futures=True)
        self._threads = self._processes = None
        for process in running:
            process.terminate()  # Python would wait for it at exit; whoever goes on performs its step again


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the host, which lets running steps finish."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
