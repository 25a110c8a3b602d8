"""What moves, drops, starts and restarts do to the tokens of a patched run: docs/changing-runs.md."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.graph.patch_table import PatchTable, explore
from tests.graph.test_patch_rules import STEP, codes, ends_clean, fork_and_join, loop_and_join, many, patched, run_of
from weft.core import commands as c
from weft.core.graph.tokens import Token


def tokens_at(run: PatchTable, node: str, mode: str = "") -> list[Token]:
    return [token for token in run.state.tokens.values() if token.node == node and mode in ("", token.mode)]


def inputs_at(run: PatchTable, node: str) -> list[Any]:
    return [msgspec.json.decode(token.value) for token in tokens_at(run, node)]


def three_in_a_row() -> PatchTable:
    """Return a run at c, with other values that came to a, b and c."""
    run = run_of("start", a={**STEP, "next": "b"}, b={**STEP, "next": "c"}, c=STEP)
    for node in "ab":
        run.finish(node, None, {node: {"*": {"output": f"from {node}"}}})
    return run


@pytest.mark.parametrize(
    ("move", "comes"),
    [
        ({"to": "b"}, "from a"),
        ({"to": "b", "input": "given"}, "given"),
        ({"to": "x"}, "from b"),
    ],
)
def test_what_comes_to_a_moved_token(move: dict[str, Any], comes: str) -> None:
    run = three_in_a_row()
    ops = [{"op": "add", "path": "/nodes/x", "value": STEP}, {"op": "add", "path": "/nodes/c/next", "value": "x"}]
    patched(run, ops=ops, move=[{"node": "c", **move}])
    assert inputs_at(run, move["to"]) == [comes]
    ends_clean(run)


def test_a_restarted_token_keeps_what_came_to_it() -> None:
    run = loop_and_join(a=["l", "c"])
    for node, output in (("a", 1), ("l", 2), ("m", 3)):
        run.finish(node, None, {node: {"*": {"output": output}}})
    assert inputs_at(run, "l") == [3], "the second round"
    before = tokens_at(run, "l")[0]
    patched(run, ops=[], restart=["l"])
    (after,) = tokens_at(run, "l")
    assert (after.value, after.path) == (before.value, before.path)
    assert after.id != before.id
    ends_clean(run)

    run = three_in_a_row()
    patched(run, ops=[], move=[{"node": "c", "to": "b", "input": "given"}])
    patched(run, ops=[], restart=["b"])
    assert inputs_at(run, "b") == ["given"]


def test_a_moved_token_may_leave_a_loop_and_enters_one_at_its_header() -> None:
    run = loop_and_join(a=["l", "c"])
    run.finish("a", None, {})
    inside = tokens_at(run, "l")[0].path
    patched(run, ops=[], move=[{"node": "l", "to": "j", "via": "m"}])
    assert tokens_at(run, "j")[0].path == []
    assert not run.state.loops
    ends_clean(run)

    run = loop_and_join(a=["l", "c"])
    assert codes(run, ops=[], move=[{"node": "a", "to": "m"}]) == ["patch.scope_changed"]
    patched(run, ops=[], move=[{"node": "a", "to": "l"}])
    assert [seg.kind for seg in tokens_at(run, "l")[0].path] == [seg.kind for seg in inside] == ["l"]
    (ended,) = ends_clean(run)
    assert ended.state.executed == {"l": 2, "m": 2, "j": 1}


def test_a_token_that_goes_to_the_header_of_its_loop_stays_in_it() -> None:
    run = loop_and_join(a=["l", "c"])
    for node in "al":
        run.finish(node, None, {})
    inside = tokens_at(run, "m")[0].path
    patched(run, ops=[], move=[{"node": "m", "to": "l"}])
    assert tokens_at(run, "l")[0].path == inside
    ends_clean(run)


def test_a_restarted_token_leaves_a_loop_that_is_gone() -> None:
    run = loop_and_join(a=["l", "c"])
    for node in "al":
        run.finish(node, None, {})
    straight = [{"op": "remove", "path": "/nodes/m/repeat"}]
    assert codes(run, ops=straight) == ["patch.scope_changed", "patch.loop_open"]
    patched(run, ops=straight, restart=["m"])
    assert tokens_at(run, "m")[0].path == []
    assert not run.state.loops
    ends_clean(run)


def test_a_token_is_not_restarted_inside_another_loop() -> None:
    run = loop_and_join(a=["l", "c"])
    for node in "al":
        run.finish(node, None, {})
    around = [{"op": "replace", "path": "/nodes/m/repeat/back_to", "value": "k"},
              {"op": "add", "path": "/nodes/k", "value": {**STEP, "next": "l"}},
              {"op": "replace", "path": "/nodes/a/next/0/to", "value": "k"}]  # fmt: skip
    refusals = run.judge(run.prepare({"reason": "r", "ops": around, "restart": ["m"]})).refusals
    assert [one.path for one in refusals if one.code == "patch.scope_changed"] == ["restart[0]", ""]


@pytest.mark.parametrize(("make", "nodes"), [(fork_and_join, "abc"), (many, "bbb")])
def test_the_work_of_a_join_is_begun_again(make: Any, nodes: str) -> None:
    run = make()
    for node in nodes:
        run.finish(node, None, {})
    (before,) = tokens_at(run, "j", "working")
    patched(run, ops=[], restart=["j"])
    (after,) = tokens_at(run, "j", "working")
    assert (after.path, after.value) == (before.path, before.value)
    assert after.id != before.id
    ends_clean(run)


def test_a_token_never_leaves_its_branch() -> None:
    run = many()
    assert codes(run, ops=[], move=[{"node": "b", "branch": 1, "to": "a"}]) == ["patch.scope_changed"]


def test_a_token_that_has_arrived_stays() -> None:
    run = many()
    run.finish("b", 1, {})
    (parked,) = tokens_at(run, "j", "parked")
    for told in ({"move": [{"token": parked.id, "to": "b"}]}, {"drop": [{"token": parked.id}]}):
        assert codes(run, ops=[], **told) == ["patch.move_arrived"]


def test_an_instruction_names_one_token_and_one_instruction_each() -> None:
    run = many()
    assert codes(run, ops=[], drop=[{"node": "b"}]) == ["patch.unknown_token"]
    twice = {"node": "b", "branch": 0}
    assert codes(run, ops=[], drop=[twice], move=[{**twice, "to": "b"}]) == ["patch.unknown_token"]
    patched(run, ops=[], drop=[{"node": "b", "branch": 0}])
    ends_clean(run)


def test_two_tokens_do_not_come_over_one_edge() -> None:
    both = [{"node": "b", "to": "j", "via": "c"}, {"node": "c", "to": "j", "via": "c"}]
    run = fork_and_join()
    run.finish("a", None, {})
    assert codes(run, ops=[], move=both) == ["patch.edge_taken"]


def test_a_branch_arrives_once_over_an_edge() -> None:
    run = many()
    (other,) = [token for token in tokens_at(run, "b") if token.path[-1].n == 1]
    patched(run, ops=[], start=[{"node": "b", "beside": other.id}])
    run.finish("b", 1, {})
    (left,) = [token for token in tokens_at(run, "b") if token.path[-1].n == 1]
    assert codes(run, ops=[], move=[{"token": left.id, "to": "j", "via": "b"}]) == ["patch.edge_taken"]


def test_a_join_fires_when_all_instructions_are_carried_out() -> None:
    run = fork_and_join()
    run.finish("a", None, {})
    way = [{"op": "add", "path": "/nodes/d", "value": {**STEP, "next": "j"}}]
    both = [{"node": "b", "to": "j", "via": "b"}, {"node": "c", "to": "j", "via": "c"}]
    patched(run, ops=way, move=both)
    (ended,) = ends_clean(run)
    assert ended.state.executed == {"a": 1, "j": 1}


def test_a_token_is_started_in_the_scope_of_another_with_an_input() -> None:
    run = many()
    (other,) = [token for token in tokens_at(run, "b") if token.path[-1].n == 1]
    patched(run, ops=[], start=[{"node": "b", "beside": other.id, "input": "more"}])
    assert [token.path for token in tokens_at(run, "b")].count(other.path) == 2
    assert "more" in inputs_at(run, "b")
    ends_clean(run)
    assert codes(many(), ops=[], start=[{"node": "b"}]) == ["patch.scope_changed"]


def test_a_branch_that_waits_for_room_is_told_too() -> None:
    run = many(width=1)
    (first, *_) = tokens_at(run, "b", "queued")
    patched(run, ops=[], drop=[{"token": first.id}])
    assert all(first.id not in queue for frame in run.state.frames.values() for queue in frame.queues.values())
    ends_clean(run)

    run = many(width=1)
    (first, *_) = tokens_at(run, "b", "queued")
    patched(run, ops=[], restart=[{"token": first.id}])
    ends_clean(run)


def test_a_dropped_token_leaves_the_join_at_which_it_waits() -> None:
    run = fork_and_join()
    for node in "ac":
        run.finish(node, None, {})
    (waiting,) = tokens_at(run, "j", "joining")
    patched(run, ops=[], drop=[{"node": "j"}])
    assert all(waiting.id not in items for slot in run.state.slots.values() for items in slot.items.values())
    (ended,) = ends_clean(run)
    assert ended.state.executed == {"a": 1, "c": 1, "b": 1, "j": 1}


def keys_at(run: PatchTable, node: str) -> list[str]:
    return [effect.key for number, effect in run.open.items() if run.place(number)[0] == node]


def test_repeated_work_has_the_key_that_it_had_and_other_work_a_new_one() -> None:
    run = three_in_a_row()
    (first,) = keys_at(run, "c")
    patched(run, ops=[], restart=["c"])
    assert keys_at(run, "c") == [first]
    patched(run, ops=[], move=[{"node": "c", "to": "c", "input": "other"}])
    (other,) = keys_at(run, "c")
    assert other not in ("", first)
    assert other.startswith(first.partition("~")[0])

    run = run_of("start", a={**STEP, "next": "b"}, b=STEP)
    (of_a,) = keys_at(run, "a")
    run.finish("a", None, {})
    patched(run, ops=[], move=[{"node": "b", "to": "a"}])
    assert keys_at(run, "a") == [of_a]


def test_a_failed_run_is_only_mended_and_goes_on_when_it_is_retried() -> None:
    run = fork_and_join()
    run.finish("a", None, {})
    run.finish("c", None, {})
    run.finish("b", None, {"b": {"*": {"error": "boom"}}})
    assert run.state.status == "failed"
    cut = [{"op": "replace", "path": "/nodes/b/next", "value": []}]
    patched(run, ops=cut)
    assert (run.state.status, [token.mode for token in tokens_at(run, "j")]) == ("failed", ["joining"])
    run.tell(c.RetryRun())
    assert tokens_at(run, "j", "working")
    assert [ended.state.executed["j"] for ended in explore(run, {})] == [1, 1]


def test_an_undo_that_follows_at_once_is_not_asked_about_what_has_run() -> None:
    def cut() -> PatchTable:
        run = run_of(
            a={**STEP, "fan_out": "all", "next": [{"to": "b"}, {"to": "c"}, {"to": "e"}]},
            b={**STEP, "next": "d"},
            c={**STEP, "next": "d"},
            d=STEP,
            e=STEP,
        )
        for node in "acd":
            run.finish(node, None, {})
        return patched(run, ops=[{"op": "replace", "path": "/nodes/b/next", "value": []}])

    run = cut()
    assert run.judge(run.undoing()).ok
    run = cut()
    run.finish("e", None, {})
    assert [one.code for one in run.judge(run.undoing()).refusals] == ["patch.revives"]
