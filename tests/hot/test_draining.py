"""Draining: what the WAL has acknowledged comes into the durable store once, in order, whatever goes wrong."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from tests.code.timeless import calm
from tests.contract.kit import HERE, OTHER, RUN, THERE, append, mail, release
from tests.hot.hot_scene import ACCEPTED, HotScene, hot_scene
from tests.hot.memory_server import Disk, MemoryWalServer
from weft.core.ids import Epoch, RunUid, Seq
from weft.errors import Unavailable
from weft.ports.store import Outcome
from weft.ports.tasks import TaskOffer
from weft.stores.hot import hot_lane
from weft.stores.hot.keeper import TICK_SECONDS
from weft.stores.hot.policy import END, EVENT, hot_policy
from weft.stores.hot.through_lane import REST_SECONDS_MAX


def test_a_hop_is_in_the_wal_and_not_in_the_store() -> None:
    async def acts(scene: HotScene) -> None:
        await scene.hop()
        assert (scene.entries(), scene.stored().seq) == (1, 0)

    hot_scene(acts)


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "running"},
        {"attributes": {"a": 1}},
        {"mail": [mail(to=OTHER)]},
        {"taken": ["m1"]},
        {"idle_until": 5},
        {"through": True},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_whatever_is_more_than_a_hop_goes_to_the_store(fields: dict[str, Any]) -> None:
    async def acts(scene: HotScene) -> None:
        await scene.hop(**fields)
        assert (scene.entries(), scene.stored().seq) == (0, 1)

    hot_scene(acts)


def test_with_the_policy_event_hops_are_drained_all_the_time() -> None:
    async def acts(scene: HotScene) -> None:
        await scene.hop()
        await asyncio.sleep(2 * EVENT.delay_seconds)
        assert scene.stored().seq == 1

    hot_scene(acts, policy=EVENT)


@pytest.mark.parametrize(("takes", "at_most"), [(0.0, 210), (0.01, 20), (0.3, 4)])
def test_hops_are_drained_in_milliseconds_and_many_together(takes: float, at_most: int) -> None:
    """The longer drains take, the more hops of a run go into one append. None waits for more than that and a rest."""

    async def acts(scene: HotScene) -> None:
        commit, now = scene.durable.log.commit, asyncio.get_running_loop().time
        acked: list[float] = []
        waited: list[float] = []

        async def commit_slowly(*args: Any) -> Any:
            await asyncio.sleep(takes)
            outcomes = await commit(*args)
            waited.extend(now() - at for at in acked[len(waited) : scene.stored().seq])
            return outcomes

        scene.durable.log.commit = commit_slowly  # type: ignore[method-assign]
        for seq in range(200):
            await scene.hop(seq)
            acked.append(now())
            await asyncio.sleep(0.005)
        assert 1 <= len(scene.script.batches) <= at_most
        await asyncio.sleep(3 * takes + REST_SECONDS_MAX)
        assert len(waited) == 200
        assert max(waited) <= REST_SECONDS_MAX + 2 * takes + 0.001
        assert REST_SECONDS_MAX <= 0.05

    hot_scene(acts, policy=EVENT)


def test_with_a_duration_hops_are_drained_when_the_oldest_is_that_old() -> None:
    async def acts(scene: HotScene) -> None:
        await scene.hop()
        await asyncio.sleep(9)
        await scene.hop(1)
        assert scene.stored().seq == 0
        await asyncio.sleep(1.1)
        assert scene.stored().seq == 2

    hot_scene(acts, policy=hot_policy("10s"))


def test_a_through_append_is_one_append_with_the_tail_of_its_run() -> None:
    async def acts(scene: HotScene) -> None:
        await scene.hop()
        await scene.hop(1, count=2)
        await scene.hop(3, status="paused")
        assert scene.script.batches == [[RUN]]
        assert (scene.stored().seq, scene.stored().status) == (4, "paused")

    hot_scene(acts)


def test_a_through_append_that_is_refused_takes_the_tail_with_it() -> None:
    async def acts(scene: HotScene) -> None:
        await scene.hop()
        await scene.durable.log.send([mail()])
        assert await scene.commit(append(seq=1, status="completed")) == [Outcome.MAIL_WAITING]
        assert scene.stored().seq == 0
        await scene.hop(1)
        await scene.flush()
        assert scene.stored().seq == 2

    hot_scene(acts)


def test_a_tail_that_is_too_long_for_one_append_goes_ahead_in_pieces() -> None:
    async def acts(scene: HotScene) -> None:
        for seq in range(0, 4_500, 500):
            await scene.hop(seq, count=500)
        await scene.hop(4_500, status="paused")
        assert scene.script.batches == [[RUN], [RUN], [RUN]]
        assert [one.seq for one in scene.stored().events] == list(range(1, 4_502))

    hot_scene(acts)


def test_tails_of_other_runs_ride_along_when_they_are_due() -> None:
    async def acts(scene: HotScene) -> None:
        scene.script.gate = asyncio.Event()
        first = asyncio.create_task(scene.commit(append(status="paused")))
        await calm()
        await scene.hop(uid=OTHER)
        second = asyncio.create_task(scene.commit(append(seq=1, status="running")))
        await asyncio.sleep(2 * EVENT.delay_seconds)
        scene.script.gate.set()
        assert [await first, await second] == [ACCEPTED, ACCEPTED]
        assert scene.script.batches == [[RUN], [RUN, OTHER]]

    hot_scene(acts, policy=EVENT, others=(OTHER,))


def test_a_hop_does_not_wait_for_a_transaction() -> None:
    async def acts(scene: HotScene) -> None:
        scene.script.gate = asyncio.Event()
        through = asyncio.create_task(scene.commit(append(status="paused")))
        await calm()
        await scene.hop(uid=OTHER)
        await scene.hop(1, uid=OTHER)
        assert not through.done()
        scene.script.gate.set()
        assert await through == ACCEPTED

    hot_scene(acts, others=(OTHER,))


@pytest.mark.parametrize("mishap", ["lost before", "lost after", "broken"])
def test_a_drain_without_an_answer_is_sent_again_and_counts_once(mishap: str) -> None:
    async def acts(scene: HotScene) -> None:
        await scene.hop()
        await scene.hop(1)
        await asyncio.sleep(5)
        assert [one.seq for one in scene.stored().events] == [1, 2]

    hot_scene(acts, mishap, mishap, policy=EVENT)  # type: ignore[arg-type]


def test_what_a_drain_without_an_answer_has_brought_is_not_sent_with_the_next_append() -> None:
    async def acts(scene: HotScene) -> None:
        await scene.hop()
        with pytest.raises(Unavailable):
            await scene.flush()
        await scene.hop(1)
        assert await scene.commit(append(seq=2, status="paused")) == ACCEPTED
        assert [one.seq for one in scene.stored().events] == [1, 2, 3]

    hot_scene(acts, "lost after")


def test_a_tail_whose_run_is_another_hosts_is_dropped_and_the_engine_is_told() -> None:
    async def acts(scene: HotScene) -> None:
        lost: list[RunUid] = []
        scene.store.through_lane.on_lost = lambda uid, _: lost.append(uid)
        await scene.hop()
        wal = scene.store.hot_lane.wal
        assert wal is not None
        await scene.durable.wals.mark_drained(wal, forced=True)
        claimed = await scene.durable.log.claim([RUN], THERE, expected={RUN: Epoch(1)})
        assert len(claimed) == 1
        await scene.flush()
        assert (lost, scene.stored().seq) == ([RUN], 0)
        assert await scene.commit(append(seq=1)) == [Outcome.STALE_EPOCH]

    hot_scene(acts)


def test_a_host_that_claims_its_own_run_again_drains_it_under_the_old_epoch_first() -> None:
    async def acts(scene: HotScene) -> None:
        await scene.hop()
        (row,) = await scene.store.log.claim([RUN], HERE, expected={RUN: Epoch(1)})
        assert (row.epoch, row.seq) == (2, 1)
        await scene.hop(1, epoch=2)
        assert scene.stored().seq == 1

    hot_scene(acts)


class _SlowServer(MemoryWalServer):
    """Keeps back its answers to entries."""

    def __init__(self, disk: Disk) -> None:
        super().__init__(disk)
        self.may_answer = asyncio.Event()

    async def _acknowledge(self) -> None:
        await self.may_answer.wait()


@pytest.mark.parametrize("expected", [1, 7], ids=["granted", "refused"])
def test_a_claim_waits_for_the_hop_that_is_under_way(expected: int) -> None:
    """Two callers ask for a run at once, and the slower one claims it when it is at work already."""

    async def acts(scene: HotScene) -> None:
        server = scene.store.hot_lane._server
        assert isinstance(server, _SlowServer)
        hop = asyncio.create_task(scene.hop())
        await calm()
        claim = asyncio.create_task(scene.claim(expected))
        await calm()
        server.may_answer.set()
        await hop
        epochs = await claim
        assert epochs == ([2] if expected == 1 else [])
        await scene.hop(1, epoch=2 if epochs else 1)
        assert scene.entries() == 2, "the run is hot again"
        await scene.flush()
        assert scene.stored().seq == 2

    hot_scene(acts, server=_SlowServer)


@pytest.mark.parametrize("between", ["a reader", "a commit"])
def test_no_hop_goes_to_the_wal_while_its_run_is_claimed(between: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others who read or write the run meanwhile do not make it hot: what is acknowledged then could not be drained."""

    async def acts(scene: HotScene) -> None:
        inner, may_claim = scene.store.log._log, asyncio.Event()  # type: ignore[attr-defined]
        claim = inner.claim

        async def claim_later(*args: Any, **options: Any) -> Any:
            await may_claim.wait()
            return await claim(*args, **options)

        monkeypatch.setattr(inner, "claim", claim_later)
        claiming = asyncio.create_task(scene.claim(1))
        await calm()
        if between == "a reader":
            await scene.store.log.load(RunUid(RUN), fold=1)
        else:
            await scene.hop(0, through=True)
            await asyncio.sleep(2 * TICK_SECONDS)
        done = scene.stored().seq
        await scene.hop(done)
        assert (scene.entries(), scene.stored().seq) == (0, done + 1)
        may_claim.set()
        assert await claiming == [2]
        await scene.hop(done + 1, epoch=2)
        assert scene.entries() == 1, "the run is hot again"

    hot_scene(acts)


