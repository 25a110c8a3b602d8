"""Notify another service of questions for people, with one signed POST per question, escalation and reminder.

What was sent is recorded in the log of the run, so that no notification is lost or repeated when a process dies. If the
answer of the receiver is lost, it gets the notification again, with the same ``Idempotency-Key``. A notification is
signed like every webhook: ``Weft-Signature: t=…,v1=…`` over the body, with a shared secret.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from weft.core import commands as c
from weft.core import events as e
from weft.core.ids import RunUid, tenant_prefix
from weft.core.run.questions import is_group
from weft.errors import Refused, WeftError
from weft.observe.questions import OpenQuestion, listed_in, runs_that_ask
from weft.runtime.background import BackgroundLoop
from weft.server.approvals.approval import approval_view
from weft.server.approvals.links import Links, make_link_pair
from weft.server.settings import NotifierSettings, read_notifier_settings
from weft.server.views import Approval, LinkPair, Moment, required_moment
from weft.steps.http.client import HttpClient
from weft.steps.http.exchange import HttpRequest
from weft.tokens import SIGNATURE_HEADER, sign_body

if TYPE_CHECKING:
    from weft.runtime.run.actor import Actor
    from weft.runtime.run.draft import Draft
    from weft.runtime.service import RunService

log = logging.getLogger("weft.api")

SCAN_SECONDS = 60.0
GRACE_MS = 60_000
"""How long other hosts leave a notification to the host that owns the run."""
RUNS_AT_ONCE = 8
SEND_MS = 10_000
PAUSE_SECONDS_MAX = 300.0
ABOUT_BYTES_MAX = 64 * 1024
_NOTIFIED = (e.AskEscalated, e.AskReminded, e.PatchReviewAsked)
_encode = msgspec.json.Encoder().encode


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """The body of a notification. ``links`` are for people asked by name; the API makes others on request."""

    event: str
    key: str
    sent_at: Moment
    tenant: str
    approval: Approval
    links: list[LinkPair]


class _Pause(msgspec.Struct):
    """The time until a failed notification is sent again."""

    seconds: float
    until: float


def create_notifier(service: Callable[[], RunService]) -> Notifier | None:
    """Create the notifier from environment variables; None if they set none. Raises UsageError."""
    settings = read_notifier_settings()
    return Notifier(service, settings) if settings is not None else None


class Notifier:
    """Sends notifications until each is recorded as sent, with growing pauses while the receiver fails."""

    def __init__(
        self, service: Callable[[], RunService], settings: NotifierSettings, *, client: HttpClient | None = None
    ) -> None:
        self._service = service
        self._settings = settings
        self._client = client or HttpClient()
        self._changed: set[RunUid] = set()
        self._woken = asyncio.Event()
        self._up_to_date: dict[RunUid, int] = {}
        """Runs without unsent notifications, with the number of the last event that was checked."""
        self._pauses: dict[str, _Pause] = {}
        self._detach: Callable[[], None] | None = None
        self._loop: BackgroundLoop | None = None

    def attach(self, runs: RunService) -> None:
        """Send notifications for the runs of this host from now on."""
        self._detach = runs.commits.observe(self._on_commit)
        self._loop = BackgroundLoop("notifications of questions", self._work, runs.status.fail)
        self._loop.start()

    async def close(self) -> None:
        """Stop sending."""
        if self._detach is not None:
            self._detach()
            self._detach = None
        if self._loop is not None:
            await self._loop.stop()
            self._loop = None
        await self._client.close()

    def _on_commit(self, actor: Actor, draft: Draft) -> None:
        asks = actor.machine.state.questions
        if not asks:
            return
        if max(asks) > draft.seq or any(isinstance(e.decode(one.body), _NOTIFIED) for one in draft.events):
            self._changed.add(actor.uid)
            self._woken.set()

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        scanned = -SCAN_SECONDS
        while True:
            try:
                if loop.time() - scanned >= SCAN_SECONDS:
                    scanned = loop.time()
                    await self._scan()
                await self._notify_changed()
            except WeftError as error:
                log.warning("weft: could not read open questions, trying again: %s", error)
            self._woken.clear()
            if not self._changed:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._wait_seconds(scanned)):
                        await self._woken.wait()

    def _wait_seconds(self, scanned: float) -> float:
        """Return the time until the next scan, or until a failed notification is sent again."""
        now = asyncio.get_running_loop().time()
        times = [scanned + SCAN_SECONDS, *(pause.until for pause in self._pauses.values())]
        return max(0.05, min(times) - now)

    async def _scan(self) -> None:
        """Find all runs with open questions, also those of other hosts, that have changed since the last scan."""
        service, seen = self._service(), set[RunUid]()
        after: str | None = None
        while True:
            page = await runs_that_ask(service, after=after)
            seen.update(row.uid for row in page.rows)
            self._changed.update(row.uid for row in page.rows if self._up_to_date.get(row.uid) != row.seq)
            after = page.cursor
            if after is None:
                break
        self._up_to_date = {uid: seq for uid, seq in self._up_to_date.items() if uid in seen}

    async def _notify_changed(self) -> None:
        now = asyncio.get_running_loop().time()
        for pause in self._pauses.values():
            if pause.until <= now:
                self._changed.update(self._runs_to_retry(now))
                break
        uids, self._changed = list(self._changed), set()
        for start in range(0, len(uids), RUNS_AT_ONCE):
            await asyncio.gather(*(self._notify_run(uid) for uid in uids[start : start + RUNS_AT_ONCE]))

    def _runs_to_retry(self, now: float) -> list[RunUid]:
        return [RunUid(key.partition(":")[0]) for key, pause in self._pauses.items() if pause.until <= now]

    async def _notify_run(self, uid: RunUid) -> None:
        service = self._service()
        row = await service.store.directory.row(uid)
        if row is None:
            self._forget(uid)
            return
        items = await listed_in(service, row)
        is_done = True
        for item in items:
            if item.notice != item.question.told:
                is_done = await self._notify(service, item) and is_done
        if is_done:
            self._up_to_date[uid] = row.seq
            self._forget(uid)

    def _forget(self, uid: RunUid) -> None:
        self._pauses = {key: pause for key, pause in self._pauses.items() if not key.startswith(f"{uid}:")}

    async def _notify(self, service: RunService, item: OpenQuestion) -> bool:
        """Notify of one question. Returns whether there is nothing left to send."""
        now_ms = service.clock.now_ms()
        elsewhere = service.local is not None and item.row.owner not in (None, service.local.host)
        if elsewhere and now_ms - item.question.since < GRACE_MS:
            return False
        key = f"{item.row.uid}:{item.number}:{item.notice}"
        pause = self._pauses.get(key)
        now = asyncio.get_running_loop().time()
        if pause is not None and pause.until > now:
            return False
        try:
            await self._send(key, await self._notification(service, item, key, now_ms), now_ms)
            with contextlib.suppress(Refused):
                note = c.NoteTold(item.number, item.notice)
                await service.retry_until_available(lambda: service.tell(item.row.id, note))
        except WeftError as error:
            seconds = min(PAUSE_SECONDS_MAX, pause.seconds * 2) if pause is not None else 1.0
            self._pauses[key] = _Pause(seconds, now + seconds)
            log.warning("weft: could not send the notification of %s, trying again: %s", item.id, error)
            return False
        self._pauses.pop(key, None)
        return True

    async def _notification(self, service: RunService, item: OpenQuestion, key: str, now_ms: int) -> Notification:
        links = await Links.for_store(service.store.access, self._settings.public)
        approval = await approval_view(service, item)
        if len(bytes(approval.about)) > ABOUT_BYTES_MAX:
            approval = msgspec.structs.replace(approval, about=msgspec.Raw(b"null"))
        people = [who for who in item.asked if not is_group(who) and who not in item.question.approvals]
        return Notification(
            event=f"question.{item.notice.partition('.')[0]}",
            key=key,
            sent_at=required_moment(now_ms),
            tenant=tenant_prefix(item.row.id)[1:-1],
            approval=approval,
            links=[make_link_pair(links, item, who, [], now_ms=now_ms) for who in people],
        )

    async def _send(self, key: str, notification: Notification, now_ms: int) -> None:
        body = _encode(notification)
        headers: dict[str, Any] = {
            "content-type": "application/json",
            "idempotency-key": key,
            SIGNATURE_HEADER.lower(): sign_body(self._settings.secret, body, now_s=now_ms // 1000),
        }
        answer = await self._client.send(
            HttpRequest(method="POST", url=self._settings.url, headers=headers, body=body, timeout_ms=SEND_MS)
        )
        if not answer.ok:
            raise Refused(f"{answer.request.shown()} answered {answer.status}.")
