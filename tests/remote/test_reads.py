"""Every command that reads prints the same beside a store and through a server."""

from __future__ import annotations

import threading

import pytest

from tests.remote.conftest import BothWays

READS = [
    ["list"],
    ["list", "--all", "--status", "failed"],
    ["list", "--where", "customer=o-1"],
    ["list", "--limit", "2"],
    ["list", "--where", "parent=family-1"],
    ["show", "order-1"],
    ["show", "order-1", "--tree"],
    ["show", "doomed-1"],
    ["show", "family-1", "--tree"],
    ["show", "large-1"],
    ["show", "packing-1"],
    ["show", "p-2"],
    ["show", "packing-1", "--versions"],
    ["explain", "p-1"],
    ["explain", "calm-1"],
    ["explain", "p-2"],
    ["explain", "doomed-1"],
    ["events", "order-1"],
    ["events", "packing-1", "--after", "2"],
    ["logs", "order-1"],
    ["logs", "p-1"],
    ["inbox"],
    ["inbox", "p-2"],
    ["dlq"],
    ["queue"],
    ["hosts"],
    ["workflows"],
    ["workflows", "show", "packing"],
    ["schedule", "list"],
    ["steps"],
    ["keys"],
    ["keep", "order-1"],
    ["diff", "order-1", "order-2"],
    ["gc", "--older", "1d", "--dry-run"],
]
PLAIN_READS = [
    ["show", "packing-1", "--svg"],
    ["show", "packing-1", "--mermaid"],
    ["watch", "order-1"],
    ["watch", "doomed-1"],
    ["export", "order-1", "--json"],
    ["events", "order-1", "--changes"],
    ["cancel", "--workflow", "patient", "--dry-run"],
    ["show", "nothing-here"],
    ["show", "order"],
    ["explain", "nothing-here"],
    ["inbox", "order-1"],
    ["list", "--status", "unheard"],
    ["keys", "revoke", "nobody"],
]


@pytest.mark.parametrize("words", [*READS, *PLAIN_READS], ids=" ".join)
def test_a_read_prints_the_same_in_both_ways(both: BothWays, words: list[str]) -> None:
    here, there = both.here(*words), both.there(*words)
    assert both.plain(there) == both.plain(here)


@pytest.mark.parametrize("words", READS, ids=" ".join)
def test_a_read_for_programs_is_the_same_in_both_ways(both: BothWays, words: list[str]) -> None:
    here, there = both.here(*words, "--json"), both.there(*words, "--json")
    assert both.plain(there) == both.plain(here)
    assert here.code in (0, 1)


def test_the_logs_of_a_run_are_there(both: BothWays) -> None:
    assert "charging o-1" in both.there("logs", "order-1").out


def test_following_a_run_ends_with_it(both: BothWays) -> None:
    both.server.start("patient", "followed")
    cancel = threading.Thread(target=lambda: both.server.post("/api/v1/runs/followed/cancel", {}))
    cancel.start()
    said = both.there("events", "followed", "--follow", "--json")
    cancel.join()
    assert said.code == 0, said.err
    assert '"kind":"run_cancelled"' in said.out.splitlines()[-1]


def test_the_doctor_looks_at_a_server(both: BothWays) -> None:
    said = both.there("doctor")
    assert said.code == 0, said.out
    assert f"{both.server.url} answers" in said.out
    assert "Weft" in said.out
