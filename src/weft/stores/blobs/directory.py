"""Store the content of blobs in a directory, on one machine or a shared disk.

Each blob is a file, in a subdirectory named after the first two digits of the digest.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from weft.errors import Full, Unavailable

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class DirectoryContent:
    """The content of blobs in files of a directory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def write(self, digest: str, data: bytes) -> None:
        await asyncio.to_thread(self._write_file, digest, data)

    async def read(self, digest: str) -> bytes | None:
        return await asyncio.to_thread(self._read_file, digest)

    async def has(self, digest: str) -> bool:
        return await asyncio.to_thread(self._path_of(digest).exists)

    async def delete(self, digest: str) -> None:
        await asyncio.to_thread(self._delete_file, digest)

    def _path_of(self, digest: str) -> Path:
        return self._folder / digest[:2] / digest

    def _write_file(self, digest: str, data: bytes) -> None:
        path = self._path_of(digest)
        # The file gets a temporary name first, so that nobody reads half of it.
        draft = path.with_name(f"{digest}.{secrets.token_hex(4)}")
        with self._translate_errors():
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with draft.open("xb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                draft.rename(path)
            except BaseException:
                draft.unlink(missing_ok=True)
                raise
            # The names of the file and of a new directory must survive a power failure, too.
            for folder in (path.parent, self._folder):
                _sync_folder(folder)

    def _read_file(self, digest: str) -> bytes | None:
        with self._translate_errors():
            try:
                return self._path_of(digest).read_bytes()
            except FileNotFoundError:
                return None

    def _delete_file(self, digest: str) -> None:
        path = self._path_of(digest)
        with self._translate_errors(), contextlib.suppress(FileNotFoundError):
            path.unlink()
            _sync_folder(path.parent)

    @contextlib.contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno in _NO_ROOM:
                raise Full(
                    f"There is no room left in {self._folder}.", hint="Free some space; Weft continues by itself."
                ) from error
            raise Unavailable(
                f"{self._folder} cannot be used for blobs ({error}).", hint="Check the directory and its permissions."
            ) from error


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
