"""Send events of runs to other services, with one signed POST each: ``WEFT_EVENTS_URL``, ``WEFT_APPROVALS_URL``.

A webhook is a hook whose step sends the event. So each event has one durable delivery, which is repeated while the
receiver fails and ends as a dead letter. A repeated notification has the same ``Idempotency-Key``. It is signed like
every webhook: ``Weft-Signature: t=…,v1=…`` over the body, with a shared secret.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec

from weft.core import commands as c
from weft.core.ids import RunId, RunUid
from weft.core.run.hook_events import QUESTION_KINDS, HookEvent, fit_event, opened_question
from weft.core.run.questions import is_group
from weft.core.run.withheld import is_unconfirmed
from weft.errors import Refused, WeftError
from weft.observe.questions import OpenQuestion, all_open, open_questions_of
from weft.runtime.hooks import Hook, delivery
from weft.runtime.service import RunService
from weft.runtime.throttled_log import ThrottledLog
from weft.server.approvals.approval import approval_view
from weft.server.approvals.links import Links, make_link_pair
from weft.server.settings import WebhookSettings
from weft.server.views import Approval, LinkPair, Moment, required_time
from weft.steps.http.client import HttpClient
from weft.steps.http.exchange import HttpLimits, HttpRequest
from weft.steps.task import release_slot, task
from weft.tokens import SIGNATURE_HEADER, sign_body

APPROVALS = "weft.approvals"
SEND_MS = 10_000
SENT_AT_ONCE = 50
"""How many events a host sends to a receiver at the same time."""
ABOUT_BYTES_MAX = 64 * 1024
ANSWER_BYTES_MAX = 64 * 1024
"""How much of an answer is read. Only its status matters."""
_encode = msgspec.json.Encoder().encode


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """The body of a notification.

    While a question is open, ``approval`` has all of it, and ``links`` are for the people who are asked by name.
    """

    event: str
    key: str
    sent_at: Moment
    tenant: str
    details: HookEvent
    approval: Approval | None = None
    links: list[LinkPair] = []


class EventSender:
    """Sends events to the receivers of this process."""

    def __init__(self, settings: Sequence[WebhookSettings]) -> None:
        self.settings = {one.name: one for one in settings}
        self.service: RunService
        """The service of the host that delivers. It is set before the host starts."""
        # To where an event is redirected, it would arrive without its body, and a page to sign in answers well.
        self._throttled_log = ThrottledLog()
        self._turns = {one.name: asyncio.Semaphore(SENT_AT_ONCE) for one in settings}
        self._client = HttpClient(limits=HttpLimits(body_bytes_max=ANSWER_BYTES_MAX, redirects_max=0))

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def send(self, receiver: str, event: HookEvent) -> str:
        """Send an event to a receiver. Returns what became of it. Raises Refused if the receiver does not accept it."""
        settings, service = self.settings[receiver], self.service
        question = await _open_question(service, event)
        if question is None and receiver == APPROVALS:
            return "The question is no longer open."
        await self._post(settings, await self._notification(settings, service, event, question))
        if question is not None and receiver == APPROVALS:
            note = c.NoteTold(question.number, question.notice)
            with contextlib.suppress(Refused):
                await service.tell(RunId(event.run_id), note)
        return "sent"

    async def _notification(
        self, settings: WebhookSettings, service: RunService, event: HookEvent, question: OpenQuestion | None
    ) -> Notification:
        now_ms = service.clock.now_ms()
        notification = Notification(
            event=event.kind, key=task().key, sent_at=required_time(now_ms), tenant=event.tenant, details=event
        )
        if question is None:
            return notification
        approval = await approval_view(service, question)
        if len(bytes(approval.about)) > ABOUT_BYTES_MAX:
            approval = msgspec.structs.replace(approval, about=msgspec.Raw(b"null"))
        pairs: list[LinkPair] = []
        if settings.public:
            links = await Links.for_store(service.store.access, settings.public)
            people = [who for who in question.asked if not is_group(who) and who not in question.question.approvals]
            pairs = [make_link_pair(links, question, who, [], now_ms=now_ms) for who in people]
        return msgspec.structs.replace(notification, approval=approval, links=pairs)

    async def _post(self, settings: WebhookSettings, notification: Notification) -> None:
        body = _encode(notification)
        now_s = self.service.clock.now_ms() // 1000
        headers: dict[str, Any] = {
            "content-type": "application/json",
            "idempotency-key": notification.key,
            SIGNATURE_HEADER.lower(): sign_body(settings.secret, body, now_s=now_s),
        }
        request = HttpRequest(
            method="POST",
            url=settings.url,
            headers=headers,
            body=body,
            timeout_ms=SEND_MS,
            is_cut=True,
            is_path_secret=True,
        )
        try:
            # A receiver that hangs keeps neither the slots of the host nor its memory.
            with release_slot():
                async with self._turns[settings.name]:
                    answer = await self._client.send(request)
            if not answer.ok:
                raise Refused(f"{answer.request.shown()} answered {answer.status}.")
        except WeftError as error:
            self._throttled_log.warn("weft: an event could not be delivered: %s", error)
            raise

    async def deliver_earlier(self, hook: Hook) -> None:
        """Start deliveries for open questions that nobody was told of: they were asked before there was a receiver.

        A question that has a delivery keeps it, because both would have the same id.
        """
        service = self.service
        assert service.local is not None, "events are delivered by hosts"
        async for question in all_open(service):
            state, number = question.state, question.number
            if question.question.told or number in state.reviews or is_unconfirmed(state, number):
                continue  # the number of the event that asked is not that of the question
            event = opened_question(state, number, question.place)
            new = delivery(hook, event, fit_event(event), service.local.host, service.clock.now_ms())
            await service.store.log.create([msgspec.structs.replace(new, owner=None)])
        if service.work is not None:
            service.work.wake()


async def _open_question(service: RunService, event: HookEvent) -> OpenQuestion | None:
    """Return the question that an event is about, if it is still open."""
    if event.kind not in QUESTION_KINDS or event.question is None:
        return None
    row = await service.store.directory.row(RunUid(event.uid))
    found = await open_questions_of(service, row) if row is not None else []
    return next((item for item in found if item.number == event.question.number), None)
