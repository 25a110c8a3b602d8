"""The two lanes of a hot store at their limits, and in what goes wrong between them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.code.timeless import calm
from tests.contract.kit import HERE, OTHER, RUN, THERE, append
from tests.hot.hot_scene import ACCEPTED, HotScene, hot_scene
from tests.hot.memory_server import MemoryWalServer
from weft.core.ids import Epoch, HostId, Millis, RunUid, Seq
from weft.errors import Unavailable
from weft.ports.step_logs import LogBatch, LogLimits, NewLine
from weft.ports.store import Outcome, StoredEvent
from weft.ports.streams import NewChunk
from weft.ports.wal_server import WalBroken
from weft.ports.wals import Wals
from weft.stores.hot.policy import END, EVENT, hot_policy
from weft.stores.hot.tails import Tails

DIGEST, ANOTHER = "a" * 64, "b" * 64


class SlowServer(MemoryWalServer):
    """It takes its time to answer."""

    seconds = 1.0

    async def append(self, *entry: Any) -> None:
        await super().append(*entry)
        await asyncio.sleep(self.seconds)


async def claim_away(scene: HotScene) -> None:
    """Let another host have the run, although its tail is not in the store."""
    wal = scene.store.hot_lane.wal
    assert wal is not None
    await scene.durable.wals.mark_drained(wal, forced=True)
    claimed = await scene.durable.log.claim([RunUid(RUN)], THERE, expected={RunUid(RUN): Epoch(1)})
    assert len(claimed) == 1


# --- what others see --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["1", f"{RUN}/1"])
def test_output_is_shown_when_what_led_to_it_is_in_the_store(key: str) -> None:
    """A run below writes to the stream of its root, and names itself in the key."""

    async def acts(scene: HotScene) -> None:
        await scene.hop()
        stream_of = RUN if key == "1" else OTHER
        chunk = NewChunk(uid=RunUid(stream_of), stream="out", key=key, body=b"x", at=Millis(0))
        await scene.store.streams.write([chunk])
        assert scene.stored().seq == 1

    hot_scene(acts, others=(OTHER,))


def test_what_a_step_prints_is_shown_when_what_led_to_it_is_in_the_store() -> None:
    async def acts(scene: HotScene) -> None:
        await scene.hop()
        line = NewLine(uid=RunUid(RUN), at=Millis(0), place="a", attempt=1, level=20, source="stdout", text="hello")
        await scene.store.step_logs.write(LogBatch(host=HERE, number=1, lines=[line]), LogLimits())
        assert scene.stored().seq == 1

    hot_scene(acts)


def test_what_a_run_refers_to_is_read_with_its_last_hops() -> None:
    async def acts(scene: HotScene) -> None:
        await scene.hop(refs=[DIGEST])
        assert await scene.store.log.refers_to(RunUid(RUN), DIGEST)

    hot_scene(acts)


# --- the WAL ----------------------------------------------------------------------------------------------------------


class Witness(MemoryWalServer):
    """It notes what the durable store knew of a WAL when its keys were made."""

    wals: Wals | None = None
    known = False
    fails = 0

    async def begin(self, wal: int) -> None:
        if self.wals is not None:
            self.known = any(row.id == wal for row in await self.wals.undrained([HERE]))
        if self.fails:
            self.fails -= 1
            raise Unavailable("The server is full.")
        await super().begin(wal)


def test_the_store_knows_of_a_wal_before_redis_does() -> None:
    """A WAL without a row would be read by nobody."""

    async def acts(scene: HotScene) -> None:
        server: Any = scene.store.server
        server.wals = scene.durable.wals
        assert scene.store.hot_lane.wal is not None
        scene.store.hot_lane.break_wal(scene.store.hot_lane.wal, "a test")
        await asyncio.sleep(1)
        assert server.known

    hot_scene(acts, server=Witness)


def test_a_wal_that_could_not_be_begun_is_marked_as_drained() -> None:
    """Otherwise its runs could not be claimed when its host has died."""

    async def acts(scene: HotScene) -> None:
        server: Any = scene.store.server
        server.wals = scene.durable.wals
        server.fails = 1
        assert scene.store.hot_lane.wal is not None
        scene.store.hot_lane.break_wal(scene.store.hot_lane.wal, "a test")
        await asyncio.sleep(1)
        assert [wal.id for wal in await scene.durable.wals.undrained([HERE])] == [scene.store.hot_lane.wal]

    hot_scene(acts, server=Witness)


def test_a_hop_that_is_cancelled_on_its_way_breaks_the_wal() -> None:
    """It may be there, and the next one would have its number."""

    async def acts(scene: HotScene) -> None:
        hop = asyncio.create_task(scene.hop())
        await asyncio.sleep(SlowServer.seconds / 2)
        hop.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hop
        assert scene.store.hot_lane.wal is None

    hot_scene(acts, server=SlowServer)


def test_a_hop_that_arrives_in_a_wal_which_was_given_up_meanwhile_goes_to_the_store() -> None:
    """Who has marked the WAL as drained does not look again."""

    async def acts(scene: HotScene) -> None:
        hop = asyncio.create_task(scene.hop())
        await asyncio.sleep(SlowServer.seconds / 2)
        assert scene.store.hot_lane.wal is not None
        scene.store.hot_lane.break_wal(scene.store.hot_lane.wal, "a test")
        await hop
        assert scene.stored().seq == 1

    hot_scene(acts, server=SlowServer)


def test_a_wal_that_could_not_be_trimmed_is_broken() -> None:
    """It is not known what the server has of it."""

    async def acts(scene: HotScene) -> None:
        async def lost(wal: int, upto: int) -> None:
            raise WalBroken("no answer")

        before = scene.store.hot_lane.wal
        scene.store.server.trim = lost  # type: ignore[method-assign]
        await scene.hop()
        await scene.flush()
        await scene.store.hot_lane.trim()
        assert scene.store.hot_lane.wal is None
        await asyncio.sleep(1)
        assert scene.store.hot_lane.wal not in {None, before}

    hot_scene(acts)


def test_a_wal_is_trimmed_by_its_commits() -> None:
    async def acts(scene: HotScene) -> None:
        for seq in range(70):
            await scene.hop(seq)
        await scene.flush()
        for seq in range(70, 140):
            await scene.hop(seq)
        assert scene.entries() == 70

    hot_scene(acts)


def test_the_oldest_entry_that_is_needed_is_found_whatever_the_order_of_the_tails() -> None:
    tails = Tails()
    for entry, (uid, seq) in enumerate([(RUN, 0), (RUN, 1), (OTHER, 0)], 1):
        tails.add(append(uid, seq=seq), entry, float(entry))

    tails.drained(RunUid(RUN), Seq(1))

    assert [tail.uid for tail in tails] == [OTHER, RUN]
    assert tails.first_entry() == 2


# --- drains -----------------------------------------------------------------------------------------------------------


def test_the_blobs_of_a_tail_are_referred_to_with_its_events() -> None:
    async def acts(scene: HotScene) -> None:
        await scene.hop(refs=[DIGEST])
        assert await scene.commit(append(seq=1, status="paused", refs=[ANOTHER])) == ACCEPTED
        for digest in (DIGEST, ANOTHER):
            assert await scene.durable.log.refers_to(RunUid(RUN), digest)
        await scene.hop(2, refs=["c" * 64])
        await scene.flush()
        assert await scene.durable.log.refers_to(RunUid(RUN), "c" * 64)

    hot_scene(acts)


def test_a_tail_that_has_too_many_bytes_for_one_append_goes_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.stores.hot.tails.BYTES_PER_APPEND_MAX", 400)

    async def acts(scene: HotScene) -> None:
        await scene.hop()
        large = [StoredEvent(Seq(2), Millis(0), b"x" * 390)]
        assert await scene.commit(append(seq=1, events=large, through=True)) == ACCEPTED
        assert scene.script.batches == [[RUN], [RUN]]

    hot_scene(acts)


@pytest.mark.parametrize(("limit", "most"), [("RUNS_PER_TRANSACTION", 2), ("BYTES_PER_TRANSACTION", 250)])
def test_a_transaction_has_only_so_many_tails(limit: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"weft.stores.hot.through_lane.{limit}", most)
    others = ("b", "c", "d", "e")

    async def acts(scene: HotScene) -> None:
        for uid in (RUN, *others):
            await scene.hop(uid=uid)
        await scene.flush()
        assert [len(batch) for batch in scene.script.batches] == [2, 2, 1]

    hot_scene(acts, others=others)


def test_a_tail_that_the_store_cannot_hold_harms_no_append_that_it_rides_with() -> None:
    async def acts(scene: HotScene) -> None:
        scene.script.gate = asyncio.Event()
        first = asyncio.create_task(scene.commit(append(status="paused")))
        await calm()
        await scene.hop(uid=OTHER)
        second = asyncio.create_task(scene.commit(append(seq=1, status="running")))
        await asyncio.sleep(2 * EVENT.delay_seconds)
        scene.script.poison = OTHER
        scene.script.gate.set()
        assert [await first, await second] == [ACCEPTED, ACCEPTED]

    hot_scene(acts, policy=EVENT, others=(OTHER,))


def test_an_append_that_is_refused_takes_its_tail_with_it_at_once() -> None:
    async def acts(scene: HotScene) -> None:
        await scene.hop()
        await claim_away(scene)
        assert await scene.commit(append(seq=1, through=True)) == [Outcome.STALE_EPOCH]
        assert not scene.store.log.hot.has_tail(RunUid(RUN))  # type: ignore[union-attr]

    hot_scene(acts)


def test_what_is_left_of_a_drain_without_an_answer_is_drained_too() -> None:
    async def acts(scene: HotScene) -> None:
        lost: list[RunUid] = []
        scene.store.through_lane.on_lost = lambda uid, _: lost.append(uid)
        await scene.hop()
        with pytest.raises(Unavailable):
            await scene.flush()
        await scene.hop(1)
        await scene.flush()
        assert (scene.stored().seq, lost) == (2, [])

    hot_scene(acts, "lost after")


@pytest.mark.parametrize(("epoch", "owner", "is_ours"), [(1, HERE, True), (2, HERE, False), (1, THERE, False)])
def test_the_row_tells_what_is_there_only_while_the_run_is_ours(epoch: int, owner: HostId, is_ours: bool) -> None:
    async def acts(scene: HotScene) -> None:
        await scene.hop()
        tail = scene.store.tails.get(RunUid(RUN))
        assert tail is not None
        run = scene.stored()
        run.epoch, run.owner, run.seq = Epoch(epoch), owner, Seq(1)
        assert await scene.store.through_lane._settle_by_row(tail) is is_ours

    hot_scene(acts)


def test_after_a_claim_without_an_answer_nothing_of_the_run_is_a_hop() -> None:
    async def acts(scene: HotScene) -> None:
        async def away(*_: Any, **__: Any) -> Any:
            raise Unavailable("away")

        scene.durable.log.claim = away  # type: ignore[method-assign]
        with pytest.raises(Unavailable):
            await scene.claim(1)
        assert not scene.store.hot_lane.is_hot(append())

    hot_scene(acts)


# --- bounds -----------------------------------------------------------------------------------------------------------


def test_the_age_of_hops_is_bounded_by_the_policy() -> None:
    bounds = {policy.name: policy.age_seconds_max for policy in (EVENT, hot_policy("2s"), END)}
    assert bounds == {"event": 10, "2s": 12, "end": 60}


def test_at_half_of_the_bytes_the_oldest_are_drained_whatever_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.stores.hot.through_lane.BYTES_DUE", 250)

    async def acts(scene: HotScene) -> None:
        for uid in (RUN, OTHER, "c"):
            await asyncio.sleep(1)  # the drainer sleeps until the first is old
            await scene.hop(uid=uid)
        await asyncio.sleep(1)
        assert [scene.stored(uid).seq for uid in (RUN, OTHER, "c")] == [1, 0, 0]

    hot_scene(acts, others=(OTHER, "c"))


def test_hops_go_on_when_a_tail_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.stores.hot.hot_lane.BYTES_MAX", 300)

    async def acts(scene: HotScene) -> None:
        for seq in range(3):
            await scene.hop(seq)
        waiting = asyncio.create_task(scene.hop(uid=OTHER))
        await asyncio.sleep(5)
        assert not waiting.done()
        await claim_away(scene)
        await scene.flush()
        await asyncio.wait_for(waiting, 1)

    hot_scene(acts, others=(OTHER,))
