"""Answers that come later: the far side of an asynchronous HTTP step posts its answer here, with proof."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from weft.errors import NotAllowed
from weft.runtime.webhooks import Arrived, take_webhook
from weft.server import views
from weft.server.problems import RequestRefused
from weft.server.request import ApiCall
from weft.steps.http.failures import NotAnAnswer
from weft.steps.http.webhooks import webhooks_here
from weft.tokens import SIGNATURE_HEADER


class WebhookQuery(views.Form, frozen=True, kw_only=True):
    """``key``: the proof, for steps that say ``webhook: url``; all others are answered with a signature."""

    key: Annotated[str, Meta(max_length=200)] = ""


async def take(call: ApiCall) -> views.Nothing:
    """Give a work item its answer. The signature is the caller's only right, and it is for this one call."""
    webhooks = webhooks_here()
    if webhooks is None:
        raise RequestRefused(
            404,
            "request.unknown_route",
            "No webhooks are expected here.",
            hint="Set WEFT_WEBHOOK_URL and WEFT_WEBHOOK_SECRET.",
        )
    arrived = Arrived(
        token=call.parameters["token"],
        body=bytes(call.given(msgspec.Raw)),
        signature=call.headers.get(SIGNATURE_HEADER.lower(), ""),
        key=call.asked(WebhookQuery).key,
        content_type=call.headers.get("content-type", "application/json"),
    )
    # The answer says nothing about the run: who sends it knows the call, and need not know more.
    try:
        await take_webhook(call.services.runs, webhooks, arrived)
    except NotAllowed as error:
        raise RequestRefused(403, error.code, error.message, hint=error.hint) from None
    except NotAnAnswer as error:
        raise RequestRefused(400, "request.malformed", error.message, hint="The call is still open.") from None
    return views.Nothing()
