"""A service that events are sent to, on a free port."""

from __future__ import annotations

import json
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Receiver:
    """A service that events are sent to. ``answers`` are the next statuses; 0 does not answer until it is closed."""

    def __init__(self) -> None:
        self.answers: list[int] = []
        self.promised_bytes = 0
        """How many bytes answers with a body say that they have. A hundredth of them is sent before it is closed."""
        self.heard: list[tuple[dict[str, str], bytes]] = []
        self.changed = threading.Condition()
        self.closing = threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                with receiver.changed:
                    receiver.heard.append(({name.lower(): value for name, value in self.headers.items()}, body))
                    status = receiver.answers.pop(0) if receiver.answers else 204
                    receiver.changed.notify_all()
                if not status:
                    receiver.closing.wait()
                    return
                self.send_response(status)
                promised_bytes = 0 if status == HTTPStatus.NO_CONTENT else receiver.promised_bytes
                self.send_header("content-length", str(promised_bytes))
                if 300 <= status < 400:
                    self.send_header("location", "/login")
                self.end_headers()
                if promised_bytes:
                    self.wfile.write(b" " * (promised_bytes // 100))
                    receiver.closing.wait()

            def do_GET(self) -> None:
                """Show a page, as services do that want a sign-in."""
                self.send_response(HTTPStatus.NO_CONTENT)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/events"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def wait_for(self, count: int) -> list[Any]:
        """Wait until so many events have come."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.heard) >= count, 120)
            return self.bodies

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(body) for _, body in self.heard]

    def close(self) -> None:
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()
