"""A WAL that breaks: nothing is lost, it is never written again, and a new one is opened when everything is drained."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from tests.code.timeless import calm
from tests.contract.kit import HERE, OTHER, RUN, THERE, append
from tests.hot.hot_scene import ACCEPTED, HotScene, hot_scene
from tests.hot.memory_server import Held, MemoryWalServer
from weft.core.ids import Epoch
from weft.errors import Unavailable
from weft.runtime.clock import SystemClock
from weft.stores.hot.keeper import CHECK_SECONDS, REMOVE_SECONDS, TICK_SECONDS
from weft.stores.hot.takeover import Takeover
from weft.stores.memory import wals as memory_wals


async def _break(scene: HotScene) -> None:
    """Let the server refuse one hop, and take writes again."""
    scene.disk.refusal = "OOM"
    await scene.hop(1)
    scene.disk.refusal = ""


def test_the_batch_under_way_goes_to_the_store_with_the_tails_of_its_runs() -> None:
    async def acts(scene: HotScene) -> None:
        await scene.hop()
        await _break(scene)
        assert scene.script.batches == [[RUN]]
        assert scene.stored().seq == 2

    hot_scene(acts)


@pytest.mark.parametrize("fault", ["refusal", "away", "emptied", "sealed"])
def test_whatever_the_server_does_no_hop_fails(fault: str) -> None:
    async def acts(scene: HotScene) -> None:
        await scene.hop()
        wal = scene.store.hot_lane.wal
        assert wal is not None
        match fault:
            case "refusal":
                scene.disk.refusal = "READONLY"
            case "away":
                scene.disk.away = True
            case "emptied":
                scene.disk.empty()
            case _:
                await scene.store.server.seal(wal)
        for seq in range(1, 5):
            await scene.hop(seq)
        assert scene.stored().seq == 5
        assert scene.store.hot_lane.wal is None

    hot_scene(acts)


def test_a_wal_that_broke_is_never_written_again_though_the_server_is_well() -> None:
    async def acts(scene: HotScene) -> None:
        first = scene.store.hot_lane.wal
        await scene.hop()
        await _break(scene)
        await scene.hop(2)
        assert scene.stored().seq == 3
        await asyncio.sleep(3)
        assert scene.store.hot_lane.wal not in {None, first}
        await scene.hop(3)
        assert scene.stored().seq == 3
        assert first not in scene.disk.wals
        assert await scene.durable.wals.undrained([HERE]) != []

    hot_scene(acts)


def test_no_new_wal_is_opened_before_all_tails_are_drained_and_the_old_one_is_marked() -> None:
    async def acts(scene: HotScene) -> None:
        first = scene.store.hot_lane.wal
        assert first is not None
        await scene.hop(uid=OTHER)
        await scene.hop()
        await _break(scene)
        scene.script.gate = asyncio.Event()
        await asyncio.sleep(10)
        assert [one.id for one in await scene.durable.wals.undrained([HERE])] == [first]
        assert scene.stored(OTHER).seq == 0
        scene.script.gate.set()
        await asyncio.sleep(10)
        (second,) = await scene.durable.wals.undrained([HERE])
        assert second.id != first
        assert scene.stored(OTHER).seq == 1

    hot_scene(acts, others=(OTHER,))


def test_runs_are_attached_to_the_new_wal_and_are_hot_again() -> None:
    async def acts(scene: HotScene) -> None:
        await scene.hop()
        await _break(scene)
        await asyncio.sleep(3)
        wal = scene.store.hot_lane.wal
        assert (scene.stored().wal, scene.stored(OTHER).wal) == (wal, wal)
        await scene.hop(2)
        await scene.hop(uid=OTHER)
        assert (scene.stored().seq, scene.stored(OTHER).seq) == (2, 0)

    hot_scene(acts, others=(OTHER,))


def test_a_run_with_something_under_way_is_not_attached() -> None:
    async def acts(scene: HotScene) -> None:
        await _lose_the_wal(scene)
        scene.script.gate = asyncio.Event()
        under_way = asyncio.create_task(scene.commit(append()))
        await asyncio.sleep(5)
        assert scene.stored().wal != scene.store.hot_lane.wal
        scene.script.gate.set()
        assert await under_way == ACCEPTED
        await asyncio.sleep(5)
        assert scene.stored().wal == scene.store.hot_lane.wal

    hot_scene(acts)


def test_nothing_of_a_run_begins_while_it_is_attached() -> None:
    async def acts(scene: HotScene) -> None:
        attach, gate = scene.durable.wals.attach, asyncio.Event()

        async def later(*args: Any) -> Any:
            await gate.wait()
            return await attach(*args)

        scene.durable.wals.attach = later  # type: ignore[assignment, method-assign]
        await _lose_the_wal(scene)
        await asyncio.sleep(5)
        begun = asyncio.create_task(scene.commit(append()))
        await asyncio.sleep(5)
        assert scene.script.batches == []
        gate.set()
        assert await begun == ACCEPTED

    hot_scene(acts)


def test_no_hop_goes_to_a_wal_that_its_run_does_not_name() -> None:
    """Who takes over reads the WAL that the row names, and would miss it."""

    async def acts(scene: HotScene) -> None:
        attach, gate = scene.durable.wals.attach, asyncio.Event()

        async def later(*args: Any) -> Any:
            gate.set()
            raise Unavailable("away")

        scene.durable.wals.attach = later  # type: ignore[method-assign]
        await _lose_the_wal(scene)
        await gate.wait()
        assert scene.store.hot_lane.wal not in {None, scene.stored().wal}
        await scene.hop()
        assert (scene.entries(), scene.stored().seq) == (0, 1)
        scene.durable.wals.attach = attach  # type: ignore[method-assign]
        await asyncio.sleep(5)
        await scene.hop(1)
        assert (scene.entries(), scene.stored().seq) == (1, 1)

    hot_scene(acts)


class SlowServer(MemoryWalServer):
    """It takes its time for every entry."""

    seconds = 0.0

    async def append(self, *entry: Any) -> None:
        await asyncio.sleep(self.seconds)
        await super().append(*entry)


def test_a_server_that_is_slow_is_named_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    async def acts(scene: HotScene) -> None:
        server = scene.store.server
        assert isinstance(server, SlowServer)
        for seq, server.seconds in enumerate([0.4, 2.0, 2.0, 60.0, 0.4]):
            await scene.hop(seq)
        assert scene.entries() == 5
        assert [line for line in caplog.messages if "in Redis took" in line] == [
            f"weft: an entry of the write-ahead log in Redis took {took} s, and steps wait that long: "
            "Redis, the network or this process is slow"
            for took in ("2.0", "60.0")
        ]

    hot_scene(acts, server=SlowServer)


def test_a_host_that_is_taken_for_dead_loses_no_hop() -> None:
    """It hops between the moment in which others read its WAL and the one in which they say that it is drained."""

    async def acts(scene: HotScene) -> None:
        peer = scene.durable.share()
        await scene.hop()

        class LateMark:
            """The WALs as the other host sees them; before it marks one as drained, the owner hops."""

            def __getattr__(self, name: str) -> Any:
                return getattr(peer.wals, name)

            async def mark_drained(self, *args: Any, **options: Any) -> bool:
                await scene.hop(1)
                return await peer.wals.mark_drained(*args, **options)

        taker = Takeover(peer, LateMark(), MemoryWalServer(scene.disk), SystemClock())  # type: ignore[arg-type]
        assert await taker.take_over([HERE]) == []
        claimed = await peer.log.claim([RUN], THERE, expected={RUN: Epoch(1)})
        assert [row.seq for row in claimed] == [2]

    hot_scene(acts)


async def _lose_the_wal(scene: HotScene) -> None:
    wal = scene.store.hot_lane.wal
    assert wal is not None
    scene.store.hot_lane.break_wal(wal, "for the test")


def test_a_wal_that_another_host_has_drained_is_given_up() -> None:
    async def acts(scene: HotScene) -> None:
        first = scene.store.hot_lane.wal
        assert first is not None
        await scene.durable.wals.mark_drained(first, forced=True)
        await scene.hop()
        await asyncio.sleep(5)
        assert scene.store.hot_lane.wal not in {None, first}
        assert scene.stored().seq == 1

    hot_scene(acts)


def test_a_host_whose_server_is_away_works_without_it_and_is_hot_when_it_comes() -> None:
    async def acts(scene: HotScene) -> None:
        scene.disk.away = True
        await scene.hop()
        await asyncio.sleep(60)
        await scene.hop(1)
        assert scene.stored().seq == 2
        scene.disk.away = False
        await asyncio.sleep(5)
        await scene.hop(2)
        assert scene.stored().seq == 2

    hot_scene(acts)


def test_a_server_that_begins_to_evict_is_given_up_until_it_keeps_everything_again() -> None:
    async def acts(scene: HotScene) -> None:
        keeps = scene.disk.facts
        await scene.hop()
        scene.disk.facts = msgspec.structs.replace(keeps, maxmemory_policy="allkeys-lru")
        await asyncio.sleep(CHECK_SECONDS + 2 * TICK_SECONDS)
        assert scene.store.hot_lane.wal is None
        assert "evicts keys" in scene.store.hot_lane.broken
        assert scene.stored().seq == 1
        scene.disk.facts = keeps
        await asyncio.sleep(5)
        assert scene.store.hot_lane.wal is not None

    hot_scene(acts)


def test_a_host_that_leaves_drains_and_leaves_nothing_behind() -> None:
    async def acts(scene: HotScene) -> None:
        await scene.hop()
        await scene.store.hosts.leave(HERE)
        await calm()
        assert scene.stored().seq == 1
        assert scene.disk.wals == {}
        assert await scene.durable.wals.undrained([HERE]) == []

    hot_scene(acts)


def test_what_is_left_of_a_wal_that_was_given_up_is_removed_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """Redis was away when others gave it up, so its keys are still there."""
    monkeypatch.setattr(memory_wals, "KEPT_MS", 0)

    async def acts(scene: HotScene) -> None:
        old = await scene.durable.wals.open(THERE, "redis")
        scene.disk.wals[old] = Held()
        await scene.durable.wals.mark_drained(old, forced=True)
        await asyncio.sleep(REMOVE_SECONDS + 2 * TICK_SECONDS)
        used = scene.store.hot_lane.wal
        assert list(scene.disk.wals) == list(scene.durable.content.wals) == [used]

    hot_scene(acts)
