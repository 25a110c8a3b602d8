"""Keys for tests, and a server that is closed by them."""

from __future__ import annotations

from typing import Any

from tests.server.kit import Answer, Server
from weft.core.ids import Millis
from weft.server.access.keys import NewKey, new_key


def add_key(server: Server, name: str, *scopes: str, now: int | None = None, **wish: Any) -> str:
    """Make a key in the store of a server that runs; the key."""
    service = server.app.service
    moment = Millis(service.clock.now_ms() if now is None else now)
    text, kept = new_key(NewKey(name=name, scopes=scopes, **wish), moment)
    server.inside(service.store.access.add(kept))
    # What the gate believes for a second is not what a test waits for.
    server.api.services.gate._checked_at = -10.0  # type: ignore[attr-defined]
    return text


class Caller:
    """Requests with one key."""

    def __init__(self, server: Server, key: str | None) -> None:
        self.server = server
        self._headers = {} if key is None else {"Authorization": f"Bearer {key}"}

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        return self.server.ask(method, path, body, raw=None, **(self._headers | headers))

    def get(self, path: str, **headers: str) -> Answer:
        return self.server.get(path, **(self._headers | headers))

    def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        return self.ask("POST", path, body, **headers)


def caller(server: Server, name: str, *scopes: str, **wish: Any) -> Caller:
    """Somebody with a new key."""
    return Caller(server, add_key(server, name, *scopes, **wish))
