"""Tells others that somebody is asked: one signed POST per question, per escalation and per reminder.

What was told is in the log of the run, so nothing is forgotten when a process dies, and nothing is told for ever. A
receiver may get the same word twice (the answer to the first was lost); both have the same ``Idempotency-Key``. It is
signed like every webhook: ``Weft-Signature: t=…,v1=…`` over the body, with the secret that both sides know.
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
from weft.server.approvals.inbox import approval_view
from weft.server.approvals.link_pages import LinkPair, pair
from weft.server.approvals.links import Links
from weft.server.approvals.settings import Telling, telling_here
from weft.server.views import Approval, Moment, known_moment
from weft.steps.http.client import HttpClient
from weft.steps.http.exchange import Request
from weft.tokens import SIGNATURE_HEADER, sign_body

if TYPE_CHECKING:
    from weft.runtime.door import Door
    from weft.runtime.engine import Engine
    from weft.runtime.run.actor import Actor
    from weft.runtime.run.draft import Draft

log = logging.getLogger("weft.api")

SCAN_SECONDS = 60.0
GRACE_MS = 60_000
"""A run in other hands is left to their notifier for so long."""
AT_ONCE = 8
SEND_MS = 10_000
PAUSE_SECONDS_MAX = 300.0
ABOUT_BYTES_MAX = 64 * 1024
_TELLING = (e.AskOpened, e.AskEscalated, e.AskReminded)
_encode = msgspec.json.Encoder().encode


class Word(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent. ``links``: for those who are asked by name; for others they are made on request."""

    event: str
    key: str
    sent_at: Moment
    tenant: str
    approval: Approval
    links: list[LinkPair]


class _Pause(msgspec.Struct):
    seconds: float
    until: float


def notifier_here(door: Callable[[], Door]) -> Notifier | None:
    """The notifier that the environment asks for. Raises UsageError."""
    telling = telling_here()
    return Notifier(door, telling) if telling is not None else None


