"""The rules of graph patches that no golden case is about, one by one: docs/internals/patches.md."""

from __future__ import annotations

from typing import Any

from tests.graph.patch_table import FIRST, PatchTable, explore
from weft.core.graph.patch.reach import Begin, ScopeReach
from weft.core.graph.patch.static_scopes import StaticScopes

STEP: dict[str, Any] = {"step": "s"}


def run_of(given: Any = None, **nodes: Any) -> PatchTable:
    return PatchTable({"name": "g", "nodes": nodes}, given or {})


def codes(run: PatchTable, **patch: Any) -> list[str]:
    """Why a patch is refused."""
    return [one.code for one in run.judge(run.prepare({"reason": "r", **patch})).refusals]


def patched(run: PatchTable, **patch: Any) -> PatchTable:
    command = run.prepare({"reason": "r", **patch})
    plan = run.judge(command)
    assert plan.ok, plan.refusals
    run.tell(command)
    assert run.refolded().snapshot() == run.machine.snapshot()
    return run


def ends_clean(run: PatchTable) -> list[PatchTable]:
    """Every order of what is left ends, and leaves nothing behind."""
    ended = explore(run, {})
    for one in ended:
        left = {name: getattr(one.state, name) for name in ("tokens", "frames", "loops", "slots")}
        assert one.state.status == "completed"
        assert not any(left.values()), left
    return ended


def fork_and_join(**more: Any) -> PatchTable:
    return run_of(
        a={**STEP, "fan_out": "all", "next": [{"to": "b"}, {"to": "c"}]},
        b={**STEP, "next": "j"},
        c={**STEP, "next": "j"},
        j={**STEP, "join": "edges"},
        **more,
    )


def between(one: str, other: str) -> list[dict[str, Any]]:
    return [
        {"op": "add", "path": "/nodes/x", "value": {**STEP, "next": other}},
        {"op": "replace", "path": f"/nodes/{one}/next", "value": "x"},
    ]


def test_a_token_that_waits_takes_the_place_of_the_edge_that_replaced_its_own() -> None:
    run = fork_and_join()
    run.finish("a", None, {})
    run.finish("c", None, {})
    patched(run, ops=between("c", "j"))
    (ended,) = ends_clean(run.copied())
    assert ended.state.executed == {"a": 1, "c": 1, "b": 1, "j": 1}, "x lies behind"

    undo = run.undoing()
    assert run.judge(undo).ok, run.judge(undo).refusals
    run.tell(undo)
    assert [token.edge for token in run.state.tokens.values() if token.mode == "joining"] == ["c>j"]
    (ended,) = ends_clean(run)
    assert ended.state.executed == {"a": 1, "c": 1, "b": 1, "j": 1}


def test_a_token_that_waits_takes_only_a_new_edge_on_its_way_and_only_if_there_is_one() -> None:
    def waiting(**nodes: Any) -> PatchTable:
        run = fork_and_join(**nodes)
        for node in "ac":
            run.finish(node, None, {})
        return run

    def led(to: Any, **nodes: Any) -> list[dict[str, Any]]:
        added = [{"op": "add", "path": f"/nodes/{name}", "value": {**STEP, "next": "j"}} for name in nodes]
        return [*added, {"op": "replace", "path": "/nodes/c/next", "value": to}]

    assert codes(waiting(), ops=led("x", x=1)) == []
    both_ways = led([{"to": ["x", "y"]}], x=1, y=1)
    assert codes(waiting(), ops=both_ways) == ["patch.waiting_token"], "two edges could be meant"
    assert codes(waiting(), ops=led([], x=1)) == ["patch.waiting_token"], "x lies on another way"
    from_b = [*led([]), {"op": "add", "path": "/nodes/x", "value": {**STEP, "next": "j"}}]
    from_b.append({"op": "replace", "path": "/nodes/b/next", "value": [{"to": ["x", "j"]}]})
    from_b.append({"op": "add", "path": "/nodes/c/next", "value": "x"})
    assert codes(waiting(), ops=from_b) == ["patch.waiting_token"], "something can still come over the edge from x"


def test_an_undo_gives_renamed_nodes_their_names_back() -> None:
    run = fork_and_join()
    run.finish("a", None, {})
    renamed = [
        {"op": "move", "from": "/nodes/c", "path": "/nodes/new"},
        {"op": "replace", "path": "/nodes/a/next", "value": [{"to": "b"}, {"to": "new"}]},
    ]
    patched(run, ops=renamed, rename={"c": "new"})
    for redo, nodes in ((False, ["b", "c"]), (True, ["b", "new"])):
        undo = run.undoing(redo=redo)
        assert run.judge(undo).ok, run.judge(undo).refusals
        run.tell(undo)
        assert sorted(token.node for token in run.state.tokens.values()) == nodes
        assert run.refolded().snapshot() == run.machine.snapshot()
    ends_clean(run)


