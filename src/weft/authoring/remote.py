"""Runs on a server (``weft serve``): the same handles and the same errors, over HTTP.

Every request is safe to repeat: starts have an id, and commands have a key. A request without an answer is repeated a
few times. Then ``Unavailable`` is raised, and it is unknown whether the request was carried out. Redirects are not
followed, because they would forward the API key.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar, Unpack
from urllib.parse import quote

import aiohttp
import msgspec

from weft.authoring.goals import Plan
from weft.authoring.group import Group
from weft.authoring.handles import Event, Handle, patch_document, request_timed_out
from weft.authoring.policies import Duration
from weft.authoring.remote_budgets import raise_remote_budget, remote_usage, start_options
from weft.authoring.remote_errors import no_answer, wrong_url
from weft.authoring.server_key import find_key
from weft.core import values
from weft.core.code.locations import check_name
from weft.core.durations import duration_ms
from weft.core.goal.definitions import StepDef
from weft.core.ids import GOAL
from weft.core.run.patch_plan import PatchPlan
from weft.errors import (
    BadGraph,
    BadPlan,
    BadSchedule,
    BadValue,
    Failure,
    LimitExceeded,
    NotAllowed,
    NotFound,
    PatchRefused,
    Refused,
    StoreError,
    TimedOut,
    Unavailable,
    UsageError,
    WeftError,
)
from weft.observe.diff import Diff
from weft.observe.explanation import Explanation
from weft.observe.step_logs import LogLine
from weft.ports.run_query import RunQuery
from weft.ports.store import OVER_STATUSES
from weft.runtime.asked_patches import PatchRequest
from weft.runtime.clock import TimeIds
from weft.runtime.deletion import DeletedTree, LegalHold
from weft.runtime.fork_order import ForkOptions, ForkOrder, check_order
from weft.runtime.forks import Forked
from weft.runtime.orders import StartOrder, attributes_as_json, check_run_id, unchecked_input
from weft.runtime.run_versions import RunVersion
from weft.runtime.runs import Ending
from weft.server import views
from weft.server.endpoints.by_hand import SetByHand
from weft.server.endpoints.deletion import NewHold, Reasoned
from weft.server.endpoints.goals import StepViews
from weft.server.endpoints.patches import PatchRequestList, RunVersions
from weft.server.endpoints.step_logs import LogLines
from weft.server.event_views import Events
from weft.server.problems import ProblemDetails
from weft.server.router import API
from weft.steps.codec import Codec
from weft.steps.task import release_slot
from weft.stores.urls import url_without_password

R = TypeVar("R")
T = TypeVar("T")

ATTEMPT_SECONDS = 30.0
CONNECT_SECONDS = 10.0
WAIT_SECONDS = 20.0
"""How long one request waits for the end of a run."""
PAUSES_SECONDS = (0.1, 0.5, 2.0)
PAGE = 500
LINES_SECONDS = 1.0
"""How often to ask for new lines of a run that is followed."""
NO_WEFT_SERVER = "usage.no_weft_server"
BLOCK_BYTES_MAX = 64 * 1024 * 1024

_BY_FAMILY: dict[str, type[WeftError]] = {
    "usage": UsageError,
    "request": UsageError,
    "value": BadValue,
    "graph": BadGraph,
    "goal": BadPlan,
    "schedule": BadSchedule,
    "bulk": UsageError,
    "patch": PatchRefused,
    "run": Refused,
    "task": Refused,
    "ask": Refused,
    "access": NotAllowed,
    "store": StoreError,
    "limit": LimitExceeded,
}
_BY_CODE: dict[str, type[WeftError]] = {
    "ask.not_yours": NotAllowed,
    "ask.ambiguous": NotAllowed,
    "bulk.too_many": LimitExceeded,
    "goal.no_goal": UsageError,
    "schedule.overlap": Refused,
    "schedule.declared": Refused,
}


class _Result(msgspec.Struct):
    """The status of a run. If it has ended, also its output or failure."""

    status: str
    output: msgspec.Raw = msgspec.Raw(b"null")
    failure: Failure | None = None
    reason: str | None = None


class _RequestAnswer(msgspec.Struct):
    """The status of a request, and its answer if there is one."""

    id: str
    status: str
    answer: msgspec.Raw = msgspec.Raw(b"null")


class Remote:
    """A connection to a server."""

    def __init__(self, url: str, key: str | None) -> None:
        self.url = url.rstrip("/")
        self.ids = TimeIds()
        secret = find_key(key)
        self.has_key = bool(secret)
        """Whether an API key says who the caller is."""
        headers = {"authorization": f"Bearer {secret}"} if secret else {}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
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
        """Start a run by the name of its workflow, or for goals."""
        what: dict[str, Any] = {"goals": order.goals} if order.goals else {"workflow": order.workflow}
        body = {
            **what,
            "input": msgspec.Raw(unchecked_input(order)),
            "words": order.words,
            "id": check_run_id(order.id) if order.id is not None else f"{order.workflow or GOAL}-{self.ids.new()}",
            "version": order.version,
            "attributes": attributes_as_json(order.attributes),
            "delay": order.delay_ms / 1000,
            "existing": order.existing,
            **start_options(order),
        }
        # With existing="refuse", the request is not repeated: the repetition would be refused because of the first.
        pauses = PAUSES_SECONDS if order.existing == "attach" else ()
        started = await self.post("runs", body, views.StartedView, pauses=pauses)
        return self.get(started.id)

    def get(self, id: str, result: Codec[Any] | None = None) -> Handle[Any]:
        return RemoteHandle(self, id, result or Codec.of(Any))

    async def list(self, query: RunQuery) -> AsyncIterator[Handle[Any]]:
        """List runs, newest first."""
        parameters: list[tuple[str, str]] = [("limit", str(PAGE))]
        if query.workflow is not None:
            parameters.append(("workflow", query.workflow))
        if query.status is not None:
            parameters.append(("status", query.status))
        if query.since is not None:
            parameters.append(("since", datetime.fromtimestamp(query.since / 1000, UTC).isoformat()))
        parameters += [
            ("where", f"{name}={msgspec.json.encode(value).decode()}") for name, value in query.where.items()
        ]
        cursor: str | None = None
        while True:
            page = await self.get_view("runs", views.Runs, [*parameters, *([("cursor", cursor)] if cursor else [])])
            for run in page.runs:
                yield self.get(run.id)
            cursor = page.cursor
            if cursor is None:
                return

    async def plan(self, goals: tuple[str, ...], given: Mapping[str, Any] | Iterable[str]) -> Plan:
        """Plan for goals with the steps of the server. The server first checks whether it knows the goals."""
        names = list(given)
        await self.post("plan", {"goals": goals, "given": names}, msgspec.Raw)
        steps: dict[str, StepDef] = {}
        cursor: str | None = None
        while True:
            parameters = [("limit", str(PAGE)), *([("cursor", cursor)] if cursor else [])]
            page = await self.get_view("steps", StepViews, parameters)
            steps |= {step.id: msgspec.convert(step.definition, StepDef) for step in page.steps}
            cursor = page.cursor
            if cursor is None:
                break
        group = Group()
        group.registered.learn_steps(steps)
        return group.plan(*goals, given=names)

    async def diff(self, a: str, b: str, *, at_a: int | None = None, at_b: int | None = None) -> Diff:
        """Compare two runs."""
        query = [(name, str(at)) for name, at in (("at_a", at_a), ("at_b", at_b)) if at is not None]
        return await self.get_view(f"runs/{quote(a, safe='')}/diff/{quote(b, safe='')}", Diff, query)

    # --- requests -------------------------------------------------------------------------------------------------

    async def get_view(self, path: str, of: type[T], query: Iterable[tuple[str, str]] = (), *, wait: float = 0.0) -> T:
        """Send a GET request. ``wait`` is how long the server itself waits before it answers."""
        return _read_answer(await self._answer("GET", path, params=list(query), wait=wait), of)

    async def post(
        self,
        path: str,
        body: Any,
        of: type[T],
        *,
        key: str | None = None,
        pauses: Sequence[float] = PAUSES_SECONDS,
        method: str = "POST",
    ) -> T:
        """Send a POST request. The command is carried out once, even if the request is repeated."""
        headers = {"content-type": "application/json", "idempotency-key": key or self.ids.new()}
        data = msgspec.json.encode(body)
        return _read_answer(await self._answer(method, path, pauses=pauses, data=data, headers=headers), of)

    async def get_bytes(self, path: str, query: Iterable[tuple[str, str]] = ()) -> bytes:
        """Return a file."""
        return await self._answer("GET", path, params=list(query))

    async def post_for_bytes(self, path: str, body: Any) -> bytes:
        """Send a POST request whose answer is a file. Repeating the request changes nothing more."""
        headers = {"content-type": "application/json", "idempotency-key": self.ids.new()}
        return await self._answer("POST", path, data=msgspec.json.encode(body), headers=headers)

    async def post_bytes(self, path: str, data: bytes, media: str, of: type[T]) -> T:
        """Send a file. Repeating the request changes nothing more."""
        headers = {"content-type": media, "idempotency-key": self.ids.new()}
        return _read_answer(await self._answer("POST", path, data=data, headers=headers), of)

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
        timeout = aiohttp.ClientTimeout(total=ATTEMPT_SECONDS + wait, sock_connect=CONNECT_SECONDS)
        for pause in (*pauses, None):
            try:
                with release_slot():
                    async with self._session.request(
                        method, url, timeout=timeout, allow_redirects=False, **options
                    ) as answer:
                        raw = await answer.read()
                        if answer.status < 300:
                            return raw
                        raise _error(answer.status, raw, self.url)
            except (aiohttp.InvalidURL, aiohttp.ClientSSLError) as error:
                raise wrong_url(self.url, error) from error
            except (aiohttp.ClientError, TimeoutError) as error:
                if isinstance(error, WeftError):
                    raise
                if pause is None:
                    raise no_answer(self.url, error) from error
                await asyncio.sleep(pause)
        raise AssertionError


class RemoteHandle(Handle[R]):
    """A handle of a run on a server."""

    def __init__(self, remote: Remote, id: str, result: Codec[R]) -> None:
        self.id = id
        self.remote = remote
        self._result = result
        self.path = f"runs/{quote(id, safe='')}"

    async def result(self, *, timeout: Duration | None = None) -> R:
        """Wait for the end of the run and return its result. Raises RunFailed, RunCancelled, TimedOut."""
        deadline = time.monotonic() + duration_ms(timeout) / 1000 if timeout is not None else None
        while True:
            left = WAIT_SECONDS if deadline is None else min(WAIT_SECONDS, max(0.0, deadline - time.monotonic()))
            found = await self._ending(left)
            if found.status in OVER_STATUSES:
                return self.read(Ending(found.status, bytes(found.output), found.failure, found.reason or ""))
            if deadline is not None and time.monotonic() >= deadline:
                raise TimedOut(f"{self.id} did not end in time; it is still running.", code="wait.timed_out")

    async def _ending(self, wait: float) -> _Result:
        return await self.remote.get_view(f"{self.path}/result", _Result, [("wait", f"{wait:.3f}")], wait=wait)

    async def status(self) -> str:
        return (await self._ending(0)).status

    async def send(self, name: str, body: Any = None, *, key: str | None = None) -> None:
        """Send a message. Two messages with the same key count as one."""
        raw = values.encode(body, what=f'the message "{check_name(name)}" has')
        await self._post("messages", {"name": name, "body": msgspec.Raw(raw)}, key)

    async def request(
        self, name: str, body: Any = None, *, timeout: Duration | None = None, key: str | None = None
    ) -> Any:
        """Send a message and wait for the run's answer. Two requests with the same key count as one."""
        raw = values.encode(body, what=f'the message "{check_name(name)}" has')
        deadline = time.monotonic() + duration_ms(timeout) / 1000 if timeout is not None else None
        sent = {"name": name, "body": msgspec.Raw(raw)}
        path = f"{self.path}/requests"
        found = await self.remote.post(path, sent, _RequestAnswer, key=key)
        while found.status == "waiting":
            left = WAIT_SECONDS if deadline is None else min(WAIT_SECONDS, deadline - time.monotonic())
            if left <= 0:
                raise request_timed_out(self.id, name)
            found = await self.remote.get_view(
                f"{path}/{found.id}", _RequestAnswer, [("wait", f"{left:.3f}")], wait=left
            )
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
        """Answer an open question of the run. With an API key, the key says who answers, and ``by`` is ignored."""
        raw = msgspec.Raw(values.encode(form, what="the form has"))
        name = "" if self.remote.has_key else by
        decision = views.Decision(approved=approved, by=name, reason=reason, form=raw, digest=digest)
        place = quote(f"{self.id}:{ask}", safe="")
        await self.remote.post(f"approvals/{place}/decision", decision, msgspec.Raw, key=key)

    async def cancel(self, reason: str = "", *, force: bool = False, by: str = "") -> None:
        """Ask the run to stop. An API key says who asks, and ``by`` is ignored; so for the verbs below."""
        await self._post("cancel", views.Cancel(reason=reason, force=force, by=by))

    async def pause(self, reason: str = "", *, by: str = "") -> None:
        await self._post("pause", views.Remark(reason=reason, by=by))

    async def resume(self, reason: str = "", *, by: str = "") -> None:
        await self._post("resume", views.Remark(reason=reason, by=by))

    async def set(
        self,
        place: str,
        output: Any = None,
        *,
        error: str = "",
        performed: bool = False,
        force: bool = False,
        reason: str = "",
        by: str = "",
    ) -> None:
        body = SetByHand(
            place=place, output=output, error=error, performed=performed, force=force, reason=reason, by=by
        )
        await self._post("set", body)

    usage = remote_usage
    raise_budget = raise_remote_budget

    async def retry(
        self,
        reason: str = "",
        *,
        start: str = "",
        approved: Sequence[str] = (),
        force: bool = False,
        by: str = "",
    ) -> None:
        body = views.RetryFrom(place=start, approved=list(approved), force=force, reason=reason, by=by)
        await self._post("retry", body)

    async def patch(
        self,
        ops: Sequence[Mapping[str, Any]] | None = None,
        *,
        dry_run: bool = False,
        expect: str = "",
        by: str = "",
        reason: str = "",
        wait: Duration | None = None,
        at: str = "",
        review: Sequence[str] = (),
        key: str | None = None,
        **fields: Any,
    ) -> PatchPlan:
        """Let the run follow another definition. With an API key, the key says who asks, and ``by`` is ignored."""
        options = {"dry_run": dry_run, "expect": expect, "by": by, "reason": reason, "at": at, "review": list(review)}
        options["wait"] = f"{duration_ms(wait)}ms" if wait is not None else ""
        body = {"patch": patch_document(ops, fields), **options}
        return await self.remote.post(f"{self.path}/patch", body, PatchPlan, key=key)

    async def undo_patch(
        self,
        *,
        redo: bool = False,
        ends: bool = False,
        dry_run: bool = False,
        expect: str = "",
        by: str = "",
        reason: str = "",
    ) -> PatchPlan:
        body = {"redo": redo, "ends": ends, "dry_run": dry_run, "expect": expect, "by": by, "reason": reason}
        return await self.remote.post(f"{self.path}/patch/undo", body, PatchPlan)

    async def withdraw_patch(self, asked: int = 0, *, by: str = "", reason: str = "") -> PatchRequest:
        path, body = f"{self.path}/patch/{asked}", {"by": by, "reason": reason}
        return await self.remote.post(path, body, PatchRequest, method="DELETE")

    async def patch_requests(self) -> list[PatchRequest]:
        return (await self.remote.get_view(f"{self.path}/patch", PatchRequestList)).patches

    async def versions(self) -> list[RunVersion]:
        return (await self.remote.get_view(f"{self.path}/versions", RunVersions)).versions

    async def delete(self, reason: str, *, by: str = "") -> DeletedTree:
        """Delete the run and all runs below it. With an API key, the key says who did it, and ``by`` is ignored."""
        body = Reasoned(reason=reason, by=by)
        return await self.remote.post(self.path, body, DeletedTree, method="DELETE")

    async def keep(self, reason: str, *, by: str = "") -> LegalHold:
        return await self.remote.post(f"{self.path}/keep", NewHold(reason=reason, by=by), LegalHold)

    async def end_keep(self, reason: str = "", *, by: str = "") -> LegalHold:
        return await self.remote.post(f"{self.path}/keep", NewHold(reason=reason, by=by, end=True), LegalHold)

    async def fork(self, *, by: str = "", key: str | None = None, **options: Unpack[ForkOptions]) -> Handle[R]:
        forked = await self.make_fork(ForkOrder(**options), by=by, key=key)
        return RemoteHandle(self.remote, forked.id, self._result)

    async def make_fork(self, order: ForkOrder, *, by: str = "", key: str | None = None) -> Forked:
        """Fork the run. Returns the fork and how much of the log it shares."""
        check_order(order)
        body = {name: value for name in order.__struct_fields__ if (value := getattr(order, name)) not in ("", None)}
        return await self.remote.post(f"{self.path}/fork", {**body, "by": by}, Forked, key=key)

    async def _post(self, verb: str, body: Any, key: str | None = None) -> None:
        await self.remote.post(f"{self.path}/{verb}", body, msgspec.Raw, key=key)

    async def events(self, *, after: int = 0, follow: bool = False) -> AsyncIterator[Event]:
        """Iterate over the log, oldest first. With ``follow``, also over new events until the run ends."""
        seq, losses = after, 0
        if not follow:
            while True:
                query = [("after", str(seq)), ("limit", str(PAGE))]
                page = await self.remote.get_view(f"{self.path}/events", Events, query)
                for event in page.events:
                    yield _event(event)
                if page.problem is not None:
                    raise _error(page.problem.status, msgspec.json.encode(page.problem), self.remote.url)
                if page.after is None:
                    return
                seq = page.after
        while True:
            try:
                async for kind, data in self.remote.follow(f"{self.path}/live", seq):
                    if kind == "end":
                        return
                    if kind == "problem":
                        raise _error(409, data, self.remote.url)
                    seen = msgspec.json.decode(data, type=views.EventView)
                    seq, losses = seen.seq, 0
                    yield _event(seen)
            except (aiohttp.ClientError, TimeoutError) as error:
                if losses >= len(PAUSES_SECONDS):
                    raise no_answer(self.remote.url, error) from error
            await asyncio.sleep(PAUSES_SECONDS[min(losses, len(PAUSES_SECONDS) - 1)])
            losses += 1

    async def logs(self, *, after: int = 0, follow: bool = False) -> AsyncIterator[LogLine]:
        """Iterate over what steps printed and logged, oldest first. With ``follow``, until the run ends."""
        number = after
        while True:
            query = [("after", str(number)), ("limit", str(PAGE))]
            page = await self.remote.get_view(f"{self.path}/logs", LogLines, query)
            for line in page.lines:
                yield line
                number = line.number
            if page.after is not None:
                continue
            if not follow:
                return
            if page.is_over:
                follow = False  # what is left comes with the next page
            await asyncio.sleep(LINES_SECONDS)

    async def explain(self) -> Explanation:
        return await self.remote.get_view(f"{self.path}/explain", Explanation)


