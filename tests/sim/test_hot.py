"""With a Redis before the store, only hops are lost that Redis lost while their owner died, and no run is stuck."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest

from tests.code.timeless import Stuck
from tests.contract import test_wals
from tests.hot import test_broken_wal, test_draining, test_recognition, test_takeover, test_through, test_wal_server
from tests.hot.kit import new_namespace, wal_server
from tests.redis_server import shared_redis
from tests.scale import first
from tests.sim.hot import HOT
from tests.sim.hot_mutants import HOT_MUTANTS
from tests.sim.judge import digest, failures, judge
from weft.stores.memory import MemoryStore

SEEDS = 600
"""Of the worlds that are played here; ``make soak`` plays 100,000."""
PER_CHUNK = 10
SEEDS_MAX = 2_000
CAUGHT_BY = {
    "subscribers_are_told_when_the_wal_has_it": 0,
    "a_wal_is_given_up_at_once": 21,
    "what_the_dead_had_acknowledged_is_not_committed": 3,
    "another_server_is_taken_for_the_right_one": 292,
    "nobody_ever_gives_up_a_wal": 128,
    "a_wal_is_trimmed_up_to_its_end": 7,
    "a_run_is_claimed_before_its_wal_is_drained": 3,
    "hops_wait_for_transactions": 0,
    "a_tail_is_dropped_when_a_drain_got_no_answer": 24,
    "a_tail_that_is_refused_counts_as_drained": 68,
    "a_wal_is_marked_before_what_it_holds_is_committed": 6,
    "the_dead_commit_in_the_epoch_of_now": 13,
    "whatever_has_events_is_a_hop": 0,
    "a_drain_without_an_answer_is_given_up": 3,
    "a_new_wal_is_opened_before_the_tails_are_drained": 113,
}
"""A seed that caught each bug; tried first, so that proving it again costs one world and not hundreds."""


def on_redis(test: Callable[..., None]) -> Callable[[], None]:
    """Return a test of WAL servers on a real one."""

    def play() -> None:
        namespace = new_namespace()
        server, peer = (wal_server(shared_redis(), namespace=namespace) for _ in range(2))
        test(server=server, peer=peer)

    return play


def on_takeover(test: Callable[[test_takeover.Scene], None]) -> Callable[[], None]:
    """Return a test of takeovers over the store in memory."""

    def play() -> None:
        store = MemoryStore()
        test(test_takeover.Scene(store, store))

    return play


CAUGHT_BY_A_SCENE: dict[str, Callable[[], None]] = {
    "commands_are_answered_when_the_wal_has_them": test_through.test_a_command_is_in_the_store_when_it_is_answered,
    "irreversible_work_begins_when_the_wal_has_it": (
        test_through.test_irreversible_work_is_in_the_store_before_it_begins_and_its_outcome_before_anything_follows
    ),
    "the_outcome_of_irreversible_work_is_a_hop": (
        test_through.test_irreversible_work_is_in_the_store_before_it_begins_and_its_outcome_before_anything_follows
    ),
    "a_task_is_offered_before_it_is_drained": (
        test_draining.test_no_task_is_offered_before_what_schedules_it_is_drained
    ),
    "a_run_is_hot_before_it_is_attached": test_broken_wal.test_no_hop_goes_to_a_wal_that_its_run_does_not_name,
    "a_drain_without_an_answer_is_given_up": partial(
        test_draining.test_a_drain_without_an_answer_is_sent_again_and_counts_once, "lost before"
    ),
    "a_run_is_attached_to_a_wal_that_was_drained": lambda: (
        test_wals.test_nothing_is_attached_to_a_drained_wal_or_one_of_another_host(MemoryStore())
    ),
    "a_host_claims_its_run_again_without_draining_it": (
        test_draining.test_a_host_that_claims_its_own_run_again_drains_it_under_the_old_epoch_first
    ),
    "a_wal_is_read_without_a_seal": test_broken_wal.test_a_host_that_is_taken_for_dead_loses_no_hop,
    "a_wal_takes_any_entry": on_redis(test_wal_server.test_a_wal_that_was_sealed_takes_nothing_and_can_be_read),
    "a_wal_with_a_gap_takes_entries": on_redis(test_wal_server.test_a_gap_breaks_the_wal),
    "a_damaged_entry_is_taken_for_whole": on_takeover(
        test_takeover.test_a_damaged_entry_loses_its_runs_from_there_on_and_no_others
    ),
    "something_of_a_run_begins_while_it_is_attached": test_broken_wal.test_nothing_of_a_run_begins_while_it_is_attached,
    "a_run_is_released_with_its_tail": test_draining.test_reading_or_releasing_a_run_drains_it,
    "tails_have_no_bound": test_draining.test_hops_wait_while_one_of_them_is_too_old,
    "a_host_leaves_its_wal_behind": test_broken_wal.test_a_host_that_leaves_drains_and_leaves_nothing_behind,
    "a_wal_that_broke_is_written_again": (
        test_broken_wal.test_a_wal_that_broke_is_never_written_again_though_the_server_is_well
    ),
    "a_tail_goes_ahead_of_what_follows_it": (
        test_draining.test_a_through_append_that_is_refused_takes_the_tail_with_it
    ),
    "a_claim_does_not_wait_for_the_hop_under_way": partial(
        test_draining.test_a_claim_waits_for_the_hop_that_is_under_way, 1
    ),
    "what_follows_a_hole_is_moved_up": on_takeover(
        test_takeover.test_a_hole_loses_the_rest_of_its_run_and_nothing_of_others
    ),
    "what_heartbeats_said_is_not_compared": on_takeover(
        test_takeover.test_entries_that_redis_has_lost_are_counted_by_what_heartbeats_said
    ),
    "a_wal_is_opened_in_any_server": test_recognition.test_an_emptied_server_is_used_again_after_a_minute,
    "a_new_wal_is_opened_before_the_tails_are_drained": (
        test_broken_wal.test_no_new_wal_is_opened_before_all_tails_are_drained_and_the_old_one_is_marked
    ),
}
"""Bugs that few worlds catch or none, because too much must come together, and the scenes that bring it together."""
REACHED = (
    "acked by a WAL", "a hop was lost", "a lost hop was named", "a loss was told", "acked message", "acked answer",
    "acked cancel", "run_completed", "run_failed", "run_cancelled", "task_lost", "commit stale_epoch",
    "commit stale_seq", "fault kill", "fault freeze", "fault boundary", "fault stop", "fault store away",
    "fault redis power", "fault redis killed", "fault redis emptied", "fault redis away", "fault redis replaced",
    "fault redis damaged", "fault redis before", "fault redis after", "fault redis late", "fault redis slow",
    "fault redis die_before", "fault redis die_after", "boundary wal.before", "boundary wal.after",
    "boundary wal.drained", "boundary drain.before", "boundary drain.after", "boundary attach.before",
    "boundary attach.after", "boundary takeover.sealed", "boundary takeover.read", "boundary takeover.committed",
    "boundary takeover.marked",
)  # fmt: skip


@pytest.mark.parametrize("chunk", first(2, range(SEEDS // PER_CHUNK)))
def test_no_world_with_a_hot_path_breaks_a_promise(chunk: int) -> None:
    found = failures(range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK), HOT)

    assert not found, "\n" + "\n".join(map(str, found))


@pytest.mark.proof
def test_everything_that_can_happen_to_a_hot_path_has_happened() -> None:
    """A world in which nothing goes wrong proves nothing."""
    reached: Counter[str] = Counter()
    missing = set(REACHED)
    for seed in range(100_000, 102_000):
        reached.update(judge(seed, HOT).reached)
        missing -= reached.keys()
        if not missing:
            return

    pytest.fail(f"never seen: {sorted(missing)}; seen: {reached}")


def test_the_same_seed_is_the_same_world_with_a_hot_path() -> None:
    assert digest(3, HOT) == digest(3, HOT)


def caught_by(name: str) -> int | None:
    """The first seed whose world breaks a promise because of this bug, and keeps it without."""
    for seed in (CAUGHT_BY[name], *range(SEEDS_MAX)):
        with HOT_MUTANTS[name]():
            verdict = judge(seed, HOT)
        if verdict.breaches and not judge(seed, HOT).breaches:
            return seed
    return None


@pytest.mark.parametrize("name", first(4, sorted(CAUGHT_BY, key=CAUGHT_BY.__getitem__)))
def test_a_planted_bug_of_the_hot_path_is_caught(name: str) -> None:
    assert caught_by(name) is not None, f"{name}: {SEEDS_MAX} worlds saw nothing wrong"


@pytest.mark.parametrize("name", CAUGHT_BY_A_SCENE)
def test_a_planted_bug_of_the_hot_path_fails_the_test_of_its_rule(name: str) -> None:
    with HOT_MUTANTS[name](), pytest.raises((AssertionError, pytest.fail.Exception, Stuck)):
        CAUGHT_BY_A_SCENE[name]()


def test_every_bug_of_the_hot_path_is_caught_by_a_world_or_a_scene() -> None:
    assert CAUGHT_BY.keys() | CAUGHT_BY_A_SCENE.keys() == set(HOT_MUTANTS)


@pytest.mark.parametrize("name", HOT_MUTANTS)
def test_a_bug_of_the_hot_path_can_be_planted(name: str) -> None:
    """What it replaces still exists, so that a rename does not wait for the proof."""
    with HOT_MUTANTS[name]():
        pass
