"""The endpoint ``POST /mcp``. It imports the MCP server at the first request."""

from __future__ import annotations

import logging

from weft.errors import WeftError
from weft.extras import require
from weft.server.asgi import Receive, Send
from weft.server.mcp.offer import check_offer
from weft.server.problems import RequestRefused
from weft.server.request import ApiCall

log = logging.getLogger("weft.mcp")


async def converse(call: ApiCall, receive: Receive, send: Send) -> None:
    """Answer a request of an MCP client. Raises RequestRefused, MissingExtra, NotRunning."""
    media = call.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json":
        raise RequestRefused(415, "request.wrong_type", "The body must be JSON.", hint="Content-Type: application/json")
    require("mcp", "/mcp")
    call.hosting()
    from weft.server.mcp.sessions import McpSessions  # noqa: PLC0415 - slow to import, and only needed here

    sessions = call.services.mcp
    if not isinstance(sessions, McpSessions):
        sessions = call.services.mcp = McpSessions()
        try:
            check_offer(call.services.hosted)
        except WeftError as error:
            log.warning("%s %s", error.message, error.hint)
    await sessions.answer(call, receive, send)
