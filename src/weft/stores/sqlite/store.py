"""A store in one SQLite file, for one machine and several processes.

What was committed survives loss of power (``durability="full"``); with ``"fast"`` it survives the process, and after a
loss of power the last commits may be missing, but never one from the middle. Not for network file systems.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw

from weft.errors import UsageError
from weft.ports.store import StoreDetails
from weft.stores.sqlite.access import SqliteAccess
from weft.stores.sqlite.blobs import SqliteBlobs
from weft.stores.sqlite.budgets import SqliteBudgets
from weft.stores.sqlite.checkpoint import Checkpointer
from weft.stores.sqlite.connection import connect, database_path, translate_errors
from weft.stores.sqlite.definitions import SqliteDefinitions
from weft.stores.sqlite.directory import SqliteDirectory
from weft.stores.sqlite.holds import SqliteHolds
from weft.stores.sqlite.hosts import SqliteHosts
from weft.stores.sqlite.inboxes import SqliteInboxes
from weft.stores.sqlite.lockfile import LockFiles
from weft.stores.sqlite.log import SqliteLog
from weft.stores.sqlite.memos import SqliteMemos
from weft.stores.sqlite.policies import SqlitePolicies
from weft.stores.sqlite.reader import SqliteReader
from weft.stores.sqlite.retention import SqliteRetention
from weft.stores.sqlite.same_file import SameFile
from weft.stores.sqlite.saved_views import SqliteSavedViews
from weft.stores.sqlite.schema import NEWEST, migrate
from weft.stores.sqlite.starts import SqliteStarts
from weft.stores.sqlite.step_logs import SqliteStepLogs
from weft.stores.sqlite.streams import SqliteStreams
from weft.stores.sqlite.tags import SqliteTags
from weft.stores.sqlite.tasks import SqliteTasks
from weft.stores.sqlite.tool_pins import SqliteToolPins
from weft.stores.sqlite.web_sessions import SqliteWebSessions
from weft.stores.sqlite.writer import Writer

_SYNCHRONOUS = {"full": "full", "fast": "normal"}


class SqliteStore:
    """All ports over one SQLite file."""

    log: SqliteLog
    directory: SqliteDirectory
    inboxes: SqliteInboxes
    hosts: SqliteHosts
    blobs: SqliteBlobs
    tasks: SqliteTasks
    definitions: SqliteDefinitions
    tags: SqliteTags
    policies: SqlitePolicies
    tool_pins: SqliteToolPins
    streams: SqliteStreams
    step_logs: SqliteStepLogs
    access: SqliteAccess
    memos: SqliteMemos
    retention: SqliteRetention
    holds: SqliteHolds
    saved_views: SqliteSavedViews
    web_sessions: SqliteWebSessions
    starts: SqliteStarts
    budgets: SqliteBudgets

    def __init__(self, url: str = "sqlite:///weft.db", *, durability: str = "full") -> None:
        if durability not in _SYNCHRONOUS:
            raise UsageError(f"There is no durability {durability!r}.", hint='Use "full" (the default) or "fast".')
        database_path(url)
        self.url = url
        self.offset_ms = 0
        self._synchronous = _SYNCHRONOUS[durability]
        self._parts: tuple[Checkpointer, Writer, SqliteReader, LockFiles] | None = None

    async def details(self) -> StoreDetails:
        files = [Path(f"{database_path(self.url)}{suffix}") for suffix in ("", "-wal")]
        size = sum(file.stat().st_size for file in files if file.exists())
        free = shutil.disk_usage(database_path(self.url).parent).free
        return StoreDetails(kind="sqlite", schema=NEWEST, size_bytes=size, free_bytes=free)

    async def open(self) -> None:
        if self._parts is not None:
            return
        path = database_path(self.url)
        connection = connect(path, self._synchronous)
        file = SameFile(path, each_time=self._synchronous == "full")
        try:
            with translate_errors(path, connection):
                migrate(connection, path)
            reader = SqliteReader(path, self._open_connection(path), self._open_connection(path), file)
        except BaseException:
            connection.close()
            raise
        writer = Writer(path, connection, file)
        checkpointer = Checkpointer(lambda: self._open_connection(path), connection, writer.lock)
        locks = LockFiles(path)
        self._parts = (checkpointer, writer, reader, locks)
        self._bind_parts(writer, reader, locks)

    async def close(self) -> None:
        if self._parts is None:
            return
        checkpointer, writer, reader, locks = self._parts
        self._parts = None
        checkpointer.close()
        reader.close()
        # The writer closes last, because the last connection copies the WAL into the database and removes it.
        writer.close()
        locks.close()

    def _open_connection(self, path: Path) -> apsw.Connection:
        return connect(path, self._synchronous)

    def _bind_parts(self, writer: Writer, reader: SqliteReader, locks: LockFiles) -> None:
        self.log = SqliteLog(writer, reader)
        self.directory = SqliteDirectory(reader)
        self.inboxes = SqliteInboxes(writer, reader)
        self.hosts = SqliteHosts(writer, reader, locks)
        self.blobs = SqliteBlobs(writer, reader)
        self.tasks = SqliteTasks(writer, reader)
        self.definitions = SqliteDefinitions(writer, reader)
        self.tags = SqliteTags(writer, reader)
        self.streams = SqliteStreams(writer, reader)
        self.step_logs = SqliteStepLogs(writer, reader)
        self.access = SqliteAccess(writer, reader)
        self.memos = SqliteMemos(writer, reader)
        self.retention = SqliteRetention(writer, reader)
        self.holds = SqliteHolds(writer, reader)
        self.saved_views = SqliteSavedViews(writer, reader)
        self.web_sessions = SqliteWebSessions(writer, reader)
        self.starts = SqliteStarts(writer, reader)
        self.policies = SqlitePolicies(writer, reader)
        self.budgets = SqliteBudgets(reader, writer)
        self.tool_pins = SqliteToolPins(writer, reader)
        self.wals = None
