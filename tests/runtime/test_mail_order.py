"""What one caller sends arrives in the order in which it was sent, through whichever processes, while hosts change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

import weft
from tests.code.desk import CALM, Desk
from tests.code.timeless import calm
from tests.crash.hosting import QUICK
from tests.hot.memory_server import Disk, MemoryWalServer
from weft.core.commands import DeliverMessage, encode
from weft.core.ids import RunId, RunUid
from weft.ports.store import Loaded, Mail, Sent
from weft.runtime.clock import SystemClock, TimeIds
from weft.runtime.host import Host
from weft.runtime.orders import StartOrder
from weft.runtime.run.actor import Actor
from weft.runtime.service import RunService
from weft.runtime.surroundings import Surroundings
from weft.runtime.worker.executor import PoolExecutor
from weft.stores.hot.policy import END, EVENT
from weft.stores.hot.store import HotStore
from weft.stores.memory import MemoryStore
from weft.stores.memory.content import MemoryContent
from weft.stores.memory.inboxes import MemoryInboxes
from weft.stores.memory.log import MemoryLog

SECONDS_MAX = 60.0
RUN = RunId("o-1")
STORES = {"memory": None, "hot, event": EVENT, "hot, end": END}
SETTINGS = msgspec.structs.replace(QUICK, lease_seconds=1.0)


class SlowMailLog(MemoryLog):
    """Mail is stored, and runs are loaded, only while their gates are open."""

    def __init__(self, content: MemoryContent) -> None:
        super().__init__(content)
        self.gate = open_gate()
        self.asked = asyncio.Event()
        self.loads = open_gate()
        self.loaded = asyncio.Event()

    async def send(self, mail: Sequence[Mail]) -> Sequence[Sent]:
        self.asked.set()
        await self.gate.wait()
        return await super().send(mail)

    async def load(self, uid: RunUid, *, fold: int) -> Loaded | None:
        found = await super().load(uid, fold=fold)
        self.loaded.set()
        await self.loads.wait()
        return found


class SlowInboxes(MemoryInboxes):
    """Mail is read only while its gate is open."""

    gate: asyncio.Event

    async def news(self, *args: Any, **kwargs: Any) -> Any:
        await self.gate.wait()
        return await super().news(*args, **kwargs)

    async def waiting(self, *args: Any, **kwargs: Any) -> Any:
        await self.gate.wait()
        return await super().waiting(*args, **kwargs)


def open_gate() -> asyncio.Event:
    gate = asyncio.Event()
    gate.set()
    return gate


class Office:
    """One store with gates, and processes on it."""

    def __init__(self, kept: str) -> None:
        self.app = weft.App("memory://mail-order")
        self.content = MemoryStore("memory://mail-order")
        self.policy = STORES[kept]
        self.disk = Disk()
        self.inboxes_open = open_gate()

        @self.app.step
        async def note(text: str) -> str:
            return text

        @self.app.workflow
        async def order(ctx: weft.Context) -> list[str]:
            return [await note(await ctx.receive("word", str)) for _ in range(3)]

        @self.app.workflow
        async def teller(ctx: weft.Context, run: str, words: list[str]) -> None:
            for word in words:
                await ctx.send(run, "word", word)

        self.order, self.teller = order, teller

    def store(self) -> Any:
        """Return what a process of its own sees of the store."""
        durable = self.content.share()
        self.log = durable.log = SlowMailLog(durable.content)
        inboxes = durable.inboxes = SlowInboxes(durable.content, durable.directory)
        inboxes.gate = self.inboxes_open
        if self.policy is None:
            return durable
        return HotStore(durable, MemoryWalServer(self.disk), policy=self.policy)

    @asynccontextmanager
    async def host(self, *, dies: bool = False) -> AsyncIterator[RunService]:
        """Host the app in a process. The app's handles belong to the newest one."""
        store = self.store()
        await store.open()
        executor = PoolExecutor()
        given = Surroundings(store=store, clock=SystemClock(), ids=TimeIds(), executor=executor, settings=SETTINGS)
        service = RunService(store, given.clock, given.ids)
        host = Host(given, self.app.catalogue(), service)
        self.app.bind(service)
        try:
            await host.start()
            yield service
            if not dies:
                await host.stop()
        finally:
            await host.kill()
            self.app.bind(None)
            await store.close()
            executor.close()

    @staticmethod
    def loading(service: RunService) -> Actor:
        """Return the run, which is being loaded."""
        actor = service.local.find_by_id(RUN) if service.local is not None else None
        assert actor is not None
        assert not actor.ready
        return actor

    def outside(self) -> RunService:
        """Return a process that only sends: the API server of another host, or a program."""
        return RunService(self.content, SystemClock(), TimeIds())


async def say(service: RunService, word: str, *, key: str | None = None) -> None:
    message = DeliverMessage(service.ids.new(), "word", msgspec.Raw(f'"{word}"'.encode()))
    await service.tell(RUN, message, key=key)


async def loaded(service: RunService) -> Actor:
    """Wait until a host has the run in memory."""
    while True:
        actor = service.local.find_by_id(RUN) if service.local is not None else None
        if actor is not None and actor.ready:
            return actor
        await asyncio.sleep(0.001)


