"""What the hot store knows of the runs of its host. Of a run that it is not sure of, no append is a hop."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.contract.kit import HERE, OTHER, RUN, THERE, append, new, release
from tests.hot.hot_scene import ACCEPTED, HotScene, hot_scene
from weft.core.ids import Epoch, HostId, Millis, RunUid
from weft.errors import Unavailable
from weft.ports.store import Append
from weft.ports.tasks import TaskOffer
from weft.stores.hot.owned_runs import OwnedRuns

WAL = 3


def owned(*, epoch: int = 1, seq: int = 0) -> OwnedRuns:
    """One run of HERE, which the store has accepted with this epoch and number."""
    runs = OwnedRuns()
    runs.host = HERE
    runs.learn_accepted(append(seq=seq, epoch=epoch, count=0, create=new()), HERE, WAL)
    return runs


def is_known(runs: OwnedRuns, after: Append) -> bool:
    return runs.find(append(seq=after.seq + len(after.events), epoch=after.epoch)) is not None


@pytest.mark.parametrize(
    ("accepted", "host", "known"),
    [
        (append(), HERE, True),
        (append(), THERE, False),
        (append(status="completed"), HERE, False),
        (append(reopen=Millis(5)), HERE, False),
        (append(status="failed", reopen=Millis(5)), HERE, False),
    ],
    ids=["accepted", "in the name of another", "ended", "reopened", "ended and reopened"],
)
def test_a_run_is_known_while_it_is_open_and_ones_own(accepted: Append, host: HostId, known: bool) -> None:
    runs = owned()

    runs.learn_accepted(accepted, host, None)

    assert is_known(runs, accepted) is known


@pytest.mark.parametrize("owner", [None, THERE])
def test_a_run_that_is_created_for_another_or_nobody_is_not_known(owner: HostId | None) -> None:
    runs = OwnedRuns()
    runs.host = HERE

    runs.learn_accepted(append(count=0, create=new(owner=owner)), HERE, WAL)

    assert RUN not in runs


def test_an_answer_from_before_a_claim_changes_nothing() -> None:
    runs = owned(epoch=2)

    runs.learn_accepted(append(epoch=1), HERE, None)

    assert runs.find(append(epoch=2)) is not None


# --- in a store -------------------------------------------------------------------------------------------------------


def is_hot(scene: HotScene, seq: int = 0, uid: str = RUN, **more: Any) -> bool:
    return scene.store.hot_lane.is_hot(append(uid, seq=seq, **more))


def test_after_an_answer_that_is_unknown_nothing_is_known() -> None:
    async def acts(scene: HotScene) -> None:
        scene.script.mishaps.append("lost after")
        with pytest.raises(Unavailable):
            await scene.commit(append(through=True))
        assert not is_hot(scene)
        assert not is_hot(scene, 1)

    hot_scene(acts)


def test_a_run_that_may_not_begin_is_given_back_and_not_known() -> None:
    async def acts(scene: HotScene) -> None:
        async def refuse(*_: Any) -> bool:
            return False

        assert is_hot(scene)
        scene.durable.tasks.admit = refuse  # type: ignore[method-assign]
        offer = TaskOffer(uid=RunUid(RUN), task=0, attempt=0, delivery=0, step="", queue="", body=b"", epoch=Epoch(1))
        assert not await scene.store.tasks.admit(HERE, offer, Millis(0))
        assert not is_hot(scene)

    hot_scene(acts)


def test_a_run_that_was_released_or_written_together_with_others_is_not_known() -> None:
    async def acts(scene: HotScene) -> None:
        assert is_hot(scene)
        assert is_hot(scene, uid=OTHER)
        await scene.store.log.release([release()])
        await scene.hop(uid=OTHER)
        await scene.store.log.write_together([append(OTHER, seq=1, status="moved")])
        assert scene.stored(OTHER).seq == 1, "it is drained first"
        assert not is_hot(scene)
        assert not is_hot(scene, 1, OTHER)
        assert RunUid(OTHER) not in scene.store.keeper._runs

    hot_scene(acts, others=(OTHER,))


def test_a_run_that_is_created_while_a_wal_is_opened_is_attached_before_it_has_hops() -> None:
    """Nobody knows which WAL its row names."""

    async def acts(scene: HotScene) -> None:
        keeper, begin = scene.store.keeper, scene.store.server.begin
        begun: list[int] = []

        async def begin_and_create(wal: int) -> None:
            await begin(wal)
            begun.append(wal)
            assert keeper.wal_of_new() is None
            assert await scene.commit(append("new", count=0, create=new("new"))) == ACCEPTED

        scene.store.server.begin = begin_and_create  # type: ignore[method-assign]
        assert scene.store.hot_lane.wal is not None
        scene.store.hot_lane.break_wal(scene.store.hot_lane.wal, "a test")
        await asyncio.sleep(0.2)
        assert begun

    hot_scene(acts)


def test_a_run_that_is_created_while_the_wal_changes_is_attached_before_it_has_hops() -> None:
    async def acts(scene: HotScene) -> None:
        scene.script.gate = asyncio.Event()
        creating = asyncio.create_task(scene.commit(append("new", count=0, create=new("new"))))
        await asyncio.sleep(0)
        before = scene.store.hot_lane.wal
        assert before is not None
        scene.store.hot_lane.use(before + 100)
        scene.script.gate.set()
        assert await creating == ACCEPTED
        assert not is_hot(scene, uid="new")
        scene.store.hot_lane.use(before)
        assert not is_hot(scene, uid="new"), "it is not certain that its row names this one either"

    hot_scene(acts)


def test_a_run_with_a_tail_in_another_wal_is_not_attached() -> None:
    """Who takes over would read the new WAL, and miss the tail in the old one."""

    async def acts(scene: HotScene) -> None:
        await scene.hop()
        wals, keeper = scene.durable.wals, scene.store.keeper
        wal = await wals.open(HERE, "redis")
        scene.store.hot_lane.use(wal)
        assert not await keeper._attach_runs(wal, HERE)
        assert scene.stored().wal != wal
        await scene.flush()
        assert await keeper._attach_runs(wal, HERE)
        assert scene.stored().wal == wal

    hot_scene(acts)


def test_a_run_that_is_being_claimed_is_not_attached() -> None:
    async def acts(scene: HotScene) -> None:
        claim, gate = scene.durable.log.claim, asyncio.Event()

        async def later(*args: Any, **options: Any) -> Any:
            await gate.wait()
            return await claim(*args, **options)

        scene.durable.log.claim = later  # type: ignore[method-assign]
        claiming = asyncio.create_task(scene.claim(1))
        await asyncio.sleep(1)
        wal = await scene.durable.wals.open(HERE, "redis")
        scene.store.hot_lane.use(wal)
        assert not await scene.store.keeper._attach_runs(wal, HERE)
        gate.set()
        assert await claiming == [2]

    hot_scene(acts)


def test_runs_are_attached_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.stores.hot.keeper.RUNS_PER_ATTACH", 2)

    async def acts(scene: HotScene) -> None:
        attach, sizes = scene.durable.wals.attach, []

        async def noted(wal: int, host: HostId, runs: Any) -> Any:
            sizes.append(len(runs))
            return await attach(wal, host, runs)

        scene.durable.wals.attach = noted  # type: ignore[method-assign]
        assert scene.store.hot_lane.wal is not None
        scene.store.hot_lane.break_wal(scene.store.hot_lane.wal, "a test")
        await asyncio.sleep(5)
        assert sizes == [2, 2, 1]

    hot_scene(acts, others=("b", "c", "d", "e"))


def test_a_run_that_is_anothers_by_now_is_not_attached_again_and_again() -> None:
    async def acts(scene: HotScene) -> None:
        scene.stored().epoch = Epoch(9)
        wal = await scene.durable.wals.open(HERE, "redis")
        scene.store.hot_lane.use(wal)
        assert [await scene.store.keeper._attach_runs(wal, HERE) for _ in range(2)] == [True, False]

    hot_scene(acts)
