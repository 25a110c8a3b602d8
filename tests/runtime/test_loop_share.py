"""Work in large amounts leaves time for others: shares of a turn, and pauses while somebody waits for an answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

import weft
from tests.server.kit import API, serving
from weft.core import commands as c
from weft.core.ids import HostId, Millis, RunUid
from weft.ports.store import Mail, News
from weft.runtime.background_tasks import BackgroundTasks
from weft.runtime.duties.mail import CHILDREN_PER_SECOND, MAIL_PER_ROUND, MailDuty
from weft.runtime.duties.scheduler import MAIL, Wakeups
from weft.runtime.loop_share import (
    CALLED_SECONDS,
    LOADS_AT_ONCE,
    PAUSE_SECONDS,
    SHARE_SECONDS,
    Callers,
    NewChildren,
    Turns,
)
from weft.runtime.runs import RunTable
from weft.runtime.status import HostStatus
from weft.stores import open_store

from .test_room import crowd, hosted, until


class HandClock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def now_ms(self) -> Millis:
        return Millis(int(self.seconds * 1000))

    def monotonic(self) -> float:
        return self.seconds


class HandTimers(BackgroundTasks):
    """Notes what is to be called later, and when."""

    def __init__(self) -> None:
        super().__init__(HostStatus(), lambda _: True)
        self.later: list[tuple[float, Callable[..., object]]] = []

    def call_later(self, seconds: float, callback: Callable[..., object], *args: Any) -> None:
        assert not args
        self.later.append((seconds, callback))


def test_a_host_knows_for_a_moment_that_it_was_called() -> None:
    clock = HandClock()
    callers = Callers(clock)
    assert callers.pause() == 0
    callers.calls += 1
    assert callers.pause() == PAUSE_SECONDS
    clock.seconds += CALLED_SECONDS / 2
    assert callers.pause() == PAUSE_SECONDS
    clock.seconds += CALLED_SECONDS
    assert callers.pause() == 0


def test_threads_that_compute_pause_together_while_somebody_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = HandClock()
    callers = Callers(clock)
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock.seconds += seconds

    monkeypatch.setattr(time, "sleep", sleep)
    callers.give_way()
    clock.seconds += 2 * SHARE_SECONDS
    callers.give_way()
    assert slept == []  # nobody calls
    callers.calls += 1
    clock.seconds += 2 * SHARE_SECONDS
    callers.give_way()
    assert slept == [PAUSE_SECONDS]
    clock.seconds += SHARE_SECONDS / 2
    callers.give_way()
    assert slept == [PAUSE_SECONDS]  # there is time left
    clock.seconds += SHARE_SECONDS
    callers.give_way()
    assert slept == 2 * [PAUSE_SECONDS]


def test_threads_give_way_after_every_step_of_a_document() -> None:
    async def scenario() -> None:
        count = 200
        app = weft.App("memory://")
        async with app:
            steps = app.service.steps
            assert steps is not None
            assert steps.stored.give_way == app.service.local.callers.give_way
            given = 0

            def give_way() -> None:
                nonlocal given
                given += 1

            def passed() -> int:
                nonlocal given
                before, given = given, 0
                return before

            steps.stored.give_way = give_way
            document = {"steps": {f"s{n}": {"step": "do", "gives": {"fact": "string"}} for n in range(count)}}
            loaded = await steps.load(document)
            assert passed() >= count
            await steps.stored.register(loaded)
            assert passed() >= 2 * count  # it is decided, then read back
            await steps.refresh()
            assert passed() >= count

    asyncio.run(scenario())


def test_a_share_that_is_used_up_begins_again_after_the_pause() -> None:
    async def scenario() -> None:
        clock, timers = HandClock(), HandTimers()
        turns = Turns(clock, timers, lambda: 0.0001)
        await turns.share()
        clock.seconds += SHARE_SECONDS / 2
        await turns.share()  # there is time left
        clock.seconds += SHARE_SECONDS
        waiting = asyncio.create_task(turns.share())
        await asyncio.sleep(0.01)
        assert not waiting.done()
        ((seconds, end),) = timers.later
        assert seconds == 0.0001
        end()
        await waiting

    asyncio.run(scenario())


def test_new_children_wait_for_a_share_one_at_a_time() -> None:
    """If all loading tasks woke up to look for one, most of what they have would go into that."""

    class CountedTurns(Turns):
        asked = most = 0

        async def share(self) -> None:
            self.asked += 1
            self.most = max(self.most, self.asked)
            await asyncio.sleep(0)
            self.asked -= 1

    async def scenario() -> None:
        loaded: list[RunUid] = []
        loading = asyncio.Event()

        async def load(uid: RunUid) -> None:
            loaded.append(uid)
            await loading.wait()

        status = HostStatus()
        status.running = True
        background = BackgroundTasks(status, lambda _: True)
        background.start()
        turns = CountedTurns(HandClock(), background)
        runs = RunTable(open_store("memory://").directory, 10, lambda _: None)
        children = NewChildren(
            HostId("h"), runs, status, background, Wakeups(), turns=turns, uncommitted=lambda: 0, load=load
        )
        uids = [RunUid(f"u{n:03}") for n in range(2 * LOADS_AT_ONCE)]
        for uid in uids:
            children.add(uid)
        await until(lambda: len(loaded) == LOADS_AT_ONCE)  # the loads themselves do not wait for each other
        loading.set()
        await until(lambda: not children.waiting)
        assert loaded == uids
        assert turns.most == 1

    asyncio.run(scenario())


def test_a_server_tells_its_host_of_calls_but_not_of_health_checks() -> None:
    app = weft.App("memory://")
    with serving(app) as server:
        server.get(f"{API}/steps")  # it asks the host, which is known from then on
        local = server.app.service.local
        assert local is not None
        before = local.callers.calls
        server.get("/healthz")
        assert local.callers.calls == before
        server.get(f"{API}/runs")
        assert local.callers.calls == before + 1


def test_mail_of_a_run_that_was_loaded_meanwhile_is_read_without_another_round() -> None:
    """A round for each run that is loaded would read the mail of all others again and again."""

    async def scenario() -> None:
        app, begun = crowd()
        host, _ = await hosted(app)
        handle = await app.start("wait", {"n": 1}, id="r1")
        await until(lambda: begun)
        (actor,) = host.runs.actors.values()
        message = c.DeliverMessage(name="go", body=msgspec.Raw(b'"now"'), id="m1")
        await host.store.log.send([Mail(id="m1", to=actor.uid, body=c.encode(message), at=Millis(1))])
        host.wakeups.take()
        await host.mail_duty._deliver_mail({actor.uid: []}, {actor.uid})
        assert MAIL not in host.wakeups.take()
        assert [posted.mail_id for posted in actor.mailbox] == ["m1"]
        assert await handle.result(timeout=60) == "1: now"
        await host.stop()

    asyncio.run(scenario())


class CountedInboxes:
    """Inboxes without mail, which note how many rows each round may read."""

    def __init__(self) -> None:
        self.limits: list[int] = []
        self.written = True
        """Whether another process wrote since the last question."""

    async def waiting(self, _: HostId, *, limit: int) -> dict[RunUid, list[Mail]]:
        self.limits.append(limit)
        return {}

    async def news(self, *_: object, limit: int, **__: object) -> News | None:
        if not self.written:
            return None
        self.limits.append(limit)
        return News(inboxes={}, claimable=False, wake_at=None)


def mail_duty(inboxes: Any, clock: HandClock, children: int) -> MailDuty:
    given: Any = SimpleNamespace(
        runs=SimpleNamespace(note_arrivals=lambda: nullcontext(set())),
        catalogue=SimpleNamespace(programs=tuple),
        new_children=SimpleNamespace(waiting=range(children)),
        claims=SimpleNamespace(dead=()),
    )
    unused: Any = None
    return MailDuty(
        given.runs, inboxes, HostId("host"), unused,
        catalogue=given.catalogue, clock=clock, turns=unused, new_children=given.new_children, claims=given.claims,
        loader=unused,
    )  # fmt: skip


def test_rounds_of_mail_do_not_read_past_thousands_of_new_children_each_time() -> None:
    clock, inboxes = HandClock(), CountedInboxes()
    duty = mail_duty(inboxes, clock, 20_000)

    async def scene() -> None:
        for _ in range(200):  # ten seconds, in which other processes write all the time
            await duty.look()
            await duty.run()
            clock.seconds += 0.05

    asyncio.run(scene())
    past = sum([limit - MAIL_PER_ROUND for limit in inboxes.limits])
    assert 20_000 <= past <= 20_000 + 10 * CHILDREN_PER_SECOND


def test_mail_behind_new_children_is_read_although_nobody_writes_any_more() -> None:
    clock, inboxes = HandClock(), CountedInboxes()
    inboxes.written = False
    duty = mail_duty(inboxes, clock, 20_000)

    async def scene() -> None:
        for _ in range(5):
            for _ in range(16):
                await duty.look()
                clock.seconds += 1 / 16
            await duty.run()

    asyncio.run(scene())
    assert inboxes.limits.count(MAIL_PER_ROUND + 20_000) == 3
