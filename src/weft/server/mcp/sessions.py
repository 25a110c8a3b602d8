"""MCP over HTTP: ``POST /mcp``. Every request stands for itself and is checked like any other request of the API.

Clients of the protocol before 2026-07-28 are served without sessions: they get results and progress, but no forms.
"""

from __future__ import annotations

import asyncio
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from weft.server.asgi import AsgiScope, Receive, Send
from weft.server.mcp.exchange import Context
from weft.server.mcp.protocol import McpProtocol
from weft.server.request import ApiCall

CALL = "weft.call"
"""The key in the ASGI scope under which a request carries its caller."""


class McpSessions:
    """The MCP server of one API. A task of its own keeps what the package starts, so that no request can end it."""

    def __init__(self) -> None:
        self._server = McpProtocol(_call_of).server()
        self._manager: StreamableHTTPSessionManager | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()

    async def answer(self, call: ApiCall, receive: Receive, send: Send) -> None:
        """Answer one request."""
        manager = await self._running()
        scope: AsgiScope = {**call.scope, CALL: call}
        await manager.handle_request(scope, receive, send)

    async def _running(self) -> StreamableHTTPSessionManager:
        """Return the manager of this loop, and start it if there is none."""
        loop = asyncio.get_running_loop()
        if self._manager is not None and self._loop is loop and self._keeper is not None and not self._keeper.done():
            return self._manager
        manager = self._manager = StreamableHTTPSessionManager(self._server, stateless=True)
        self._loop, self._stop = loop, asyncio.Event()
        started = loop.create_future()
        self._keeper = loop.create_task(self._keep(manager, self._stop, started), name="weft mcp")
        await started
        return manager

    async def _keep(
        self, manager: StreamableHTTPSessionManager, stop: asyncio.Event, started: asyncio.Future[None]
    ) -> None:
        async with manager.run():
            started.set_result(None)
            await stop.wait()

    async def close(self) -> None:
        """End everything that the package has started."""
        self._stop.set()
        keeper, self._keeper, self._manager = self._keeper, None, None
        if keeper is not None and self._loop is asyncio.get_running_loop():
            await asyncio.wait([keeper])


def _call_of(context: Context) -> ApiCall:
    request: Any = context.request
    call = request.scope[CALL]
    assert isinstance(call, ApiCall)
    return call
