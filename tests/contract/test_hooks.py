"""Hooks on every store: the run that delivers an event begins in the append of the event, and exists once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import weft
from tests.contract.kit import OTHER, RUN, append, commit, found, go, inbox, new, row, start
from weft.authoring.app_catalogue import AppCatalogue
from weft.core import events as e
from weft.core.ids import Millis
from weft.core.run.hook_events import HookEvent
from weft.ports.run_query import RunQuery
from weft.ports.store import Outcome, RunRow, Store
from weft.runtime.clock import SystemClock, TimeIds
from weft.runtime.hooks import WORKFLOW
from weft.runtime.host import Host
from weft.runtime.orders import StartOrder
from weft.runtime.service import RunService
from weft.runtime.settings import Settings
from weft.runtime.surroundings import Surroundings
from weft.runtime.worker.executor import PoolExecutor

QUICK = Settings(lease_seconds=1.0, scan_seconds=0.1, poll_seconds=0.02, idle_seconds=0.2)
RUNS = 12

app = weft.App("memory://")
told: Counter[tuple[str, str]] = Counter()


@app.step(retries=1)
async def work(n: int) -> int:
    if n % 3 == 0 or (n % 3 == 1 and weft.task().attempt == 1):
        raise OSError("away")
    return n


@app.workflow
async def job(n: int) -> int:
    return await work(n)


@app.on("run_failed", "step_retried")
async def troubles(event: HookEvent) -> None:
    told[event.kind, event.run_id] += 1


@app.on("run_completed", where="run_id.endsWith('2')")
async def some(event: HookEvent) -> None:
    told[event.kind, event.run_id] += 1


def test_a_run_that_ends_starts_a_delivery_in_its_last_append(store: Store) -> None:
    start(store)
    delivery = new(OTHER, id="hook/mail/r/2", owner=None, start=b"{}", workflow=WORKFLOW)

    assert commit(store, append(status="failed", children=[delivery])) == [Outcome.ACCEPTED]
    assert row(store, RUN).status == "failed"
    assert (row(store, OTHER).status, inbox(store, OTHER)) == ("pending", ["start"])


def test_a_delivery_that_exists_is_not_made_again(store: Store) -> None:
    start(store)
    delivery = new(OTHER, id="hook/mail/r/2", owner=None, start=b"{}", workflow=WORKFLOW)
    commit(store, append(children=[delivery]))

    assert commit(store, append(seq=1, children=[delivery])) == [Outcome.ACCEPTED]
    assert go(store.log.create([delivery])) == [Outcome.ID_TAKEN]
    assert row(store, OTHER).mail == 1
    made = found(store, "hook/mail/r/2")
    assert made is not None
    assert made.uid == OTHER


def test_a_run_that_is_over_may_start_a_delivery_in_an_append_that_leaves_it_over(store: Store) -> None:
    start(store)
    commit(store, append(status="failed"))
    delivery = new(OTHER, id="hook/mail/r/2", owner=None, start=b"{}", workflow=WORKFLOW)

    late = append(seq=1, epoch=row(store, RUN).epoch, status="failed", reopen=Millis(9), children=[delivery])

    assert commit(store, late) == [Outcome.ACCEPTED]
    assert (row(store, RUN).status, row(store, OTHER).status) == ("failed", "pending")


# --- with hosts --------------------------------------------------------------------------------------------------


async def hosting(store: Store) -> tuple[Host, RunService, PoolExecutor]:
    await store.open()
    executor = PoolExecutor()
    given = Surroundings(store=store, clock=SystemClock(), ids=TimeIds(), executor=executor, settings=QUICK)
    service = RunService(store, given.clock, given.ids)
    host = Host(given, AppCatalogue(app.registered), service)
    await host.start()
    return host, service, executor


async def all_runs(service: RunService, **chosen: Any) -> list[RunRow]:
    page = await service.search(RunQuery(limit=1_000, **chosen))
    return list(page.rows)


async def wanted(service: RunService) -> set[tuple[str, str, int]]:
    """What must be delivered, as the logs of the runs have it: the hook, the run, and the number of the event."""
    found: set[tuple[str, str, int]] = set()
    for each in await all_runs(service, workflow="job"):
        async for stored in service.reader.events(each):
            event = e.decode(stored.body)
            if isinstance(event, e.RunFailedEvent) or (isinstance(event, e.TaskFailed) and event.retry_at):
                found.add(("troubles", each.uid, stored.seq))
            if isinstance(event, e.RunCompleted) and each.id.endswith("2"):
                found.add(("some", each.uid, stored.seq))
    return found


def test_every_event_is_delivered_once_also_if_a_host_dies(make: Callable[[], Store]) -> None:
    async def play() -> None:
        stores = [make(), make()]
        first, service, executor = await hosting(stores[0])
        for n in range(RUNS):
            await app_start(service, n)
        await first.kill()  # as a crash does: nothing is handed over
        second, service, other = await hosting(stores[1])
        try:
            async with asyncio.timeout(200):
                while [one for one in await all_runs(service, internal=True) if one.ended_at is None]:
                    await asyncio.sleep(0.05)
            delivered = {
                tuple(one.id.removeprefix("hook/").split("/")) for one in await all_runs(service, workflow=WORKFLOW)
            }
            expected = await wanted(service)
            assert delivered == {(hook, uid, str(number)) for hook, uid, number in expected}
            assert {one.status for one in await all_runs(service, workflow=WORKFLOW)} == {"completed"}
            assert len(expected) == 4 + 8 + 1  # failures, retries, completions
        finally:
            await second.stop()
            for each in (executor, other):
                each.close()
            for store in stores:
                await store.close()

    asyncio.run(play())


async def app_start(service: RunService, n: int) -> None:
    await service.start(StartOrder(workflow="job", input={"n": n}, id=f"job-{n}"))
