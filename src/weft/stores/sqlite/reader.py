"""Read from the file. A reader never waits for a writer, and sees everything that was committed before it began.

Short reads run on the caller's thread. Reads that may visit every run have their own thread and connection.
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
    """Runs reads, each in a transaction of its own, so that it sees one state of the file."""

    def __init__(self, path: Path, short: apsw.Connection, long: apsw.Connection, file: SameFile) -> None:
        self._path = path
        self._file = file
        self._short, self._short_lock = short, threading.Lock()
        self._long, self._long_lock = long, threading.Lock()
        self._thread = SerialThread("weft-sqlite-reader")
        for connection in (short, long):
            connection.execute("PRAGMA query_only = on")

    def read(self, work: Work[T]) -> T:
        """Read a few rows on this thread."""
        with self._short_lock:
            return self._read_in_transaction(self._short, work)

    async def read_in_thread(self, work: Work[T]) -> T:
        """Read any number of rows on another thread."""
        return await self._thread.run(lambda: self._read_long(work))

    def close(self) -> None:
        self._thread.stop()
        with self._short_lock, self._long_lock:
            self._short.close()
            self._long.close()

    def _read_long(self, work: Work[T]) -> T:
        with self._long_lock:
            return self._read_in_transaction(self._long, work)

    def _read_in_transaction(self, connection: apsw.Connection, work: Work[T]) -> T:
        if self._file.gone:
            self._file.check(connection)
        with translate_errors(self._path, connection):
            connection.execute("BEGIN")
            try:
                return work(connection)
            finally:
                # After some errors SQLite has already ended the transaction.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
