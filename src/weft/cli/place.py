"""Find and open the store that a command works on.

``--url`` first, then what ``--app`` says, WEFT_URL, ``[tool.weft] url``, the app named by ``[tool.weft] app``,
``sqlite:///weft.db``. Looking never makes a store: one that does not exist yet is empty.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from weft.errors import NotFound, UsageError
from weft.ports.store import RunRow
from weft.runtime.clock import SystemClock, TimeIds
from weft.runtime.service import RunService
from weft.stores import blobs_url, open_store, shown_url

if TYPE_CHECKING:
    from weft.cli.app_file import LoadedApp

DEFAULT_URL = "sqlite:///weft.db"


def url_of(url: str | None, app: str | None, loaded: LoadedApp | None = None) -> str:
    """Return the URL of the store. ``loaded``: the app, if it is loaded already. Raises UsageError if it cannot be."""
    if url:
        return url
    settings = project_settings()
    target = app or settings.get("app")
    found = None if app else os.environ.get("WEFT_URL") or settings.get("url")
    if found or not target:
        return found or DEFAULT_URL
    if loaded is None:
        # Imports the user's code: not needed if the store is named.
        from weft.cli.app_file import load_app

        loaded = load_app(target)
    return loaded.app.url


def project_settings() -> dict[str, str]:
    """Return ``[tool.weft]`` of this folder's pyproject.toml."""
    try:
        section = tomllib.loads(Path("pyproject.toml").read_text("utf-8")).get("tool", {}).get("weft", {})
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        return {}
    return {name: value for name, value in section.items() if isinstance(value, str)}


def exists(url: str) -> bool:
    """Return whether there is a store at this URL. Raises UsageError if there can be none."""
    if not url.startswith("sqlite:"):
        _refuse_memory(url)
        return True
    return file_of(url).exists()


def file_of(url: str) -> Path:
    """Return the file of a SQLite store. Raises UsageError."""
    # Imports SQLite's library.
    from weft.stores.sqlite.connection import path_of

    return path_of(url)


def described(url: str) -> str:
    """Return the URL, with the folder if that is not obvious from it."""
    path = Path(url.removeprefix("sqlite:///"))
    if url.startswith("sqlite:///") and path.name == str(path):
        return f"{url} in this folder"
    return shown_url(url)


@asynccontextmanager
async def opened(url: str | None, app: str | None = None, *, create: bool = False) -> AsyncIterator[RunService]:
    """Open the store of a command; nothing is hosted. Raises NotFound if it does not exist and is not created."""
    address = url_of(url, app)
    _refuse_memory(address)
    if not create and not exists(address):
        raise NotFound(
            f"There is no store {described(address)} yet, so there are no runs in it.",
            hint="Another one? --url sqlite:///../shop/weft.db, or set WEFT_URL.",
        )
    store = open_store(address, blobs=blobs_url())
    await store.open()
    try:
        yield RunService(store, SystemClock(), TimeIds())
    finally:
        await store.close()


@asynccontextmanager
async def found(run: str, url: str | None, app: str | None) -> AsyncIterator[tuple[RunService, RunRow]]:
    """Open the store of a command and find the run that it names."""
    async with opened(url, app) as service:
        yield service, await service.by_prefix(run)


def _refuse_memory(url: str) -> None:
    if url.startswith("memory:"):
        raise UsageError(
            f"{url} exists only in the process that made it and cannot be read from here.",
            hint='Keep runs in a file: weft.App("sqlite:///weft.db")',
        )
