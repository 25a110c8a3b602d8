"""Deliberate bugs of the hot path, one function each: rules of it that do not hold."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from tests.hot.memory_server import MemoryWalServer
from tests.sim.mutants import Mutant, swap
from tests.sim.redis import SimWalServer
from weft.core.ids import Epoch, HostId, RunUid, Seq
from weft.errors import StoreError
from weft.ports.store import Append, Store, StoredEvent
from weft.ports.wals import Wal
from weft.runtime.commit_feed import CommitFeed
from weft.runtime.run import actor
from weft.runtime.run.write_through import must_be_through
from weft.stores.hot import entries, hot_lane, name_of_dead, redis_wal_server, takeover
from weft.stores.hot.hot_lane import HotLane
from weft.stores.hot.keeper import WalKeeper
from weft.stores.hot.log import HotLog
from weft.stores.hot.name_of_dead import LostEntries
from weft.stores.hot.ports import HotTasks
from weft.stores.hot.recognition import RedisRecognition
from weft.stores.hot.tails import Tail
from weft.stores.hot.takeover import Takeover
from weft.stores.hot.through_lane import ThroughLane
from weft.stores.hot.wal_script import APPEND
from weft.stores.judge import may_claim
from weft.stores.memory import log
from weft.stores.memory.wals import MemoryWals

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
def irreversible_work_begins_when_the_wal_has_it() -> Iterator[None]:
    """Rule 5: a task that is handed out."""

    def without_effects(run: Any, draft: Any) -> bool:
        effects, draft.effects = draft.effects, []
        try:
            return must_be_through(run, draft)
        finally:
            draft.effects = effects

    with swap(actor, "must_be_through", without_effects):
        yield


@hot_mutant
def the_outcome_of_irreversible_work_is_a_hop() -> Iterator[None]:
    """Rule 5: a task that is reported."""

    def without_reports(run: Any, draft: Any) -> bool:
        posted, draft.posted = draft.posted, [one for one in draft.posted if one.flight is None]
        try:
            return must_be_through(run, draft)
        finally:
            draft.posted = posted

    with swap(actor, "must_be_through", without_reports):
        yield


@hot_mutant
def whatever_has_events_is_a_hop() -> Iterator[None]:
    """Rule 4."""
    with swap(hot_lane, "is_plain", lambda append: bool(append.events)):
        yield


@hot_mutant
def hops_wait_for_transactions() -> Iterator[None]:
    """Rule 8."""
    hop = HotLog.hop

    async def in_one_lane(self: HotLog, batch: Sequence[Append], host: HostId) -> Any:
        async with self._through.quiet():
            return await hop(self, batch, host)

    with swap(HotLog, "hop", in_one_lane):
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
    with swap(CommitFeed, "publish", CommitFeed._notify):
        yield


@hot_mutant
def a_run_is_hot_before_it_is_attached() -> Iterator[None]:
    """Rule 15."""
    with (
        swap(HotLane, "_is_attached", lambda self, append, _wal: self._runs.find(append) is not None),
        swap(HotLane, "_are_attached", lambda self, batch, _wal: self._runs.find_each(batch) is not None),
    ):
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
def a_drain_without_an_answer_is_given_up() -> Iterator[None]:
    """Rule 19: it is not sent again."""
    drain = ThroughLane._drain_pieces

    async def once(self: ThroughLane, tails: Sequence[Tail]) -> None:
        try:
            await drain(self, tails)
        except StoreError:
            for tail in tails:
                self._tails.drop(tail.uid)

    with swap(ThroughLane, "_drain_pieces", once):
        yield


@hot_mutant
def a_run_is_attached_to_a_wal_that_was_drained() -> Iterator[None]:
    """Rule 16: not to the one that its host has now, because the request was late."""
    attach = MemoryWals.attach

    async def to_any(self: MemoryWals, wal: int, host: HostId, runs: Mapping[RunUid, Epoch]) -> Sequence[RunUid]:
        row = self._content.wals[wal]
        drained, row.drained = row.drained, False
        try:
            return await attach(self, wal, host, runs)
        finally:
            row.drained = drained

    with swap(MemoryWals, "attach", to_any):
        yield


@hot_mutant
def a_host_claims_its_run_again_without_draining_it() -> Iterator[None]:
    """Rules 20 and 21."""

    @contextlib.asynccontextmanager
    async def not_drained(self: HotLog, uids: Any) -> AsyncIterator[None]:
        yield

    with swap(HotLog, "_drained_runs", not_drained):
        yield


@hot_mutant
def a_wal_is_trimmed_up_to_its_end() -> Iterator[None]:
    """Rule 22."""
    with swap(HotLane, "_drained_entry", lambda self: self.last):
        yield


@hot_mutant
def a_wal_takes_any_entry() -> Iterator[None]:
    """Rule 12: the script does not look at the head, so neither a gap nor a seal stops anybody."""
    checked = "if head ~= ARGV[1] then return head end\n"
    assert checked in APPEND
    with swap(redis_wal_server, "APPEND", APPEND.replace(checked, "")):
        yield


@hot_mutant
def a_wal_with_a_gap_takes_entries() -> Iterator[None]:
    """Rule 12: the script looks for the seal only."""
    checked = "if head ~= ARGV[1] then"
    assert checked in APPEND
    sealed = "if string.sub(head, 1, 6) == 'sealed' then"
    with swap(redis_wal_server, "APPEND", APPEND.replace(checked, sealed)):
        yield


@hot_mutant
def a_damaged_entry_is_taken_for_whole() -> Iterator[None]:
    """Rules 11 and 27: the checksum says nothing."""
    with swap(entries, "crc32", lambda _: 0):
        yield


@hot_mutant
def something_of_a_run_begins_while_it_is_attached() -> Iterator[None]:
    """Rule 16."""

    @contextlib.asynccontextmanager
    async def not_quiet(self: ThroughLane) -> AsyncIterator[None]:
        yield

    with swap(ThroughLane, "quiet", not_quiet):
        yield


@hot_mutant
def a_tail_that_is_refused_counts_as_drained() -> Iterator[None]:
    """Rule 19."""

    async def settle(self: ThroughLane, piece: Append, outcome: Any) -> None:
        self._note_drained(piece.uid, Seq(piece.seq + len(piece.events)))

    with swap(ThroughLane, "_settle_refused", settle):
        yield


@hot_mutant
def a_run_is_released_with_its_tail() -> Iterator[None]:
    """Rule 21."""

    async def release(self: HotLog, releases: Any) -> Any:
        return await self._log.release(releases)

    with swap(HotLog, "release", release):
        yield


@hot_mutant
def tails_have_no_bound() -> Iterator[None]:
    """Rule 23."""
    with swap(HotLane, "is_full", lambda _: False):
        yield


@hot_mutant
def a_host_leaves_its_wal_behind() -> Iterator[None]:
    """Rule 24."""

    async def leave(self: WalKeeper, host: HostId) -> None:
        await self.stop()

    with swap(WalKeeper, "leave", leave):
        yield


@hot_mutant
def a_wal_that_broke_is_written_again() -> Iterator[None]:
    """Rule 14."""
    with swap(HotLane, "break_wal", lambda *_: None):
        yield


@hot_mutant
def a_tail_goes_ahead_of_what_follows_it() -> Iterator[None]:
    """Rule 18: they are not accepted or refused together."""

    async def make_way(self: ThroughLane, append: Append) -> None:
        while (tail := self._tails.get(append.uid)) is not None:
            await self._drain_pieces([tail])

    with swap(ThroughLane, "_make_way", make_way):
        yield


@hot_mutant
def a_claim_does_not_wait_for_the_hop_under_way() -> Iterator[None]:
    """Rule 20."""

    async def hold(self: HotLane, uids: Sequence[RunUid]) -> None:
        self._runs.hold(uids)

    with swap(HotLane, "hold", hold):
        yield


# --- taking over ---------------------------------------------------------------------------------------------------


@hot_mutant
def a_run_is_claimed_before_its_wal_is_drained() -> Iterator[None]:
    """Rule 25."""

    def careless(run: Any, host: HostId, *, drained: bool) -> bool:
        return may_claim(run, host, drained=True)

    async def nothing(self: Takeover, dead: Sequence[HostId]) -> Sequence[Any]:
        return ()

    with swap(log, "may_claim", careless), swap(Takeover, "take_over", nothing):
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
def a_wal_is_marked_before_what_it_holds_is_committed() -> Iterator[None]:
    """Rule 26."""
    finish, read = Takeover._mark_drained, Takeover._seal_and_read

    async def read_and_mark(self: Takeover, wal: Wal) -> Any:
        found = await read(self, wal)
        if found is not None:
            await finish(self, wal, None)
        return found

    with swap(Takeover, "_seal_and_read", read_and_mark):
        yield


@hot_mutant
def the_dead_commit_in_the_epoch_of_now() -> Iterator[None]:
    """Rule 26: not in that of the entry, so a second history is taken."""
    commit = name_of_dead._commit_pieces

    async def in_epoch_of_now(store: Store, host: HostId, group: Sequence[Any]) -> Any:
        for piece in group:
            row = await store.directory.row(piece.uid)
            assert row is not None
            piece.epoch, piece.seq = row.epoch, row.seq
            piece.events = renumbered(piece.events, row.seq)
            host = row.owner or host
        return await commit(store, host, group)

    with swap(name_of_dead, "_commit_pieces", in_epoch_of_now):
        yield


@hot_mutant
def what_follows_a_hole_is_moved_up() -> Iterator[None]:
    """Rule 27."""
    judge = name_of_dead._judge_piece

    async def moved_up(store: Store, piece: Any, outcome: Any) -> Any:
        row = await store.directory.row(piece.uid)
        if row is not None and row.epoch == piece.epoch and row.seq < piece.seq:
            piece.seq, piece.events = row.seq, renumbered(piece.events, row.seq)
            return piece
        return await judge(store, piece, outcome)

    with swap(name_of_dead, "_judge_piece", moved_up):
        yield


def renumbered(events: Sequence[StoredEvent], after: int) -> list[StoredEvent]:
    return [StoredEvent(Seq(seq), event.at, event.body) for seq, event in enumerate(events, after + 1)]


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
def what_heartbeats_said_is_not_compared() -> Iterator[None]:
    """Rule 30: entries that Redis has lost are missed by nobody."""
    judge = Takeover._find_loss

    async def by_what_is_there(self: Takeover, wal: Wal, *found: Any) -> Any:
        return await judge(self, msgspec.structs.replace(wal, last=0), *found)

    with swap(Takeover, "_find_loss", by_what_is_there):
        yield


@hot_mutant
def a_wal_is_opened_in_any_server() -> Iterator[None]:
    """Rule 34."""

    async def recognise(self: RedisRecognition) -> str | None:
        return await self._server.identity() or "any"

    with swap(RedisRecognition, "recognise", recognise):
        yield


@hot_mutant
def another_server_is_taken_for_the_right_one() -> Iterator[None]:
    """Rule 34."""

    async def identity(self: SimWalServer) -> str | None:
        await self._carry("identity")
        return self._redis.ledger._content.deployment.get("redis")

    with swap(SimWalServer, "identity", identity):
        yield
