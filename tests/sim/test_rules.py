"""Rules that random worlds reach too seldom, each in a small world of its own; and the bug that each one keeps out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest

from tests.sim.cluster import Cluster
from tests.sim.hosts import HOUR, PartOfApp
from tests.sim.ledger import ObservedLog
from tests.sim.mutants import swap
from tests.sim.swarm import Swarm
from tests.sim.workflows import app, bump, once, sequence, sleeper
from weft.core.ids import HostId
from weft.errors import Unavailable
from weft.ports.store import Append, Outcome
from weft.runtime import dispatcher
from weft.runtime.ownership import load
from weft.runtime.ownership import reload as reloading
from weft.runtime.settings import Settings
from weft.stores.memory import MemoryStore

SETTINGS = Settings(lease_seconds=4, poll_seconds=1.5, scan_seconds=3, idle_seconds=10 * HOUR, look_seconds=2)


class SeqMoves(ObservedLog):
    """Refuses the second append of every run once, as if its log had grown behind the back of its owner."""

    refused: set[str]

    async def commit(self, batch: Sequence[Append], host: HostId) -> Sequence[Outcome]:
        outcomes = []
        for append in batch:
            if append.create is None and append.uid not in self.refused:
                self.refused.add(append.uid)
                outcomes.append(Outcome.STALE_SEQ)
            else:
                outcomes += await super().commit([append], host)
        return outcomes


class SmallWorld(Cluster):
    """One host, no faults."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed, Swarm(seed, Random(seed), hosts=1, runs=0, settings=SETTINGS))

    def ended(self, call: Any, *, within: float) -> bool:
        """Whether a run of this call is over after so much time."""
        (host,) = self.hosts

        async def run() -> bool:
            host.boot()
            await asyncio.sleep(0.1)
            app.bind(host.service)
            await self._try(host.process, app.start(call, id="x"), HOUR)
            app.bind(None)
            await asyncio.sleep(within)
            return not self.store.content.open

        return self.loop.run_until_complete(run())


class StaleWorld(SmallWorld):
    def share(self) -> MemoryStore:
        share = super().share()
        share.log = log = SeqMoves(self.store.content, self.ledger)
        log.refused = self.__dict__.setdefault("refused", set())
        return share


class JumpingWorld(SmallWorld):
    """The clock is set back in the very moment in which a timer is due: after it was looked at, or before."""

    def ended(self, call: Any, *, within: float) -> bool:
        self.loop.call_at(1.1, self.hosts[0].clock.jump, -500)
        return super().ended(call, within=within)


@contextmanager
def stale_seq_taken_for_stale_epoch() -> Iterator[None]:
    reload = reloading.Reloader.reload

    async def dropping(self: Any, actor: Any, draft: Any, outcome: Outcome | None) -> None:
        if outcome is Outcome.STALE_SEQ:
            self._runs.remove(actor)
        else:
            await reload(self, actor, draft, outcome)

    with swap(reloading.Reloader, "reload", dropping):
        yield


@contextmanager
def an_early_timer_is_not_armed_again() -> Iterator[None]:
    with swap(dispatcher.Dispatcher, "arm_again", lambda self, actor, entry: None):
        yield


def test_a_log_that_grew_unseen_is_read_again() -> None:
    world = StaleWorld()
    assert world.ended(sequence(1, 3), within=10)
    assert (
        world.ledger.reached["commit stale_seq"] == 0
    )  # it is refused above the ledger, which only sees what is written
    assert len(world.refused) == 1  # type: ignore[attr-defined]
    world.close()


def test_without_that_rule_the_run_is_lost() -> None:
    world = StaleWorld()
    with stale_seq_taken_for_stale_epoch():
        assert not world.ended(sequence(1, 3), within=HOUR)
    world.close()


SEEDS = range(12)


def test_a_timer_that_the_clock_overtook_is_armed_again() -> None:
    for seed in SEEDS:
        world = JumpingWorld(seed)
        assert world.ended(sleeper(1), within=10), f"seed {seed}"
        world.close()


def test_without_that_rule_somebody_sleeps_for_ever() -> None:
    def sleeps(seed: int) -> bool:
        world = JumpingWorld(seed)
        with an_early_timer_is_not_armed_again():
            slept = not world.ended(sleeper(1), within=HOUR)
        world.close()
        return slept

    assert any(sleeps(seed) for seed in SEEDS)


@pytest.mark.parametrize("world", [SmallWorld, StaleWorld, JumpingWorld])
def test_small_worlds_break_no_promise(world: type[SmallWorld]) -> None:
    small = world()
    assert small.ended(sleeper(1), within=10)
    assert not small.ledger.breaches
    assert not small.loop.errors
    small.close()


class FirstCommitFails(ObservedLog):
    """Whoever takes a run over has its first commit fail."""

    async def commit(self, batch: Sequence[Append], host: HostId) -> Sequence[Outcome]:
        if any(append.epoch == 2 for append in batch):
            raise Unavailable("the first commit after a takeover (simulated)")
        return await super().commit(batch, host)


class TakeoverWorld(SmallWorld):
    """The process dies while a step that may run only once is performed, and the next one has trouble at first."""

    def __init__(self) -> None:
        super().__init__()
        self.swarm.moods.die_before = 1.0

    def share(self) -> MemoryStore:
        share = super().share()
        share.log = FirstCommitFails(self.store.content, self.ledger)
        return share


@contextmanager
def a_second_reading_forgets_that_the_owner_died() -> Iterator[None]:
    restore = load.Loader._restore_actor

    def forgetful(self: Any, actor: Any, loaded: Any, **options: Any) -> None:
        restore(self, actor, loaded, **options)
        actor.owner_died = False

    with swap(load.Loader, "_restore_actor", forgetful):
        yield


def test_what_a_dead_host_had_in_hand_is_lost_however_often_its_run_is_read() -> None:
    world = TakeoverWorld()
    assert world.ended(once(1), within=60)
    assert not world.ledger.breaches
    world.close()


def test_without_that_rule_it_is_performed_twice() -> None:
    world = TakeoverWorld()
    with a_second_reading_forgets_that_the_owner_died():
        world.ended(once(1), within=60)
    assert "irreversible" in str(world.ledger.breaches)
    world.close()


def test_a_host_lacks_steps_so_that_others_perform_them() -> None:
    """An attribute of the catalogue once hid the method, and no world had a step performed by another host."""
    assert PartOfApp(app, [bump.name]).step(bump.name) is None
    assert PartOfApp(app, []).step(bump.name) is not None
