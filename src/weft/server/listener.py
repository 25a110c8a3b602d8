"""Serve the API on a socket until a signal arrives.

Then the server accepts no new connections, disconnects clients that only listen, and finishes requests in progress.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import socket
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import uvicorn

from weft.runtime.stop_signals import StopSignals
from weft.server.buffered_http import BufferedHttp
from weft.steps.raised import note_interrupt

if TYPE_CHECKING:
    from weft.server.api import Api

KEEP_ALIVE_SECONDS = 75
SOCKET_MESSAGE_BYTES_MAX = 64 * 1024
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Listener:
    """An HTTP server for one API."""

    def __init__(self, api: Api, *, drain_seconds: int) -> None:
        config = uvicorn.Config(
            api,
            loop="none",
            http=BufferedHttp,
            ws="websockets-sansio",
            ws_max_size=SOCKET_MESSAGE_BYTES_MAX,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            # The API does not use the addresses that a proxy passes on.
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=drain_seconds,
        )
        # Without this, uvicorn would log every start and stop, which the command already prints.
        logging.getLogger("uvicorn").setLevel(logging.WARNING)
        self._server = _Server(config, api)

    async def run(self, bound: socket.socket) -> None:
        """Answer requests until a signal arrives."""
        await self._server.serve(sockets=[bound])

    def stop(self) -> None:
        """Shut down as after a signal."""
        self._server.should_exit = True


class _Server(uvicorn.Server):
    """A uvicorn server that disconnects listening clients before it waits for the others."""

    def __init__(self, config: uvicorn.Config, api: Api) -> None:
        super().__init__(config)
        self._api = api

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """While the server runs, shut down gracefully at the first signal and immediately at the second."""
        # Only the main thread receives signals.
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        signals = StopSignals(SIGNALS, self._stop)
        signals.open()
        try:
            yield
        finally:
            signals.close()

    def _stop(self, number: signal.Signals) -> None:
        if number == signal.SIGINT:
            note_interrupt()  # the next one may be raised inside user code
        self.force_exit = self.should_exit
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._api.services.close()
        await super().shutdown(sockets)
