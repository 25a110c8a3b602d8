"""Runs on a server (``weft serve``): the same handles and the same errors, over HTTP.

Every request is safe to repeat: starts have an id, and commands a key. A request without an answer is repeated a few
times; then it is ``Unavailable``, and whether it was carried out is unknown. Redirects are not followed, because they
would forward the key.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import quote

import aiohttp
import msgspec

from weft.authoring.goals import Plan
from weft.authoring.group import Group
from weft.authoring.handles import Event, Handle, unanswered
from weft.authoring.policies import Duration
from weft.core import values
from weft.core.code.locations import check_name
from weft.core.durations import duration_ms
from weft.core.goal.definitions import StepDef
from weft.errors import (
    BadGraph,
    BadPlan,
    BadValue,
    Failure,
    LimitExceeded,
    NotAllowed,
    NotFound,
    Refused,
    StoreError,
    TimedOut,
    Unavailable,
    UsageError,
    WeftError,
)
from weft.observe.explanation import Explanation
from weft.ports.store import RunQuery
from weft.runtime.clock import TimeIds
from weft.runtime.orders import StartOrder, attributes_as_json, check_run_id, unchecked_input
from weft.runtime.runs import Ending
from weft.server import views
from weft.server.endpoints.goals import StepViews
from weft.server.problems import ProblemDetails
from weft.server.router import API
from weft.steps.base import away
from weft.steps.codec import Codec

R = TypeVar("R")
T = TypeVar("T")

KEY_VARIABLE = "WEFT_API_KEY"
ATTEMPT_SECONDS = 30.0
WAIT_SECONDS = 20.0
"""How long one request waits for the end of a run."""
PAUSES_SECONDS = (0.1, 0.5, 2.0)
PAGE = 500
BLOCK_BYTES_MAX = 64 * 1024 * 1024

_FAMILIES: dict[str, type[WeftError]] = {
    "usage": UsageError,
    "request": UsageError,
    "value": BadValue,
    "graph": BadGraph,
    "goal": BadPlan,
    "run": Refused,
    "task": Refused,
    "ask": Refused,
    "access": NotAllowed,
    "store": StoreError,
    "limit": LimitExceeded,
}
_NARROWER: dict[str, type[WeftError]] = {
    "ask.not_yours": NotAllowed,
    "ask.ambiguous": NotAllowed,
    "goal.no_goal": UsageError,
}


class _Result(msgspec.Struct):
    """The end of a run with its output as it was sent, or that it has not ended."""

    status: str
    output: msgspec.Raw = msgspec.Raw(b"null")
    failure: Failure | None = None
    reason: str | None = None


class _RequestAnswer(msgspec.Struct):
    """The answer to a request as it was sent, or that there is none yet."""

    id: str
    status: str
    answer: msgspec.Raw = msgspec.Raw(b"null")


class Remote:
    """A connection to a server."""

    def __init__(self, url: str, key: str | None) -> None:
        self.url = url.rstrip("/")
        self.ids = TimeIds()
        secret = key or os.environ.get(KEY_VARIABLE)
        headers = {"authorization": f"Bearer {secret}"} if secret else {}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=ATTEMPT_SECONDS)
        self._session = aiohttp.ClientSession(
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=timeout,
            connector=aiohttp.TCPConnector(limit=0),
        )

    async def close(self) -> None:
        await self._session.close()

    # --- runs -----------------------------------------------------------------------------------------------------

    async def start(self, order: StartOrder) -> Handle[Any]:
        """Start a run by the name of its workflow."""
        body = {
            "workflow": order.workflow,
            "input": msgspec.Raw(unchecked_input(order)),
            "id": check_run_id(order.id) if order.id is not None else f"{order.workflow}-{self.ids.new()}",
            "version": order.version,
            "attributes": attributes_as_json(order.attributes),
            "delay": order.delay_ms / 1000,
            "existing": order.existing,
        }
        # Not repeated with existing="refuse": a second request would take the run of the first for another's.
        pauses = PAUSES_SECONDS if order.existing == "attach" else ()
        started = await self.tell("runs", body, views.StartedView, pauses=pauses)
        return self.get(started.id)

    def get(self, id: str) -> Handle[Any]:
        return RemoteHandle(self, id, Codec.of(Any))

    async def list(self, query: RunQuery) -> AsyncIterator[Handle[Any]]:
        """List runs, newest first."""
        asked: list[tuple[str, str]] = [("limit", str(PAGE))]
        if query.workflow is not None:
            asked.append(("workflow", query.workflow))
        if query.status is not None:
            asked.append(("status", query.status))
        if query.since is not None:
            asked.append(("since", datetime.fromtimestamp(query.since / 1000, UTC).isoformat()))
        asked += [("where", f"{name}={msgspec.json.encode(value).decode()}") for name, value in query.where.items()]
        cursor: str | None = None
        while True:
            page = await self.look("runs", views.Runs, [*asked, *([("cursor", cursor)] if cursor else [])])
            for run in page.runs:
                yield self.get(run.id)
            cursor = page.cursor
            if cursor is None:
                return

    async def plan(self, goals: tuple[str, ...], given: Mapping[str, Any] | Iterable[str]) -> Plan:
        """Plan for goals with the steps of the server. It is asked first: it knows what may be a goal."""
        names = list(given)
        await self.tell("plan", {"goals": goals, "given": names}, msgspec.Raw)
        found: dict[str, StepDef] = {}
        cursor: str | None = None
        while True:
            asked = [("limit", str(PAGE)), *([("cursor", cursor)] if cursor else [])]
            page = await self.look("steps", StepViews, asked)
            found |= {step.id: msgspec.convert(step.definition, StepDef) for step in page.steps}
            cursor = page.cursor
            if cursor is None:
                break
        group = Group()
        group.registered.learn_steps(found)
        return group.plan(*goals, given=names)

    # --- requests -------------------------------------------------------------------------------------------------

    async def look(self, path: str, of: type[T], query: Iterable[tuple[str, str]] = (), *, wait: float = 0.0) -> T:
        """Ask for something. ``wait``: how long the answer may take on purpose."""
        return _read(await self._answer("GET", path, params=list(query), wait=wait), of)

    async def tell(
        self, path: str, body: Any, of: type[T], *, key: str | None = None, pauses: Sequence[float] = PAUSES_SECONDS
    ) -> T:
        """Send a command. It is carried out once, however often the request has to be repeated."""
        headers = {"content-type": "application/json", "idempotency-key": key or self.ids.new()}
        data = msgspec.json.encode(body)
        return _read(await self._answer("POST", path, pauses=pauses, data=data, headers=headers), of)

    async def follow(self, path: str, after: int) -> AsyncIterator[tuple[str, bytes]]:
        """Yield the events of a live stream, as kind and data, until the connection ends."""
        headers = {"accept": "text/event-stream"}
        url = f"{self.url}{API}/{path}"
        options = {"params": {"after": str(after)}, "headers": headers, "allow_redirects": False}
        async with self._session.get(url, **options) as answer:  # type: ignore[arg-type]
            if answer.status != 200:
                raise _error(answer.status, await answer.read(), self.url)
            rest = b""
            async for chunk in answer.content.iter_any():
                *blocks, rest = (rest + chunk).split(b"\n\n")
                if len(rest) > BLOCK_BYTES_MAX:
                    raise LimitExceeded(f"An event of more than {BLOCK_BYTES_MAX:,} bytes.")
                for block in blocks:
                    fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if b": " in line)
                    if b"event" in fields:
                        yield fields[b"event"].decode(), fields.get(b"data", b"")

    async def _answer(
        self, method: str, path: str, *, wait: float = 0.0, pauses: Sequence[float] = PAUSES_SECONDS, **options: Any
    ) -> bytes:
        url = f"{self.url}{API}/{path}"
        timeout = aiohttp.ClientTimeout(total=ATTEMPT_SECONDS + wait, sock_connect=ATTEMPT_SECONDS)
        for pause in (*pauses, None):
            try:
                with away():
                    async with self._session.request(
                        method, url, timeout=timeout, allow_redirects=False, **options
                    ) as answer:
                        raw = await answer.read()
                        if answer.status < 300:
                            return raw
                        raise _error(answer.status, raw, self.url)
            except (aiohttp.InvalidURL, aiohttp.ClientSSLError) as error:
                raise UsageError(f"{self.url} cannot be asked: {error}.") from error
            except (aiohttp.ClientError, TimeoutError) as error:
                if isinstance(error, WeftError):
                    raise
                if pause is None:
                    raise lost(self.url, error) from error
                await asyncio.sleep(pause)
        raise AssertionError


class RemoteHandle(Handle[R]):
    """A handle of a run on a server."""

    def __init__(self, remote: Remote, id: str, result: Codec[R]) -> None:
        self.id = id
        self._remote = remote
        self._result = result
        self._path = f"runs/{quote(id, safe='')}"

    async def result(self, *, timeout: Duration | None = None) -> R:
        """Wait for the end and return what the run returned. Raises RunFailed, RunCancelled, TimedOut."""
        deadline = time.monotonic() + duration_ms(timeout) / 1000 if timeout is not None else None
        while True:
            left = WAIT_SECONDS if deadline is None else min(WAIT_SECONDS, max(0.0, deadline - time.monotonic()))
            found = await self._ending(left)
            if found.status in ("completed", "failed", "cancelled"):
                return self.read(Ending(found.status, bytes(found.output), found.failure, found.reason or ""))
            if deadline is not None and time.monotonic() >= deadline:
                raise TimedOut(f"{self.id} did not end in time; it goes on.", code="wait.timed_out")

    async def _ending(self, wait: float) -> _Result:
        return await self._remote.look(f"{self._path}/result", _Result, [("wait", f"{wait:.3f}")], wait=wait)

    async def status(self) -> str:
        return (await self._ending(0)).status

    async def send(self, name: str, body: Any = None, *, key: str | None = None) -> None:
        """Deliver a message. The same key twice is one message."""
        raw = values.encode(body, what=f'the message "{check_name(name)}" has')
        await self._tell("messages", {"name": name, "body": msgspec.Raw(raw)}, key)

    async def request(
        self, name: str, body: Any = None, *, timeout: Duration | None = None, key: str | None = None
    ) -> Any:
        """Deliver a message and wait for the run's answer to it. The same key twice is one request, with one answer."""
        raw = values.encode(body, what=f'the message "{check_name(name)}" has')
        deadline = time.monotonic() + duration_ms(timeout) / 1000 if timeout is not None else None
        sent = {"name": name, "body": msgspec.Raw(raw)}
        path = f"{self._path}/requests"
        found = await self._remote.tell(path, sent, _RequestAnswer, key=key)
        while found.status == "waiting":
            left = WAIT_SECONDS if deadline is None else min(WAIT_SECONDS, deadline - time.monotonic())
            if left <= 0:
                raise unanswered(self.id, name)
            found = await self._remote.look(f"{path}/{found.id}", _RequestAnswer, [("wait", f"{left:.3f}")], wait=left)
        return values.decode(bytes(found.answer))

    async def decide(
        self,
        ask: str,
        *,
        approved: bool,
        by: str = "",
        reason: str = "",
        form: Any = None,
        digest: str = "",
        key: str | None = None,
    ) -> None:
        """Answer an open question of the run. The server knows who has a key, and then ``by`` is not for the caller."""
        raw = msgspec.Raw(values.encode(form, what="the form has"))
        decision = views.Decision(approved=approved, by=by, reason=reason, form=raw, digest=digest)
        place = quote(f"{self.id}:{ask}", safe="")
        await self._remote.tell(f"approvals/{place}/decision", decision, msgspec.Raw, key=key)

    async def cancel(self, reason: str = "", *, force: bool = False) -> None:
        await self._tell("cancel", views.Cancel(reason=reason, force=force))

    async def pause(self) -> None:
        await self._tell("pause", views.Nothing())

    async def resume(self) -> None:
        await self._tell("resume", views.Nothing())

    async def retry(self, *, start: str = "") -> None:
        await self._tell("retry", views.RetryFrom(place=start))

    async def _tell(self, verb: str, body: Any, key: str | None = None) -> None:
        await self._remote.tell(f"{self._path}/{verb}", body, msgspec.Raw, key=key)

    async def events(self, *, after: int = 0, follow: bool = False) -> AsyncIterator[Event]:
        """Yield the log, oldest first; with ``follow`` also new events until the run ends."""
        seq, losses = after, 0
        if not follow:
            while True:
                query = [("after", str(seq)), ("limit", str(PAGE))]
                page = await self._remote.look(f"{self._path}/events", views.Events, query)
                for event in page.events:
                    yield _event(event)
                if page.problem is not None:
                    raise _error(page.problem.status, msgspec.json.encode(page.problem), self._remote.url)
                if page.after is None:
                    return
                seq = page.after
        while True:
            try:
                async for kind, data in self._remote.follow(f"{self._path}/live", seq):
                    if kind == "end":
                        return
                    if kind == "problem":
                        raise _error(409, data, self._remote.url)
                    event = msgspec.json.decode(data, type=views.EventView)
                    seq, losses = event.seq, 0
                    yield _event(event)
            except (aiohttp.ClientError, TimeoutError) as error:
                if losses >= len(PAUSES_SECONDS):
                    raise lost(self._remote.url, error) from error
            await asyncio.sleep(PAUSES_SECONDS[min(losses, len(PAUSES_SECONDS) - 1)])
            losses += 1

    async def explain(self) -> Explanation:
        return await self._remote.look(f"{self._path}/explain", Explanation)


