"""A watched page: an error in its console, a violation of its policy or a request to elsewhere fails the test."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request

INSIDE = ("http", "https", "ws", "wss")


class Watch:
    """What went wrong on the pages of a context. A test that provokes failures says which it expects."""

    def __init__(self, context: BrowserContext, origin: str) -> None:
        self._host = urlsplit(origin).netloc
        self._expected: list[re.Pattern[str]] = []
        self.found: list[str] = []
        self.requests: list[str] = []
        context.on("page", self._watch)

    def expect(self, pattern: str) -> None:
        """Expect messages that match this pattern."""
        self._expected.append(re.compile(pattern))

    def unexpected(self) -> list[str]:
        return [text for text in self.found if not any(one.search(text) for one in self._expected)]

    def _watch(self, page: Page) -> None:
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.found.append(f"uncaught: {error}"))
        page.on("request", self._on_request)
        page.on("websocket", lambda socket: self._on_url(socket.url))

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.found.append(f"console {message.type}: {message.text}")

    def _on_request(self, request: Request) -> None:
        self.requests.append(request.url)
        self._on_url(request.url)

    def _on_url(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme in INSIDE and parts.netloc != self._host:
            self.found.append(f"a request to another origin: {url}")