def test_skips_at_a_join_to_which_nothing_comes_are_forgotten() -> None:
    run = run_of(
        {"n": 1},
        a={**STEP, "fan_out": "all", "next": [{"to": "b"}, {"to": "c", "when": "input.n > 1"}]},
        b={**STEP, "next": "j"},
        c={**STEP, "next": "j"},
        j={**STEP, "join": "edges"},
    )
    run.finish("a", None, {})
    assert run.state.slots, "c was skipped, and so was its edge"
    patched(run, ops=[{"op": "replace", "path": "/nodes/b/next", "value": []}])
    assert not run.state.slots
    ends_clean(run)


def test_a_node_that_has_run_is_not_skipped_afterwards() -> None:
    run = run_of(
        {"n": 1},
        a={**STEP, "fan_out": "all", "next": [{"to": "n"}, {"to": "d"}, {"to": "b"}]},
        n={**STEP, "next": "j"},
        d={**STEP, "next": "j"},
        j={**STEP, "join": "edges", "next": []},
        b={**STEP, "next": "m"},
        m=STEP,
    )
    for node in "andj":
        run.finish(node, None, {})
    way = [{"to": "n", "when": "input.n > 1"}, {"to": "m"}]
    patched(run, ops=[{"op": "replace", "path": "/nodes/b/next", "value": way}], again=["n", "j"])
    assert run.state.slots["n|"].ran
    (ended,) = explore(run, {})
    assert ended.state.executed == {"a": 1, "n": 1, "d": 1, "j": 1, "b": 1, "m": 1}


def test_a_loop_that_is_running_stays() -> None:
    run = run_of(a={**STEP, "repeat": {"while": "true", "at_most": 3}})
    ops = [{"op": "remove", "path": "/nodes/a/repeat"}]
    assert "patch.loop_open" in codes(run, ops=ops)


def test_a_join_where_a_token_waits_stays_one() -> None:
    run = fork_and_join()
    run.finish("a", None, {})
    run.finish("c", None, {})
    ops = [{"op": "remove", "path": "/nodes/j/join"}]
    assert "patch.join_in_use" in codes(run, ops=ops)


def test_the_last_token_is_not_dropped() -> None:
    run = run_of(a=STEP)
    assert codes(run, ops=[], drop=[{"node": "a"}]) == ["patch.would_end"]


def test_no_token_is_started_in_a_branch_that_has_arrived() -> None:
    run = run_of(
        a={**STEP, "next": [{"to": ["b", "c"]}]},
        b={**STEP, "next": "j"},
        c={**STEP, "next": "j"},
        j={**STEP, "join": "all"},
    )
    run.finish("a", None, {})
    run.finish("c", None, {})
    (parked,) = [token.id for token in run.state.tokens.values() if token.mode == "parked"]
    (working,) = [token.id for token in run.state.tokens.values() if token.mode == "working"]
    assert codes(run, ops=[], start=[{"node": "c", "beside": parked}]) == ["patch.move_arrived"]
    assert "patch.move_arrived" not in codes(run, ops=[], start=[{"node": "b", "beside": working}])


LATER = [{"op": "add", "path": "/nodes/j/timeout", "value": "1m"}]
"""A patch of what lies ahead, after which the joins of the run must wait for the same as before."""


def test_a_join_goes_on_waiting_for_branches_that_are_open() -> None:
    run = run_of(
        a={**STEP, "fan_out": "all", "next": [{"to": "o"}, {"to": "c"}]},
        o={**STEP, "next": [{"to": ["p", "q"]}]},
        p={**STEP, "next": "f"},
        q={**STEP, "next": "f"},
        f={**STEP, "join": "all", "next": "j"},
        c={**STEP, "next": "j"},
        j={**STEP, "join": "edges"},
    )
    for node in "aoc":
        run.finish(node, None, {})
    before = run.state.slots["j|"].items
    patched(run, ops=LATER)
    assert run.state.slots["j|"].items == before
    assert all(ended.state.executed["j"] == 1 for ended in ends_clean(run))


def test_a_join_goes_on_waiting_for_a_loop_that_is_running() -> None:
    run = loop_and_join(a=["l", "c"])
    for node in "ac":
        run.finish(node, None, {})
    patched(run, ops=LATER)
    (ended,) = ends_clean(run)
    assert ended.state.executed == {"a": 1, "c": 1, "l": 2, "m": 2, "j": 1}


def test_a_join_goes_on_waiting_for_a_loop_that_lies_ahead() -> None:
    run = loop_and_join(a=["b", "c"], b={**STEP, "next": "l"})
    for node in "ac":
        run.finish(node, None, {})
    patched(run, ops=LATER)
    (ended,) = ends_clean(run)
    assert ended.state.executed == {"a": 1, "c": 1, "b": 1, "l": 2, "m": 2, "j": 1}