def _event(view: views.EventView) -> Event:
    return Event(view.seq, view.at, view.kind, msgspec.json.decode(view.data), view.part)


def _read_answer(raw: bytes, of: type[T]) -> T:
    try:
        return msgspec.json.decode(raw, type=of)
    except msgspec.DecodeError as error:
        raise UsageError(
            f"The answer is not from a Weft server of this version: {error}.",
            hint="Check the URL. It includes the path at which the API is mounted.",
            code=NO_WEFT_SERVER,
        ) from error


def _error(status: int, raw: bytes, url: str) -> WeftError:
    """Return the exception for an error response of the server."""
    try:
        problem = msgspec.json.decode(raw, type=ProblemDetails)
    except msgspec.DecodeError:
        message = (
            f"{url_without_password(url)} answered with status {status}, and the answer is not from a Weft server."
        )
        hint = "Check the URL. It includes the path at which the API is mounted."
        return Unavailable(message, hint=hint) if status >= 500 else UsageError(message, hint=hint, code=NO_WEFT_SERVER)
    return error_of_problem(problem)


def error_of_problem(problem: ProblemDetails) -> WeftError:
    """Return the exception that a problem document describes."""
    context: dict[str, Any] = {"findings": problem.findings} if problem.findings else {}
    if problem.plan is not None:
        context["plan"] = msgspec.convert(problem.plan, PatchPlan)
    return _class_of(problem.code, problem.status)(problem.detail, hint=problem.hint, code=problem.code, **context)


def _class_of(code: str, status: int) -> type[WeftError]:
    family = code.partition(".")[0]
    cls = _BY_CODE.get(code) or _message_only_classes().get(code) or _BY_FAMILY.get(family)
    if status == 404 and cls in (Refused, None):
        return NotFound
    return cls or (Unavailable if status == 503 else WeftError)


def _message_only_classes() -> dict[str, type[WeftError]]:
    """Return, by code, the exception classes that need only a message. The API sends no others."""
    classes: dict[str, type[WeftError]] = {}
    pending = [WeftError]
    while pending:
        cls = pending.pop()
        pending += cls.__subclasses__()
        if cls.__init__ is WeftError.__init__:
            classes.setdefault(cls.__dict__.get("code", ""), cls)
    classes.pop("", None)
    return classes
