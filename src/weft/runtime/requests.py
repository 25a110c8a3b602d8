"""Requests: send a message to a run and wait for its answer.

The answer is an event of the run, found by a key row. So it can be read again by any process that knows the id of the
request, even after the run has ended.
"""

from __future__ import annotations

import asyncio
from hashlib import blake2b

from msgspec import Raw

from weft.core import commands as c
from weft.core import events as e
from weft.core.ids import RunId, Seq, answer_key, request_key
from weft.errors import BadValue, KeyReused, NotFound, RunFinished
from weft.ports.store import RunRow
from weft.runtime.service import RunService
from weft.runtime.unreadable import unreadable_error

POLL_SECONDS_FIRST = 0.05
POLL_SECONDS_MAX = 1.0


async def send_request(service: RunService, run_id: RunId, name: str, body: bytes, *, key: str | None = None) -> str:
    """Send a message whose sender waits for an answer. Returns the request's id, the same for the same key."""
    row = await service.wait_for_store(service.row(run_id), f"it is unknown whether there is a run {run_id!r}")
    request = service.ids.new() if key is None else blake2b(f"{row.uid}/{key}".encode(), digest_size=16).hexdigest()
    message = c.DeliverMessage(request, name, Raw(body), answer=True)
    try:
        await service.tell(run_id, message, key=request_key(request))
    except KeyReused:
        raise KeyReused(f'The key "{key}" was used for another request to {run_id}.') from None
    return request


async def wait_for_answer(service: RunService, run_id: RunId, request: str, *, timeout: float | None = None) -> bytes:
    """Wait for the answer to a request.

    Raises TimeoutError, NotFound for a request that was never made, RunFinished if the run ended without an answer,
    BadValue if the run refused the message.
    """
    async with asyncio.timeout(timeout):
        row = await service.row(run_id)
        if await service.store.directory.key(row.uid, request_key(request)) is None:
            raise NotFound(f"{row.id} has no request {request!r}.")
        return await _wait_for_answer(service, row, request)


async def _wait_for_answer(service: RunService, row: RunRow, request: str) -> bytes:
    pause = POLL_SECONDS_FIRST
    with service.commits.changes_of(row.uid) as changed:
        while True:
            changed.clear()
            now = await service.store.directory.row(row.uid)
            found = await service.store.directory.key(row.uid, answer_key(request))
            if found is not None and found.seq:
                return await _read_answer(service, row, found.seq)
            if now is None or now.ended_at is not None:
                raise RunFinished(f"{row.id} ended without an answer to this request.", run_id=row.id)
            if now.fault is not None:
                raise unreadable_error(now, now.fault)
            try:
                await asyncio.wait_for(changed.wait(), pause)
            except TimeoutError:
                pause = min(pause * 2, POLL_SECONDS_MAX)


async def _read_answer(service: RunService, row: RunRow, seq: Seq) -> bytes:
    (stored,) = await service.store.log.events(row.uid, after=Seq(seq - 1), limit=1)
    event = e.decode(stored.body)
    assert isinstance(event, e.MessageAnswered)
    if event.error:
        raise BadValue(f"{row.id} refused the message: {event.error}", code="value.wrong_type")
    return await service.values.load(bytes(event.output))
