"""Receive webhooks: signed answers of services that HTTP steps have called."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from weft.errors import NotAllowed
from weft.runtime.webhooks import ReceivedWebhook, deliver_webhook
from weft.server import views
from weft.server.problems import RequestRefused
from weft.server.request import ApiCall
from weft.steps.http.failures import NotAnAnswer
from weft.steps.http.webhooks import webhooks_here
from weft.tokens import SIGNATURE_HEADER


class WebhookQuery(views.Form, frozen=True, kw_only=True):
    """``key`` replaces the signature for steps with ``webhook: url``."""

    key: Annotated[str, Meta(max_length=200)] = ""


async def take(call: ApiCall) -> views.Nothing:
    """Deliver the answer of an HTTP step. The signature authorizes the caller for this one call only."""
    webhooks = webhooks_here()
    if webhooks is None:
        raise RequestRefused(
            404,
            "request.unknown_route",
            "This server accepts no webhooks.",
            hint="Set WEFT_WEBHOOK_URL and WEFT_WEBHOOK_SECRET.",
        )
    arrived = ReceivedWebhook(
        token=call.parameters["token"],
        body=bytes(call.body_as(msgspec.Raw)),
        signature=call.headers.get(SIGNATURE_HEADER.lower(), ""),
        key=call.query_as(WebhookQuery).key,
        content_type=call.headers.get("content-type", "application/json"),
    )
    # The response says nothing about the run, because the sender need not know about it.
    try:
        await deliver_webhook(call.services.runs, webhooks, arrived)
    except NotAllowed as error:
        raise RequestRefused(403, error.code, error.message, hint=error.hint) from None
    except NotAnAnswer as error:
        raise RequestRefused(400, "request.malformed", error.message, hint="The call is still open.") from None
    return views.Nothing()
