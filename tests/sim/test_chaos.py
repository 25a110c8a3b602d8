"""Whatever goes wrong, nothing acknowledged is lost, nothing recorded is repeated, and every run ends after healing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.scale import first, sample, scaled
from tests.sim.code_patches import CODE_PATCHES
from tests.sim.goals import GOALS, PATCHED_GOALS
from tests.sim.graph_patches import PATCHED_GRAPHS
from tests.sim.graphs import GRAPHS
from tests.sim.hooks import HOOKS
from tests.sim.judge import CASTS, digest, failures, judge, regressions
from tests.sim.requests import REQUESTS
from tests.sim.workflows import CODE, Cast

SEEDS = {CODE: 1_000, GRAPHS: 1_000, GOALS: 1_000, REQUESTS: 500, HOOKS: 500, PATCHED_GOALS: 500, CODE_PATCHES: 500}
"""How many worlds of each kind are played here; ``make soak`` plays 100,000 of each."""
PATCHED_SEEDS = 500
PER_CHUNK = 10
WORLDS = scaled(1, 8)
ROOT = Path(__file__).parents[2]

REACHED = (
    # What users do, and what may become of it.
    "acked start", "acked start again", "acked message", "acked message again", "acked answer", "acked cancel",
    "acked pause", "acked resume", "acked result", "acked retry", "refused message", "refused answer", "refused reuse",
    "refused retry", "unknown start", "unknown message", "begun before its time",
    # What goes wrong with the store, with processes and with bodies.
    "fault before", "fault after", "fault late", "fault slow", "fault die_before", "fault die_after", "fault boundary",
    "fault kill", "fault freeze", "fault jump", "fault stop", "mood throw_before", "mood throw_after", "mood hang",
    "mood slow", "mood die_before", "mood die_after", "body of another host's run",
    # How the store judges.
    "commit accepted", "commit stale_epoch", "commit mail_waiting", "release accepted", "release mail_waiting", "claim",
    "create accepted", "mail accepted", "mail over",
    # What runs do.
    "run_started", "run_completed", "run_failed", "run_cancelled", "cancel_requested", "run_timed_out", "run_ending",
    "run_paused", "run_resumed", "run_retried", "attributes_set", "task_scheduled", "task_succeeded", "task_failed",
    "task_lost", "undo_scheduled", "timer_set", "timer_fired", "message_received", "message_awaited", "messages_taken",
    "wait_timed_out", "ask_opened", "ask_answered", "child_started", "child_ended", "value_recorded", "race_decided",
    "loop_turned", "loop_finished", "entry_cancelled",
    # Places where a crash would matter.
    "boundary commit.before", "boundary commit.after", "boundary effect.before", "boundary release.before",
    "boundary recovery.claimed", "boundary recovery.loaded", "boundary step.before", "boundary step.after",
    "boundary blob.put",
)  # fmt: skip
REACHED_BY_GRAPHS = (
    "acked start", "acked answer", "acked cancel", "acked pause", "acked resume", "acked result", "acked requeue",
    "acked discard", "fault kill", "fault freeze", "fault boundary", "fault after", "fault late", "fault stop",
    "mood throw_after", "mood hang", "mood die_before", "mood die_after", "body of another host's run",
    "commit stale_epoch", "commit mail_waiting", "release accepted", "memory compared with the log",
    "a decision waited for a blob",
    "run_completed", "run_failed", "run_cancelled", "run_timed_out", "run_paused", "run_retried", "run_ending",
    "node_routed", "node_failed", "failure_raised", "letter_discarded", "task_failed", "task_lost", "undo_scheduled",
    "timer_fired", "ask_opened", "ask_answered", "child_started", "child_ended", "wait_timed_out", "entry_cancelled",
    "boundary blob.put", "boundary recovery.claimed", "boundary recovery.loaded", "boundary release.before",
)  # fmt: skip


def shown(found: list[object]) -> str:
    return "\n" + "\n".join(str(verdict) for verdict in found)


def chunks() -> list[tuple[Cast, int]]:
    """Return the first chunk of each kind, and then all others."""
    found = [(cast, chunk) for cast, seeds in SEEDS.items() for chunk in range(seeds // PER_CHUNK)]
    return sorted(found, key=lambda each: each[1] > 0)


@pytest.mark.parametrize(("cast", "chunk"), first(5, chunks()), ids=lambda part: getattr(part, "name", None))
def test_no_world_breaks_a_promise(cast: Cast, chunk: int) -> None:
    found = failures(range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK), cast)

    assert not found, shown([*found])


@pytest.mark.parametrize("chunk", first(1, range(PATCHED_SEEDS // PER_CHUNK)))
def test_no_world_with_patched_graphs_breaks_a_promise(chunk: int) -> None:
    found = failures(range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK), PATCHED_GRAPHS)

    assert not found, shown([*found])


@pytest.mark.parametrize(("cast", "seed"), sample(12, regressions()))
def test_what_once_failed_does_not_fail_again(cast: str, seed: int) -> None:
    assert not failures([seed], CASTS[cast]), shown([*failures([seed], CASTS[cast])])


REACHED_BY_GOALS = (
    "acked start", "acked cancel", "acked pause", "acked resume", "acked result", "acked retry", "fault kill",
    "fault freeze", "fault after", "fault late", "mood throw_after", "mood hang", "mood die_after",
    "body of another host's run", "run_retried",
    "commit stale_epoch", "release accepted", "memory compared with the log",
    "run_completed", "run_failed", "run_cancelled", "run_paused", "goal_planned", "step_started", "step_completed",
    "step_failed", "step_skipped", "work_resumed", "task_failed", "task_lost", "undo_scheduled",
    "child_started", "child_ended", "boundary blob.put", "boundary recovery.claimed",
)  # fmt: skip
REACHED_BY_PATCHES = (
    "acked patch", "acked patch again", "acked undo", "acked retry", "refused patch", "refused undo", "unknown patch",
    "run_patched", "run_retried", "undo_scheduled", "perform_asked", "fault kill", "fault freeze", "fault jump",
    "fault after", "fault late", "commit stale_epoch", "run_completed", "run_failed", "run_cancelled", "run_paused",
)  # fmt: skip
REACHED_BY_REQUESTS = (
    "acked start", "acked cancel", "acked request", "acked answered", "acked answered again", "refused request",
    "refused answered", "unknown request", "unknown answered", "fault kill", "fault freeze", "fault after",
    "fault late", "fault boundary", "fault full", "commit stale_epoch", "commit mail_waiting", "mail over",
    "message_received",
    "messages_taken", "message_answered", "wait_timed_out", "run_completed", "run_failed", "run_cancelled",
    "boundary blob.put", "boundary recovery.loaded", "boundary release.before",
)  # fmt: skip
REACHED_BY_HOOKS = (
    "acked start", "acked cancel", "acked requeue", "fault kill", "fault freeze", "fault after", "fault late",
    "fault boundary", "mood throw_after", "mood die_before", "mood die_after", "body of another host's run",
    "commit stale_epoch", "release accepted", "run_completed", "run_failed", "run_cancelled", "task_failed",
    "failure_raised", "ask_opened", "ask_reminded", "child_started", "boundary recovery.claimed",
)  # fmt: skip


@pytest.mark.parametrize(
    ("cast", "wanted"),
    first(
        1,
        [
            (REQUESTS, REACHED_BY_REQUESTS),
            (HOOKS, REACHED_BY_HOOKS),
            (CODE, REACHED),
            (GRAPHS, REACHED_BY_GRAPHS),
            (GOALS, REACHED_BY_GOALS),
            (PATCHED_GRAPHS, REACHED_BY_PATCHES),
        ],
    ),
    ids=lambda value: value.name if isinstance(value, Cast) else "",
)
def test_everything_that_can_happen_has_happened(cast: Cast, wanted: tuple[str, ...]) -> None:
    """A world in which nothing goes wrong proves nothing."""
    reached: Counter[str] = Counter()
    missing = set(wanted)
    for seed in range(100_000, 100_500):
        reached.update(judge(seed, cast).reached)
        missing -= reached.keys()
        if not missing:
            return

    pytest.fail(f"never seen: {sorted(missing)}; seen: {reached}")


def digests(seeds: range) -> list[str]:
    return [digest(seed, cast) for cast in (CODE, GRAPHS) for seed in seeds]


@pytest.mark.parametrize("hash_seed", first(1, ["1", "2"]))
def test_the_same_seed_is_the_same_world_whatever_the_hash_seed(hash_seed: str) -> None:
    program = "from tests.sim.test_chaos import WORLDS, digests; print(*digests(range(WORLDS)))"
    told = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": hash_seed}, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip

    assert told.split() == digests(range(WORLDS))
    assert told.split() == digests(range(WORLDS)), "the second time in one process"