def test_an_answer_that_comes_after_a_claim_does_not_undo_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    async def acts(scene: HotScene) -> None:
        inner, may_answer = scene.store.log._log, asyncio.Event()  # type: ignore[attr-defined]
        commit = inner.commit

        async def answer_later(*args: Any) -> Any:
            outcomes = await commit(*args)
            await may_answer.wait()
            return outcomes

        monkeypatch.setattr(inner, "commit", answer_later)
        through = asyncio.create_task(scene.hop(0, through=True))
        await calm()
        assert await scene.claim(1) == [2]
        may_answer.set()
        await through
        await scene.hop(1, epoch=2)
        assert scene.entries() == 1

    hot_scene(acts)


def test_a_hop_of_a_run_that_was_lost_meanwhile_is_judged_by_the_store() -> None:
    async def acts(scene: HotScene) -> None:
        server = scene.store.hot_lane._server
        assert isinstance(server, _SlowServer)
        hops = asyncio.create_task(scene.commit(append(), append(OTHER)))
        await calm()
        wal = scene.store.hot_lane.wal
        assert wal is not None
        await scene.durable.wals.mark_drained(wal, forced=True)
        await scene.durable.log.claim([RUN], THERE, expected={RUN: Epoch(1)})
        scene.store.through_lane._drop_tail(RunUid(RUN))
        server.may_answer.set()
        assert await hops == [Outcome.STALE_EPOCH, Outcome.ACCEPTED]
        assert (scene.stored().seq, scene.stored(OTHER).seq) == (0, 1)

    hot_scene(acts, server=_SlowServer, others=(OTHER,))