def lost(url: str, error: Exception) -> Unavailable:
    """Return the error of a request that was not answered."""
    return Unavailable(
        f"The server at {url} does not answer ({str(error) or type(error).__name__}).",
        hint="Is `weft serve` running there? What was asked may have happened; asking again is safe.",
    )


def _event(view: views.EventView) -> Event:
    return Event(view.seq, view.at, view.kind, msgspec.json.decode(view.data), view.part)


def _read(raw: bytes, of: type[T]) -> T:
    try:
        return msgspec.json.decode(raw, type=of)
    except msgspec.DecodeError as error:
        raise UsageError(f"The answer is not one of a Weft server: {error}.", hint="Is the address right?") from error


def _error(status: int, raw: bytes, url: str) -> WeftError:
    """Return the exception that the server raised, as it would be raised here."""
    try:
        told = msgspec.json.decode(raw, type=ProblemDetails)
    except msgspec.DecodeError:
        what = f"{url} answered {status}, and not as a Weft server does."
        hint = "Is the address right, with the path that the API is mounted at?"
        return Unavailable(what, hint=hint) if status >= 500 else UsageError(what, hint=hint)
    context: dict[str, Any] = {"findings": told.findings} if told.findings else {}
    return _class_of(told.code, status)(told.detail, hint=told.hint, code=told.code, **context)


def _class_of(code: str, status: int) -> type[WeftError]:
    family = code.partition(".")[0]
    found = _NARROWER.get(code) or _plain_classes().get(code) or _FAMILIES.get(family)
    if status == 404 and found in (Refused, None):
        return NotFound
    return found or (Unavailable if status == 503 else WeftError)


def _plain_classes() -> dict[str, type[WeftError]]:
    """Return exception classes by their code. Those that need more than a message do not come over the API."""
    found: dict[str, type[WeftError]] = {}
    waiting = [WeftError]
    while waiting:
        cls = waiting.pop()
        waiting += cls.__subclasses__()
        if cls.__init__ is WeftError.__init__:
            found.setdefault(cls.__dict__.get("code", ""), cls)
    found.pop("", None)
    return found
