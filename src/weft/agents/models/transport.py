"""Send requests to the API of one model, and read its answers: whole, or as a stream of events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import quote

import msgspec

from weft.agents.models.aliases import ModelAlias
from weft.agents.models.answers import failed_answer, failed_event
from weft.agents.models.event_stream import EventReader, LineTooLong
from weft.agents.models.failures import ModelFailed, rejected, unavailable
from weft.core.unstorable import encode_json
from weft.errors import BadValue, LimitExceeded, NotFound
from weft.ports.clock import Clock
from weft.steps.http.client import HttpClient
from weft.steps.http.exchange import HttpLimits, HttpRequest
from weft.steps.http.failures import HttpFailed, HttpUnavailable

ANSWER_BYTES_MAX = 8 * 1024 * 1024
LIMITS = HttpLimits(body_bytes_max=ANSWER_BYTES_MAX, redirects_max=0, idle_seconds=0)
"""An API that is called with a key does not send its callers elsewhere. Each call has a connection of its own: one that
the provider has just closed would cost an attempt, and a call takes much longer than to connect."""
_DONE = b"[DONE]"


class CollectedAnswer(Protocol):
    """Collects the answer of a provider."""

    def add(self, event: Mapping[str, Any]) -> bool:
        """Take an event of a stream. Returns whether more is wanted."""
        ...

    def take_whole(self, answer: Mapping[str, Any]) -> None:
        """Take an answer that was not streamed."""
        ...


class ModelTransport:
    """Sends requests to one model."""

    def __init__(self, alias: ModelAlias, client: HttpClient, clock: Clock) -> None:
        self._alias = alias
        self._client = client
        self._clock = clock

    async def post(self, path: str, body: Mapping[str, Any], key: str, answer: CollectedAnswer) -> None:
        """Send a request, and pass its answer on as it comes. Raises ModelFailed, BadValue."""
        name = self._alias.name
        reader = _AnswerReader(name, answer)
        request = self._request(path, body, key)
        try:
            response = await self._client.send(request, reader.feed)
        except ModelFailed:
            raise
        except HttpUnavailable as error:
            raise unavailable(f"The model {name} did not answer: {error.message}", in_doubt=error.in_doubt) from error
        except HttpFailed as error:
            raise ModelFailed(f"The model {name} cannot be reached: {error.message}") from error
        except LimitExceeded as error:
            raise ModelFailed(f"The answer of the model {name} is too long: {error.message}", in_doubt=True) from error
        if not response.ok:
            raise failed_answer(name, response, now_ms=self._clock.now_ms())
        reader.finish()

    def _request(self, path: str, body: Mapping[str, Any], key: str) -> HttpRequest:
        alias = self._alias
        headers = {"content-type": "application/json", "accept": "text/event-stream, application/json"}
        if key:
            headers["idempotency-key"] = quote(key, safe="/:~[]#@!$&'()*+,;=")
        if alias.key is not None:
            try:
                headers["authorization"] = f"Bearer {alias.key.reveal().strip()}"
            except (NotFound, BadValue) as error:
                raise rejected(f"The model {alias.name} has no key: {error.message}", hint=error.hint) from error
        try:
            raw = encode_json(body)
        except (TypeError, ValueError, msgspec.EncodeError) as error:
            raise rejected(f"The request to the model {alias.name} is not JSON: {error}.") from error
        return HttpRequest(
            method="POST", url=f"{alias.url}/{path}", headers=headers, body=raw, timeout_ms=alias.timeout_ms
        )


class _AnswerReader:
    """Finds out whether an answer is JSON or a stream of events, and passes on what it has."""

    def __init__(self, alias: str, answer: CollectedAnswer) -> None:
        self._alias = alias
        self._answer = answer
        self._events: EventReader | None = None
        self._whole = bytearray()
        self._complete = False

    def feed(self, piece: bytes) -> bool:
        """Take a piece of the body. Returns whether more is wanted."""
        if self._events is None:
            self._whole += piece
            begin = bytes(self._whole[:64]).lstrip(b"\xef\xbb\xbf \r\n\t")
            if not begin or begin.startswith((b"{", b"[")):
                return True
            self._events, piece = EventReader(), bytes(self._whole)
            self._whole.clear()
        try:
            for data in self._events.feed(piece):
                if not self._take(data):
                    return False
        except LineTooLong as error:
            raise unavailable(f"The model {self._alias} sent garbage: {error}.", in_doubt=True) from error
        return True

    def finish(self) -> None:
        """Take what the end of the body completes. Raises ModelFailed."""
        if self._complete:
            return
        if self._events is not None:
            for data in self._events.finish():
                if not self._take(data):
                    return
        elif not self._whole.strip():
            raise unavailable(f"The model {self._alias} answered nothing.", in_doubt=True)
        else:
            self._answer.take_whole(self._object(bytes(self._whole)))

    def _take(self, data: bytes) -> bool:
        if data.strip() == _DONE:
            self._complete = True
        elif data:
            self._complete = not self._answer.add(self._object(data))
        return not self._complete

    def _object(self, data: bytes) -> Mapping[str, Any]:
        try:
            found = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise unavailable(f"The model {self._alias} sent something that is not JSON.", in_doubt=True) from error
        if not isinstance(found, dict):
            raise unavailable(f"The model {self._alias} sent JSON that is not an answer.", in_doubt=True)
        if found.get("error"):
            raise failed_event(self._alias, found["error"])
        return found
