"""MCP over stdin and stdout, for a client that starts ``weft mcp`` as its child process."""

from __future__ import annotations

from typing import TextIO

import anyio
from mcp.server.stdio import stdio_server

from weft.server.identity import AccessScope, Identity
from weft.server.mcp.offer import check_offer
from weft.server.mcp.protocol import McpProtocol
from weft.server.request import ApiCall
from weft.server.services import Services

SCOPES = frozenset(AccessScope) - {AccessScope.ADMIN}
DECIDING = ("questions", "decide")


async def serve_stdio(services: Services, user: str, wire: TextIO, *, decides: bool) -> None:
    """Answer the client until it closes stdin. Raises UsageError if what is offered is not valid.

    The client reads ``wire``, and acts for the user who started it. With ``decides``, the model may answer questions of
    other runs.
    """
    check_offer(services.hosted)
    services.hosting()
    call = ApiCall(services=services, identity=Identity(user, SCOPES), parameters={})
    hidden = frozenset() if decides else frozenset(DECIDING)
    server = McpProtocol(lambda _: call, hidden).server()
    async with stdio_server(stdout=anyio.wrap_file(wire)) as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