class Notifier:
    """See the module."""

    def __init__(self, door: Callable[[], Door], telling: Telling, *, client: HttpClient | None = None) -> None:
        self._door = door
        self._telling = telling
        self._client = client or HttpClient()
        self._news: set[RunUid] = set()
        self._woken = asyncio.Event()
        self._told: dict[RunUid, int] = {}
        """Runs that have nothing to tell, as of the number of their last event."""
        self._pauses: dict[str, _Pause] = {}
        self._detach: Callable[[], None] | None = None
        self._working: BackgroundLoop | None = None

    def attach(self, engine: Engine) -> None:
        """Look after the questions of this engine from now on."""
        self._detach = engine.commits.observe(self._observed)
        self._working = BackgroundLoop("telling people of questions", self._work, engine.status.fail)
        self._working.start()

    async def close(self) -> None:
        if self._detach is not None:
            self._detach()
            self._detach = None
        if self._working is not None:
            await self._working.stop()
            self._working = None
        await self._client.close()

    def _observed(self, actor: Actor, draft: Draft) -> None:
        if actor.machine.state.asks and any(isinstance(e.decode(one.body), _TELLING) for one in draft.events):
            self._news.add(actor.uid)
            self._woken.set()

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        scanned = -SCAN_SECONDS
        while True:
            try:
                if loop.time() - scanned >= SCAN_SECONDS:
                    scanned = loop.time()
                    await self._scan()
                await self._tell_news()
            except WeftError as error:
                log.warning("weft: questions cannot be looked at now: %s", error)
            self._woken.clear()
            if not self._news:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._patience(scanned)):
                        await self._woken.wait()

    def _patience(self, scanned: float) -> float:
        """Until the next look, or until a receiver that did not answer is tried again."""
        now = asyncio.get_running_loop().time()
        times = [scanned + SCAN_SECONDS, *(pause.until for pause in self._pauses.values())]
        return max(0.05, min(times) - now)

    async def _scan(self) -> None:
        """All runs that ask, also those that no engine here has seen; the ones that were looked at stay quiet."""
        door, seen = self._door(), set[RunUid]()
        after: str | None = None
        while True:
            page = await runs_that_ask(door, after=after)
            seen.update(row.uid for row in page.rows)
            self._news.update(row.uid for row in page.rows if self._told.get(row.uid) != row.seq)
            after = page.cursor
            if after is None:
                break
        self._told = {uid: seq for uid, seq in self._told.items() if uid in seen}

    async def _tell_news(self) -> None:
        now = asyncio.get_running_loop().time()
        for pause in self._pauses.values():
            if pause.until <= now:
                self._news.update(self._waiting_since(now))
                break
        uids, self._news = list(self._news), set()
        for start in range(0, len(uids), AT_ONCE):
            await asyncio.gather(*(self._tell_run(uid) for uid in uids[start : start + AT_ONCE]))

    def _waiting_since(self, now: float) -> list[RunUid]:
        return [RunUid(key.partition(":")[0]) for key, pause in self._pauses.items() if pause.until <= now]

    async def _tell_run(self, uid: RunUid) -> None:
        door = self._door()
        row = await door.store.directory.row(uid)
        if row is None:
            self._forget(uid)
            return
        items = await listed_in(door, row)
        quiet = True
        for item in items:
            if item.notice != item.question.told:
                quiet = await self._tell(door, item) and quiet
        if quiet:
            self._told[uid] = row.seq
            self._forget(uid)

    def _forget(self, uid: RunUid) -> None:
        self._pauses = {key: pause for key, pause in self._pauses.items() if not key.startswith(f"{uid}:")}

    async def _tell(self, door: Door, item: OpenQuestion) -> bool:
        """Tell of one question; whether that is done with."""
        now_ms = door.clock.now_ms()
        engine = door.engine
        elsewhere = engine is not None and item.row.owner not in (None, engine.host)
        if elsewhere and now_ms - item.question.since < GRACE_MS:
            return False
        key = f"{item.row.uid}:{item.number}:{item.notice}"
        pause = self._pauses.get(key)
        now = asyncio.get_running_loop().time()
        if pause is not None and pause.until > now:
            return False
        try:
            await self._send(key, await self._word(door, item, key, now_ms), now_ms)
            with contextlib.suppress(Refused):
                note = c.NoteTold(item.number, item.notice)
                if engine is None:
                    await door.tell(item.row.id, note)
                else:
                    await engine.retry_until_available(lambda: door.tell(item.row.id, note))
        except WeftError as error:
            seconds = min(PAUSE_SECONDS_MAX, pause.seconds * 2) if pause is not None else 1.0
            self._pauses[key] = _Pause(seconds, now + seconds)
            log.warning("weft: nobody could be told of %s: %s", item.id, error)
            return False
        self._pauses.pop(key, None)
        return True

    async def _word(self, door: Door, item: OpenQuestion, key: str, now_ms: int) -> Word:
        links = await Links.of(door.store.access, self._telling.public)
        approval = await approval_view(door, item)
        if len(bytes(approval.about)) > ABOUT_BYTES_MAX:
            approval = msgspec.structs.replace(approval, about=msgspec.Raw(b"null"))
        people = [who for who in item.asked if not is_group(who) and who not in item.question.approvals]
        return Word(
            event=f"question.{item.notice.partition('.')[0]}",
            key=key,
            sent_at=known_moment(now_ms),
            tenant=tenant_prefix(item.row.id)[1:-1],
            approval=approval,
            links=[pair(links, item, who, [], now_ms=now_ms) for who in people],
        )

    async def _send(self, key: str, word: Word, now_ms: int) -> None:
        body = _encode(word)
        headers: dict[str, Any] = {
            "content-type": "application/json",
            "idempotency-key": key,
            SIGNATURE_HEADER.lower(): sign_body(self._telling.secret, body, now_s=now_ms // 1000),
        }
        answer = await self._client.send(
            Request(method="POST", url=self._telling.url, headers=headers, body=body, timeout_ms=SEND_MS)
        )
        if not answer.ok:
            raise Refused(f"{answer.request.shown()} answered {answer.status}.")