def test_reading_or_releasing_a_run_drains_it() -> None:
    async def acts(scene: HotScene) -> None:
        store = scene.store
        await scene.hop()
        row = await store.directory.row(RUN)
        assert row is not None
        assert row.seq == 1
        await scene.hop(1)
        assert len(await store.log.events(RUN, after=Seq(0), limit=10)) == 2
        await scene.hop(2)
        found = await store.directory.find(row.id)
        assert found is not None
        assert found.seq == 3
        await scene.hop(3)
        loaded = await store.log.load(RUN, fold=1)
        assert loaded is not None
        assert len(loaded.events) == 4
        await scene.hop(4)
        assert list(await store.log.release([release(seq=5)])) == ACCEPTED
        assert scene.stored().seq == 5

    hot_scene(acts)


def test_no_task_is_offered_before_what_schedules_it_is_drained() -> None:
    async def acts(scene: HotScene) -> None:
        task = TaskOffer(uid=RUN, task=1, attempt=1, delivery=1, step="s", queue="default", body=b"{}", epoch=Epoch(1))
        await scene.hop()
        await scene.store.tasks.offer([task])
        assert scene.stored().seq == 1
        await scene.hop(1)
        await scene.store.tasks.exchange(HERE, [], [msgspec.structs.replace(task, task=2)], now=Seq(0), most=0)  # type: ignore[arg-type]
        assert scene.stored().seq == 2

    hot_scene(acts)


