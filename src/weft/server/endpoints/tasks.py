"""Tasks for workers in other processes and languages: claim, heartbeat, emit, complete, fail.

A task is offered here if the host of its run does not have the step. An answer that comes too late, after the claim has
ended, is refused and changes nothing.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping

import msgspec
from msgspec import Raw

from weft.core import commands as c
from weft.core import values
from weft.core.code.locations import check_name
from weft.core.effects import PerformTask
from weft.core.ids import EntryId, HostId, RunUid
from weft.errors import Failure
from weft.ports.store import Mail
from weft.ports.streams import NewChunk
from weft.ports.tasks import TaskOffer
from weft.runtime.service import RunService
from weft.runtime.shared import Offered
from weft.runtime.worker.flight import Report
from weft.server import views
from weft.server.leases import PREFIX, Ticket, claim_lost_refusal, read_ticket
from weft.server.request import ApiCall
from weft.steps.task import chunk_of

POLL_SECONDS = 0.02
POLL_SECONDS_PER_WAITER = 0.002
"""The pause grows with the number of waiting claims, so that together they poll about 500 times a second."""

_offered = msgspec.json.Decoder(Offered).decode
_arguments = msgspec.json.Decoder(dict[str, Raw]).decode
_encode = msgspec.json.Encoder().encode


class _RecordedTask(msgspec.Struct):
    input: Raw
    result: Raw


_recorded = msgspec.json.Decoder(_RecordedTask).decode


# --- claiming ----------------------------------------------------------------------------------------------------


async def claim(call: ApiCall) -> views.Claimed:
    """Claim tasks of these steps and queues, waiting for some as long as asked. The answer may be empty."""
    wanted = call.body_as(views.NewClaim)
    leases = call.services.leases
    call.services.hosting()
    values.encode([*wanted.queues, *wanted.steps], what="the claim has")
    host = HostId(f"{PREFIX}{_digest(call.key.encode()) if call.key is not None else call.services.runs.ids.new()}")
    offers = await leases.offers(host) if call.key is not None else []
    if not offers:
        # Announce the claim before it takes tasks, because a holder that has not joined counts as dead.
        await leases.open(host, wanted.lease)
        try:
            offers = await _take(call, wanted, host)
        finally:
            if not offers:
                await leases.leave(host)
    if offers:
        await leases.beat(host)
    return views.Claimed([await _task(call.services.runs, host, offer) for offer in offers], wanted.lease)


async def _take(call: ApiCall, wanted: views.NewClaim, host: HostId) -> list[TaskOffer]:
    services = call.services
    runs = services.hosting()
    until = time.monotonic() + min(wanted.wait, services.limits.wait_seconds)
    with services.leases.keep_while_waiting(host):
        while True:
            offers = await runs.store.tasks.take(
                host, queues=wanted.queues, steps=wanted.steps, now=runs.clock.now_ms(), limit=wanted.limit
            )
            pause = POLL_SECONDS + services.leases.waiters * POLL_SECONDS_PER_WAITER
            if offers or time.monotonic() >= until or not await services.wait_unless_closing(pause):
                return list(offers)


async def _task(service: RunService, host: HostId, offer: TaskOffer) -> views.ClaimedTask:
    offered = _offered(offer.body)
    effect = offered.effect
    return views.ClaimedTask(
        id=str(Ticket(host, offer.uid, offer.task, offer.attempt, offer.delivery)),
        run=offered.run_id,
        step=effect.step,
        queue=offer.queue,
        place=effect.location,
        key=effect.key,
        attempt=effect.attempt,
        timeout=effect.policy.timeout_ms / 1000 if effect.policy.timeout_ms else None,
        input=Raw(await _arguments_of(service, effect)),
        traceparent=offered.trace or None,
    )


async def _arguments_of(service: RunService, effect: PerformTask) -> bytes:
    """Return the arguments of a task. Those of an undo come from the input and result of the task that it undoes."""
    if effect.takes is None:
        return await service.values.load(bytes(effect.input))
    recorded = _recorded(effect.input)
    arguments: Mapping[str, Raw] = {
        **_arguments(await service.values.load(bytes(recorded.input))),
        "result": Raw(await service.values.load(bytes(recorded.result))),
    }
    return _encode({name: arguments[name] for name in effect.takes if name in arguments})


# --- running -----------------------------------------------------------------------------------------------------


async def heartbeat(call: ApiCall) -> views.Beat:
    """Renew the claim of a task. Raises Refused if the claim no longer has it."""
    ticket = read_ticket(call.parameters["id"])
    call.services.hosting()
    await call.services.leases.find_task(ticket)
    return views.Beat(await call.services.leases.beat(HostId(ticket.host)))


async def emit(call: ApiCall) -> views.Beat:
    """Write output of a task to a stream of its run. It counts as a heartbeat."""
    ticket = read_ticket(call.parameters["id"])
    given = call.body_as(views.TaskChunks)
    runs = call.services.hosting()
    offer = await call.services.leases.find_task(ticket)
    stream = check_name(given.stream)
    effect = _offered(offer.body).effect
    chunks = [
        NewChunk(
            uid=RunUid(ticket.uid),
            stream=stream,
            key=f"{ticket.task}.{ticket.attempt}.{ticket.delivery}.{number}",
            body=chunk_of(stream, chunk),
            at=runs.clock.now_ms(),
            by=effect.location,
            attempt=effect.attempt + effect.delivery - 1,
        )
        for number, chunk in enumerate(given.chunks, given.first)
    ]
    await runs.store.streams.write(chunks)
    call.services.feed.wake_followers(RunUid(ticket.uid), stream)
    return views.Beat(await call.services.leases.beat(HostId(ticket.host)))


# --- answering ---------------------------------------------------------------------------------------------------


async def complete_task(call: ApiCall) -> views.Settled:
    """Complete a task. Raises Refused if the claim no longer has it."""
    ticket = read_ticket(call.parameters["id"])
    output = values.encode(call.body_as(views.TaskOutput).output, what="the task returned")
    kept = Raw(await call.services.runs.values.keep(output))
    return await _settle(
        call, ticket, c.ReportTaskSucceeded(EntryId(ticket.task), ticket.attempt, ticket.delivery, kept)
    )


async def fail_task(call: ApiCall) -> views.Settled:
    """Fail an attempt. The policy of the step says whether it is retried."""
    ticket = read_ticket(call.parameters["id"])
    given = call.body_as(views.TaskFailure)
    values.encode([given.message, given.type], what="the failure has")
    failure = Failure(type=given.type, message=given.message, code="step.failed", attempts=ticket.attempt)
    wait_ms = round(given.wait * 1000)
    report = c.ReportTaskFailed(EntryId(ticket.task), ticket.attempt, ticket.delivery, failure, given.retry, wait_ms)
    return await _settle(call, ticket, report)


async def _settle(call: ApiCall, ticket: Ticket, report: Report) -> views.Settled:
    """Put the answer into the inbox of the run and remove the task, in one transaction."""
    services = call.services
    runs = services.hosting()
    name, body = call.parameters["id"], c.encode(report)
    row = await runs.store.directory.row(RunUid(ticket.uid))
    if row is None:
        raise claim_lost_refusal()
    if services.leases.is_repeated(name, _digest(body)):
        return views.Settled(row.id)
    mail = Mail(id=runs.ids.new(), to=RunUid(ticket.uid), body=body, at=runs.clock.now_ms())
    if not await runs.store.tasks.settle(HostId(ticket.host), ticket.offer(), mail):
        raise claim_lost_refusal()
    services.leases.remember(name, _digest(body))
    if not await services.leases.offers(HostId(ticket.host)):
        await services.leases.leave(HostId(ticket.host))
    runs.wake()
    return views.Settled(row.id)


def _digest(raw: bytes) -> str:
    return hashlib.blake2b(raw, digest_size=16).hexdigest()
