"""Whether what is open in a run has a place in the new graph, and what an open fan-out keeps: one rule at a time."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from tests.graph.patch_table import PatchTable
from tests.graph.test_patch_rules import STEP, codes, ends_clean, fork_and_join, many, patched, run_of
from weft.core import commands as c
from weft.core.graph.patch import check_here


def replaced(path: str, value: Any) -> list[dict[str, Any]]:
    return [{"op": "replace", "path": path, "value": value}]


def arms(**more: Any) -> PatchTable:
    """Return a run with two branches, b and c, and a node that needs both."""
    run = run_of(
        a={**STEP, "next": [{"to": ["b", "c"]}]},
        b={**STEP, "next": "j"},
        c={**STEP, "next": "j"},
        j={**STEP, "join": "all", **more},
    )
    run.finish("a", None, {})
    return run


def waiting_at_j() -> PatchTable:
    run = fork_and_join()
    for node in "ac":
        run.finish(node, None, {})
    return run


def test_a_token_that_waits_needs_an_edge_join_in_its_scope() -> None:
    with_fan_in = replaced("/nodes/j/join", "all")
    assert "patch.join_in_use" in codes(waiting_at_j(), ops=with_fan_in)
    behind_a_fan_out = [
        {"op": "add", "path": "/nodes/x", "value": {**STEP, "next": [{"to": "j", "copies": 2}]}},
        *replaced("/nodes/b/next", "x"),
        *replaced("/nodes/c/next", "x"),
    ]
    assert codes(waiting_at_j(), ops=behind_a_fan_out) == ["patch.join_in_use"]


def test_a_fan_out_that_is_open_needs_its_opener_and_its_scope() -> None:
    without_opener = [
        {"op": "remove", "path": "/nodes/a"},
        {"op": "add", "path": "/nodes/x", "value": {**STEP, "next": [{"to": ["b", "c"]}]}},
    ]
    assert "patch.frame_open" in codes(arms(), ops=without_opener)
    in_a_fan_out = [
        {"op": "add", "path": "/nodes/x", "value": {**STEP, "next": [{"to": "a", "copies": 2}]}},
        {"op": "add", "path": "/nodes/j/next", "value": "end"},
        {"op": "add", "path": "/nodes/end", "value": {**STEP, "join": "all", "of": "x"}},
    ]
    assert "patch.frame_open" in codes(arms(of="a"), ops=in_a_fan_out)


@pytest.mark.parametrize("arrived", [0, 1])
def test_a_fan_out_that_is_open_needs_its_fan_in(arrived: int) -> None:
    run = many()
    for branch in range(arrived):
        run.finish("b", branch, {})
    ops = [{"op": "remove", "path": "/nodes/b/next"}, {"op": "remove", "path": "/nodes/j"}]
    assert codes(run, ops=ops) == ["patch.frame_open"]


def test_an_unsettled_branch_needs_its_edge_and_a_settled_one_does_not() -> None:
    run = run_of(
        a={**STEP, "next": [{"to": ["b", "c", "d"]}]},
        b={**STEP, "next": "j"},
        c={**STEP, "next": "j"},
        d={**STEP, "next": "j"},
        j={**STEP, "join": "all"},
    )
    run.finish("a", None, {})
    two = [*replaced("/nodes/a/next", [{"to": ["c", "d"]}]), {"op": "remove", "path": "/nodes/b"}]
    assert "patch.frame_open" in codes(run, ops=two)
    run.finish("b", None, {})
    patched(run, ops=two)
    assert all(ended.state.executed["j"] == 1 for ended in ends_clean(run))


def test_a_fan_in_that_has_fired_keeps_what_it_fired_under() -> None:
    merge = {"how": "merge_object", "into": "state.results"}
    run = arms(join="any", late="merge", merge=merge)
    run.finish("b", None, {"b": {"*": {"output": {"b": 1}}}})
    assert run.state.data["results"] == {"b": 1}
    patched(run, ops=[*replaced("/nodes/j/late", "cancel"), *replaced("/nodes/j/merge/into", "state.others")])
    run.finish("c", None, {"c": {"*": {"output": {"c": 2}}}})
    assert run.state.data == {"results": {"b": 1, "c": 2}}
    ends_clean(run)


def test_a_new_edge_adds_no_branch_to_a_fan_out_that_is_open() -> None:
    run = arms()
    ops = [
        {"op": "add", "path": "/nodes/d", "value": {**STEP, "next": "j"}},
        *replaced("/nodes/a/next", [{"to": ["b", "c", "d"]}]),
    ]
    patched(run, ops=ops)
    (frame,) = run.state.frames.values()
    assert frame.total == 2
    assert all(ended.state.executed == {"a": 1, "b": 1, "c": 1, "j": 1} for ended in ends_clean(run))


def test_a_need_that_can_no_longer_be_met_would_end_the_run() -> None:
    assert codes(many(), ops=replaced("/nodes/j/join", {"at_least": 4})) == ["patch.would_end"]
    patched(many(), ops=replaced("/nodes/j/join", {"at_least": 3}))


def test_more_positions_than_can_be_looked_at_need_leave_and_that_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_here, "WORK_MAX", 1)
    ops = [{"op": "add", "path": "/nodes/j/timeout", "value": "1m"}]
    run = arms()
    assert codes(run, ops=ops) == ["patch.unchecked"]
    patched(run, ops=ops, unchecked=True)
    assert run.past[-1].event.unchecked  # type: ignore[union-attr]


def test_an_undo_that_follows_at_once_needs_no_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    ops = [{"op": "add", "path": "/nodes/j/timeout", "value": "1m"}]
    straight, later = patched(arms(), ops=ops), patched(arms(), ops=ops)
    moved = arms()
    moved.tell(c.PauseRun())
    patched(moved, ops=ops, move=[{"node": "b", "to": "b"}])
    later.finish("b", None, {})
    monkeypatch.setattr(check_here, "WORK_MAX", 1)
    straight.tell(straight.undoing())
    assert straight.past[-1].event.unchecked  # type: ignore[union-attr]
    for run in (later, moved):
        (refusal,) = run.judge(run.undoing()).refusals
        assert refusal.code == "patch.unchecked"
        assert refusal.hint == "Patch the run to version 1 instead, with unchecked: true."


def test_a_plan_says_what_begins_and_what_is_cancelled_by_another_width_or_need() -> None:
    run = many(width=1)
    command = run.prepare({"ops": replaced("/nodes/a/next/0/width", 2)})
    assert [(entry.what, entry.place) for entry in run.judge(command).entries] == [("begins", "b")]
    run.tell(command)
    run.finish("b", 1, {})
    command = run.prepare({"ops": replaced("/nodes/j/join", "any")})
    does = [("fires", "j"), ("cancels", "b"), ("cancels", "b")]
    assert [(entry.what, entry.place) for entry in run.judge(command).entries] == does
    run.tell(command)
    ends_clean(run)


def test_a_plan_says_which_fan_in_a_dropped_token_completes() -> None:
    run = many()
    for branch in (1, 2):
        run.finish("b", branch, {})
    (left,) = [token for token in run.state.tokens.values() if token.mode == "working"]
    command = run.prepare({"ops": [], "drop": [{"token": left.id}], "reason": "r"})
    does = [(entry.what, entry.place) for entry in run.judge(command).entries]
    assert does == [("drops", "b"), ("fires", "j")]


def test_all_branches_begin_when_the_width_is_taken_away() -> None:
    run = many(width=1)
    patched(run, ops=[{"op": "remove", "path": "/nodes/a/next/0/width"}])
    assert [token.mode for token in run.state.tokens.values()] == ["working"] * 3
    ends_clean(run)


def test_a_patch_writes_into_the_state() -> None:
    run = arms()
    patched(run, ops=[], set={"state.limit": 5})
    assert run.state.data["limit"] == 5
    ends_clean(run)


BOOM: dict[str, Any] = {"*": {"error": "boom"}}


def failed_at_b_and_c() -> PatchTable:
    """Return a failed run. Of its branches one failed at b, the others behind it at c."""
    run = run_of(
        {"items": [3, 1, 2]},
        a={**STEP, "next": [{"to": "b", "for_each": "${input.items}"}]},
        b={**STEP, "next": "c"},
        c={**STEP, "next": "j"},
        j={**STEP, "join": "any"},
    )
    run.finish("a", None, {})
    run.finish("b", 0, {"b": BOOM})
    for node, branch in (("b", 1), ("b", 2), ("c", 1), ("c", 2)):
        run.finish(node, branch, {"c": BOOM})
    assert run.state.status == "failed"
    return run


def test_a_branch_that_failed_at_a_node_that_is_gone_is_not_repeated() -> None:
    without_b = [*replaced("/nodes/a/next/0/to", "c"), {"op": "remove", "path": "/nodes/b"}]
    run = patched(failed_at_b_and_c(), ops=without_b)
    (letter,) = [token for token, letter in run.state.letters.items() if letter.node == "b"]
    with pytest.raises(weft.Refused, match="was dropped"):
        run.tell(c.RequeueLetter(letter))

    again = run.copied()
    again.tell(c.RetryRun())
    assert sorted(token.node for token in again.state.tokens.values()) == ["c", "c"]
    assert again.refolded().snapshot() == again.machine.snapshot()
    assert all(ended.state.executed["j"] == 1 for ended in ends_clean(again))
    assert list(again.state.letters) == [letter], "it stays"

    run.tell(run.undoing())
    run.tell(c.RetryRun())
    assert sorted(token.node for token in run.state.tokens.values()) == ["b", "c", "c"]
    ends_clean(run)


def test_a_branch_that_failed_is_repeated_under_the_new_name_of_its_node() -> None:
    renamed = [
        {"op": "move", "from": "/nodes/b", "path": "/nodes/x"},
        *replaced("/nodes/a/next/0/to", "x"),
    ]
    run = patched(failed_at_b_and_c(), ops=renamed, rename={"b": "x"})
    assert sorted(letter.node for letter in run.state.letters.values()) == ["c", "c", "x"]
    run.tell(c.RetryRun())
    assert sorted(token.node for token in run.state.tokens.values()) == ["c", "c", "x"]
    ends_clean(run)
