"""Perform ``openapi_action``: read the document, and call the operation that was found in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from weft.agents.toolbox.openapi import DOCUMENT_BYTES_MAX, ApiOperation, find_operation, make_request, read_document
from weft.core.values import decode
from weft.errors import BadValue
from weft.ports.clock import Clock
from weft.steps.http.auth_profiles import AuthProfile, project_auth_profile
from weft.steps.http.call import task_headers
from weft.steps.http.client import HttpClient
from weft.steps.http.content import answered_value
from weft.steps.http.exchange import HttpRequest
from weft.steps.http.outcome import check_status
from weft.steps.http.urls import add_query
from weft.steps.secrets import strike_value
from weft.steps.strangers import encode_answer
from weft.steps.task import Task

DOCUMENT_MS = 30_000
CALL_MS = 30_000
SPARE_BYTES = 1024 * 1024
"""What a result has besides the body, at most."""
HIDDEN = ("set-cookie", "set-cookie2")
"""Headers of answers that no model sees."""


class OpenApiCalls:
    """Calls operations of OpenAPI documents through the guard."""

    def __init__(
        self,
        client: Callable[[], HttpClient],
        clock: Clock,
        profile: Callable[[str], AuthProfile] = project_auth_profile,
    ) -> None:
        self._client = client
        self._clock = clock
        self._profile = profile

    async def find(self, arguments: dict[str, Any]) -> ApiOperation:
        """Read the document and return the operation. Raises BadValue, HttpFailed, NotAllowed."""
        address = str(arguments.get("openapi_url", ""))
        answer = await self._client().send(HttpRequest(method="GET", url=address, timeout_ms=DOCUMENT_MS))
        check_status(answer, now_ms=self._clock.now_ms())
        if len(answer.body) > DOCUMENT_BYTES_MAX:
            raise BadValue(f"The OpenAPI document is larger than {DOCUMENT_BYTES_MAX:,} bytes.")
        operation = find_operation(read_document(answer.body), str(arguments.get("operation_id", "")), address)
        make_request(operation, arguments.get("params", {}))
        if arguments.get("auth_profile"):
            name = str(arguments["auth_profile"])
            self._profile(name).check_host(name, operation.url)
        return operation

    async def call(self, operation: ApiOperation, arguments: dict[str, Any], task: Task) -> dict[str, Any]:
        """Call an operation. Gives the status, the headers and the body of the answer, whatever they are.

        An operation that was performed is never told as a failure: a body that cannot be kept as JSON is kept as text,
        and of one that is too large, the beginning is kept.
        """
        request = make_request(operation, arguments.get("params", {}))
        headers = {"accept": "application/json, */*;q=0.5", **task_headers(task), **request.headers}
        query = dict(request.query)
        if request.body is not None:
            headers["content-type"] = "application/json"
        if arguments.get("auth_profile"):
            name = str(arguments["auth_profile"])
            profile = self._profile(name)
            profile.check_host(name, request.url)
            more_headers, more_query = profile.credentials()
            headers, query = {**headers, **more_headers}, {**query, **more_query}
        answer = await self._client().send(
            HttpRequest(
                method=operation.method,
                url=add_query(request.url, query),
                headers=headers,
                body=request.body,
                timeout_ms=CALL_MS,
                is_cut=True,
            )
        )
        body = decode(encode_answer(answered_value(answer), answer.body, spare=SPARE_BYTES, levels=1))
        shown = {name: value for name, value in answer.headers.items() if name not in HIDDEN}
        return {"status": answer.status, "headers": strike_value(shown), "body": strike_value(body)}


def read_operation(given: Any) -> ApiOperation:
    """Read the operation that the loop found."""
    return msgspec.convert(given, ApiOperation)
