"""Connections that only read. A reader never waits for a writer, and sees all that was committed before it began.

Short reads run on the caller's thread. Listings, which may read every run, have their own thread and connection.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import apsw

from weft.stores.sqlite.connection import translate_errors
from weft.stores.sqlite.same_file import SameFile
from weft.stores.sqlite.serial_thread import SerialThread

T = TypeVar("T")
Work = Callable[[apsw.Connection], T]


class SqliteReader:
    """Runs reads, each on one snapshot of the file."""

    def __init__(self, path: Path, near: apsw.Connection, far: apsw.Connection, file: SameFile) -> None:
        self._path = path
        self._file = file
        self._near, self._near_lock = near, threading.Lock()
        self._far, self._far_lock = far, threading.Lock()
        self._thread = SerialThread("weft-sqlite-reader")
        for connection in (near, far):
            connection.execute("PRAGMA query_only = on")

    def read(self, work: Work[T]) -> T:
        """Read a few rows on this thread."""
        with self._near_lock:
            return self._read(self._near, work)

    async def read_in_thread(self, work: Work[T]) -> T:
        """Read any number of rows on another thread."""
        return await self._thread.run(lambda: self._read_far(work))

    def close(self) -> None:
        self._thread.stop()
        with self._near_lock, self._far_lock:
            self._near.close()
            self._far.close()

    def _read_far(self, work: Work[T]) -> T:
        with self._far_lock:
            return self._read(self._far, work)

    def _read(self, connection: apsw.Connection, work: Work[T]) -> T:
        if self._file.gone:
            self._file.check(connection)
        with translate_errors(self._path, connection):
            connection.execute("BEGIN")
            try:
                return work(connection)
            finally:
                # After some errors SQLite has ended it already.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
