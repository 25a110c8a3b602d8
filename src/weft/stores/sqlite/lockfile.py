"""Lock files beside the database, one per host. The operating system releases a lock when its process ends.

Without ``flock`` (on Windows), nothing is locked, and only missing heartbeats show that a host is dead.
"""

from __future__ import annotations

import os
import sys
import time
import weakref
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote, unquote

from weft.core.ids import HostId
from weft.errors import Unavailable

if sys.platform != "win32":
    import fcntl

TRIES = 50
RETRY_S = 0.002


class LockFiles:
    """The lock files of one database. Holds those of this process and checks those of other processes."""

    def __init__(self, database: Path) -> None:
        self.folder = database.with_name(f"{database.name}-hosts")
        self._held: dict[HostId, int] = {}
        _instances.add(self)

    def take(self, host: HostId) -> None:
        """Take the lock of a host of this process. Raises Unavailable if another process has it."""
        if sys.platform == "win32" or host in self._held:
            return
        # Other processes hold this lock only briefly, to check it or to remove the file of a dead host.
        for _ in range(TRIES):
            with suppress(FileNotFoundError):
                self.folder.mkdir(exist_ok=True)
                descriptor = os.open(self._path_of(host), os.O_RDWR | os.O_CREAT, 0o644)
                if _try_to_lock(descriptor) and self._is_file_of(host, descriptor):
                    self._held[host] = descriptor
                    return
                os.close(descriptor)
            time.sleep(RETRY_S)
        raise Unavailable(f"A host named {host} is already running.", hint="Give every host a different name.")

    def drop(self, host: HostId) -> None:
        """Release the lock of a host and remove its file."""
        descriptor = self._held.pop(host, None)
        if descriptor is not None:
            self._remove_file(host)
            os.close(descriptor)

    def is_gone(self, host: HostId) -> bool:
        """Return whether the process of a host is known to be gone. Always false without lock files."""
        if sys.platform == "win32" or host in self._held:
            return False
        try:
            descriptor = os.open(self._path_of(host), os.O_RDWR)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        try:
            # A shared lock, so that two simultaneous checks do not mistake each other for the host.
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        else:
            return True
        finally:
            os.close(descriptor)

    def discard(self, host: HostId) -> None:
        """Remove the file of a dead host. Holds its lock meanwhile, because the host may be coming back."""
        if sys.platform == "win32" or host in self._held:
            return
        with suppress(OSError):
            descriptor = os.open(self._path_of(host), os.O_RDWR)
            if _try_to_lock(descriptor):
                self._remove_file(host)
            os.close(descriptor)

    def close(self) -> None:
        """Release all locks of this process."""
        for host in list(self._held):
            self.drop(host)

    def abandon(self) -> None:
        """Close the lock files in a forked child, so that the locks end with the parent."""
        for descriptor in self._held.values():
            os.close(descriptor)
        self._held.clear()

    def _path_of(self, host: HostId) -> Path:
        return self.folder / f"{quote(host, safe='')}.lock"

    def _is_file_of(self, host: HostId, descriptor: int) -> bool:
        return os.path.samestat(os.fstat(descriptor), self._path_of(host).stat())

    def _remove_file(self, host: HostId) -> None:
        with suppress(OSError):
            self._path_of(host).unlink()
        with suppress(OSError):
            self.folder.rmdir()


def held_locks(database: Path) -> list[HostId]:
    """Return the hosts whose processes hold a lock of this database. Empty without lock files."""
    files = LockFiles(database)
    if not files.folder.is_dir():
        return []
    hosts = [HostId(unquote(path.stem)) for path in sorted(files.folder.glob("*.lock"))]
    return [host for host in hosts if not files.is_gone(host)] if sys.platform != "win32" else []


def _try_to_lock(descriptor: int) -> bool:
    if sys.platform != "win32":
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


_instances: weakref.WeakSet[LockFiles] = weakref.WeakSet()


def _abandon_all() -> None:
    for files in list(_instances):
        files.abandon()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_abandon_all)
