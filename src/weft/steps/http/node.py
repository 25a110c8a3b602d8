"""The ``http`` node of a graph: a request as JSON in, ``{status, headers, body}`` out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec

from weft.core.durations import duration_ms
from weft.core.values import encode
from weft.errors import BadValue
from weft.ports.clock import Clock
from weft.steps.http.call import task_headers, webhook_for, webhook_headers
from weft.steps.http.client import HttpClient
from weft.steps.http.content import body_value
from weft.steps.http.exchange import TIMEOUT_MS, HttpRequest
from weft.steps.http.failures import AnsweredLater, is_final
from weft.steps.http.outcome import check_status
from weft.steps.http.urls import add_query, plain_text
from weft.steps.http.webhooks import Webhooks
from weft.steps.secrets import Secret
from weft.steps.task import Executor, current_task

Keep = Callable[[bytes], Awaitable[str]]
"""Stores bytes durably and returns their reference: ``cas://sha256:…``."""

_Scalar = str | int | float | bool | None


class _HttpFields(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of ``http`` in a graph document, with templates filled in. ``timeout`` is that of the node, if any."""

    url: str
    method: str = "GET"
    headers: dict[str, _Scalar | list[str] | Secret] = {}
    query: dict[str, Any] = {}
    body: Any = None
    accept: str | list[str] = ""
    answer: Literal["now", "later"] = "now"
    health: Any = None
    timeout: str | float | None = None


_read = msgspec.json.Decoder(_HttpFields).decode


class HttpNode:
    """Performs all ``http`` nodes. Everything that differs between nodes is in the arguments."""

    __slots__ = ("_client", "_clock", "_keep", "_webhooks", "name")

    def __init__(
        self, client: HttpClient, clock: Clock, keep: Keep, *, webhooks: Webhooks | None = None, name: str = "http"
    ) -> None:
        self.name = name
        self._client = client
        self._clock = clock
        self._keep = keep
        self._webhooks = webhooks

    async def perform(self, given: bytes, executor: Executor) -> bytes:
        try:
            fields = _read(given)
        except msgspec.ValidationError as error:
            raise BadValue(f"{self.name} got no valid request: {error}.", code="value.wrong_type") from error
        headers = _headers(fields)
        later = webhook_for(current_task(), self._webhooks) if fields.answer == "later" else None
        headers |= webhook_headers(later)
        answer = await self._client.send(_request(fields, headers))
        check_status(answer, now_ms=self._clock.now_ms())
        if later is not None:
            raise AnsweredLater(later.token)
        body = body_value(answer)
        if isinstance(body, bytes):
            body = await self._keep(body)
        result = {"status": answer.status, "headers": answer.headers, "body": body}
        return encode(result, what=f"{answer.request.shown()} answered with")

    def is_final(self, error: BaseException) -> bool:
        return is_final(error)


def _headers(fields: _HttpFields) -> dict[str, str]:
    """Return the headers. The headers of the node override the default ones, even the idempotency key."""
    headers = task_headers(current_task())
    if fields.accept:
        headers["accept"] = fields.accept if isinstance(fields.accept, str) else ", ".join(fields.accept)
    if fields.body is not None:
        headers["content-type"] = "text/plain; charset=utf-8" if isinstance(fields.body, str) else "application/json"
    for name, value in fields.headers.items():
        if isinstance(value, Secret):
            headers[name.lower()] = value.reveal()
        elif value is not None:
            headers[name.lower()] = ", ".join(value) if isinstance(value, list) else plain_text(value)
    return headers


def _request(fields: _HttpFields, headers: dict[str, str]) -> HttpRequest:
    body = fields.body
    raw = None if body is None else body.encode() if isinstance(body, str) else encode(body, what="The body is")
    return HttpRequest(
        method=fields.method.upper(),
        url=add_query(fields.url, fields.query),
        headers=headers,
        body=raw,
        timeout_ms=TIMEOUT_MS if fields.timeout is None else duration_ms(fields.timeout),
    )