def loop_and_join(a: list[str], **more: Any) -> PatchTable:
    """Return a run with a loop of two nodes beside c, both before a join."""
    return run_of(
        a={**STEP, "fan_out": "all", "next": [{"to": name} for name in a]},
        l={**STEP, "next": "m"},
        m={**STEP, "repeat": {"back_to": "l", "while": "true", "at_most": 2, "exhausted": "j"}, "next": "j"},
        c={**STEP, "next": "j"},
        j={**STEP, "join": "edges"},
        **more,
    )


def test_nothing_is_expected_behind_a_node_that_has_run() -> None:
    run = fork_and_join()
    reach = ScopeReach(StaticScopes(run.programs[FIRST].graph))
    begin = Begin([], [("a", False)], [])
    assert reach.walk(begin, "", ()).nodes == set("abcj")
    assert reach.walk(begin, "", {"b", "c"}).nodes == set("abc")


def test_an_edge_that_a_better_one_hid_counts_as_new() -> None:
    ways = [{"from": "b", "to": "m", "priority": 1}, {"from": "b", "to": "d", "priority": 2}]
    run = PatchTable(
        {
            "name": "g",
            "nodes": {"a": {**STEP, "dependents": ["d", "b"]}, "b": STEP, "d": STEP, "m": STEP},
            "transitions": ways,
        },
        {"n": 1},
    )
    for node in "ad":
        run.finish(node, None, {})
    ops = [{"op": "add", "path": "/transitions/0/condition", "value": "input.n > 1"}]
    assert codes(run, ops=ops) == ["patch.revives"]


def test_no_token_comes_over_an_edge_over_which_one_waits() -> None:
    run = fork_and_join()
    for node in "ac":
        run.finish(node, None, {})
    assert codes(run, ops=[], move=[{"node": "b", "to": "j", "via": "c"}]) == ["patch.edge_taken"]
    assert codes(run, ops=[], move=[{"node": "b", "to": "j"}]) == ["patch.say_via"]


def test_no_token_comes_over_an_edge_that_is_not_there() -> None:
    run = run_of(a={**STEP, "next": "b"}, b={**STEP, "next": "c"}, c=STEP)
    assert codes(run, ops=[], move=[{"node": "a", "to": "c", "via": "b"}]) == []
    for via in ("nowhere", "x" * 5_000):
        command = run.prepare({"reason": "r", "ops": [], "move": [{"node": "a", "to": "c", "via": via}]})
        (refusal,) = run.judge(command).refusals
        assert refusal.code == "patch.say_via"
        assert len(refusal.message) < 200


def many(width: int = 0) -> PatchTable:
    """Return a run with three branches, of which so many work at a time, and a node that needs them all."""
    each = {"to": "b", "for_each": "${input.items}", **({"width": width} if width else {})}
    run = run_of(
        {"items": [3, 1, 2]},
        a={**STEP, "next": [each]},
        b={**STEP, "next": "j"},
        j={**STEP, "join": "all", "merge": {"how": "append", "into": "state.results"}},
    )
    run.finish("a", None, {})
    return run


def test_queued_branches_begin_up_to_the_new_width() -> None:
    run = many(width=1)
    assert [token.mode for token in run.state.tokens.values()].count("working") == 1
    patched(run, ops=[{"op": "replace", "path": "/nodes/a/next/0/width", "value": 2}])
    assert [token.mode for token in run.state.tokens.values()].count("working") == 2
    ends_clean(run)


def test_of_more_branches_than_are_needed_now_the_first_that_arrived_count() -> None:
    run = many()
    for branch in (2, 0):
        run.finish("b", branch, {"b": {"*": {"output": f"branch {branch}"}}})
    patched(run, ops=[{"op": "replace", "path": "/nodes/j/join", "value": "any"}])
    assert run.state.data["results"] == ["branch 2"]
    ends_clean(run)


def test_a_field_of_the_state_that_is_new_has_its_default() -> None:
    run = run_of(a={**STEP, "next": "b"}, b=STEP)
    run.finish("a", None, {})
    schema = {"type": "object", "properties": {"limit": {"type": "integer", "default": 5}, "note": {"type": "string"}}}
    patched(run, ops=[{"op": "add", "path": "/state", "value": schema}])
    assert run.state.data == {"limit": 5, "note": None}


def test_a_new_entry_does_not_run_and_the_plan_says_so() -> None:
    run = run_of(a={**STEP, "next": "b"}, b=STEP)
    run.finish("a", None, {})
    command = run.prepare({"reason": "r", "ops": [{"op": "add", "path": "/nodes/x", "value": {**STEP, "next": "b"}}]})
    assert [note.partition(":")[0] for note in run.judge(command).notes] == ["never_starts"]
    run.tell(command)
    (ended,) = ends_clean(run)
    assert ended.state.executed == {"a": 1, "b": 1}
