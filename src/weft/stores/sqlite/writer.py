"""Write to the file, on its one writing connection. An error from a transaction means that its outcome is *unknown*.

Small transactions run on the caller's thread while commits are fast (docs/internals/engine.md#rule-17): switching to
another thread and back costs a third of a commit. Larger transactions, and those that must wait for the lock of another
process, run on the writer's own thread. A lock makes sure that only one thread uses the connection at a time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import apsw

from weft.stores.sqlite.connection import translate_error
from weft.stores.sqlite.same_file import SameFile
from weft.stores.sqlite.serial_thread import SerialThread

T = TypeVar("T")
Work = Callable[[apsw.Connection], T]

COMMIT_S_MAX = 0.001
"""While commits take longer than this on average, small transactions run on the writer's thread."""
SAMPLE_S_MAX = 0.004
"""A single commit counts as at most this long, because a checkpoint or a busy disk may slow down just one."""
SAMPLE_WEIGHT = 1 / 8
SYNCED = 2
"""The number of ``synchronous = full``, with which every commit survives a loss of power."""
BUSY_MS = 3_500
"""How long a transaction waits for the lock of another process, counted from its call."""
BUSY_MS_MIN = 200
"""How long it waits at least when its turn comes: it may have spent its time behind others."""


class Writer:
    """Runs write transactions, on the caller's thread or on the writer's."""

    def __init__(self, path: Path, connection: apsw.Connection, file: SameFile) -> None:
        self._path = path
        self._file = file
        self._connection = connection
        self._thread = SerialThread("weft-sqlite-writer")
        self.lock = threading.Lock()
        """Held while the connection is used."""
        self.numbers: dict[str, tuple[int, int]] = {}
        """Row numbers of runs and checksums of their uids, by uid. Guarded by the lock."""
        self._is_synced = connection.pragma("synchronous") == SYNCED
        self._commit_s = 0.0
        self._busy_ms = -1

    async def small(self, work: Work[T]) -> T:
        """Run a transaction that takes about as long as its commit."""
        if self.try_acquire():
            try:
                return self._run_timed(work)
            except apsw.BusyError:
                # Another process is writing: wait for it on the other thread.
                pass
            finally:
                self.lock.release()
        return await self._on_thread(self._run_timed, work)

    def try_acquire(self) -> bool:
        """Take the lock if commits are quick and it is free. The caller releases it."""
        if self._commit_s >= COMMIT_S_MAX or not self.lock.acquire(blocking=False):
            return False
        if self._file.gone:
            self.lock.release()
            return False
        if self._busy_ms:
            self._wait_ms(0)
        return True

    def run_text(self, text: str, values: Sequence[Any]) -> int:
        """Run a transaction in one text, from BEGIN to COMMIT. Returns how many rows its last statement changed.

        Returns 0 if another process is writing and nothing was begun. The caller holds the lock.
        """
        began = time.perf_counter()
        try:
            self._connection.execute(text, values)
        except BaseException as error:
            if isinstance(error, apsw.BusyError) and not self._connection.in_transaction:
                return 0
            raise self._rolled_back(error) from error
        took_s = min(time.perf_counter() - began, SAMPLE_S_MAX)
        self._commit_s += (took_s - self._commit_s) * SAMPLE_WEIGHT  # as _record_duration does
        self._file.check(self._connection)
        return self._connection.changes()

    async def large(self, work: Work[T]) -> T:
        """Run a transaction of any length."""
        return await self._on_thread(self._run_transaction, work)

    async def before_commit(self, work: Work[T]) -> T:
        """Run a small transaction that only matters once a later one of this file refers to it. It is not synced.

        A later commit syncs the WAL up to its own end. So wherever it survives a loss of power, this does, too.
        """
        if self.lock.acquire(blocking=False):
            try:
                if self._busy_ms:
                    self._wait_ms(0)
                return self._run_unsynced(work)
            except apsw.BusyError:
                pass
            finally:
                self.lock.release()
        return await self._on_thread(self._run_unsynced, work)

    async def read(self, work: Work[T]) -> T:
        """Read from the writing connection, outside a transaction."""
        if self.lock.acquire(blocking=False):
            try:
                self._file.check(self._connection)
                return self._with_translated_errors(work)
            finally:
                self.lock.release()
        return await self._on_thread(self._with_translated_errors, work)

    def close(self) -> None:
        """Finish the transactions in the queue and close the connection."""
        self._thread.stop()
        with self.lock:
            self._connection.close()

    async def _on_thread(self, how: Callable[[Work[T]], T], work: Work[T]) -> T:
        called_at = time.perf_counter()
        return await self._thread.run(lambda: self._run_locked(how, work, called_at))

    def _run_locked(self, how: Callable[[Work[T]], T], work: Work[T], called_at: float) -> T:
        with self.lock:
            if self._file.gone:
                self._file.check(self._connection)
            waited_ms = int((time.perf_counter() - called_at) * 1000)
            self._wait_ms(max(BUSY_MS_MIN, BUSY_MS - waited_ms))
            try:
                return how(work)
            except apsw.BusyError as error:
                raise translate_error(error, self._path) from error

    def _wait_ms(self, busy_ms: int) -> None:
        if self._busy_ms != busy_ms:
            self._connection.set_busy_timeout(busy_ms)
            self._busy_ms = busy_ms

    def _run_timed(self, work: Work[T]) -> T:
        began = time.perf_counter()
        result = self._run_transaction(work)
        self._record_duration(time.perf_counter() - began)
        return result

    def _run_unsynced(self, work: Work[T]) -> T:
        if not self._is_synced:
            return self._run_transaction(work)
        self._connection.execute("PRAGMA synchronous = normal")
        try:
            return self._run_transaction(work)
        finally:
            self._connection.execute("PRAGMA synchronous = full")

    def _record_duration(self, took_s: float) -> None:
        self._commit_s += (min(took_s, SAMPLE_S_MAX) - self._commit_s) * SAMPLE_WEIGHT

    def _run_transaction(self, work: Work[T]) -> T:
        """Run one transaction. Raises ``apsw.BusyError`` only if nothing was begun."""
        connection = self._connection
        execute = connection.execute
        try:
            execute("BEGIN IMMEDIATE")
        except apsw.BusyError:
            raise
        except apsw.Error as error:
            raise translate_error(error, self._path, connection) from error
        try:
            result = work(connection)
            execute("COMMIT")
        except BaseException as error:
            raise self._rolled_back(error) from error
        # The file may have been deleted, so check it before the commit is acknowledged.
        self._file.check(self._connection)
        return result

    def _rolled_back(self, error: BaseException) -> BaseException:
        """Roll back after an error, and return the error to raise."""
        # Translate the error before ROLLBACK, which overwrites the error number of the operating system.
        failure = translate_error(error, self._path, self._connection) if isinstance(error, apsw.Error) else error
        # Drop all cached row numbers, because those from this transaction are wrong now.
        self.numbers.clear()
        # After some errors SQLite has already rolled back.
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        return failure

    def _with_translated_errors(self, work: Work[T]) -> T:
        try:
            return work(self._connection)
        except apsw.Error as error:
            raise translate_error(error, self._path, self._connection) from error
