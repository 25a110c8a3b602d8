"""HTTP for the server: the parser in C, with a bound for what it collects, over a transport that writes once per turn.

An answer is written as its head and its body, and each would be a packet and a system call of its own. The parser has
no limit of its own for the head of a request.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES_MAX = 64 * 1024
HELD_BYTES_MAX = 16 * 1024
"""More is passed on at once, so that a client that does not read is noticed after no more than this."""


class CorkedHttp(HttpToolsProtocol):
    """See the module."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._in_head = True
        self._head_bytes = 0
        self._moved = 0
        super().connection_made(_Corked(transport, self.loop))  # type: ignore[arg-type]

    def data_received(self, data: bytes) -> None:
        moved = self._moved
        super().data_received(data)
        # What came with the end of a head or of a body is mostly body.
        if self._in_head and self._moved == moved:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX and not self.transport.is_closing():
                self.send_400_response("The head of the request is too long.")

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._head_bytes = 0
        self._moved += 1
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_head = True
        self._moved += 1
        super().on_message_complete()


class _Corked:
    """A transport, but for when it writes."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held: list[bytes] = []
        self._bytes = 0

    def write(self, data: bytes) -> None:
        if not self._held:
            self._loop.call_soon(self._flush)
        self._held.append(data)
        self._bytes += len(data)
        if self._bytes > HELD_BYTES_MAX:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._held:
            data = b"".join(self._held)
            self._held.clear()
            self._bytes = 0
            if not self._transport.is_closing():
                self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
