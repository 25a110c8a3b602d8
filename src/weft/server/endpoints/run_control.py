"""Control runs: send messages, cancel, pause, resume, retry.

A command is durable when its request is answered. A repeated request with the same key counts once.
"""

from __future__ import annotations

from urllib.parse import quote

import msgspec

from weft.core import commands as c
from weft.core import values
from weft.core.code.locations import check_name
from weft.core.ids import RunId
from weft.errors import StoreError
from weft.observe.dry_runs import DryRun, dry_cancel, dry_retry, plan_or_refusal
from weft.observe.sentences import force_hint
from weft.runtime.requests import send_request, wait_for_answer
from weft.runtime.unreadable import NOT_UNDONE
from weft.server import views
from weft.server.endpoints.runs import requested_run
from weft.server.request import ApiCall, ApiReply
from weft.server.router import API


async def send(call: ApiCall) -> views.Accepted:
    """Deliver a message. The run gets it even if it does not wait for it yet."""
    message = call.body_as(views.NewMessage)
    service = call.service
    raw = await service.values.keep(values.encode(message.body, what=f'the message "{check_name(message.name)}" has'))
    return await _tell(call, c.DeliverMessage(service.ids.new(), message.name, msgspec.Raw(raw)))


async def request(call: ApiCall) -> ApiReply:
    """Deliver a message and wait for its answer. The status is 202 if there is none yet: ask again at ``Location``."""
    message = call.body_as(views.NewMessage)
    service = call.service
    run_id = RunId(call.parameters["id"])
    raw = await service.values.keep(values.encode(message.body, what=f'the message "{check_name(message.name)}" has'))
    sent = await send_request(service, run_id, message.name, raw, key=call.key)
    try:
        return await _answer_reply(call, run_id, sent)
    except StoreError:  # the message was delivered, and must not be sent again
        return _waiting_reply(run_id, sent)


async def answer(call: ApiCall) -> ApiReply:
    """Return the answer to a request, after waiting for it if asked to. The status is 202 if there is none yet."""
    return await _answer_reply(call, RunId(call.parameters["id"]), call.parameters["request"])


async def _answer_reply(call: ApiCall, run_id: RunId, request: str) -> ApiReply:
    wait = min(call.query_as(views.ResultQuery).wait, call.services.limits.wait_seconds)
    try:
        raw = await wait_for_answer(call.service, run_id, request, timeout=max(wait, 0.1))
    except TimeoutError:
        return _waiting_reply(run_id, request)
    return ApiReply(views.RequestView(id=request, status="answered", answer=msgspec.Raw(raw)))


def _waiting_reply(run_id: RunId, request: str) -> ApiReply:
    place = f"{API}/runs/{quote(run_id, safe='')}/requests/{quote(request, safe='')}"
    return ApiReply(views.RequestView(id=request, status="waiting"), 202, {"location": place})


async def cancel(call: ApiCall) -> views.Accepted | DryRun:
    """Cancel a run; ``force`` ends it without running its code. What it did is undone."""
    body = call.body_as(views.Cancel)
    values.encode(body.reason, what="the reason has")
    command = c.CancelRun(body.reason, body.force, call.by(body.by))
    if body.dry_run:
        found = await requested_run(call)
        return await plan_or_refusal(lambda: dry_cancel(call.service, found, command))
    accepted = await _tell(call, command)
    row = await call.service.row(RunId(accepted.id))
    if row.fault is not None:
        return msgspec.structs.replace(accepted, hint=NOT_UNDONE)
    if accepted.status != "cancelling":
        return accepted
    try:
        state = await call.service.reader.state(row)
    except StoreError:  # the command was accepted all the same
        return accepted
    return msgspec.structs.replace(accepted, hint=force_hint(row.id, call.service.clock.now_ms() - state.cancelled_at))


async def pause(call: ApiCall) -> views.Accepted:
    """Pause a run: it starts no new work until it is resumed."""
    said = call.body_as(views.Remark)
    values.encode(said.reason, what="the reason has")
    return await _tell(call, c.PauseRun(said.reason, call.by(said.by)))


async def resume(call: ApiCall) -> views.Accepted:
    """Resume a paused or held run."""
    said = call.body_as(views.Remark)
    values.encode(said.reason, what="the reason has")
    return await _tell(call, c.ResumeRun(said.reason, call.by(said.by)))


async def retry(call: ApiCall) -> views.Accepted | DryRun:
    """Retry a failed run."""
    said = call.body_as(views.RetryFrom)
    values.encode([said.place, *said.approved, said.reason], what="the retry has")
    command = c.RetryRun(said.place, said.approved, force=said.force, reason=said.reason, by=call.by(said.by))
    if said.dry_run:
        row = await requested_run(call)
        return await plan_or_refusal(lambda: dry_retry(call.service, row, command))
    return await _tell(call, command)


async def _tell(call: ApiCall, command: c.Mailed) -> views.Accepted:
    await call.service.tell(RunId(call.parameters["id"]), command, key=call.key)
    return await accepted(call)


async def accepted(call: ApiCall) -> views.Accepted:
    """Return the answer to a command that is durable: the run and its status now."""
    row = await call.service.row(RunId(call.parameters["id"]))
    return views.Accepted(row.id, row.status)  # type: ignore[arg-type]
