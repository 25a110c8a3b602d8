"""Send the request of a pipeline, and return the body of the answer as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.core.values import encode
from weft.errors import BadValue, LimitExceeded, NotAllowed, WeftError
from weft.pipelines.faults import StepFault
from weft.pipelines.steps.http import HttpRequestStep
from weft.ports.clock import Clock
from weft.steps.http.call import task_headers
from weft.steps.http.client import HttpClient
from weft.steps.http.content import answered, content
from weft.steps.http.exchange import HttpRequest
from weft.steps.http.outcome import check_status
from weft.steps.http.urls import add_query
from weft.steps.strangers import encode_answer
from weft.steps.task import current_task


async def fetch(step: HttpRequestStep, client: HttpClient, clock: Clock, *, headers: Mapping[str, str]) -> bytes:
    """Send a request and return the body of its answer: JSON, or else text as JSON.

    ``headers`` are added to those of the step. Raises StepFault; its cause says whether a retry may help.
    """
    try:
        answer = await client.send(_request(step, headers))
        check_status(answer, now_ms=clock.now_ms())
        if step.method == "POST":  # it was performed, so that an answer that cannot be read is no failure
            return encode_answer(answered(answer), answer.body)
        body: Any = content(answer)
        if isinstance(body, bytes):
            body = body.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
        return encode(body, what=f"{answer.request.shown()} answered with")
    except NotAllowed:
        raise
    except LimitExceeded as error:
        raise StepFault("too_large", error.message, error.hint) from error
    except BadValue as error:
        raise StepFault("bad_argument", error.message, error.hint) from error
    except WeftError as error:
        raise StepFault("http", error.message, error.hint) from error


def _request(step: HttpRequestStep, headers: Mapping[str, str]) -> HttpRequest:
    own = {name.lower(): value for name, value in step.headers.items()}
    sent = {"accept": "application/json, */*;q=0.5", **task_headers(current_task()), **own, **headers}
    if step.method == "GET":
        url = add_query(step.address, step.params)
        return HttpRequest(method="GET", url=url, headers=sent, timeout_ms=step.timeout_ms)
    body = encode(step.params, what="http_request was given")
    sent.setdefault("content-type", "application/json")
    return HttpRequest(method="POST", url=step.address, headers=sent, body=body, timeout_ms=step.timeout_ms)