async def begin(service: RunService) -> None:
    await service.start(StartOrder(workflow="order", input={}, id=RUN))


def play(scene: Callable[[], Coroutine[Any, Any, list[str]]]) -> list[str]:
    return asyncio.run(asyncio.wait_for(scene(), SECONDS_MAX))


@pytest.mark.parametrize("kept", STORES)
def test_a_message_to_a_run_that_is_being_taken_up_is_not_overtaken(kept: str) -> None:
    async def scene() -> list[str]:
        office = Office(kept)
        async with office.host() as service:
            office.log.gate.clear()
            await begin(office.outside())
            found = office.app.get(RUN)
            first = asyncio.create_task(found.send("word", "a"))
            await office.log.asked.wait()  # no host has the run: the message goes by mail
            await loaded(service)
            office.inboxes_open.clear()
            office.log.gate.set()
            await first
            await found.send("word", "b")
            await found.send("word", "c")
            office.inboxes_open.set()
            return await found.result()

    assert play(scene) == ["a", "b", "c"]


@pytest.mark.parametrize("key", [None, "first"])
@pytest.mark.parametrize("kept", STORES)
def test_a_message_that_another_process_accepted_is_not_overtaken(kept: str, key: str | None) -> None:
    """As with two servers behind one address: the first request reaches a server that does not host the run."""

    async def scene() -> list[str]:
        office = Office(kept)
        async with office.host() as service:
            await begin(service)
            await loaded(service)
            office.inboxes_open.clear()
            await say(office.outside(), "a", key=key)
            await say(service, "b", key=key and "second")
            await say(office.outside(), "c")
            office.inboxes_open.set()
            return await office.app.get(RUN).result()

    assert play(scene) == ["a", "b", "c"]


@pytest.mark.parametrize("kept", STORES)
def test_a_message_that_was_accepted_while_a_run_was_loaded_is_not_overtaken(kept: str) -> None:
    async def scene() -> list[str]:
        office = Office(kept)
        async with office.host() as service:
            office.log.loads.clear()
            await begin(office.outside())
            await office.log.loaded.wait()  # its inbox was read
            office.inboxes_open.clear()
            await say(office.outside(), "a")
            second = asyncio.create_task(say(service, "b"))
            actor = office.loading(service)
            while not actor.mailbox:
                await asyncio.sleep(0.001)
            office.log.loads.set()
            await second
            await say(service, "c")
            office.inboxes_open.set()
            return await office.app.get(RUN).result()

    assert play(scene) == ["a", "b", "c"]


@pytest.mark.parametrize("dies", [True, False], ids=["killed", "stopped"])
@pytest.mark.parametrize("kept", STORES)
def test_messages_keep_their_order_when_another_host_takes_the_run(kept: str, dies: bool) -> None:
    async def scene() -> list[str]:
        office = Office(kept)
        async with office.host(dies=dies) as service:
            await begin(service)
            await loaded(service)
            await say(service, "a")
            office.inboxes_open.clear()
            await say(office.outside(), "b")
            office.inboxes_open.set()
        async with office.host() as service:
            await loaded(service)
            await say(service, "c")
            return await office.app.get(RUN).result()

    assert play(scene) == ["a", "b", "c"]


@pytest.mark.parametrize("kept", STORES)
def test_what_a_run_has_sent_is_not_overtaken(kept: str) -> None:
    async def scene() -> list[str]:
        office = Office(kept)
        async with office.host() as service:
            await begin(service)
            await loaded(service)
            office.inboxes_open.clear()
            await (await office.app.start(office.teller(RUN, ["a", "b"]))).result()
            await say(service, "c")
            office.inboxes_open.set()
            return await office.app.get(RUN).result()

    assert play(scene) == ["a", "b", "c"]


def test_mail_accepted_before_a_deadline_wins_although_the_run_was_about_to_leave_memory() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        got = await ctx.receive("n", str, timeout="10s", default="late")
        await ctx.sleep("1m")  # an end is refused while there is mail
        return got

    async def scene() -> str:
        run = await app.start(flow(), id="x")
        await asyncio.sleep(5)
        uid, log = desk.store.content.ids["x"], desk.host.store.log  # type: ignore[index]
        body = encode(DeliverMessage("m1", "n", msgspec.Raw(b'"in time"')))
        await log.send([Mail(id="m1", to=uid, body=body, at=desk.clock.now_ms())])
        reading, releasing = asyncio.Event(), asyncio.Event()
        log.inbox = after(reading, log.inbox)  # type: ignore[method-assign]
        log.release = after(releasing, log.release)  # type: ignore[method-assign]
        await asyncio.sleep(6)
        leaving = asyncio.create_task(desk.host.releaser.release([desk.host.runs.actors[uid]]))
        await calm()
        assert not desk.host.runs.actors[uid].ready
        reading.set()  # the inbox that was asked for when the timer was due
        await calm()
        releasing.set()
        await leaving
        return await run.result()

    desk = Desk(app, settings=msgspec.structs.replace(CALM, poll_seconds=1000.0))
    assert desk.play(scene) == "in time"


def after(gate: asyncio.Event, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Return a method of a store that answers when the gate is open."""

    async def later(*args: Any, **options: Any) -> Any:
        found = await method(*args, **options)
        await gate.wait()
        return found

    return later
