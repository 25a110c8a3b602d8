"""Make checkpoints, which copy the WAL into the database, on a separate thread.

By default, SQLite makes a checkpoint inside the commit that makes the WAL a thousand pages long, and that commit takes
many times as long as the others. A checkpoint during writes never finishes, so the WAL would only grow. Therefore
most of the WAL is copied during writes, and the short rest while the writer waits; then the WAL starts again. If the
thread falls behind, a commit makes the checkpoint itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress

import apsw

from weft.errors import StoreError

PAGES = 1_000
"""The length of the WAL at which a checkpoint is made: 4 MiB. A commit is slower if it makes the file longer."""
PAGES_MAX = 3 * PAGES
"""The length of the WAL at which a commit no longer leaves the checkpoint to the thread."""


class Checkpointer:
    """Makes a checkpoint when the WAL has grown by ``PAGES``."""

    def __init__(
        self,
        open_connection: Callable[[], apsw.Connection],
        writer: apsw.Connection,
        lock: AbstractContextManager[object],
    ) -> None:
        self._open = open_connection
        self._writer = writer
        self._lock = lock
        self._wanted = threading.Event()
        self._closing = False
        self._thread: threading.Thread | None = None
        self._threshold = PAGES
        writer.set_wal_hook(self._on_commit)

    def _on_commit(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        """Request a checkpoint if the WAL has grown enough. Called after every commit, with the lock held."""
        if pages < self._threshold:
            if pages < PAGES:
                self._threshold = PAGES
        else:
            self._threshold = pages + PAGES
            if pages < PAGES_MAX:
                self._request_checkpoint()
            else:
                self._copy_wal(self._writer)
        return apsw.SQLITE_OK

    def _request_checkpoint(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run_thread, name="weft-sqlite-checkpoint", daemon=True)
            self._thread.start()
        self._wanted.set()

    def close(self) -> None:
        """Finish the current checkpoint and stop the thread."""
        self._closing = True
        self._wanted.set()
        if self._thread is not None:
            self._thread.join()

    def _run_thread(self) -> None:
        while self._wanted.wait() and not self._closing:
            self._wanted.clear()
            with suppress(apsw.Error, StoreError):
                self._make_checkpoint()

    def _make_checkpoint(self) -> None:
        connection = self._open()
        try:
            self._copy_wal(connection)
        finally:
            connection.close()
        with self._lock:
            self._copy_wal(self._writer)

    def _copy_wal(self, connection: apsw.Connection) -> None:
        # A failed checkpoint loses nothing: the WAL still has everything, and the next one may succeed.
        with suppress(apsw.Error):
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
