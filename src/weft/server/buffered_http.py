"""The HTTP protocol of the server: uvicorn's, with limits for slow clients and a transport that buffers writes.

uvicorn writes the head and the body of an answer separately. Unbuffered, each would be a system call and a packet.
Its parser has no limit for the head of a request.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import sys
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from weft.server.problems import problem

if sys.platform != "win32":
    import resource

if TYPE_CHECKING:
    from weft.server.limits import RequestLimits

CONNECTIONS_MAX = 10_000
FILES_RESERVED = 256
GRACE_SECONDS = 1.0
"""How long after the API has refused a late body its connection is closed."""
UNREAD_SECONDS_MAX = 60.0
"""How long an answer may wait for its client to read."""
HEAD_BYTES_MAX = 64 * 1024
BUFFER_BYTES_MAX = 16 * 1024
"""More than this is written at once, so that a client that does not read is detected."""


class BufferedHttp(HttpToolsProtocol):
    """One connection. It is closed if its client sends a request too slowly, or does not read the answer.

    With too many connections, those that have been silent for the longest time are closed.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._limits: RequestLimits = self.config.app.services.limits  # type: ignore[union-attr]
        self._in_head = True
        self._begun = False
        """Whether a part of the request's head has arrived."""
        self._head_bytes = 0
        self._parts_done = 0
        self._deadline: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self.silent_since = self.loop.time()
        super().connection_made(_BufferedTransport(transport, self.loop))  # type: ignore[arg-type]
        self._expect_head()
        if len(self.connections) > connections_max():
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        parts_done = self._parts_done
        super().data_received(data)
        if self.transport.is_closing() or self not in self.connections:
            self._cancel_deadline()  # closed, or a WebSocket now
            return
        if self._parts_done == parts_done:
            if self._in_head:
                self._head_bytes += len(data)
                if self._head_bytes > HEAD_BYTES_MAX:
                    self._refuse(
                        431, "limit.exceeded", f"The head of the request is longer than {HEAD_BYTES_MAX:,} bytes."
                    )
                elif self._deadline is None:
                    self._expect_head()
            return
        # The head or the body is complete, so set the deadline for the next part.
        self._cancel_deadline()
        if not self._in_head:
            self._deadline = self.loop.call_later(self._limits.body_seconds + GRACE_SECONDS, self._body_is_late)
        elif self._begun:
            self._expect_head()

    # --- deadlines ------------------------------------------------------------------------------------------------

    def _expect_head(self) -> None:
        self._deadline = self.loop.call_later(self._limits.head_seconds, self._head_is_late)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _head_is_late(self) -> None:
        if self.is_busy:
            self._expect_head()  # pipelined: the client waits for the answer to its previous request
        else:
            self._refuse_late("The head of the request did not arrive in time.")

    def _body_is_late(self) -> None:
        if self.flow.read_paused:
            self._deadline = self.loop.call_later(self._limits.body_seconds, self._body_is_late)
        else:
            self._refuse_late("The body of the request did not arrive in time.")

    def _refuse_late(self, message: str) -> None:
        self._deadline = None
        if self.transport.is_closing():
            return
        if self._begun and (self._in_head or (self.is_busy and not self.cycle.response_started)):
            self._refuse(408, "request.too_slow", message)
        else:
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that is not HTTP. uvicorn calls this, and would answer with plain text."""
        self._refuse(400, "request.malformed", msg)

    def _refuse(self, status: int, code: str, message: str) -> None:
        """Answer before the API sees the request, with an error like those of the API, and close the connection."""
        body = msgspec.json.encode(problem(status, code, message))
        self.transport.write(
            b"HTTP/1.1 %d %b\r\ncontent-type: application/problem+json\r\ncontent-length: %d\r\n"
            b"connection: close\r\n\r\n%b" % (status, HTTPStatus(status).phrase.encode(), len(body), body)
        )
        self.transport.close()

    @property
    def is_busy(self) -> bool:
        """Return whether a request is being answered."""
        return bool(self.cycle) and not self.cycle.response_complete

    def _make_room(self) -> None:
        silent = [
            one for one in self.connections if isinstance(one, BufferedHttp) and one is not self and one.is_silent
        ]
        silent.sort(key=lambda one: one.silent_since)
        for one in silent[: max(1, len(silent) // 16)]:
            one.transport.close()

    @property
    def is_silent(self) -> bool:
        """Return whether the server waits for the client to send something."""
        owes_body = not self._in_head and not self.flow.read_paused
        return (owes_body or not self.is_busy) and not self.transport.is_closing()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._unread is None:
            self._unread = self.loop.call_later(UNREAD_SECONDS_MAX, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    # --- callbacks of the parser ----------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._begun = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._head_bytes = 0
        self._parts_done += 1
        self.silent_since = self.loop.time()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_head = True
        self._begun = False
        self._parts_done += 1
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self.silent_since = self.loop.time()
        super().on_response_complete()


@functools.cache
def connections_max() -> int:
    """Return how many connections this process may have, apart from the files that it needs."""
    if sys.platform == "win32":
        return CONNECTIONS_MAX
    return max(64, min(CONNECTIONS_MAX, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - FILES_RESERVED))


def allow_many_files() -> None:
    """Raise the limit of open files of this process, as far as the system allows."""
    if sys.platform == "win32":
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS_MAX + FILES_RESERVED
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class _BufferedTransport:
    """A transport that collects writes until the next iteration of the event loop."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._buffer: list[bytes] = []
        self._bytes = 0

    def write(self, data: bytes) -> None:
        if not self._buffer:
            self._loop.call_soon(self._flush)
        self._buffer.append(data)
        self._bytes += len(data)
        if self._bytes > BUFFER_BYTES_MAX:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._buffer:
            data = b"".join(self._buffer)
            self._buffer.clear()
            self._bytes = 0
            if not self._transport.is_closing():
                self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
