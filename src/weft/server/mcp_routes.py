"""The route of the MCP server."""

from __future__ import annotations

import msgspec

from weft.errors import MissingExtra
from weft.server.identity import AccessScope
from weft.server.mcp.endpoint import converse
from weft.server.router import ApiRoute

MCP = (
    ApiRoute(
        name="mcp",
        method="POST",
        path="/mcp",
        summary="One request of the Model Context Protocol, as JSON-RPC: offered workflows are tools",
        endpoint=converse,
        scope=AccessScope.READ,
        body=msgspec.Raw,
        kind="protocol",
        statuses=(200, 202),
        errors=(MissingExtra,),
        refusals=(404,),
    ),
)
