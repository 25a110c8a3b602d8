"""Check open runs against the workflows and steps of an app, with or without an engine in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from weft.authoring.app_catalogue import AppCatalogue
from weft.errors import UsageError
from weft.observe.live_check import LiveReport, OpenRuns, check_live
from weft.observe.live_finding import LiveChange
from weft.runtime.catalogue_log import StoredCatalogue
from weft.runtime.clock import SystemClock, TimeIds
from weft.runtime.service import RunService
from weft.stores import blobs_url, open_store


async def check_runs(
    catalogue: AppCatalogue,
    service: RunService,
    query: OpenRuns,
    *,
    change: LiveChange | None = None,
    tolerant: bool = False,
) -> LiveReport:
    """Check the open runs of a store. Reads only."""
    if service.local is None:
        # A host learns the steps that were registered in the store; here nobody has.
        stored = StoredCatalogue(service.store.definitions, service.clock)
        await stored.refresh()
        catalogue.learn_steps(stored.steps)
    return await check_live(service, catalogue, query, change=change, tolerant=tolerant)


def change_to_try(
    to: str | Mapping[str, Any] | None, query: OpenRuns, *, replan: bool = False
) -> tuple[LiveChange, OpenRuns]:
    """Return a change, and the runs that it is for: those of the workflow of a document. Raises UsageError.

    ``to`` is a version or a tag, a patch, or a whole graph document.
    """
    if to is None:
        return LiveChange(replan=replan), query
    patch: Mapping[str, Any] = {"to": to} if isinstance(to, str) else to if "nodes" not in to else {"document": to}
    named = query.workflow or patch.get("document", {}).get("name")
    if not isinstance(named, str):
        message = "Name the workflow for whose runs this is: neither a version nor a patch says it."
        hint = f"weft check app.py --live --workflow order --to {'2' if isinstance(to, str) else 'patch.yaml'}"
        raise UsageError(message, hint=hint)
    return LiveChange(patch=patch, replan=replan), msgspec.structs.replace(query, workflow=named)


@asynccontextmanager
async def service_of(url: str) -> AsyncIterator[RunService]:
    """Open a store for a while, without hosting its runs."""
    store = open_store(url, blobs=blobs_url())
    await store.open()
    try:
        yield RunService(store, SystemClock(), TimeIds())
    finally:
        await store.close()
