"""The routes by which a command line elsewhere reads the store."""

from __future__ import annotations

from weft.errors import UsageError
from weft.server.endpoints import reads
from weft.server.identity import AccessScope
from weft.server.router import API, ApiRoute

READS = (
    ApiRoute(
        name="getReadFormat",
        method="GET",
        path=f"{API}/reads",
        summary="The format of reads of the store, and the tenant of the caller",
        endpoint=reads.read_format,
        scope=AccessScope.READ,
        answer=reads.ReadFormat,
    ),
    ApiRoute(
        name="readStore",
        method="POST",
        path=f"{API}/reads",
        summary="Read rows and logs as they are stored, for weft --url; each read is answered for itself",
        endpoint=reads.read_store,
        scope=AccessScope.READ,
        body=reads.StoreReads,
        answer=reads.ReadAnswers,
        errors=(UsageError,),
    ),
)
