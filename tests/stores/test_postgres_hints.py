"""Wake-ups between processes: heard at once, not by oneself, and never relied on."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest

from tests import servers
from tests.contract.kit import HERE, RUN, append, changed, mail, new
from weft.core.ids import Epoch, RunUid
from weft.errors import StoreError
from weft.ports.tasks import TaskOffer
from weft.stores.postgres import PostgresStore, hints

Write = Callable[[PostgresStore], Awaitable[Any]]


@asynccontextmanager
async def two() -> AsyncIterator[tuple[PostgresStore, PostgresStore]]:
    """Two processes' views of one database with a run; both have said and heard all there was."""
    url = servers.database("hints")
    stores = [PostgresStore(url, durability="fast") for _ in range(2)]
    for store in stores:
        await store.open()
    await asyncio.to_thread(servers.empty, url)
    await stores[0].log.commit([append(count=0, create=new())], HERE)
    for store in stores * 2:
        await changed(store)
        await changed(store)
    try:
        yield stores[0], stores[1]
    finally:
        for store in stores:
            await store.close()


@pytest.fixture(autouse=True)
def _no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that only a hint can say that something changed."""
    monkeypatch.setattr(hints, "SILENCE_SECONDS_MAX", 3600.0)


async def _until_changed(store: PostgresStore) -> None:
    """Ask until a change is reported. If none ever is, the test runs into its time limit."""
    while not await changed(store):
        pass


def _offer() -> TaskOffer:
    return TaskOffer(uid=RunUid(RUN), task=1, attempt=1, delivery=1, step="s", queue="q", body=b"1", epoch=Epoch(1))


@pytest.mark.parametrize(
    "write",
    [
        lambda store: store.log.send([mail()]),
        lambda store: store.log.create([new("made", owner=None, start=b"1")]),
        lambda store: store.log.commit([append(status="completed")], HERE),
        lambda store: store.log.commit([append(mail=[mail(to=RUN)])], HERE),
        lambda store: store.log.commit([append(children=[new("kid", owner=None)])], HERE),
        lambda store: store.tasks.offer([_offer()]),
        lambda store: store.hosts.leave(HERE),
    ],
    ids=["mail", "a new run", "an end", "mail of a run", "a child", "a task", "a host that leaves"],
)
def test_what_concerns_others_is_told_to_others(write: Write) -> None:
    async def scenario() -> None:
        async with two() as (here, there):
            await write(here)
            await _until_changed(there)
            assert not await changed(there)
            assert not await changed(here)

    asyncio.run(scenario())


def test_a_plain_append_tells_nobody() -> None:
    async def scenario() -> None:
        async with two() as (here, there):
            await here.log.commit([append()], HERE)
            assert here.log._hints._sending is None
            assert not await changed(there)

    asyncio.run(scenario())


def test_one_who_closes_has_said_everything() -> None:
    """A command that sends and ends: its hint is out before the process is gone."""

    async def scenario() -> None:
        async with two() as (here, there):
            await here.log.send([mail()])
            await here.close()
            assert await changed(there)

    asyncio.run(scenario())


def test_after_a_lost_connection_something_may_have_changed() -> None:
    async def scenario() -> None:
        async with two() as (_here, there):
            admin = await asyncpg.connect(servers.database("hints"))
            await admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND datname = current_database()"
            )
            await admin.close()
            try:
                await _until_changed(there)
            except StoreError:  # the loss itself may be told first
                await _until_changed(there)

    asyncio.run(scenario())


def test_without_any_hint_a_look_is_due_after_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with two() as (here, _there):
            assert not await changed(here)
            monkeypatch.setattr(hints, "SILENCE_SECONDS_MAX", 0.0)
            assert await changed(here)

    asyncio.run(scenario())


def test_a_beat_measures_how_far_the_servers_clock_is_ahead() -> None:
    async def scenario() -> None:
        async with two() as (here, _there):
            await here.hosts.join(HERE, lease_ms=10_000)
            assert abs(here.hosts.offset_ms) < 1_000

    asyncio.run(scenario())
