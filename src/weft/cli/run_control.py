"""Send messages and commands to runs in any process. Each is durable before it is reported.

A command to a run in another process is sent as mail. The CLI waits a moment for the host to act on it, so that the
next command sees the effect. If no process hosts the run, the mail is kept, and the CLI says so.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from weft.authoring.handles import Handle
from weft.cli.login import login
from weft.cli.messages import say
from weft.cli.operations import run_operations
from weft.cli.store_access import open_run
from weft.observe.run_hosts import hosting_of
from weft.observe.sentences import force_hint
from weft.ports.store import RunRow
from weft.runtime.service import RunService
from weft.runtime.typed_words import parse_word
from weft.runtime.unreadable import NOT_UNDONE

PATIENCE_SECONDS = 0.6
LOOK_SECONDS = 0.02
NO_HOST = "no process hosts the run now; the next host will act on this."


def run_handle(service: RunService, row: RunRow) -> Handle[Any]:
    """Return a handle of the run."""
    return run_operations(service).run_handle(row.id)


async def send_message(run: str, name: str, body: str, *, key: str | None, url: str | None, app: str | None) -> None:
    """Send a message to a run. The body ``-`` is read from stdin."""
    async with open_run(run, url, app) as (service, row):
        content = parse_word(sys.stdin.read() if body == "-" else body)
        await run_handle(service, row).send(name, content, key=key)
        await print_done(service, row, f'"{name}" delivered to {row.id}', f'"{name}" kept for {row.id}')


async def cancel_run(run: str, *, reason: str, force: bool, url: str | None, app: str | None) -> None:
    """Ask a run to stop or, with ``force``, end it without running its code."""
    async with open_run(run, url, app) as (service, row):
        await run_handle(service, row).cancel(reason, force=force, by=login())
        action = "ended without running its code" if force else "asked to stop"
        await print_done(service, row, f"{row.id} is {action}", f"{row.id} will be {action}")
        now = await service.row(row.id)
        if now.status == "cancelled" and now.fault is not None:
            say(NOT_UNDONE)
        if row.status == "cancelling" and not force:
            state = await service.reader.state(row)
            hint = force_hint(row.id, service.clock.now_ms() - state.cancelled_at)
            if hint:
                say(hint)


async def pause_run(run: str, *, reason: str, url: str | None, app: str | None) -> None:
    """Start no new work in a run until it is resumed."""
    async with open_run(run, url, app) as (service, row):
        await run_handle(service, row).pause(reason, by=login())
        await print_done(service, row, f"{row.id} is paused: weft resume {row.id}", f"{row.id} will be paused")


async def resume_run(run: str, *, reason: str, url: str | None, app: str | None) -> None:
    """Continue a paused or held run."""
    async with open_run(run, url, app) as (service, row):
        await run_handle(service, row).resume(reason, by=login())
        await print_done(service, row, f"{row.id} continues", f"{row.id} will continue")


class TypedRetry(NamedTuple):
    """The options of ``weft retry``."""

    place: str
    approved: Sequence[str]
    force: bool
    reason: str


async def retry_run(run: str, given: TypedRetry, *, url: str | None, app: str | None) -> None:
    """Retry a failed run. With a place, everything from that location on is repeated."""
    async with open_run(run, url, app) as (service, row):
        place = given.place
        await run_handle(service, row).retry(
            given.reason, start=place, approved=given.approved, force=given.force, by=login()
        )
        action = f"retried{f' from {place}' if place else ''}"
        await print_done(service, row, f"{row.id} is {action}", f"{row.id} will be {action}")


async def print_done(service: RunService, row: RunRow, done: str, kept: str) -> None:
    """Print the result of a command: ``done`` if a host acts on it, and otherwise that it is kept for the next host."""
    if await is_acted_on(service, row):
        print(done)
    else:
        print(kept, flush=True)
        await say_who(service, row, NO_HOST)


async def say_who(service: RunService, row: RunRow, no_host: str) -> None:
    """Say that a host has not acted on a command yet or, if no living host can, ``no_host``."""
    now = await service.store.directory.row(row.uid) or row
    hosted = not sees_hosts(service) or (await hosting_of(service, now, None)).is_hosted
    say(f"its host has not acted on this yet. To look at it: weft explain {row.id}" if hosted else no_host)


async def is_acted_on(service: RunService, row: RunRow) -> bool:
    """Return whether a host has acted on the run's mail, or is alive and will do so."""
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        now = await service.store.directory.row(row.uid)
        if now is None or now.ended_at is not None:
            return True
        waiting = await service.store.log.inbox(row.uid)
        if not waiting and now.seq > 0 and now.owner is not None:
            return True
        if now.seq == 0 and now.owner is None and now.wake_at is not None and now.wake_at > service.clock.now_ms():
            return False  # its start is later, so nobody acts on it now
        if time.monotonic() > end:
            break
        await asyncio.sleep(LOOK_SECONDS)
    if now.owner is None:
        return not waiting and now.wake_at is None
    return not sees_hosts(service) or now.owner not in await service.store.hosts.find_dead(monotonic=time.monotonic())


def sees_hosts(service: RunService) -> bool:
    """Return whether the hosts can be seen. A key of a tenant cannot see those of a server."""
    return hasattr(service.store, "hosts")
