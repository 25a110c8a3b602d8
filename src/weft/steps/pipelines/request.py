"""Send the request of a pipeline, and return the body of the answer as data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.core.values import encode
from weft.errors import LimitExceeded, NotAllowed, NotFound, UsageError, WeftError
from weft.pipelines.faults import StepFault
from weft.pipelines.steps.http import HttpRequestStep
from weft.ports.clock import Clock
from weft.steps.http.auth_profiles import AuthProfile, project_auth_profile
from weft.steps.http.call import task_headers
from weft.steps.http.client import HttpClient
from weft.steps.http.content import answered_value, body_value
from weft.steps.http.exchange import HttpRequest, HttpResponse
from weft.steps.http.outcome import check_status
from weft.steps.http.urls import add_query
from weft.steps.secrets import strike_json
from weft.steps.strangers import encode_answer
from weft.steps.task import current_task


async def request_body(
    step: HttpRequestStep,
    client: HttpClient,
    clock: Clock,
    profile: Callable[[str], AuthProfile] = project_auth_profile,
) -> bytes:
    """Send a request and return the body of its answer: JSON, or else text as JSON, without secrets.

    ``profile`` finds credentials by name. Raises StepFault, whose cause says whether a retry may help, and NotAllowed.
    """
    try:
        answer = await client.send(_request(step, profile))
        check_status(answer, now_ms=clock.now_ms())
        return strike_json(_body(step, answer))
    except NotAllowed:
        raise
    except LimitExceeded as error:
        raise StepFault("too_large", error.message, error.hint) from error
    except (UsageError, NotFound) as error:
        raise StepFault("bad_argument", error.message, error.hint) from error
    except WeftError as error:
        raise StepFault("http", error.message, error.hint) from error


def _body(step: HttpRequestStep, answer: HttpResponse) -> bytes:
    if step.method == "POST":  # it was performed, so that an answer that cannot be read is no failure
        return encode_answer(answered_value(answer), answer.body)
    body: Any = body_value(answer)
    if isinstance(body, bytes):
        body = body.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
    return encode(body, what=f"{answer.request.shown()} answered with")


def _request(step: HttpRequestStep, profile: Callable[[str], AuthProfile]) -> HttpRequest:
    own = {name.lower(): value for name, value in step.headers.items()}
    headers = {"accept": "application/json, */*;q=0.5", **task_headers(current_task()), **own}
    query: dict[str, Any] = dict(step.params) if step.method == "GET" else {}
    if step.auth_profile:
        found = profile(step.auth_profile)
        found.check_host(step.auth_profile, step.address)
        more_headers, more_query = found.credentials()
        headers, query = {**headers, **more_headers}, {**query, **more_query}
    url = add_query(step.address, query) if query else step.address
    if step.method == "GET":
        return HttpRequest(method="GET", url=url, headers=headers, timeout_ms=step.timeout_ms)
    body = encode(step.params, what="http_request was given")
    headers.setdefault("content-type", "application/json")
    return HttpRequest(method="POST", url=url, headers=headers, body=body, timeout_ms=step.timeout_ms)
