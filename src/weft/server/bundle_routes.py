"""The routes of bundles."""

from __future__ import annotations

import msgspec

from weft.errors import Corrupt, IdTaken, LimitExceeded, NotFound, UsageError
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
        name="importBundle",
        method="POST",
        path=f"{API}/bundles",
        summary="Import the runs of a bundle; they can be read and forked, and nothing goes on with them",
        endpoint=bundles.import_,
        scope=AccessScope.OPERATE,
        body=msgspec.Raw,
        takes=bundles.ZIP,
        answer=Imported,
        errors=(Corrupt, IdTaken, LimitExceeded),
    ),
)
