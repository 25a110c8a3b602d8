"""The undo of a goal's HTTP step: a POST of ``{input, output}`` to its ``compensate`` URL."""

from __future__ import annotations

from typing import Any

import msgspec

from weft.core.values import encode
from weft.ports.clock import Clock
from weft.steps.http.call import task_headers
from weft.steps.http.client import HttpClient
from weft.steps.http.exchange import HttpRequest
from weft.steps.http.failures import is_final
from weft.steps.http.outcome import check_status
from weft.steps.http.step import HttpCall
from weft.steps.http.urls import fill_url
from weft.steps.task import Executor, current_task

RESULT = "result"
"""The argument with the result of the call; null if the result is not known."""

_given = msgspec.json.Decoder(dict[str, Any]).decode


class Compensation:
    """Undoes one call of a step. Any 2xx is a success; the body of the response is not read."""

    __slots__ = ("_client", "_clock", "call", "name")

    def __init__(self, name: str, call: HttpCall, client: HttpClient, clock: Clock) -> None:
        self.name = name
        self.call = call
        self._client = client
        self._clock = clock

    async def perform(self, given: bytes, executor: Executor) -> bytes:
        inputs = _given(given)
        output = inputs.pop(RESULT, None)
        values = {**inputs, **output} if isinstance(output, dict) else inputs
        own = {name.lower(): value for name, value in self.call.headers.items()}
        request = HttpRequest(
            method="POST",
            url=fill_url(self.call.url, values),
            headers={**own, "content-type": "application/json", **task_headers(current_task())},
            body=encode({"input": inputs, "output": output}, what=f"{self.name} was given"),
            timeout_ms=self.call.timeout_ms,
        )
        check_status(await self._client.send(request), now_ms=self._clock.now_ms())
        return b"null"

    def is_final(self, error: BaseException) -> bool:
        return is_final(error)
