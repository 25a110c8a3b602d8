"""Deliberate bugs of the hot path, one function each: rules of it that do not hold."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

from tests.hot.memory_server import MemoryWalServer
from tests.sim.mutants import Mutant, swap
from tests.sim.redis import SimWalServer
from weft.core.ids import HostId
from weft.runtime.commit_feed import CommitFeed
from weft.runtime.run import actor
from weft.stores.hot import takeover
from weft.stores.hot.hot_lane import HotLane
from weft.stores.hot.keeper import WalKeeper
from weft.stores.hot.log import HotLog
from weft.stores.hot.name_of_dead import LostEntries
from weft.stores.hot.ports import HotTasks
from weft.stores.hot.takeover import Takeover
from weft.stores.hot.through_lane import ThroughLane
from weft.stores.memory import log

HOT_MUTANTS: dict[str, Mutant] = {}
"""By the names of their functions. Only worlds with a hot path can catch them."""


def hot_mutant(make: Callable[[], Iterator[None]]) -> Mutant:
    """Register a bug under the name of its function."""
    planted = contextlib.contextmanager(make)
    HOT_MUTANTS[make.__name__] = planted
    return planted


# --- the owner -----------------------------------------------------------------------------------------------------


@hot_mutant
def commands_are_answered_when_the_wal_has_them() -> Iterator[None]:
    """Rule 5: what is answered, and what is irreversible, goes through."""
    with swap(actor, "must_be_through", lambda *_: False):
        yield


@hot_mutant
def a_task_is_offered_before_it_is_drained() -> Iterator[None]:
    """Rule 6."""

    async def offer(self: HotTasks, tasks: Any) -> None:
        await self._inner.offer(tasks)

    async def exchange(self: HotTasks, *args: Any, **options: Any) -> Any:
        return await self._inner.exchange(*args, **options)

    with swap(HotTasks, "offer", offer), swap(HotTasks, "exchange", exchange):
        yield


@hot_mutant
def subscribers_are_told_when_the_wal_has_it() -> Iterator[None]:
    """Rule 7."""
    with swap(CommitFeed, "publish", CommitFeed._tell):
        yield


@hot_mutant
def a_run_is_hot_before_it_is_attached() -> Iterator[None]:
    """Rule 15."""
    with swap(HotLane, "_is_attached", lambda self, append, _wal: self._runs.find(append) is not None):
        yield


@hot_mutant
def a_new_wal_is_opened_before_the_tails_are_drained() -> Iterator[None]:
    """Rules 14 and 16."""

    async def close_last(self: WalKeeper) -> None:
        wal, self._unmarked = self._unmarked, None
        if wal is not None:
            await self._wals.mark_drained(wal)

    with swap(WalKeeper, "_close_last", close_last):
        yield


@hot_mutant
def a_tail_is_dropped_when_a_drain_got_no_answer() -> Iterator[None]:
    """Rule 19: the number in the row is not looked at."""

    async def settle(self: ThroughLane, tail: Any) -> bool:
        return False

    with swap(ThroughLane, "_settle_by_row", settle):
        yield


@hot_mutant
def a_host_claims_its_run_again_without_draining_it() -> Iterator[None]:
    """Rules 20 and 21."""

    @contextlib.asynccontextmanager
    async def not_drained(self: HotLog, uids: Any) -> AsyncIterator[None]:
        yield

    with swap(HotLog, "_drained", not_drained):
        yield


@hot_mutant
def a_wal_is_trimmed_up_to_its_end() -> Iterator[None]:
    """Rule 22."""
    with swap(HotLane, "_drained_entry", lambda self: self.last):
        yield


# --- taking over ---------------------------------------------------------------------------------------------------


@hot_mutant
def a_run_is_claimed_before_its_wal_is_drained() -> Iterator[None]:
    """Rule 25."""
    judged = log.may_claim

    def may_claim(run: Any, host: HostId, *, drained: bool) -> bool:
        return judged(run, host, drained=True)

    async def nothing(self: Takeover, dead: Sequence[HostId]) -> Sequence[Any]:
        return ()

    with swap(log, "may_claim", may_claim), swap(Takeover, "take_over", nothing):
        yield


@hot_mutant
def a_wal_is_read_without_a_seal() -> Iterator[None]:
    """Rule 26."""

    async def seal(self: MemoryWalServer, wal: int) -> int | None:
        await self._arrive()
        held = self.disk.wals.get(wal)
        return None if held is None else held.head

    with swap(MemoryWalServer, "seal", seal):
        yield


@hot_mutant
def what_the_dead_had_acknowledged_is_not_committed() -> Iterator[None]:
    """Rule 26."""

    async def nothing(*_: Any) -> LostEntries:
        return LostEntries()

    with swap(takeover, "commit_in_the_name_of", nothing):
        yield


@hot_mutant
def a_wal_is_given_up_at_once() -> Iterator[None]:
    """Rule 29."""
    with swap(takeover, "PATIENCE_SECONDS", 0.0):
        yield


@hot_mutant
def nobody_ever_gives_up_a_wal() -> Iterator[None]:
    """Rule 29: runs are stuck when Redis is gone for good."""
    with swap(takeover, "PATIENCE_SECONDS", float("inf")):
        yield


@hot_mutant
def another_server_is_taken_for_the_right_one() -> Iterator[None]:
    """Rule 34."""

    async def identity(self: SimWalServer) -> str | None:
        await self._carry("identity")
        return self._redis.ledger._content.deployment.get("redis")

    with swap(SimWalServer, "identity", identity):
        yield
