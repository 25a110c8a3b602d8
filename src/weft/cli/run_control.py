"""Messages and commands to runs, wherever they are hosted. Each is durable when it is reported.

A command to a run that another process hosts travels as mail. Its host is given a moment to act, so that what is said
and what the next command sees agree; if nobody hosts the run, the mail waits, and that is said.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

from weft.authoring.handles import Handle
from weft.cli.messages import say
from weft.cli.place import found
from weft.core.ids import RunId
from weft.observe.sentences import force_hint
from weft.ports.store import RunRow
from weft.runtime.service import RunService
from weft.runtime.typed_words import parse_word
from weft.runtime.unreadable import NOT_UNDONE
from weft.steps.codec import Codec

PATIENCE_SECONDS = 0.6
LOOK_SECONDS = 0.02
NOBODY = "no process hosts it now; the next one that does will act on it."


def reached(service: RunService, row: RunRow) -> Handle[Any]:
    """Return a handle of the run."""
    return Handle(service, RunId(row.id), Codec.of(Any))


async def send_message(run: str, name: str, body: str, *, key: str | None, url: str | None, app: str | None) -> None:
    """Deliver a message; ``-`` reads its body from stdin."""
    async with found(run, url, app) as (service, row):
        content = parse_word(sys.stdin.read() if body == "-" else body)
        await reached(service, row).send(name, content, key=key)
        await report(service, row, f'"{name}" delivered to {row.id}', f'"{name}" kept for {row.id}')


async def cancel_run(run: str, *, reason: str, force: bool, url: str | None, app: str | None) -> None:
    """Ask a run to stop, or end it without asking its code."""
    async with found(run, url, app) as (service, row):
        await reached(service, row).cancel(reason, force=force)
        told = "ended without asking its code" if force else "told to stop"
        await report(service, row, f"{row.id} is {told}", f"{row.id} will be {told}")
        now = await service.row(row.id)
        if now.status == "cancelled" and now.fault is not None:
            say(NOT_UNDONE)
        if row.status == "cancelling" and not force:
            state = await service.reader.state(row)
            hint = force_hint(row.id, service.clock.now_ms() - state.cancelled_at)
            if hint:
                say(hint)


async def pause_run(run: str, *, url: str | None, app: str | None) -> None:
    """Keep a run from beginning anything new."""
    async with found(run, url, app) as (service, row):
        await reached(service, row).pause()
        await report(service, row, f"{row.id} is paused: weft resume {row.id}", f"{row.id} will be paused")


async def resume_run(run: str, *, url: str | None, app: str | None) -> None:
    """Let a paused or held run go on."""
    async with found(run, url, app) as (service, row):
        await reached(service, row).resume()
        await report(service, row, f"{row.id} goes on", f"{row.id} will go on")


async def retry_run(run: str, *, place: str, url: str | None, app: str | None) -> None:
    """Try a failed run again, from a place on if one is given."""
    async with found(run, url, app) as (service, row):
        await reached(service, row).retry(start=place)
        again = f"tried again{f' from {place}' if place else ''}"
        await report(service, row, f"{row.id} is {again}", f"{row.id} will be {again}")


async def report(service: RunService, row: RunRow, done: str, kept: str) -> None:
    """Say what became of a command: its host has taken it in, or it is kept for the next one."""
    if await is_taken_up(service, row):
        print(done)
    else:
        print(kept, flush=True)
        say(NOBODY)


async def is_taken_up(service: RunService, row: RunRow) -> bool:
    """Return whether a host acts on the run's mail: it has done so, or it is alive and busy."""
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        now = await service.store.directory.row(row.uid)
        if now is None or now.ended_at is not None:
            return True
        waiting = await service.store.log.inbox(row.uid)
        if not waiting and now.seq > 0 and now.owner is not None:
            return True
        if time.monotonic() > end:
            break
        await asyncio.sleep(LOOK_SECONDS)
    if now.owner is None:
        return not waiting and now.wake_at is None
    return now.owner not in await service.store.hosts.find_dead(monotonic=time.monotonic())
