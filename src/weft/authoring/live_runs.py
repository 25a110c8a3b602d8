"""Check open runs against the workflows and steps of an app, with or without an engine in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from weft.authoring.app_catalogue import AppCatalogue
from weft.observe.live_check import LiveReport, OpenRuns, check_live
from weft.runtime.catalogue_log import StoredCatalogue
from weft.runtime.clock import SystemClock, TimeIds
from weft.runtime.service import RunService
from weft.stores import blobs_url, open_store


async def check_runs(
    catalogue: AppCatalogue, service: RunService, query: OpenRuns, *, tolerant: bool = False
) -> LiveReport:
    """Check the open runs of a store. Reads only."""
    if service.local is None:
        # A host learns the steps that were registered in the store; here nobody has.
        stored = StoredCatalogue(service.store.definitions, service.clock)
        await stored.refresh()
        catalogue.learn_steps(stored.steps)
    return await check_live(service, catalogue, query, tolerant=tolerant)


@asynccontextmanager
async def service_of(url: str) -> AsyncIterator[RunService]:
    """Open a store for a while, without hosting its runs."""
    store = open_store(url, blobs=blobs_url())
    await store.open()
    try:
        yield RunService(store, SystemClock(), TimeIds())
    finally:
        await store.close()
