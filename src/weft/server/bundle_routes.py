"""The routes of bundles."""

from __future__ import annotations

import msgspec

from weft.errors import Corrupt, IdTaken, LimitExceeded, NotFound, Refused, RunFinished, UsageError
from weft.runtime.bundles.importer import Imported
from weft.server.endpoints import bundles
from weft.server.identity import AccessScope
from weft.server.router import API, ApiRoute

BUNDLES = (
    ApiRoute(
        name="exportRun",
        method="GET",
        path=f"{API}/bundles/{{id}}",
        summary="A run as a bundle: its log, definitions and blobs, without secrets",
        endpoint=bundles.export,
        scope=AccessScope.READ,
        query=bundles.BundleQuery,
        errors=(NotFound, UsageError, LimitExceeded),
        kind="file",
        media=bundles.ZIP,
    ),
    ApiRoute(
        name="moveRun",
        method="POST",
        path=f"{API}/bundles/{{id}}",
        summary="Move a run and all runs below it: they end here, and the bundle lets another store go on with them",
        endpoint=bundles.move,
        scope=AccessScope.OPERATE,
        body=bundles.RunMove,
        errors=(NotFound, RunFinished, Refused, LimitExceeded),
        kind="file",
        media=bundles.ZIP,
    ),
    ApiRoute(
        name="importBundle",
        method="POST",
        path=f"{API}/bundles",
        summary="Import the runs of a bundle, to read and fork them; with adopt, an operator continues moved runs",
        endpoint=bundles.import_,
        scope=AccessScope.OPERATE,
        query=bundles.AdoptQuery,
        body=msgspec.Raw,
        takes=bundles.ZIP,
        answer=Imported,
        errors=(Corrupt, IdTaken, LimitExceeded, Refused, UsageError),
    ),
)
