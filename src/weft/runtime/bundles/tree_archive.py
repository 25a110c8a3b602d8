"""Keep a copy of trees that are about to be deleted: one bundle each, in a folder."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path

from weft.errors import StoreError, UsageError, WeftError
from weft.ports.retention import EndedRun
from weft.runtime.bundles.service import BundleService
from weft.runtime.service import RunService

log = logging.getLogger("weft")

ID_CHARS_MAX = 100


class TreeArchive:
    """A folder with bundles of deleted trees. The folder is made when the first one is written."""

    def __init__(self, service: RunService, folder: Path) -> None:
        self._bundles = BundleService(service)
        self._folder = folder

    async def keep(self, run: EndedRun) -> bool:
        """Write a tree to a file, which is durable when this returns. Returns False if it cannot be exported.

        Raises UsageError if the file cannot be written; then nothing may be deleted.
        """
        try:
            data = await self._bundles.export(run.id, tree=True, streams=True)
        except WeftError as error:
            if isinstance(error, StoreError):
                raise
            log.warning("weft: %s is not deleted, because it cannot be exported: %s", run.id, error)
            return False
        await asyncio.to_thread(self._write_file, bundle_name(run), data)
        return True

    def _write_file(self, name: str, data: bytes) -> None:
        path = self._folder / name
        part = self._folder / f"{name}.part"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
            if os.name == "posix":
                folder = os.open(self._folder, os.O_RDONLY)
                try:
                    os.fsync(folder)
                finally:
                    os.close(folder)
        except OSError as error:
            raise UsageError(
                f"{path} cannot be written: {error.strerror}.", hint="Nothing of it was deleted."
            ) from None


def bundle_name(run: EndedRun) -> str:
    """Return the name of the file for a run. The uid makes it unique, because an id may be used again."""
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in run.id).lstrip(".")
    return f"{safe[:ID_CHARS_MAX] or 'run'}~{run.uid}.weft.zip"
