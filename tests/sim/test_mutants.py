"""The bar is real: each of these bugs, planted on purpose, is caught by the simulated worlds."""

from __future__ import annotations

import pytest

from tests.scale import first
from tests.sim.graph_mutants import MUTANTS
from tests.sim.judge import failures, judge
from tests.sim.mutants import PLAYED_BY, reports_come_twice
from tests.sim.workflows import CODE

SEEDS_MAX = 2_000
CAUGHT_BY = {
    "blind_retry_after_an_unknown_commit": 3,
    "missing_epoch_check_in_the_store": 20,
    "terminal_append_without_the_mail_count": 1,
    "effect_before_commit": 0,
    "answer_before_commit": 54,
    "unanswered_commands_are_dropped_at_a_reload": 1,
    "claim_without_a_new_epoch": 0,
    "recovery_without_task_lost": 34,
    "work_in_flight_is_handed_out_again": 4,
    "a_result_is_forgotten_before_it_is_committed": 4,
    "undo_oldest_first": 4,
    "a_cancelled_task_is_not_waited_for": 89,
    "mail_by_high_water_mark": 1,
    "mail_is_taken_whenever_it_is_read": 3_121,
    "a_key_that_came_by_mail_is_forgotten": 1,
    "a_second_success_is_accepted": 0,
    "an_answer_is_not_found_by_its_request": 0,
    "timer_before_the_inbox": 1,
    "an_early_timer_is_believed": 182,
    "rest_without_a_time_to_wake": 11,
    "set_order_in_the_loop_of_the_code": 6,
    "facts_in_the_order_of_entries": 4,
    "a_run_completes_before_its_losers_are_undone": 5,
    "a_frame_is_dropped_before_anybody_takes_the_failure": 46,
    "a_dropped_branch_is_not_undone": 19,
    "a_graph_completes_before_its_losers_are_undone": 19,
    "a_join_counts_a_branch_twice": 0,
    "a_skip_is_lost": 23,
    "a_branch_that_waited_for_room_is_never_started": 33,
    "a_late_branch_is_not_merged": 5,
    "effects_of_a_dropped_token_are_performed": 26,
    "a_child_of_a_dropped_token_is_not_told": 4,
    "a_dropped_task_in_its_second_attempt_is_not_waited_for": 153,
    "names_of_tokens_follow_from_nothing": 0,
    "a_retry_loses_tokens": 7,
    "a_blob_that_is_not_durable_yet_is_looked_for_in_the_store": 2_528,
    "a_decision_that_lacks_a_blob_is_not_made_again": 50,
    "a_patch_is_applied_though_the_run_has_gone_on": 26,
    "a_host_keeps_a_run_whose_version_it_does_not_have": 66,
}
"""A seed that caught each one; tried first, so that proving it again costs one world and not hundreds."""


def caught_by(name: str) -> int | None:
    """The first seed whose world breaks a promise because of this bug, and keeps it without."""
    cast = PLAYED_BY.get(name, CODE)
    for seed in (CAUGHT_BY.get(name, 0), *range(SEEDS_MAX)):
        with MUTANTS[name]():
            verdict = judge(seed, cast)
        if verdict.breaches and not judge(seed, cast).breaches:
            return verdict.seed
    return None


@pytest.mark.parametrize("name", first(3, sorted(MUTANTS, key=lambda name: CAUGHT_BY.get(name, SEEDS_MAX))))
def test_a_planted_bug_is_caught(name: str) -> None:
    seed = caught_by(name)

    assert seed is not None, f"{name}: {SEEDS_MAX} worlds saw nothing wrong"
    print(f"{name} is caught by seed {seed}")


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_planted_bug_can_be_planted(name: str) -> None:
    """What it replaces still exists, so that a rename does not wait for the proof."""
    with MUTANTS[name]():
        pass


def test_a_result_that_is_reported_twice_changes_nothing() -> None:
    """The fence of results: the first success is recorded, a second one is not."""
    with reports_come_twice():
        assert [str(verdict) for verdict in failures(range(10))] == []
