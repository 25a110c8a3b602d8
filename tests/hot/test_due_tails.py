"""The drainer waits exactly until there is something to drain."""

from __future__ import annotations

import asyncio

from weft.core.ids import Epoch, Millis, RunUid, Seq
from weft.ports.store import Append, StoredEvent
from weft.stores.hot.owned_runs import OwnedRuns
from weft.stores.hot.policy import hot_policy
from weft.stores.hot.tails import Tails
from weft.stores.hot.through_lane import ThroughLane
from weft.stores.memory import MemoryStore
from weft.testing.loop import make_loop

EVENT = StoredEvent(seq=Seq(2), at=Millis(0), body=b"{}")


def test_a_tail_is_due_when_the_drainer_need_not_wait_any_longer() -> None:
    """However the times are rounded: otherwise the drainer goes round and round until the clock moves."""
    loop = make_loop()
    policy = hot_policy("2s")

    async def differences() -> list[float]:
        found = []
        for _ in range(200):
            await asyncio.sleep(0.1)
            tails, began = Tails(), loop.time()
            tails.add(Append(uid=RunUid("u"), epoch=Epoch(1), seq=Seq(1), events=[EVENT]), 1, began)
            lane = ThroughLane(MemoryStore(), tails, OwnedRuns(), policy)
            await asyncio.sleep(policy.delay_seconds)
            if bool(lane._due_tails(1)) != (lane._seconds_until_due() == 0):
                found.append(began)
        return found

    try:
        assert loop.run_until_complete(differences()) == []
    finally:
        loop.close()
