"""Deliver signed webhooks, which are the later answers to work items and nodes.

The signature alone authorizes an answer, and only to the call that the token names. An answer that comes twice, or
after the item has ended, is accepted like the first one and changes nothing.
"""

from __future__ import annotations

import contextlib

import msgspec
from msgspec import Raw

from weft.core import commands as c
from weft.core import values
from weft.core.ids import EntryId, RunId
from weft.errors import Failure, NotAllowed, NotFound, RunFinished
from weft.runtime.service import RunService
from weft.steps.failures import failure_of
from weft.steps.http.envelope import read_named_outputs
from weft.steps.http.failures import HttpFailed, NotAnAnswer
from weft.steps.http.webhooks import Receipt, Webhooks


class ReceivedWebhook(msgspec.Struct, frozen=True, kw_only=True):
    """A received webhook: the token from its URL, its body, and its signature."""

    token: str
    body: bytes
    signature: str
    key: str = ""
    """The key in the URL."""
    content_type: str = "application/json"


async def deliver_webhook(service: RunService, webhooks: Webhooks, webhook: ReceivedWebhook) -> str:
    """Deliver an answer to its work item. Returns the id of the run. The answer is durable when this returns.

    Raises:
        NotAllowed: the token or the signature is invalid, too old, or for another run.
        NotAnAnswer: the body is not an answer; the item stays open.
    """
    now_s = service.clock.now_ms() // 1000
    receipt = webhooks.open(webhook.token, webhook.body, webhook.signature, now_s=now_s, key=webhook.key)
    try:
        row = await service.row(RunId(receipt.run_id))
    except NotFound:
        row = None
    if row is None or row.uid != receipt.uid:
        raise NotAllowed("The webhook is for another run.", hint="Answer with the address that came with the call.")
    output, failure = await _read_webhook(service, receipt, webhook)
    command = c.AnswerWork(task=EntryId(receipt.task), output=output, failure=failure, attempt=receipt.attempt)
    with contextlib.suppress(RunFinished):  # a late answer changes nothing
        await service.tell(row.id, command)
    return row.id


async def _read_webhook(service: RunService, receipt: Receipt, webhook: ReceivedWebhook) -> tuple[Raw, Failure | None]:
    """Return the outputs, or the failure that the callee reported."""
    what = f"the webhook of {receipt.step}"
    try:
        outputs = read_named_outputs(webhook.body, webhook.content_type, what=what, bare=receipt.bare)
    except NotAnAnswer:
        raise
    except HttpFailed as error:
        return Raw(b"null"), failure_of(error, step=receipt.step, attempts=receipt.attempt)
    raw = values.encode(outputs, what=f"{receipt.step} answered with")
    return Raw(await service.values.keep(raw)), None
