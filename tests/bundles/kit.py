"""Runs to export, stores to import them into, and what is in a store."""

import asyncio
import io
import zipfile
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

import msgspec

import weft
from weft.core.ids import Millis
from weft.ports.run_query import RunQuery
from weft.ports.store import Store
from weft.runtime.bundles.export import zip_files
from weft.runtime.bundles.format import SUMS
from weft.runtime.bundles.importer import Imported
from weft.runtime.bundles.service import BundleService
from weft.runtime.clock import SystemClock, TimeIds
from weft.runtime.service import RunService
from weft.stores.memory import MemoryStore

T = TypeVar("T")

GRAPH = """\
# Sorts by size.
weft: graph/1
name: sorting
input: {n: integer}
nodes:
  size:
    step: double
    with: {n: "${input.n}"}
    save: {state.size: "${output}"}
    next: [{to: big, when: output > 10}, {to: small}]
  big: {pass: true}
  small: {pass: true}
output: {size: "${state.size}"}
"""


def shop(url: str = "memory://") -> weft.App:
    """An app with a workflow that has a child, a large value, a message and a graph."""
    app = weft.App(url)

    @app.step
    def double(n: int) -> int:
        return n * 2

    @app.step
    def large(size: int) -> str:
        return "x" * size

    @app.workflow
    async def child(ctx: weft.Context, n: int) -> int:
        return await double(n)

    @app.workflow
    async def order(ctx: weft.Context, n: int, token: weft.Secret | None = None) -> int:
        below = await ctx.call(child(n))
        text = await large(50_000)
        if n == 7:
            await ctx.receive("paid", int)
        return below + len(text)

    return app


def go(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


async def recorded(app: weft.App, n: int = 3, **options: Any) -> bytes:
    """Run the workflow and export its tree."""
    async with app:
        handle = await app.start("order", {"n": n, **options.pop("input", {})}, id=options.pop("id", "o-1"))
        if n == 7:
            async for event in handle.events(follow=True):
                if event.kind == "message_awaited":
                    break
        else:
            await handle.result(timeout=200)
        return await BundleService(app.service).export(handle.id, tree=True, **options)


def service_of(store: Store) -> RunService:
    return RunService(store, SystemClock(), TimeIds())


async def imported(store: Store, data: bytes) -> Imported:
    return await BundleService(service_of(store)).import_(data)


def content(store: MemoryStore) -> dict[str, Any]:
    """Everything that an import could write."""
    runs = {uid: (run.row(), list(run.events)) for uid, run in store.content.runs.items()}
    refs = {digest: set(uids) for digest, uids in store.content.refs.items()}
    return {
        "runs": runs,
        "refs": refs,
        "blobs": {digest: blob.data for digest, blob in store.content.blobs.items()},
        "definitions": {
            key: msgspec.structs.replace(one, created_at=Millis(0)) for key, one in store.content.definitions.items()
        },
    }


async def ids(store: Store, **query: Any) -> list[str]:
    page = await store.directory.search(RunQuery(**query))
    return [row.id for row in page.rows]


def unzipped(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(files: Mapping[str, bytes]) -> bytes:
    """A bundle of these files, with the right checksums."""
    return zip_files({name: data for name, data in files.items() if name != SUMS})
