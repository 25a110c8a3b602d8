"""HTTP calls as steps of goals. The outputs come with the response, or later by webhook.

The body is ``{arguments, metadata}``. A GET has no body: arguments that are not in its URL go into the query. The
metadata name the run (``flow_id``), the step (``step_id``), the call (``receipt_token``, an idempotency key that is the
same in every attempt) and the attempt. For an answer that comes later, they also contain its URL (``webhook_url``) and
the key that signs it (``webhook_key``). Headers contain the same for every method: ``Weft-Run``, ``Weft-Step``,
``Weft-Key``, ``Weft-Attempt``, ``Weft-Webhook-URL``, ``Weft-Webhook-Key``. With ``body: bare``, the body is the
arguments alone.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from weft.core.values import encode
from weft.errors import BadValue
from weft.ports.clock import Clock
from weft.steps.http.call import Later, task_headers, webhook_for, webhook_headers
from weft.steps.http.client import HttpClient
from weft.steps.http.envelope import read_named_outputs
from weft.steps.http.exchange import TIMEOUT_MS, HttpRequest
from weft.steps.http.failures import AnsweredLater, is_final
from weft.steps.http.outcome import check_status
from weft.steps.http.urls import add_query, fill_url, url_names
from weft.steps.http.webhooks import Webhooks
from weft.steps.task import Executor, current_task

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")

_arguments = msgspec.json.Decoder(dict[str, Any]).decode


class HttpCall(msgspec.Struct, frozen=True, kw_only=True):
    """How a step is called, from a step document. It is checked when it is created."""

    url: str
    method: str = "POST"
    answer: Literal["now", "later"] = "now"
    body: Literal["envelope", "bare"] = "envelope"
    webhook: Literal["signature", "url"] = "signature"
    headers: dict[str, str] = {}
    """Headers in addition to those of every call."""
    health: str = ""
    timeout_ms: int = TIMEOUT_MS
    """The timeout of one call. An answer that comes later has its own deadline."""

    def __post_init__(self) -> None:
        url_names(self.url)
        if self.health and url_names(self.health):
            raise BadValue(
                "The URL of a health check takes no arguments.", hint="A health check does not belong to a run."
            )
        if self.method not in METHODS:
            raise BadValue(f'A step cannot use the method "{self.method}".', hint=f"Use one of {', '.join(METHODS)}.")

    @property
    def names(self) -> list[str]:
        """The names of the arguments in the URL."""
        return url_names(self.url)


class HttpStep:
    """An HTTP step of the catalogue."""

    __slots__ = ("_client", "_clock", "_webhooks", "call", "name")

    def __init__(
        self, name: str, call: HttpCall, client: HttpClient, clock: Clock, *, webhooks: Webhooks | None = None
    ) -> None:
        self.name = name
        self.call = call
        self._client = client
        self._clock = clock
        self._webhooks = webhooks

    async def perform(self, given: bytes, executor: Executor) -> bytes:
        try:
            arguments = _arguments(given)
        except msgspec.ValidationError as error:
            raise BadValue(f"{self.name} got no valid arguments: {error}.", code="value.wrong_type") from error
        call = self.call
        bare = call.body == "bare"
        later = None
        if call.answer == "later":
            later = webhook_for(current_task(), self._webhooks, by_url=call.webhook == "url", bare=bare)
        answer = await self._client.send(self._request(arguments, later))
        check_status(answer, now_ms=self._clock.now_ms())
        if later is not None:
            raise AnsweredLater(later.token)
        kind = answer.headers.get("content-type", "")
        outputs = read_named_outputs(answer.body, kind, what=answer.request.shown(), bare=bare)
        return encode(outputs, what=f"{self.name} answered with")

    def is_final(self, error: BaseException) -> bool:
        return is_final(error)

    def _request(self, arguments: dict[str, Any], later: Later | None) -> HttpRequest:
        url = fill_url(self.call.url, arguments)
        own = {name.lower(): value for name, value in self.call.headers.items()}
        headers = {"accept": "application/json", **own, **task_headers(current_task()), **webhook_headers(later)}
        if self.call.method == "GET":
            spare = {name: value for name, value in arguments.items() if name not in self.call.names}
            url = add_query(url, {name: _query_value(value) for name, value in spare.items()})
            return HttpRequest(method="GET", url=url, headers=headers, timeout_ms=self.call.timeout_ms)
        sent = arguments if self.call.body == "bare" else {"arguments": arguments, "metadata": _metadata(later)}
        body = encode(sent, what=f"{self.name} was given")
        headers["content-type"] = "application/json"
        return HttpRequest(
            method=self.call.method, url=url, headers=headers, body=body, timeout_ms=self.call.timeout_ms
        )


def _metadata(later: Later | None) -> dict[str, Any]:
    task = current_task()
    metadata: dict[str, Any] = {}
    if task is not None:
        metadata = {
            "flow_id": task.run_id,
            "step_id": task.step,
            "receipt_token": task.key,
            "attempt": task.attempt,
        }
    if later is not None:
        metadata |= {"webhook_url": later.url, "webhook_key": later.key}
    return metadata


def _query_value(value: Any) -> Any:
    """Return a value for the query: objects and lists as JSON text, as in a path."""
    return encode(value).decode() if isinstance(value, dict | list) else value
