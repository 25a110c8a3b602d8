"""Taking over at its limits: what goes into one commit, what is not counted as lost, and how long nobody waits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tests.code.timeless import play
from tests.contract.conftest import emptying as emptying  # noqa: PLC0414 - a fixture
from tests.contract.kit import HERE, RUN, append, claim, commit, go, row, start
from tests.hot.memory_server import MemoryWalServer
from tests.hot.test_takeover import Scene, take_over
from tests.hot.test_takeover import scene as scene  # noqa: PLC0414 - a fixture
from weft.core.ids import HostId, Millis, Seq
from weft.errors import BadValue
from weft.ports.store import Append, Outcome, Store, StoredEvent
from weft.ports.wals import LossReason
from weft.stores.hot import name_of_dead
from weft.stores.hot.takeover import ANSWER_SECONDS
from weft.stores.memory import MemoryStore


class Spy:
    """What a store is asked to commit: how many events of each run, call by call."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.commits: list[dict[str, int]] = []
        self.poison = ""
        real = store.log.commit

        async def commit(batch: Sequence[Append], host: HostId) -> Sequence[Outcome]:
            self.commits.append({one.uid: len(one.events) for one in batch})
            if any(one.uid == self.poison for one in batch):
                raise BadValue("the store cannot hold this")
            return await real(batch, host)

        monkeypatch.setattr(store.log, "commit", commit)


@pytest.mark.parametrize(("limit", "most"), [("RUNS_PER_COMMIT", 2), ("BYTES_PER_COMMIT", 8)])
def test_a_commit_has_only_so_many_runs_and_bytes(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    monkeypatch.setattr(name_of_dead, limit, most)
    uids = ("a", "b", "c", "d", "e")
    for uid in uids:
        start(scene.store, uid)
        scene.write(append(uid, events=[StoredEvent(Seq(1), Millis(0), b"1234")]))
    spy = Spy(scene.other, monkeypatch)

    take_over(scene.taker())

    assert spy.commits == [{"a": 1, "b": 1}, {"c": 1, "d": 1}, {"e": 1}]


@pytest.mark.parametrize(("limit", "most"), [("EVENTS_PER_APPEND_MAX", 2), ("BYTES_PER_APPEND_MAX", 8)])
def test_a_commit_has_only_as_much_of_a_run_as_an_append_holds(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    monkeypatch.setattr(name_of_dead, limit, most)
    start(scene.store)
    for seq in range(5):
        scene.write(append(seq=seq, events=[StoredEvent(Seq(seq + 1), Millis(0), b"1234")]))
    spy = Spy(scene.other, monkeypatch)

    take_over(scene.taker())

    assert spy.commits == [{RUN: 2}, {RUN: 2}, {RUN: 1}]
    assert row(scene.other).seq == 5


def test_events_that_the_store_cannot_hold_are_lost_and_harm_no_other_run(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    for uid in ("bad", "good"):
        start(scene.store, uid)
    scene.write(append("bad"), append("good"))
    Spy(scene.other, monkeypatch).poison = "bad"

    take_over(scene.taker())

    assert (row(scene.other, "bad").seq, row(scene.other, "good").seq) == (0, 1)
    assert scene.losses() == [(LossReason.REFUSED, 1, ["id of bad"])]


def test_the_blobs_of_hops_are_referred_to_with_their_events(scene: Scene) -> None:
    start(scene.store)
    scene.write(append(refs=["a" * 64]))
    scene.write(append(seq=1, refs=["b" * 64]))

    take_over(scene.taker())

    assert go(scene.other.log.refers_to(RUN, "a" * 64))
    assert go(scene.other.log.refers_to(RUN, "b" * 64))


def test_who_is_slower_records_no_loss_a_second_time(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    start(scene.store)
    scene.write(append(seq=1))  # event 1 is in no entry
    slow, quick = scene.taker(scene.store), scene.taker()
    mark = scene.wals.mark_drained

    async def mark_and_lose_the_race(*args: Any, **options: Any) -> bool:
        monkeypatch.undo()
        await quick.take_over([HERE])
        return await mark(*args, **options)

    monkeypatch.setattr(scene.wals, "mark_drained", mark_and_lose_the_race)

    assert go(slow.take_over([HERE])) == []
    assert (slow.lost, quick.lost, len(scene.losses())) == (0, 1, 1)


def test_a_server_that_is_silent_is_not_waited_for_by_the_other_duties_of_a_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def silent(_server: MemoryWalServer, wal: int) -> int | None:
        await asyncio.sleep(3_600)
        return None

    async def story() -> None:
        started = asyncio.get_running_loop().time()
        await scene.taker().take_over([HERE])
        assert asyncio.get_running_loop().time() - started == pytest.approx(ANSWER_SECONDS)

    store = MemoryStore()
    scene = Scene(store, store)
    monkeypatch.setattr(MemoryWalServer, "seal", silent)
    play(story())
    assert not scene.is_drained()


def test_what_a_deleted_run_did_is_not_counted(scene: Scene) -> None:
    start(scene.store)
    scene.write(append("deleted"))
    scene.write(append(seq=1))  # event 1 is in no entry

    take_over(scene.taker())

    assert scene.losses() == [(LossReason.REFUSED, 1, ["id of run-1"])]


def test_events_that_the_log_has_no_longer_are_known(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run was claimed, has come further, and the beginning of its log was removed."""
    start(scene.store)
    scene.write(append())
    commit(scene.store, append())
    claim(scene.store, epoch=1)

    async def shortened(*_: Any, **__: Any) -> list[StoredEvent]:
        return []

    monkeypatch.setattr(scene.other.log, "events", shortened)
    take_over(scene.taker())

    assert scene.losses() == []
