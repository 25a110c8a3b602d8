"""Collect the chunks of output streams from steps and workflows, and write them in groups.

Chunks that are emitted during one write go into the next. Chunks from a step are stored before its result is reported.
Chunks from a workflow are written after the append in which they were emitted, and again on replay, where the store
ignores them. Those of the append that ends the run are written before it too, because no replay follows. Memory is
bounded: a thread that emits too fast waits, a step on the loop, which cannot wait, gets an error, and chunks of a
workflow are dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from weft.core.ids import RunUid
from weft.errors import LimitExceeded
from weft.ports.streams import NewChunk, Streams
from weft.runtime.background_tasks import BackgroundTasks
from weft.runtime.retries import RetryUntilAvailable

log = logging.getLogger("weft")

CHUNKS_PER_WRITE = 500
WAITING_BYTES_MAX = 16 * 1024 * 1024
WAIT_SECONDS = 0.001
STORE_SECONDS_MAX = 1.0

Emitted = Callable[[RunUid, str], None]


class StreamWriter:
    """Collects chunks from any thread and writes them in groups."""

    def __init__(self, streams: Streams, background: BackgroundTasks, retry: RetryUntilAvailable) -> None:
        self._streams = streams
        self._background = background
        self._retry_until_available = retry
        self._lock = threading.Lock()
        self._waiting: deque[NewChunk] = deque()
        self._bytes = 0
        self._added = 0
        self._stored = 0
        """How many chunks were added and written so far. They are written in order."""
        self._writing = False
        self._flushes: list[tuple[int, asyncio.Future[None]]] = []
        self._watchers: list[Emitted] = []

    def start(self) -> None:
        """Write chunks on the running loop of this thread."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def watch(self, watcher: Emitted) -> Callable[[], None]:
        """Call back with (run, stream) when there is something new to read. Returns a function that unsubscribes."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    def emit(self, chunk: NewChunk) -> None:
        """Add a chunk, from any thread. Raises LimitExceeded."""
        here = threading.get_ident() == self._thread
        while not self._add_chunk(chunk):
            if here:
                raise LimitExceeded(
                    f'The stream "{chunk.stream}" grows faster than the store can write it.',
                    hint="Emit larger chunks, or await something between them.",
                )
            time.sleep(WAIT_SECONDS)
        if here:
            self._background.call_soon(self._begin_write)
        else:
            self._loop.call_soon_threadsafe(self._begin_write)

    def emit_if_room(self, chunk: NewChunk) -> None:
        """Add a chunk of an append that is stored, from the loop. It is dropped if the store cannot follow."""
        with contextlib.suppress(LimitExceeded):
            self.emit(chunk)

    def _add_chunk(self, chunk: NewChunk) -> bool:
        with self._lock:
            if self._bytes > WAITING_BYTES_MAX:
                return False
            self._waiting.append(chunk)
            self._bytes += len(chunk.body)
            self._added += 1
            return True

    async def flush(self) -> None:
        """Wait until everything emitted so far is stored."""
        if self._stored < self._added:
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._flushes.append((self._added, done))
            await done

    async def store(self, chunks: Sequence[NewChunk]) -> None:
        """Store chunks after everything emitted so far. Waits for a second at most, because the store may be away."""
        for chunk in chunks:
            self.emit_if_room(chunk)
        await self.drain(STORE_SECONDS_MAX)

    async def drain(self, seconds: float) -> None:
        """Wait until everything emitted so far is stored, at most this long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.flush()

    def _begin_write(self) -> None:
        if not self._writing and self._waiting:
            self._writing = True
            self._background.spawn(self._write_waiting())

    async def _write_waiting(self) -> None:
        try:
            while batch := self._next_batch():
                try:
                    await self._retry_until_available(partial(self._streams.write, batch))
                except Exception:
                    log.exception("weft: could not store %d chunks of output", len(batch))
                self._on_written(batch)
        finally:
            self._writing = False

    def _next_batch(self) -> list[NewChunk]:
        with self._lock:
            return [self._waiting.popleft() for _ in range(min(CHUNKS_PER_WRITE, len(self._waiting)))]

    def _on_written(self, batch: list[NewChunk]) -> None:
        with self._lock:
            self._bytes -= sum(len(chunk.body) for chunk in batch)
        self._stored += len(batch)
        waiting, self._flushes = self._flushes, []
        for count, done in waiting:
            if count > self._stored:
                self._flushes.append((count, done))
            elif not done.done():
                done.set_result(None)
        for uid, stream in {(chunk.uid, chunk.stream): None for chunk in batch}:
            for watcher in list(self._watchers):
                watcher(uid, stream)
