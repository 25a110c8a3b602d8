"""Find and open the store that a command works on.

Its URL is the first of these that is set: ``--url``, the URL of the app in ``--app``, ``WEFT_URL``, ``[tool.weft]
url``, the URL of the app in ``[tool.weft] app``, and ``sqlite:///weft.db``. Commands that only read never create a
store.
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
from weft.runtime.patch_limits import project_limits
from weft.runtime.service import RunService
from weft.stores import blobs_url, open_store, shown_url

if TYPE_CHECKING:
    from weft.cli.app_file import LoadedApp

DEFAULT_URL = "sqlite:///weft.db"


def url_of(url: str | None, app: str | None, loaded: LoadedApp | None = None) -> str:
    """Return the URL of the store. ``loaded`` is the app, if it is already loaded. Raises UsageError.

    If the URL is that of an app and the app is not loaded yet, it is loaded here.
    """
    if url:
        return url
    settings = project_settings()
    target = app or settings.get("app")
    found = None if app else os.environ.get("WEFT_URL") or settings.get("url")
    if found or not target:
        return found or DEFAULT_URL
    if loaded is None:
        # Imports the user's code, which is not needed if the store is named.
        from weft.cli.app_file import load_app

        loaded = load_app(target)
    return loaded.app.url


def project_settings() -> dict[str, str]:
    """Return the section ``[tool.weft]`` of ``pyproject.toml`` in the current folder."""
    try:
        section = tomllib.loads(Path("pyproject.toml").read_text("utf-8")).get("tool", {}).get("weft", {})
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        return {}
    return {name: value for name, value in section.items() if isinstance(value, str)}


def store_exists(url: str) -> bool:
    """Return whether there is a store at this URL. Raises UsageError if the URL is not valid."""
    if not url.startswith("sqlite:"):
        _refuse_memory(url)
        return True
    return file_of(url).exists()


def file_of(url: str) -> Path:
    """Return the file of a SQLite store. Raises UsageError."""
    # Imported here, because it imports the SQLite library.
    from weft.stores.sqlite.connection import path_of

    return path_of(url)


def store_label(url: str) -> str:
    """Return the URL for people, without a password. A file in the current folder is marked as such."""
    path = Path(url.removeprefix("sqlite:///"))
    if url.startswith("sqlite:///") and path.name == str(path):
        return f"{url} in this folder"
    return shown_url(url)


@asynccontextmanager
async def open_service(url: str | None, app: str | None = None, *, create: bool = False) -> AsyncIterator[RunService]:
    """Open the store of a command and return its run service, without hosting runs.

    Raises NotFound if the store does not exist, unless ``create`` is set.
    """
    address = url_of(url, app)
    _refuse_memory(address)
    if not create and not store_exists(address):
        raise NotFound(
            f"There is no store {store_label(address)} yet, so there are no runs in it.",
            hint="For another store, use --url sqlite:///../shop/weft.db, or set WEFT_URL.",
        )
    store = open_store(address, blobs=blobs_url())
    await store.open()
    try:
        yield RunService(store, SystemClock(), TimeIds(), limits=project_limits())
    finally:
        await store.close()


@asynccontextmanager
async def open_run(run: str, url: str | None, app: str | None) -> AsyncIterator[tuple[RunService, RunRow]]:
    """Open the store of a command and find the run that it names."""
    async with open_service(url, app) as service:
        yield service, await service.by_prefix(run)


def _refuse_memory(url: str) -> None:
    if url.startswith("memory:"):
        raise UsageError(
            f"{url} exists only in the process that created it, so this command cannot read it.",
            hint='Keep runs in a file: weft.App("sqlite:///weft.db")',
        )
