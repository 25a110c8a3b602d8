"""Taking over the WALs of dead hosts: what is committed in their name, what is lost, and how long others wait."""

import logging
from pathlib import Path
from typing import Any

import pytest

from tests.contract.conftest import STORES, Emptying
from tests.contract.conftest import emptying as emptying  # noqa: PLC0414 - a fixture
from tests.contract.kit import FLOW, HERE, RUN, THERE, append, claim, commit, event, go, load, new, row, start
from tests.hot.memory_server import Disk, MemoryWalServer
from weft.core.ids import Epoch, Millis, RunId, RunUid
from weft.errors import Unavailable
from weft.ports.store import Append, Outcome, Store
from weft.ports.wals import LossReason, Wals
from weft.stores.hot.entries import encode
from weft.stores.hot.name_of_dead import RUNS_PER_COMMIT
from weft.stores.hot.takeover import PATIENCE_SECONDS, RETRY_SECONDS, Takeover, loss_sentence
from weft.stores.memory import MemoryStore
from weft.stores.memory import wals as memory_wals
from weft.stores.postgres import wals as postgres_wals


class HandClock:
    """A clock that tests move by hand."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def now_ms(self) -> Millis:
        return Millis(int(self.seconds * 1000))

    def monotonic(self) -> float:
        return self.seconds


class Scene:
    """A host HERE that has died with a WAL, and others who take over."""

    def __init__(self, store: Store, other: Store) -> None:
        self.clock = HandClock()
        self.disk = Disk()
        self.store, self.other = store, other
        self.owner = MemoryWalServer(self.disk)
        self.wal = go(self.wals.open(HERE, "redis-1"))
        self.disk.identity = go(self.wals.agree_redis_id(None, "redis-1"))
        go(self.owner.begin(self.wal))
        self.last = 0

    @property
    def wals(self) -> Wals:
        assert self.store.wals is not None
        return self.store.wals

    def write(self, *appends: Append) -> None:
        """Acknowledge one batch in the WAL."""
        self.last += 1
        go(self.owner.append(self.wal, self.last, encode(appends), None))

    def taker(self, store: Store | None = None, *, redis: bool = True) -> Takeover:
        durable = store or self.other
        assert durable.wals is not None
        return Takeover(durable, durable.wals, MemoryWalServer(self.disk) if redis else None, self.clock)

    def is_drained(self) -> bool:
        return not go(self.wals.undrained([HERE]))

    def losses(self) -> list[tuple[LossReason, int, list[RunId]]]:
        return [(loss.reason, loss.batches, list(loss.runs)) for loss in go(self.wals.losses())]


@pytest.fixture(params=["memory", "postgres"])
def scene(request: pytest.FixtureRequest, tmp_path: Path, emptying: Emptying) -> Any:
    make = STORES[request.param](tmp_path, emptying)
    stores = make(), make()
    for store in stores:
        go(store.open())
    yield Scene(*stores)
    for store in stores:
        go(store.close())


def take_over(taker: Takeover) -> None:
    go(taker.take_over([HERE]))


# --- draining ---------------------------------------------------------------------------------------------------------


def test_hops_of_a_dead_host_come_into_the_log_before_its_runs_are_claimed(scene: Scene) -> None:
    start(scene.store)
    scene.write(append(count=2, refs=["0" * 64]))
    scene.write(append(seq=2))

    assert claim(scene.other, epoch=1, host=THERE) == []
    assert go(scene.taker().take_over([HERE])) == []

    assert scene.is_drained()
    assert (row(scene.other).seq, row(scene.other).epoch) == (3, 1)
    assert [one.epoch for one in claim(scene.other, epoch=1, host=THERE)] == [2]
    assert load(scene.other).events == [event(n, b'{"n":%d}' % n) for n in (1, 2, 3)]
    assert scene.disk.wals == {}
    assert scene.losses() == []


def test_a_run_that_waited_for_mail_is_claimable_after_its_hops_are_drained(scene: Scene) -> None:
    """Its row said that nothing is to be done. The hops say that work was in flight."""
    start(scene.store)
    commit(scene.store, append(idle_until=2**62))
    scene.write(append(seq=1))
    ask = {"dead": [HERE], "now": Millis(9_000), "limit": 10}

    assert go(scene.other.directory.claimable([FLOW], **ask)) == []
    take_over(scene.taker())
    assert [one.uid for one in go(scene.other.directory.claimable([FLOW], **ask))] == [RUN]


def test_entries_of_many_runs_are_committed_in_groups(scene: Scene) -> None:
    uids = [f"run-{n}" for n in range(RUNS_PER_COMMIT + 1)]
    for part in (uids[:600], uids[600:]):
        commit(scene.store, *[append(uid, count=0, create=new(uid)) for uid in part])
        scene.write(*[append(uid) for uid in part])
    scene.write(append(uids[0], seq=1))

    take_over(scene.taker())

    assert [row(scene.other, uid).seq for uid in (uids[0], uids[1], uids[-1])] == [2, 1, 1]
    assert scene.losses() == []


def test_a_long_tail_goes_into_several_commits(scene: Scene) -> None:
    start(scene.store)
    for n in range(5):
        scene.write(append(seq=n * 500, count=500))

    take_over(scene.taker())

    assert (row(scene.other).seq, scene.losses()) == (2_500, [])


def test_what_the_owner_had_drained_is_known(scene: Scene) -> None:
    start(scene.store)
    scene.write(append())
    scene.write(append(seq=1, count=2))
    scene.write(append(seq=3))
    commit(scene.store, append(count=2))  # the first entry, and a part of the second

    take_over(scene.taker())

    assert (row(scene.other).seq, scene.losses()) == (4, [])


def test_what_was_drained_before_the_owner_claimed_its_run_again_is_known(scene: Scene) -> None:
    start(scene.store)
    scene.write(append())
    commit(scene.store, append())
    claim(scene.store, epoch=1)
    scene.write(append(seq=1, epoch=2))

    take_over(scene.taker())

    assert (row(scene.other).seq, scene.losses()) == (2, [])


def test_runs_that_ended_rest_or_are_gone_have_lost_nothing(scene: Scene) -> None:
    for uid in ("ended", "rests"):
        start(scene.store, uid)
        scene.write(append(uid))
        commit(scene.store, append(uid))
    scene.write(append("deleted"))
    commit(scene.store, append("ended", seq=1, status="completed"))

    take_over(scene.taker())

    assert scene.losses() == []


def test_the_owner_that_lives_drains_at_the_same_time_and_loses_nothing(scene: Scene) -> None:
    start(scene.store)
    scene.write(append())
    scene.write(append(seq=1))
    take_over(scene.taker())

    assert commit(scene.store, append(count=2)) == [Outcome.STALE_SEQ]
    assert row(scene.store).seq == 2


def test_an_owner_that_lives_finds_its_wal_sealed(scene: Scene) -> None:
    start(scene.store)
    scene.write(append())
    go(MemoryWalServer(scene.disk).seal(scene.wal))

    with pytest.raises(Exception, match="sealed"):
        scene.write(append(seq=1))


def test_of_two_who_take_over_the_second_finds_nothing_to_do(scene: Scene) -> None:
    start(scene.store)
    scene.write(append())
    first, second = scene.taker(), scene.taker(scene.store)

    take_over(first)
    take_over(second)

    assert (row(scene.other).seq, scene.losses()) == (1, [])


@pytest.mark.parametrize("claimed", [False, True])
def test_who_is_slower_counts_nothing_as_lost(scene: Scene, monkeypatch: pytest.MonkeyPatch, claimed: bool) -> None:
    """The second has read the WAL when the first marks it as drained, and perhaps claims the run."""
    start(scene.store)
    scene.write(append())
    slow = scene.taker(scene.store)
    read = MemoryWalServer.read

    async def read_and_lose_the_race(server: MemoryWalServer, wal: int) -> Any:
        entries = await read(server, wal)
        monkeypatch.undo()
        await scene.taker().take_over([HERE])
        if claimed:
            await scene.other.log.claim([RUN], THERE, expected={RUN: Epoch(1)})
            await scene.other.log.commit([append(seq=1, epoch=2)], THERE)
        return entries

    monkeypatch.setattr(MemoryWalServer, "read", read_and_lose_the_race)
    take_over(slow)

    assert (scene.losses(), slow.lost) == ([], 0)


def test_a_wal_that_was_drained_long_ago_is_forgotten_when_no_run_names_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(scene.store)
    take_over(scene.taker())
    assert go(scene.wals.old(limit=9)) == [], "it was drained just now"

    monkeypatch.setattr(memory_wals, "KEPT_MS", 0)
    monkeypatch.setattr(postgres_wals, "KEPT_MS", 0)
    assert go(scene.wals.old(limit=9)) == [], "a run names it"
    assert len(claim(scene.other, epoch=1, host=THERE)) == 1
    assert go(scene.wals.old(limit=9)) == [scene.wal]

    go(scene.wals.remove([scene.wal]))
    assert go(scene.wals.old(limit=9)) == []
    assert not go(scene.wals.note(scene.wal, 5)), "its host finds that it is not used any more"
    assert not go(scene.wals.mark_drained(scene.wal))
    assert go(scene.wals.open(HERE, "redis-1")) > scene.wal


def test_a_wal_that_was_drained_just_now_is_kept(scene: Scene) -> None:
    take_over(scene.taker())

    assert go(scene.wals.old(limit=9)) == []


def test_nothing_is_asked_while_no_host_is_dead() -> None:
    taker = Takeover(MemoryStore(), object(), None, HandClock())  # type: ignore[arg-type]

    assert go(taker.take_over([])) == []


# --- what is lost -----------------------------------------------------------------------------------------------------


def test_a_wal_that_the_right_server_does_not_have_is_forced_at_once(scene: Scene) -> None:
    start(scene.store)
    scene.write(append())
    scene.disk.wals.clear()

    take_over(scene.taker())

    assert scene.is_drained()
    assert scene.losses() == [(LossReason.GONE, 0, ["id of run-1"])]
    assert len(claim(scene.other, epoch=1, host=THERE)) == 1


def test_a_wal_that_no_run_names_is_no_loss(scene: Scene) -> None:
    """Its host died before the first run was attached."""
    scene.disk.wals.clear()

    take_over(scene.taker())

    assert (scene.is_drained(), scene.losses()) == (True, [])


@pytest.mark.parametrize("identity", [None, "redis-2"])
def test_a_server_that_was_emptied_or_replaced_is_waited_for(scene: Scene, identity: str | None) -> None:
    start(scene.store)
    scene.disk.wals.clear()
    scene.disk.identity = identity
    taker = scene.taker()

    take_over(taker)
    assert not scene.is_drained()
    scene.clock.seconds += PATIENCE_SECONDS
    take_over(taker)
    assert scene.losses() == [(LossReason.UNREACHABLE, 0, ["id of run-1"])]
    assert "nobody could read it for a minute" in loss_sentence(*go(scene.wals.losses())), "it did answer"


@pytest.mark.parametrize("redis", [True, False])
def test_others_wait_a_minute_for_redis_and_then_go_on_without_it(
    scene: Scene, redis: bool, caplog: pytest.LogCaptureFixture
) -> None:
    start(scene.store)
    scene.write(append())
    scene.disk.away = True
    taker = scene.taker(redis=redis)

    take_over(taker)
    scene.clock.seconds += PATIENCE_SECONDS - 0.1
    take_over(taker)
    assert claim(scene.other, epoch=1, host=THERE) == []
    assert caplog.text.count("cannot be read") == 1

    scene.clock.seconds += 0.1
    with caplog.at_level(logging.ERROR):
        take_over(taker)
    assert "id of run-1" in caplog.text
    assert taker.lost == 1
    assert scene.losses() == [(LossReason.UNREACHABLE, 0, ["id of run-1"])]
    assert [one.seq for one in claim(scene.other, epoch=1, host=THERE)] == [0]


def test_redis_that_comes_back_in_time_loses_nothing(scene: Scene) -> None:
    start(scene.store)
    scene.write(append())
    scene.disk.away = True
    taker = scene.taker()
    take_over(taker)

    scene.disk.away = False
    scene.clock.seconds += RETRY_SECONDS
    take_over(taker)

    assert (row(scene.other).seq, scene.losses()) == (1, [])


def test_a_server_that_does_not_answer_is_not_asked_all_the_time(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    async def seal(_server: MemoryWalServer, wal: int) -> int | None:
        asked.append(wal)
        raise Unavailable("away")

    monkeypatch.setattr(MemoryWalServer, "seal", seal)
    taker = scene.taker()

    for _ in range(4):
        take_over(taker)
        scene.clock.seconds += RETRY_SECONDS / 2

    assert len(asked) == 2


def test_entries_that_redis_has_lost_are_counted_by_what_heartbeats_said(scene: Scene) -> None:
    start(scene.store)
    scene.write(append())
    before = scene.disk.save()
    scene.write(append(seq=1))
    scene.write(append(seq=2))
    go(scene.wals.note(scene.wal, scene.last))
    scene.disk.restore(before)

    take_over(scene.taker())

    assert row(scene.other).seq == 1
    assert scene.losses() == [(LossReason.MISSING, 2, ["id of run-1"])]


def test_entries_that_were_trimmed_are_not_missing(scene: Scene) -> None:
    start(scene.store)
    scene.write(append())
    commit(scene.store, append())
    go(scene.owner.trim(scene.wal, 1))
    go(scene.wals.note(scene.wal, 1))

    take_over(scene.taker())

    assert scene.losses() == []


def test_a_hole_loses_the_rest_of_its_run_and_nothing_of_others(scene: Scene) -> None:
    start(scene.store)
    start(scene.store, "other")
    scene.write(append("other"))
    scene.write(append(seq=1))  # event 1 is in no entry
    scene.write(append(seq=2), append("other", seq=1))

    take_over(scene.taker())

    assert (row(scene.other).seq, row(scene.other, "other").seq) == (0, 2)
    assert scene.losses() == [(LossReason.REFUSED, 2, ["id of run-1"])]


def test_a_damaged_entry_loses_its_runs_from_there_on_and_no_others(scene: Scene) -> None:
    start(scene.store)
    start(scene.store, "other")
    scene.write(append())
    scene.write(append(seq=1))
    scene.write(append(seq=2), append("other"))
    held = scene.disk.wals[scene.wal].entries
    held[2] = held[2][:-3] + bytes([held[2][-3] ^ 1]) + held[2][-2:]

    take_over(scene.taker())

    assert (row(scene.other).seq, row(scene.other, "other").seq) == (1, 1)
    assert scene.losses() == [(LossReason.MISSING, 2, ["id of other", "id of run-1"])]
    assert len(claim(scene.other, epoch=1, host=THERE)) == 1


def test_a_wal_in_a_newer_format_is_left_to_others(scene: Scene) -> None:
    start(scene.store)
    scene.write(append())
    scene.disk.wals[scene.wal].entries[1] = b"\x92\x09\x01"
    taker = scene.taker()

    take_over(taker)
    assert not scene.is_drained()
    scene.clock.seconds += PATIENCE_SECONDS
    take_over(taker)
    assert [reason for reason, *_ in scene.losses()] == [LossReason.UNREACHABLE]


def test_events_of_another_history_are_lost_and_not_taken_for_known_ones(scene: Scene) -> None:
    """The run went on without them: its WAL had been given up, or the run was claimed away meanwhile."""
    start(scene.store)
    scene.write(append(count=2))
    go(scene.store.log.mark_fault(RUN, "damaged"))
    claim(scene.other, epoch=1, host=THERE)
    commit(scene.other, append(epoch=2, events=[event(1, b'{"other":1}'), event(2)]), host=THERE)

    take_over(scene.taker())

    assert scene.losses() == [(LossReason.REFUSED, 1, ["id of run-1"])]
    assert load(scene.other).events[0].body == b'{"other":1}'


def test_a_host_that_left_is_taken_over_too(scene: Scene) -> None:
    """Its row is gone, but not its WAL."""
    start(scene.store)
    scene.write(append())

    dead = go(scene.other.hosts.find_dead(monotonic=0.0))

    assert dead == [HERE]
    take_over(scene.taker())
    assert row(scene.other).seq == 1


def test_the_durable_store_away_leaves_everything_for_the_next_time(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(scene.store)
    scene.write(append())
    taker = scene.taker()

    async def away(*_: Any) -> Any:
        raise Unavailable("away")

    monkeypatch.setattr(scene.other.log, "commit", away)
    with pytest.raises(Unavailable):
        take_over(taker)
    monkeypatch.undo()
    take_over(taker)

    assert (row(scene.other).seq, scene.losses()) == (1, [])


def test_a_loss_is_told_in_one_sentence(scene: Scene) -> None:
    start(scene.store)
    scene.disk.wals.clear()
    take_over(scene.taker())
    (loss,) = go(scene.wals.losses())

    assert loss_sentence(loss) == (
        f"hops that were not drained from the write-ahead log {scene.wal} of host here may be lost: Redis does not "
        "have it any more, and its host is dead. These runs go on from their last durable event: id of run-1"
    )


def test_every_run_goes_on_after_a_loss(scene: Scene) -> None:
    start(scene.store)
    scene.write(append(count=3))
    scene.disk.wals.clear()
    take_over(scene.taker())
    claim(scene.other, epoch=1, host=THERE)

    assert commit(scene.store, append(count=3)) == [Outcome.STALE_EPOCH]
    assert commit(scene.other, append(epoch=2), host=THERE) == [Outcome.ACCEPTED]
    assert row(scene.other, RunUid(RUN)).seq == 1