def test_a_wal_is_trimmed_up_to_the_oldest_entry_that_is_needed() -> None:
    async def acts(scene: HotScene) -> None:
        await scene.hop(uid=OTHER)
        for seq in range(70):
            await scene.hop(seq)
        await scene.store.through_lane.flush(RUN)
        for seq in range(70, 140):
            await scene.hop(seq)
        assert scene.entries() == 141, "the first entry is needed"
        await scene.flush()
        await asyncio.sleep(2)
        assert scene.entries() == 0, "trimmed without a commit"

    hot_scene(acts, others=(OTHER,))


def test_hops_wait_while_too_much_is_not_drained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hot_lane, "BYTES_MAX", 300)

    async def acts(scene: HotScene) -> None:
        scene.script.gate = asyncio.Event()
        for seq in range(3):
            await scene.hop(seq)
        waiting = asyncio.create_task(scene.hop(3))
        await asyncio.sleep(5)
        assert not waiting.done()
        draining = asyncio.create_task(scene.flush())
        scene.script.gate.set()
        await draining
        await waiting
        assert scene.stored().seq == 3

    hot_scene(acts)


def test_hops_wait_while_one_of_them_is_too_old() -> None:
    async def acts(scene: HotScene) -> None:
        scene.script.gate = asyncio.Event()
        await scene.hop()
        await asyncio.sleep(END.age_seconds_max - 1)
        await scene.hop(1)
        await asyncio.sleep(1)
        waiting = asyncio.create_task(scene.hop(2))
        await asyncio.sleep(5)
        assert not waiting.done()
        scene.script.gate.set()
        await waiting

    hot_scene(acts)


def test_at_half_of_the_bound_hops_are_drained_whatever_the_policy() -> None:
    async def acts(scene: HotScene) -> None:
        await scene.hop()
        await asyncio.sleep(END.age_seconds_max / 2 + 0.1)
        assert scene.stored().seq == 1

    hot_scene(acts)
