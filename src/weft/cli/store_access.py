"""Find and open the store that a command works on, or the server that has it.

Its URL is the first of these that is set: ``--url``, the URL of the app in ``--app``, ``WEFT_URL``, ``[tool.weft]
url``, the URL of the app in ``[tool.weft] app``, and ``sqlite:///weft.db``. A URL that begins with ``https://`` or
``http://`` is that of a server. Commands that only read never create a store.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from weft.cli.server_key import server_key
from weft.errors import NotFound, UsageError
from weft.ports.store import RunRow
from weft.runtime.clock import SystemClock, TimeIds
from weft.runtime.patch_limits import project_patch_limits
from weft.runtime.service import RunService
from weft.settings import DEFAULT_URL, project_text, store_url
from weft.stores import blobs_url, open_store, redis_hints, url_without_password

if TYPE_CHECKING:
    from weft.cli.app_file import LoadedApp


def url_of(url: str | None, app: str | None, loaded: LoadedApp | None = None) -> str:
    """Return the URL of the store. ``loaded`` is the app, if it is already loaded. Raises UsageError.

    If the URL is that of an app and the app is not loaded yet, it is loaded here.
    """
    if url:
        return url
    target = app or project_text("app")
    found = "" if app else store_url()
    if found or not target:
        return found or DEFAULT_URL
    if loaded is None:
        # Imports the user's code, which is not needed if the store is named.
        from weft.cli.app_file import load_app

        loaded = load_app(target)
    return loaded.app.url


def store_exists(url: str) -> bool:
    """Return whether there is a store at this URL. Raises UsageError if the URL is not valid."""
    if not url.startswith("sqlite:"):
        _refuse_memory(url)
        return True
    return sqlite_file(url).exists()


def sqlite_file(url: str) -> Path:
    """Return the file of a SQLite store. Raises UsageError."""
    # Imported here, because it imports the SQLite library.
    from weft.stores.sqlite.connection import database_path

    return database_path(url)


def is_server(url: str) -> bool:
    """Return whether a URL is that of a server, and not of a store."""
    return url.startswith(("http://", "https://"))


def refuse_server(url: str, command: str, why: str) -> None:
    """Refuse a command that cannot be given through a server. Raises UsageError."""
    if is_server(url):
        raise UsageError(
            f"{command} cannot be done through the server {url_without_password(url)}: {why}.",
            hint="Name the store: --url sqlite:///weft.db or postgresql://user@host/database",
            code="usage.not_through_server",
        )


def store_label(url: str) -> str:
    """Return the URL for people, without a password. A file in the current folder is marked as such."""
    path = Path(url.removeprefix("sqlite:///"))
    if url.startswith("sqlite:///") and path.name == str(path):
        return f"{url} in this folder"
    return url_without_password(url)


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
    if is_server(address):
        # Imported here, because most commands need no HTTP client.
        from weft.authoring.remote_service import open_remote

        async with open_remote(address, server_key()) as remote:
            yield remote
        return
    store = open_store(address, blobs=blobs_url(), redis=redis_hints())
    await store.open()
    try:
        yield RunService(store, SystemClock(), TimeIds(), limits=project_patch_limits())
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
