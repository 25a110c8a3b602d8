"""Two hosts, every order of their steps: no append under an old epoch, and never two lives in one log."""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import combinations, count, islice
from typing import Any

import pytest

from tests import scale
from tests.contract.kit import FLOW, HERE, THERE, append, event, go, new
from weft.core.ids import Epoch, HostId, Millis, RunUid
from weft.ports.store import OVER_STATUSES, Outcome, RunRow, Store

STEPS = 4


PROGRAMS = {
    "both claim": (("claim", "load", "append", "complete"), ("claim", "load", "append", "complete")),
    "one expires the other": (("claim", "renew", "append", "complete"), ("expire", "load", "append", "complete")),
    "each expires the other": (("expire", "load", "append", "renew"), ("expire", "renew", "append", "complete")),
    "an owner is expired in its sleep": (
        ("renew", "append", "renew", "append"),
        ("expire", "append", "complete", "load"),
    ),
}
LEASE_MS = 1_000
clock = count(start=0, step=100)
"""Every look of an observer is long after the one before."""


class Actor:
    """A host that goes through a program of four operations on one run, by what it last knew."""

    def __init__(self, store: Store, uid: str, host: HostId, seen: RunRow, program: Sequence[str]) -> None:
        self.store, self.uid, self.host = store, RunUid(uid), host
        self.epoch, self.seq = seen.epoch, seen.seq
        self.accepted: list[tuple[Epoch, int]] = []
        self.steps = iter([getattr(self, f"_{name}") for name in program])

    def step(self) -> None:
        next(self.steps)()

    def _claim(self) -> None:
        rows = go(self.store.log.claim([self.uid], self.host, expected={self.uid: self.epoch}))
        if rows:
            self.epoch = rows[0].epoch

    def _renew(self) -> None:
        go(self.store.hosts.beat(self.host))

    def _expire(self) -> None:
        """Look twice, a lease apart on a clock of its own: whoever did not beat between is dead, and robbed."""
        at = next(clock)
        go(self.store.hosts.find_dead(monotonic=at))
        dead = go(self.store.hosts.find_dead(monotonic=at + LEASE_MS / 1000))
        waiting = go(self.store.directory.claimable([FLOW], dead=dead, now=Millis(0), limit=1_000))
        for row in waiting:
            if row.uid == self.uid:
                self.epoch = row.epoch
                self._claim()

    def _load(self) -> None:
        loaded = go(self.store.log.load(self.uid, fold=1))
        assert loaded is not None
        self.seq = loaded.row.seq

    def _append(self, **fields: Any) -> None:
        body = b'{"by":"%s","epoch":%d}' % (self.host.encode(), self.epoch)
        change = append(self.uid, seq=self.seq, epoch=self.epoch, events=[event(self.seq + 1, body)], **fields)
        (outcome,) = go(self.store.log.commit([change], self.host))
        if outcome is Outcome.ACCEPTED:
            self.seq = change.events[-1].seq
            self.accepted.append((self.epoch, self.seq))

    def _complete(self) -> None:
        self._append(status="completed")


def orders() -> Iterator[list[int]]:
    """Every way to shuffle two times four steps together."""
    for first in combinations(range(2 * STEPS), STEPS):
        yield [0 if place in first else 1 for place in range(2 * STEPS)]


@pytest.mark.parametrize("stride", scale.first(1, [5, 1]))
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_order_of_two_hosts_lets_an_old_epoch_write(store: Store, peer: Store, name: str, stride: int) -> None:
    """A stride of one is every order."""
    first, second = PROGRAMS[name]
    for one, host in ((store, HERE), (peer, THERE)):
        go(one.hosts.join(host, lease_ms=LEASE_MS))
    accepted = 0
    for number, order in enumerate(islice(orders(), 0, None, stride)):
        uid = f"run {number}"
        # Owned by the first from birth where that one claims nothing, else by nobody.
        go(store.log.create([new(uid, owner=HERE if first[0] != "claim" else None, wake_at=Millis(0))]))
        seen = go(store.directory.row(RunUid(uid)))
        assert seen is not None
        actors = [Actor(store, uid, HERE, seen, first), Actor(peer, uid, THERE, seen, second)]
        for turn in order:
            before = go(store.directory.row(RunUid(uid)))
            known = len(actors[turn].accepted)
            actors[turn].step()
            if len(actors[turn].accepted) > known:
                assert before is not None
                assert (before.epoch, before.owner) == (actors[turn].epoch, actors[turn].host)
                assert before.status not in OVER_STATUSES
        loaded = go(store.log.load(RunUid(uid), fold=1))
        assert loaded is not None
        written = sorted(seq for actor in actors for _, seq in actor.accepted)
        assert written == [one.seq for one in loaded.events] == list(range(1, len(written) + 1))
        accepted += len(written)
        if loaded.row.status not in OVER_STATUSES:
            assert go(store.log.mark_fault(RunUid(uid), "not looked at any more")) is None
    assert accepted > 70 // stride


def test_hosts_that_claim_together_share_the_runs(store: Store, peer: Store) -> None:
    """A stampede: each run goes to one of them, and none is left."""
    uids = [RunUid(f"{number:03}") for number in range(100)]
    go(store.log.create([new(uid, owner=None) for uid in uids]))

    async def both() -> list[list[RunRow]]:
        expected = dict.fromkeys(uids, Epoch(0))
        asked = [one.log.claim(uids, host, expected=expected) for one, host in ((store, HERE), (peer, THERE))]
        return [list(rows) for rows in await asyncio.gather(*asked)]

    mine, theirs = go(both())

    assert not {row.uid for row in mine} & {row.uid for row in theirs}
    left = [uid for uid in uids if uid not in {row.uid for row in (*mine, *theirs)}]
    again = go(store.log.claim(left, HERE, expected=dict.fromkeys(left, Epoch(0))))
    assert len(mine) + len(theirs) + len(again) == len(uids)
